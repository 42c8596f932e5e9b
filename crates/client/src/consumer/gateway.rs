//! A consumer or reader over WebSocket: connects, resumes or identifies, and connects again.

use std::sync::Arc;
use std::time::Duration;

use domain::{Seq, SessionId, SyncEpoch};
use protocol::{ClientFrame, CloseCode, ConsumerAck, Hello, Identify, PROTOCOL, Ready, Resume, Resumed, ResyncReason, ServerFrame};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::drive::{Drive, Outcome};
use super::error::ConsumerError;
use super::judge::{Begun, End, Next, judge, refused};
use super::options::{ConsumerOptions, ReaderOptions};
use super::shared::Shared;
use super::socket::{Incoming, Socket};
use super::{Connected, Link};
use crate::rest;
use crate::transport::Transport;
use crate::{Backoff, Retry};

/// After how many connections in a row that carried only what cannot be read it is given up.
const UNREADABLE_LIMIT: u32 = 3;
/// Events of one page when a reader is too far behind for the gateway.
const PAGE_LIMIT: u32 = 500;

/// Runs an agent's consumer until it ends.
pub(super) async fn consume(transport: Arc<Transport>, options: ConsumerOptions, shared: Arc<Shared>, stop: CancellationToken) {
    Engine::new(transport, options, shared, stop, Subject::Consumer).run().await;
}

/// Runs a person's or app's reader until it ends.
pub(super) async fn read(transport: Arc<Transport>, options: ReaderOptions, shared: Arc<Shared>, stop: CancellationToken) {
    let ReaderOptions { cursor, sync_epoch, consumer } = options;
    if let Some(cursor) = cursor {
        shared.connected(cursor);
    }
    let mut engine = Engine::new(transport, consumer, shared, stop, Subject::Reader { placed: cursor.is_some() });
    engine.epoch = sync_epoch;
    engine.run().await;
}

/// Whose cursor it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The server's: acknowledgements move it.
    Consumer,
    /// The caller's: `placed` once there is one.
    Reader { placed: bool },
}

/// A session that may outlive its connection.
#[derive(Debug)]
struct Session {
    id: SessionId,
    window: Duration,
    lost_at: Option<Instant>,
}

/// Everything that outlives a connection.
#[derive(Debug)]
pub(super) struct Engine {
    transport: Arc<Transport>,
    pub(super) options: ConsumerOptions,
    pub(super) shared: Arc<Shared>,
    pub(super) stop: CancellationToken,
    pub(super) subject: Subject,
    backoff: Backoff,
    session: Option<Session>,
    pub(super) epoch: Option<SyncEpoch>,
    /// The epoch whose beginning the application was told of.
    announced: Option<SyncEpoch>,
    pub(super) max_inflight: usize,
    unreadable: u32,
}

impl Engine {
    fn new(transport: Arc<Transport>, options: ConsumerOptions, shared: Arc<Shared>, stop: CancellationToken, subject: Subject) -> Self {
        let backoff = Backoff::new(options.backoff);
        Self {
            transport,
            options,
            shared,
            stop,
            subject,
            backoff,
            session: None,
            epoch: None,
            announced: None,
            max_inflight: usize::MAX,
            unreadable: 0,
        }
    }

    async fn run(mut self) {
        loop {
            self.shared.set_link(Link::Connecting);
            let begun = if self.resumable().is_some() { Begun::Resume } else { Begun::Identify };
            let next = match self.connection().await {
                Outcome::Ended(end) => self.judge(end, begun),
                Outcome::TooFarBehind => self.page().await,
                Outcome::Useless(error) => Next::Stop(Some(error)),
            };
            match next {
                Next::Stop(Some(error)) => return self.shared.notice(error),
                Next::Stop(None) => break,
                Next::Again { pause, resume, cause } => {
                    if !resume {
                        self.session = None;
                    }
                    if self.paused(pause, cause).await.is_err() {
                        break;
                    }
                }
            }
        }
        self.bring_over_rest().await;
    }

    /// Brings what the connection could not bring any more before the end. This takes nothing over, as a new connection would.
    async fn bring_over_rest(&self) {
        if self.subject != Subject::Consumer || !self.shared.is_unconfirmed() {
            return;
        }
        let bringing = async {
            let mut backoff = Backoff::new(self.options.backoff);
            let (_, generation) = self.shared.sent();
            let ack = ConsumerAck { seq: self.shared.position(), sync_epoch: self.epoch };
            loop {
                match rest::ack_consumer(&self.transport, &self.options.name, ack).await {
                    Ok(state) => return self.shared.confirm_sent((state.acked_seq, generation)),
                    Err(error) if error.retry() == Retry::Never => return,
                    Err(error) => tokio::time::sleep(backoff.next_pause().max(error.retry_after().unwrap_or_default())).await,
                }
            }
        };
        let _ = tokio::time::timeout(self.options.close_timeout / 2, bringing).await;
    }

