//! One connection while it lasts: frames in, acknowledgements and heartbeats out.

use std::collections::VecDeque;
use std::time::Duration;

use domain::Seq;
use protocol::{Ack, ClientFrame, ClientOp, EventEnvelope, GatewayError, Heartbeat, ProblemCode, ServerFrame};
use tokio::time::Instant;

use super::Link;
use super::error::ConsumerError;
use super::gateway::{Engine, Subject};
use super::judge::End;
use super::ledger::Generation;
use super::shared::AckNeed;
use super::socket::{Incoming, Socket};
use crate::backoff::jitter;

/// How long positions that were not for this consumer may wait to be acknowledged: nobody waits for that.
pub(super) const CURSOR_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait after the server has refused an acknowledgement for its number.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// Heartbeats on the way that a confirmation is expected of; a server that answers none of so many is gone anyway.
const MAX_BEATS: usize = 64;

/// Why a connection is over.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It ended.
    Ended(End),
    /// It is not what the application wants, and never will be.
    Useless(ConsumerError),
    /// A reader has to read pages first.
    TooFarBehind,
}

impl From<End> for Outcome {
    fn from(end: End) -> Self {
        Self::Ended(end)
    }
}

/// A connection whose session has begun.
pub(super) struct Drive<'a> {
    engine: &'a mut Engine,
    socket: Socket,
    interval: Duration,
    heard_at: Instant,
    beat_at: Instant,
    ack_not_before: Instant,
    cursor_not_before: Instant,
    reading: bool,
    /// What each heartbeat on the way confirms when it is answered.
    beats: VecDeque<(Seq, Generation)>,
}

impl<'a> Drive<'a> {
    pub(super) fn new(engine: &'a mut Engine, socket: Socket, interval: Duration) -> Self {
        let now = Instant::now();
        Self {
            engine,
            socket,
            interval,
            heard_at: now,
            // The first one early, so that many clients that came together do not beat together.
            beat_at: now + jitter(interval),
            ack_not_before: now,
            cursor_not_before: now + CURSOR_INTERVAL,
            reading: true,
            beats: VecDeque::new(),
        }
    }

    pub(super) async fn run(mut self) -> Outcome {
        let outcome = self.converse().await;
        let outcome = match outcome {
            Ok(never) => match never {},
            Err(outcome) => outcome,
        };
        match outcome {
            Outcome::Ended(End::Stopped) => {
                // The other half is left for bringing it another way.
                let within = self.engine.options.close_timeout / 2;
                if tokio::time::timeout(within, self.settle()).await.is_ok_and(|settled| settled.is_ok()) {
                    self.socket.close().await;
                }
            }
            Outcome::TooFarBehind | Outcome::Useless(_) => self.socket.close().await,
            Outcome::Ended(_) => {}
        }
        outcome
    }

