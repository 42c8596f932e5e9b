//! Counters of delivery, for whoever renders them. Knows no metrics library.

use domain::{Counter, Gauge, Latency};
use std::sync::Arc;
use std::time::Duration;

use protocol::{CloseCode, Vocabulary};

/// How far the connected consumers of this process are behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Events between what each has acknowledged and the head that it has seen, all together.
    pub events: u64,
    /// The same of the one that is furthest behind.
    pub most: u64,
    /// How long the oldest dispatch is waiting for its acknowledgement.
    pub oldest_unacked: Option<Duration>,
}

/// Counts something in a gauge for as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted {
    metrics: Arc<Metrics>,
    gauge: fn(&Metrics) -> &Gauge,
}

impl Counted {
    pub(crate) fn new(metrics: &Arc<Metrics>, gauge: fn(&Metrics) -> &Gauge) -> Self {
        gauge(metrics).up();
        Self { metrics: Arc::clone(metrics), gauge }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.gauge)(&self.metrics).down();
    }
}

/// What delivery counts.
#[derive(Debug)]
pub struct Metrics {
    /// Open gateway connections, the unidentified included.
    pub connections: Gauge,
    /// Identified gateway connections of agents.
    pub agent_connections: Gauge,
    /// Identified gateway connections of people and apps.
    pub client_connections: Gauge,
    /// Open event streams of people and apps (server-sent events).
    pub streams: Gauge,
    /// Polls of consumers that wait for an event.
    pub waiting_polls: Gauge,
    /// Gateway sessions, those that wait to be resumed included.
    pub sessions: Gauge,
    /// Hints about inboxes passed on over the gateway.
    pub hints: Counter,
    /// Events dispatched over the gateway, redeliveries included.
    pub dispatched: Counter,
    /// Events dispatched over REST polls, redeliveries included.
    pub polled: Counter,
    /// Events dispatched to people and apps over REST pages and streams.
    pub read: Counter,
    /// Events dispatched again after `agent.ack_timeout`, on either transport.
    pub redelivered: Counter,
    /// Acknowledgements over the gateway.
    pub acks: Counter,
    /// Acknowledgements saved.
    pub saves: Counter,
    /// Batches of saves that failed; their sessions are saved with the next.
    pub save_failures: Counter,
    /// Consumers taken from an attached holder.
    pub takeovers: Counter,
    /// Takeovers refused as a storm (`agent.takeover_burst`).
    pub takeovers_refused: Counter,
    /// Sessions resumed.
    pub resumes: Counter,
    /// Resynchronisations.
    pub resyncs: Counter,
    /// Frames refused with an `error` or a close.
    pub frames_refused: Counter,
    /// From an event's acceptance to its first dispatch to a consumer that was connected then; the oldest event of each batch.
    pub dispatch_latency: Latency,
    /// From the oldest dispatch that an acknowledgement covers to the acknowledgement.
    pub ack_latency: Latency,
    closes: Vec<Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            connections: Gauge::default(),
            agent_connections: Gauge::default(),
            client_connections: Gauge::default(),
            streams: Gauge::default(),
            waiting_polls: Gauge::default(),
            sessions: Gauge::default(),
            hints: Counter::default(),
            dispatched: Counter::default(),
            polled: Counter::default(),
            read: Counter::default(),
            redelivered: Counter::default(),
            acks: Counter::default(),
            saves: Counter::default(),
            save_failures: Counter::default(),
            takeovers: Counter::default(),
            takeovers_refused: Counter::default(),
            resumes: Counter::default(),
            resyncs: Counter::default(),
            frames_refused: Counter::default(),
            dispatch_latency: Latency::default(),
            ack_latency: Latency::default(),
            closes: CloseCode::all().iter().map(|_| Counter::default()).collect(),
        }
    }
}

impl Metrics {
    /// How often each code closed a connection. Slow consumers are `CloseCode::SlowConsumer`.
    pub fn closes(&self) -> impl Iterator<Item = (CloseCode, u64)> {
        CloseCode::all().iter().copied().zip(self.closes.iter().map(Counter::get))
    }

    pub(crate) fn closed(&self, code: CloseCode) {
        if let Some((_, counter)) = CloseCode::all().iter().zip(&self.closes).find(|(each, _)| **each == code) {
            counter.increment();
        }
    }
}
