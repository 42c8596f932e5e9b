//! Counters of delivery, for whoever renders them. Knows no metrics library.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::{CloseCode, Vocabulary};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The present value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// The present value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn up(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
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