    /// Waits before the next connection. `Err` when asked to stop meanwhile.
    async fn paused(&self, pause: Duration, cause: String) -> Result<(), ()> {
        if pause.is_zero() {
            return Ok(());
        }
        tracing::debug!(cause, pause.ms = pause.as_millis() as u64, "the consumer connects again after a pause");
        self.shared.set_link(Link::Waiting { pause, cause });
        tokio::select! {
            () = self.stop.cancelled() => Err(()),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    fn judge(&mut self, end: End, begun: Begun) -> Next {
        if let Some(session) = &mut self.session {
            session.lost_at.get_or_insert_with(Instant::now);
        }
        match &end {
            End::Unreadable(cause) => {
                self.unreadable += 1;
                if self.unreadable >= UNREADABLE_LIMIT {
                    return Next::Stop(Some(ConsumerError::Unreadable { cause: cause.clone() }));
                }
            }
            _ => self.unreadable = 0,
        }
        if matches!(end, End::Closed(Some(number)) if number == CloseCode::Unauthenticated.number()) && self.transport.renews_token() {
            return Next::Again { pause: Duration::ZERO, resume: false, cause: "the token has been replaced".to_owned() };
        }
        judge(end, begun, &mut self.backoff, &self.options)
    }

    /// The session to resume, while its window lasts.
    fn resumable(&self) -> Option<SessionId> {
        let session = self.session.as_ref()?;
        let lasts = session.lost_at.is_none_or(|lost| lost.elapsed() < session.window);
        lasts.then_some(session.id)
    }

    /// One connection from its upgrade to its end.
    async fn connection(&mut self) -> Outcome {
        let stop = self.stop.clone();
        let within = self.transport.options().request_timeout;
        let begun = async {
            match tokio::time::timeout(within, self.begin()).await {
                Ok(begun) => begun,
                Err(_) => Err(Outcome::Ended(End::Lost("the server did not begin a session in time".to_owned()))),
            }
        };
        let begun = tokio::select! {
            () = stop.cancelled() => return Outcome::Ended(End::Stopped),
            begun = begun => begun,
        };
        match begun {
            Err(outcome) => outcome,
            Ok((socket, interval)) => {
                let since = Instant::now();
                let outcome = Drive::new(self, socket, interval).run().await;
                self.backoff.after_connection(since.elapsed());
                outcome
            }
        }
    }

    /// Makes a connection and begins or continues the session.
    async fn begin(&mut self) -> Result<(Socket, Duration), Outcome> {
        let mut socket = Socket::open(&self.transport).await?;
        let mut interval = None;
        loop {
            let Incoming::Frame(frame) = socket.receive().await? else { continue };
            match frame {
                ServerFrame::Hello(Hello { heartbeat_interval_ms, .. }) => {
                    interval = Some(Duration::from_millis(heartbeat_interval_ms.max(1)));
                    socket.send(&self.greeting()).await?;
                }
                ServerFrame::Ready(Ready { consumer: None, principal, .. }) if self.subject == Subject::Consumer => {
                    socket.close().await;
                    let (kind, id) = (principal.kind.to_string(), principal.id);
                    return Err(Outcome::Useless(ConsumerError::NotAnAgent { kind, id }));
                }
                ServerFrame::Ready(ready) => {
                    self.ready(&ready);
                    return Ok((socket, interval.unwrap_or(Duration::from_secs(30))));
                }
                ServerFrame::Resumed(resumed) => {
                    self.resumed(&resumed);
                    return Ok((socket, interval.unwrap_or(Duration::from_secs(30))));
                }
                ServerFrame::Error(error) => {
                    let cause = format!("{}: {}", error.refused_op, error.detail);
                    self.session = None;
                    return Err(Outcome::Ended(End::Lost(cause)));
                }
                // The reason for which a reader cannot begin where it wants to; `ready` follows or has been said.
                ServerFrame::ResyncRequired(resync) => {
                    if let Some(outcome) = self.resync(&resync) {
                        return Err(outcome);
                    }
                }
                _ => {}
            }
        }
    }

    fn greeting(&self) -> ClientFrame {
        let cursor = match self.subject {
            Subject::Reader { placed: true } => Some(self.shared.position()),
            Subject::Reader { placed: false } | Subject::Consumer => None,
        };
        match self.resumable() {
            Some(gateway_session_id) => ClientFrame::Resume(Resume { token: None, gateway_session_id, cursor }),
            None => ClientFrame::Identify(Identify {
                protocol: Some(PROTOCOL),
                consumer: matches!(self.subject, Subject::Consumer).then(|| self.options.name.clone()),
                cursor,
                sync_epoch: cursor.and(self.epoch),
                ..Identify::default()
            }),
        }
    }

    fn ready(&mut self, ready: &Ready) {
        let window = Duration::from_millis(ready.resume_window_ms);
        self.session = Some(Session { id: ready.gateway_session_id, window, lost_at: None });
        self.max_inflight = ready.max_inflight_events.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        match self.subject {
            Subject::Consumer => {
                let acked = ready.acked_seq.unwrap_or(ready.head_seq);
                if self.epoch.is_some_and(|epoch| epoch != ready.sync_epoch) {
                    self.new_epoch(ready.sync_epoch, acked, None);
                } else {
                    self.shared.connected(acked);
                }
                self.epoch = Some(ready.sync_epoch);
            }
            Subject::Reader { placed: true } => self.epoch = self.epoch.or(Some(ready.sync_epoch)),
            Subject::Reader { placed: false } => {
                self.shared.connected(ready.head_seq);
                self.epoch = Some(ready.sync_epoch);
                self.subject = Subject::Reader { placed: true };
            }
        }
        self.connected(ready.head_seq, ready.acked_seq);
    }

    fn resumed(&mut self, resumed: &Resumed) {
        if let Some(session) = &mut self.session {
            session.lost_at = None;
        }
        if let (Subject::Consumer, Some(acked)) = (self.subject, resumed.acked_seq) {
            self.shared.connected(acked);
        }
        self.connected(resumed.head_seq, resumed.acked_seq);
    }

    fn connected(&self, head_seq: Seq, acked_seq: Option<Seq>) {
        let acked_seq = acked_seq.unwrap_or_else(|| self.shared.position());
        self.shared.set_link(Link::Connected(Connected { head_seq, acked_seq, caught_up: false }));
    }

    /// The server cannot serve the position. `Some` when the connection has to end for it.
    pub(super) fn resync(&mut self, resync: &protocol::ResyncRequired) -> Option<Outcome> {
        let reason = resync.reason.known();
        let reader = matches!(self.subject, Subject::Reader { .. });
        if reader && reason == Some(ResyncReason::TooFarBehind) {
            return Some(Outcome::TooFarBehind);
        }
        if reason == Some(ResyncReason::EpochChanged) {
            // `ready` has shown it already, and perhaps events of the new epoch are in hand.
            if self.announced != Some(resync.sync_epoch) {
                self.new_epoch(resync.sync_epoch, resync.head_seq, Some(resync.floor_seq));
            }
        } else {
            self.shared.resync(resync.head_seq, true);
            self.notice(reason, resync.head_seq, Some(resync.floor_seq));
        }
        self.epoch = Some(resync.sync_epoch);
        None
    }

    /// What waits belongs to a history that is gone; what is left of it the server sends again.
    fn new_epoch(&mut self, epoch: SyncEpoch, position: Seq, floor: Option<Seq>) {
        self.announced = Some(epoch);
        self.shared.resync(position, false);
        self.notice(Some(ResyncReason::EpochChanged), position, floor);
    }

    fn notice(&self, reason: Option<ResyncReason>, head_seq: Seq, floor_seq: Option<Seq>) {
        self.shared.notice(ConsumerError::ResyncRequired { reason, head_seq, floor_seq });
    }

    /// A reader that is too far behind for the gateway reads pages until it is not.
    async fn page(&mut self) -> Next {
        self.session = None;
        loop {
            while !self.shared.has_room() {
                tokio::select! {
                    () = self.stop.cancelled() => return Next::Stop(None),
                    () = self.shared.connection.notified() => {}
                }
            }
            let after = self.shared.position();
            let page = tokio::select! {
                () = self.stop.cancelled() => return Next::Stop(None),
                page = rest::event_page(&self.transport, after, PAGE_LIMIT, self.epoch) => page,
            };
            let page = match page {
                Ok(page) => page,
                Err(error) => return self.page_refused(error),
            };
            for raw in page.events {
                match protocol::EventEnvelope::parse(&raw) {
                    Ok(event) => self.shared.arrived_for_reader(event, raw),
                    Err(error) => return Next::Stop(Some(ConsumerError::Unreadable { cause: error.to_string() })),
                }
            }
            self.shared.checked(page.next_cursor);
            if page.next_cursor >= page.head_seq {
                return Next::Again { pause: Duration::ZERO, resume: false, cause: String::new() };
            }
        }
    }

    fn page_refused(&mut self, error: crate::ClientError) -> Next {
        let resync = error.problem().and_then(protocol_resync);
        match resync {
            Some(resync) => {
                let _ = self.resync(&resync);
                Next::Again { pause: Duration::ZERO, resume: false, cause: String::new() }
            }
            None => refused(error, &mut self.backoff),
        }
    }
}

/// A 410 as the frame that says the same.
pub(super) fn protocol_resync(problem: &protocol::Problem) -> Option<protocol::ResyncRequired> {
    use protocol::{Open, ProblemCode, Reason, Vocabulary as _};

    if problem.code.known() != Some(ProblemCode::ResyncRequired) {
        return None;
    }
    let reason = match problem.reason.clone() {
        Some(Open::Known(reason)) => {
            ResyncReason::from_word(Reason::as_str(reason)).map_or_else(|| Open::Other(reason.to_string()), Open::Known)
        }
        Some(Open::Other(word)) => Open::Other(word),
        None => Open::Other(String::new()),
    };
    let (head_seq, sync_epoch) = (problem.head_seq?, problem.sync_epoch?);
    Some(protocol::ResyncRequired { reason, head_seq, sync_epoch, floor_seq: problem.floor_seq.unwrap_or(Seq::ZERO) })
}