    async fn converse(&mut self) -> Result<std::convert::Infallible, Outcome> {
        let stop = self.engine.stop.clone();
        loop {
            let ack_at = self.send_acknowledgement().await?;
            self.update_reading();
            let silent_at = self.heard_at + 2 * self.interval;
            let wake_at = [Some(self.beat_at), ack_at, self.reading.then_some(silent_at)].into_iter().flatten().min();
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err(End::Stopped.into()),
                () = self.engine.shared.connection.notified() => {}
                () = tokio::time::sleep_until(wake_at.unwrap_or(self.beat_at)) => self.on_time(silent_at).await?,
                incoming = self.socket.receive(), if self.reading => self.incoming(incoming?)?,
            }
        }
    }

    /// Stops reading while the application has enough to do. Heartbeats go on; whether the server lives cannot be told meanwhile.
    fn update_reading(&mut self) {
        let reading = self.engine.shared.has_room();
        if reading && !self.reading {
            self.heard_at = Instant::now();
        }
        self.reading = reading;
    }

    async fn on_time(&mut self, silent_at: Instant) -> Result<(), Outcome> {
        let now = Instant::now();
        if self.reading && now >= silent_at {
            let cause = format!("the server was silent for {} s", (2 * self.interval).as_secs_f32());
            return Err(End::Lost(cause).into());
        }
        if now >= self.beat_at {
            self.beat().await?;
        }
        Ok(())
    }

    async fn beat(&mut self) -> Result<(), End> {
        self.beat_at = Instant::now() + self.interval;
        if self.beats.len() < MAX_BEATS {
            self.beats.push_back(self.engine.shared.sent());
        }
        self.socket.send(&ClientFrame::Heartbeat(Heartbeat {})).await
    }

    /// Sends an acknowledgement when one is due; otherwise when one will be.
    async fn send_acknowledgement(&mut self) -> Result<Option<Instant>, End> {
        if self.engine.subject != Subject::Consumer {
            return Ok(None);
        }
        let now = Instant::now();
        let many = self.engine.max_inflight / 2;
        let due = match self.engine.shared.ack_need() {
            AckNeed::None => return Ok(None),
            AckNeed::Flush => {
                self.acknowledge().await?;
                self.beat().await?;
                return Ok(None);
            }
            AckNeed::Cursor => self.cursor_not_before,
            // The server waits for room in its window: more is gained by telling it than by joining more.
            AckNeed::Deliveries(count) if count >= many => now,
            AckNeed::Deliveries(_) => self.ack_not_before,
        };
        if due > now {
            return Ok(Some(due));
        }
        self.acknowledge().await?;
        Ok(None)
    }

    async fn acknowledge(&mut self) -> Result<(), End> {
        let now = Instant::now();
        self.ack_not_before = now + self.engine.options.ack_interval;
        self.cursor_not_before = now + CURSOR_INTERVAL;
        match self.engine.shared.sending() {
            Some(seq) => self.socket.send(&ClientFrame::Ack(Ack { seq })).await,
            None => Ok(()),
        }
    }

    fn incoming(&mut self, incoming: Incoming) -> Result<(), Outcome> {
        self.heard_at = Instant::now();
        let Incoming::Frame(frame) = incoming else { return Ok(()) };
        match frame {
            ServerFrame::Dispatch(dispatch) => {
                let event = EventEnvelope::parse(&dispatch.event).map_err(|error| End::Unreadable(format!("not an event: {error}")))?;
                match self.engine.subject {
                    Subject::Consumer => {
                        self.engine.shared.arrived(event, dispatch.event);
                    }
                    Subject::Reader { .. } => self.engine.shared.arrived_for_reader(event, dispatch.event),
                }
            }
            ServerFrame::Cursor(cursor) => self.engine.shared.checked(cursor.seq),
            ServerFrame::CatchupComplete(_) => self.engine.shared.update_link(|link| {
                if let Link::Connected(connected) = link {
                    connected.caught_up = true;
                }
            }),
            ServerFrame::ResyncRequired(resync) => {
                if let Some(outcome) = self.engine.resync(&resync) {
                    return Err(outcome);
                }
            }
            ServerFrame::HeartbeatAck(_) => {
                if let Some(sent) = self.beats.pop_front() {
                    self.engine.shared.confirm_sent(sent);
                }
            }
            ServerFrame::Error(error) => self.refused(error),
            ServerFrame::Hello(_) | ServerFrame::Ready(_) | ServerFrame::Resumed(_) | ServerFrame::InboxUpdated(_) => {}
            ServerFrame::Unknown { op } => tracing::debug!(op, "a frame of an unknown op was ignored"),
        }
        Ok(())
    }

    /// An acknowledgement that came too fast is sent again later; every other refusal is for the application.
    fn refused(&mut self, error: GatewayError) {
        let too_fast = error.code.known() == Some(ProblemCode::RateLimited);
        if too_fast && error.refused_op == ClientOp::Ack.as_str() {
            self.ack_not_before = Instant::now() + REFUSED_PAUSE;
            self.cursor_not_before = self.ack_not_before;
            self.engine.shared.ack_refused();
            return;
        }
        self.engine.shared.notice(ConsumerError::OpRefused(error));
    }

    /// Brings what is acknowledged to the server and waits until it has been read there.
    async fn settle(&mut self) -> Result<(), End> {
        if self.engine.subject != Subject::Consumer {
            return Ok(());
        }
        self.acknowledge().await?;
        self.beat().await?;
        while !self.beats.is_empty() {
            if let Incoming::Frame(ServerFrame::HeartbeatAck(_)) = self.socket.receive().await?
                && let Some(sent) = self.beats.pop_front()
            {
                self.engine.shared.confirm_sent(sent);
            }
        }
        Ok(())
    }
}
