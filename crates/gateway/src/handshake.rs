//! From a fresh socket to a session: `hello`, `identify` or `resume`, and who is behind it.

mod agent;
mod client;

use std::pin::pin;
use std::sync::Arc;

use agents::ConsumerError;
use authz::{Admission, AuthenticationError, Caller, Denied, DeniedReason, PrincipalKind, Standing};
use bytes::Bytes;
use domain::{ActorKind, Seq, StoreError};
use protocol::{ClientFrame, CloseCode, Hello, Identify, PROTOCOL, Ready, ReadyPrincipal, Resume, Resumed, Secret, ServerFrame};
use sync::{Head, TenantLog};
use tokio::time::{Instant, timeout};

use crate::rate::FrameAllowance;
use crate::registry::{NotResumable, Slot};
use crate::resync::Resync;
use crate::runner::{End, Track, within};
use crate::session::{Link, Owner, Session};
use crate::{Connection, Gateway, Hints, Incoming};

/// How a client begins.
#[derive(Debug)]
pub(crate) enum Request {
    Identify(Identify),
    Resume(Resume),
}

/// A session with everything that serving it needs.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) session: Arc<Session>,
    pub(crate) link: Arc<Link>,
    pub(crate) slot: Slot,
    pub(crate) caller: Caller,
    pub(crate) log: Arc<TenantLog>,
    pub(crate) admission: Admission,
    pub(crate) track: Track,
    /// The position could not be served: to be settled before anything is read.
    pub(crate) resync: Option<Resync>,
    /// Hints about the agent's inbox, if it asked for them.
    pub(crate) hints: Option<Box<dyn Hints>>,
}

/// Who connects, and what serving them needs whichever kind they are.
struct Visitor {
    caller: Caller,
    owner: Owner,
    log: Arc<TenantLog>,
    admission: Admission,
}

/// Says hello and waits for `identify` or `resume`, at most `gateway.identify_timeout`.
pub(crate) async fn hear_request<C: Connection>(gateway: &Gateway, connection: &mut C) -> Result<Request, End> {
    let settings = &gateway.settings;
    let interval = u64::try_from(settings.heartbeat_interval.as_millis()).unwrap_or(u64::MAX);
    let hello = ServerFrame::Hello(Hello { heartbeat_interval_ms: interval, protocol: PROTOCOL });
    let writing = async {
        connection.feed(encode(&hello)).await?;
        connection.flush().await
    };
    within(&Link::default(), settings.write_timeout, pin!(writing)).await?;
    let mut phase = gateway.phase();
    tokio::select! {
        code = phase.closed() => Err(End::Close(code)),
        heard = timeout(settings.identify_timeout, hear_frame(gateway, connection)) => {
            heard.unwrap_or(Err(End::Close(CloseCode::NotIdentified)))
        }
    }
}

async fn hear_frame<C: Connection>(gateway: &Gateway, connection: &mut C) -> Result<Request, End> {
    let mut allowance = FrameAllowance::new(gateway.settings.max_frames_per_second, Instant::now());
    loop {
        let code = match connection.receive().await {
            Incoming::Text(text) => return parse(&text).map_err(End::Close),
            Incoming::Alive if allowance.take(Instant::now()) => continue,
            Incoming::Alive => CloseCode::RateLimited,
            Incoming::Binary | Incoming::Invalid => CloseCode::InvalidFrame,
            Incoming::TooLarge => CloseCode::FrameTooLarge,
            Incoming::Gone => return Err(End::Gone),
        };
        return Err(End::Close(code));
    }
}

fn parse(text: &[u8]) -> Result<Request, CloseCode> {
    let text = std::str::from_utf8(text).map_err(|_| CloseCode::InvalidFrame)?;
    match ClientFrame::parse(text) {
        Ok(ClientFrame::Identify(identify)) => Ok(Request::Identify(identify)),
        Ok(ClientFrame::Resume(resume)) => Ok(Request::Resume(resume)),
        Ok(ClientFrame::Ack(_) | ClientFrame::Heartbeat(_)) => Err(CloseCode::NotIdentified),
        Err(fault) => Err(fault.close_code().unwrap_or(CloseCode::NotIdentified)),
    }
}

/// Makes or finds the session that `request` asks for; answers it with the frames that greet it.
///
/// Not to be cut off: a take that was begun is brought to its end, so that holder and session agree.
pub(crate) async fn admit(gateway: &Gateway, request: Request, credential: Option<Secret>) -> Result<(Attached, Vec<Bytes>), CloseCode> {
    match request {
        Request::Identify(identify) => identify_as(gateway, identify, credential).await,
        Request::Resume(resume) => resume_as(gateway, resume, credential).await,
    }
}

async fn identify_as(gateway: &Gateway, mut identify: Identify, credential: Option<Secret>) -> Result<(Attached, Vec<Bytes>), CloseCode> {
    if identify.protocol.is_some_and(|version| version != PROTOCOL) {
        return Err(CloseCode::UnsupportedProtocol);
    }
    let caller = authenticate(gateway, identify.token.take().or(credential)).await?;
    let owner = (caller.tenant.clone(), caller.principal.clone());
    let slot = gateway.registry.reserve(&owner).ok_or(CloseCode::RateLimited)?;
    let visitor = receive(gateway, caller, owner).await?;
    match visitor.caller.kind {
        PrincipalKind::Agent => agent::identify(gateway, visitor, slot, identify).await,
        PrincipalKind::Person | PrincipalKind::App => client::identify(gateway, visitor, slot, &identify).await,
    }
}

async fn resume_as(gateway: &Gateway, mut resume: Resume, credential: Option<Secret>) -> Result<(Attached, Vec<Bytes>), CloseCode> {
    let caller = authenticate(gateway, resume.token.take().or(credential)).await?;
    let owner = (caller.tenant.clone(), caller.principal.clone());
    let session = gateway.registry.find(resume.gateway_session_id, &owner, tokio::time::Instant::now()).map_err(refusal)?;
    let slot = gateway.registry.reserve_for_resume(&owner);
    let visitor = receive(gateway, caller, owner).await?;
    if session.epoch() != visitor.log.epoch() {
        // The session's positions belong to a history that was replaced.
        gateway.registry.end(&session);
        return Err(CloseCode::UnknownSession);
    }
    let resumed = match session.key() {
        Some(_) => agent::resume(gateway, visitor, slot, &session).await,
        None => client::resume(gateway, visitor, slot, &session, &resume).await,
    };
    if resumed.is_ok() {
        gateway.metrics.resumes.increment();
    }
    resumed
}

async fn authenticate(gateway: &Gateway, credential: Option<Secret>) -> Result<Caller, CloseCode> {
    if gateway.is_leaving() {
        return Err(CloseCode::ShuttingDown);
    }
    let credential = credential.ok_or(CloseCode::Unauthenticated)?;
    gateway.authorizer.authenticate(credential.expose()).await.map_err(|error| match error {
        AuthenticationError::Unauthenticated => CloseCode::Unauthenticated,
        AuthenticationError::TenantSuspended => CloseCode::TenantSuspended,
        AuthenticationError::Store(error) => store_failure(&error),
    })
}

/// Opens the tenant's log, then the caller's admission: that follows the rights only while the log's tail runs.
async fn receive(gateway: &Gateway, caller: Caller, owner: Owner) -> Result<Visitor, CloseCode> {
    let log = gateway.logs.open(&caller.tenant).await.map_err(|error| store_failure(&error))?;
    let admission = gateway.authorizer.admission(&caller).await.map_err(|error| store_failure(&error))?;
    Ok(Visitor { caller, owner, log, admission })
}

impl Visitor {
    fn attach(self, session: Arc<Session>, link: Arc<Link>, slot: Slot, track: Track, resync: Option<Resync>) -> Attached {
        let Self { caller, log, admission, .. } = self;
        Attached { session, link, slot, caller, log, admission, track, resync, hints: None }
    }

    async fn head(&self) -> Result<Head, CloseCode> {
        self.log.committed_head().await.map_err(|error| store_failure(&error))
    }

    fn ready(&self, gateway: &Gateway, session: &Session, head: &Head) -> Ready {
        let window = u64::try_from(gateway.settings.resume_window.as_millis()).unwrap_or(u64::MAX);
        Ready {
            gateway_session_id: session.id(),
            principal: ReadyPrincipal { kind: ActorKind::from(self.caller.kind).into(), id: self.caller.principal.clone() },
            head_seq: head.seq,
            sync_epoch: head.epoch,
            consumer: None,
            acked_seq: None,
            max_inflight_events: None,
            ack_timeout_ms: None,
            resume_window_ms: window,
        }
    }
}

fn resumed(head: Seq, acked: Option<Seq>) -> ServerFrame {
    ServerFrame::Resumed(Resumed { head_seq: head, acked_seq: acked })
}

/// The JSON text of a frame.
pub(crate) fn encode(frame: &ServerFrame) -> Bytes {
    frame.encode().into()
}

fn refusal(refused: NotResumable) -> CloseCode {
    match refused {
        NotResumable::Unknown => CloseCode::UnknownSession,
        NotResumable::Expired => CloseCode::SessionExpired,
    }
}

/// The close code of a store's failure.
pub(crate) fn store_failure(error: &StoreError) -> CloseCode {
    match error {
        StoreError::TenantInactive => CloseCode::TenantSuspended,
        // The history was replaced under way, or the process stops.
        StoreError::Conflict(_) => CloseCode::ShuttingDown,
        error => {
            tracing::warn!(error.cause = %error, "a connection cannot be served");
            CloseCode::Internal
        }
    }
}

/// The close code of a refused action. A caller that lost its standing meanwhile hears that instead.
pub(crate) fn denial(gateway: &Gateway, caller: &Caller, denied: Denied) -> CloseCode {
    match (caller.standing(gateway.clock.now()), denied) {
        (Standing::Unauthenticated, _) | (_, Denied::Unauthenticated) => CloseCode::Unauthenticated,
        (Standing::TenantSuspended, _) | (_, Denied::Forbidden(DeniedReason::TenantSuspended)) => CloseCode::TenantSuspended,
        (Standing::Good, Denied::Unavailable) => CloseCode::Internal,
        (Standing::Good, Denied::NotFound | Denied::Forbidden(_)) => CloseCode::Forbidden,
    }
}

/// The close code of a consumer operation that was not done.
pub(crate) fn consumer_failure(gateway: &Gateway, caller: &Caller, error: &ConsumerError) -> CloseCode {
    match error {
        ConsumerError::Denied(denied) => denial(gateway, caller, *denied),
        ConsumerError::TooMany | ConsumerError::TooManyTakeovers(_) => CloseCode::RateLimited,
        ConsumerError::Replaced => CloseCode::ConsumerReplaced,
        ConsumerError::ShuttingDown => CloseCode::ShuttingDown,
        // A disabled or deleted agent looks like a tenant that is not active: the standing tells them apart.
        ConsumerError::Store(StoreError::TenantInactive) => denial(gateway, caller, Denied::Forbidden(DeniedReason::TenantSuspended)),
        ConsumerError::Store(error) => store_failure(error),
        _ => CloseCode::Internal,
    }
}
