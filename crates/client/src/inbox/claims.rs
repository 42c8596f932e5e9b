//! The claims of a worker: one at a time, each repeated under its key until its answer is certain.

use std::future::pending;
use std::num::NonZeroU64;
use std::time::Duration;

use domain::{AgentSessionId, BoxFuture};
use protocol::{ClaimNextRequest, ClaimNextResponse, Open, ProblemCode, Seconds, SubscribeRequest, Transport};
use tokio::time::Instant;

use super::settle;
use super::worker::WorkerOptions;
use crate::backoff::jitter;
use crate::rest::seconds;
use crate::{Backoff, Client, ClientError, Retry, fresh_idempotency_key, told};

/// The pause after an empty answer that did not wait: the server has as many waiters as it takes.
const EMPTY_PAUSE: Duration = Duration::from_secs(1);
/// The pause where patience runs out.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// How long a claim waits while something is worked on and the worker is to end when nothing more is there.
const BUSY_WAIT: Duration = Duration::from_secs(2);
/// How long is waited for the repeat of a claim whose answer was not waited for.
const RECOVERY: Duration = Duration::from_millis(500);
/// The longest that giving back what it has brought may take.
const GIVING_BACK: Duration = Duration::from_secs(3);

/// What came of a claim.
#[derive(Debug)]
pub(super) enum Claimed {
    /// Perhaps none. With when the answer came.
    Items(ClaimNextResponse, Instant),
    /// It failed and is repeated after a pause.
    Again {
        /// The pause.
        pause: Duration,
        /// Why, for people.
        cause: String,
    },
    /// It was refused for good.
    Refused(ClientError),
    /// It is time to look again what there is to do.
    Nothing,
}

/// The session that claims.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Session {
    /// One is to be opened.
    Wanted,
    /// This one.
    Open(AgentSessionId),
    /// None: the token may not open any, and claims need none.
    Without,
}

/// A claim with the key by which the server recognises its repeats.
#[derive(Clone)]
struct Keyed {
    key: String,
    request: ClaimNextRequest,
}

/// A call that is under way.
enum Call {
    Subscribe(BoxFuture<'static, Result<AgentSessionId, ClientError>>),
    Claim(BoxFuture<'static, Result<ClaimNextResponse, ClientError>>),
}

/// The claims of a worker.
pub(super) struct Claims<'a> {
    client: &'a Client,
    options: &'a WorkerOptions,
    backoff: Backoff,
    session: Session,
    claim: Option<Keyed>,
    call: Option<Call>,
    called_at: Instant,
    /// Whether nothing was worked on when the call began.
    idle: bool,
    not_before: Instant,
    idle_since: Instant,
    /// Whether a claim since then has found nothing.
    looked: bool,
    found: bool,
    /// Since when calls fail.
    failing_since: Option<Instant>,
    /// Whether the refusal of a claim that had waited is being looked into.
    doubting: bool,
}

impl<'a> Claims<'a> {
    pub(super) fn new(client: &'a Client, options: &'a WorkerOptions) -> Self {
        let now = Instant::now();
        Self {
            client,
            options,
            backoff: Backoff::new(options.backoff),
            session: Session::Wanted,
            claim: None,
            call: None,
            called_at: now,
            idle: true,
            not_before: now,
            idle_since: now,
            looked: false,
            found: false,
            failing_since: None,
            doubting: false,
        }
    }

    /// Whether no more is to be claimed.
    pub(super) fn is_over(&self, idle: bool) -> bool {
        if self.options.once && self.found {
            return true;
        }
        // At least one look is taken, however short the patience is.
        self.looked && idle && self.call.is_none() && self.patience_left() == Some(Duration::ZERO)
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.call.is_some()
    }

    /// How long nothing may still be there; `None` for ever.
    fn patience_left(&self) -> Option<Duration> {
        self.patience().map(|patience| patience.saturating_sub(self.idle_since.elapsed()))
    }

    fn patience(&self) -> Option<Duration> {
        self.options.idle_timeout.or(self.options.once.then_some(Duration::ZERO))
    }

    /// Something was worked on until now.
    pub(super) fn was_busy(&mut self) {
        (self.idle_since, self.looked) = (Instant::now(), false);
        // Who is to end when nothing is left looks at once, unless calls fail.
        if self.patience().is_some() && self.failing_since.is_none() {
            self.not_before = self.idle_since;
        }
    }

    /// Begins a claim of at most `free` items, or repeats the one whose answer is uncertain, once its pause is over.
    pub(super) fn begin(&mut self, free: usize, idle: bool) {
        if self.call.is_some() || self.not_before > Instant::now() {
            return;
        }
        (self.called_at, self.idle) = (Instant::now(), idle);
        if self.session == Session::Wanted {
            self.call = Some(Call::Subscribe(self.subscribe()));
            return;
        }
        let wait = match (self.patience_left(), self.patience()) {
            (Some(left), _) if idle => left.min(self.options.wait),
            // Once nothing is worked on any more, the end is near, and is not to be held up.
            (Some(_), Some(patience)) => patience.min(BUSY_WAIT).min(self.options.wait),
            _ => self.options.wait,
        };
        let claim = match self.claim.take() {
            Some(claim) => claim,
            None => Keyed { key: fresh_idempotency_key(), request: self.request(free, wait) },
        };
        self.call = Some(Call::Claim(call(self.client, &claim)));
        self.claim = Some(claim);
    }

    fn request(&self, free: usize, wait: Duration) -> ClaimNextRequest {
        let session_id = match &self.session {
            Session::Open(session) => Some(session.clone()),
            Session::Wanted | Session::Without => None,
        };
        ClaimNextRequest {
            session_id,
            queues: (!self.options.queues.is_empty()).then(|| self.options.queues.clone()),
            limit: NonZeroU64::new(free as u64),
            lease_seconds: self.options.lease.map(seconds),
            wait_seconds: Some(Seconds::of(wait)).filter(|wait| wait.get() > 0),
            ..ClaimNextRequest::default()
        }
    }

    fn subscribe(&self) -> BoxFuture<'static, Result<AgentSessionId, ClientError>> {
        let (client, device_id) = (self.client.clone(), self.options.device.clone());
        let transports = vec![Open::Known(Transport::LongPoll)];
        let request =
            SubscribeRequest { device_id, supported_transports: Some(transports), wants_claims: Some(true), ..SubscribeRequest::default() };
        Box::pin(async move { client.subscribe_session(&request).await.map(|subscribed| subscribed.session_id) })
    }

    /// The end of the call that is under way, or of the pause before the next. Cancel safe.
    pub(super) async fn next(&mut self) -> Claimed {
        match &mut self.call {
            Some(Call::Subscribe(call)) => {
                let answer = call.await;
                self.call = None;
                self.subscribed(answer)
            }
            Some(Call::Claim(call)) => {
                let answer = call.await;
                self.call = None;
                match answer {
                    Ok(answer) => self.answered(answer),
                    Err(error) if self.is_doubtful(&error) => Claimed::Nothing,
                    Err(error) => self.failed(error),
                }
            }
            None if self.not_before > Instant::now() => {
                tokio::time::sleep_until(self.not_before).await;
                Claimed::Nothing
            }
            None => pending().await,
        }
    }

    /// Calls succeed after they did not.
    pub(super) fn recovered(&mut self) -> bool {
        self.failing_since.take().is_some()
    }

    fn subscribed(&mut self, answer: Result<AgentSessionId, ClientError>) -> Claimed {
        match answer {
            Ok(session) => self.session = Session::Open(session),
            Err(error) if error.code() == Some(ProblemCode::Forbidden) => self.session = Session::Without,
            Err(error) => return self.failed(error),
        }
        Claimed::Nothing
    }

    /// Whether a refusal may hide another: when a right ends while a claim waits, the server says only that it has ended. The next claim is told
    /// why, for example that the token was revoked.
    fn is_doubtful(&mut self, error: &ClientError) -> bool {
        let waited = self.called_at.elapsed() >= EMPTY_PAUSE;
        let doubtful = error.code() == Some(ProblemCode::Forbidden) && waited && !self.doubting;
        if doubtful {
            (self.doubting, self.claim) = (true, None);
        }
        doubtful
    }

    fn failed(&mut self, error: ClientError) -> Claimed {
        let forgotten = error.code() == Some(ProblemCode::NotFound) && matches!(self.session, Session::Open(_));
        if forgotten {
            (self.session, self.claim) = (Session::Wanted, None);
        }
        let now = Instant::now();
        let failing_for = now.duration_since(*self.failing_since.get_or_insert(now));
        let tired = self.options.retry_for.is_some_and(|most| failing_for >= most);
        if tired || (error.retry() == Retry::Never && !forgotten) {
            self.claim = None;
            return Claimed::Refused(error);
        }
        let pause = self.backoff.next_pause().max(error.retry_after().unwrap_or_default());
        self.not_before = now + pause;
        Claimed::Again { pause, cause: told(&error) }
    }

    fn answered(&mut self, answer: ClaimNextResponse) -> Claimed {
        let now = Instant::now();
        self.backoff.reset();
        (self.claim, self.doubting) = (None, false);
        if answer.claims.is_empty() {
            self.looked = true;
            if now.duration_since(self.called_at) < EMPTY_PAUSE {
                let pause = EMPTY_PAUSE + jitter(EMPTY_PAUSE);
                let patience = self.patience_left().filter(|_| self.idle);
                self.not_before = now + patience.map_or(pause, |left| left.clamp(SHORTEST_PAUSE, pause));
            }
        } else {
            self.found = true;
            self.was_busy();
        }
        // Since a claim may have waited, its leases count from when the answer came.
        Claimed::Items(answer, now)
    }

    /// Lets the claim go that is under way. Its answer may be on its way: a repeat under its key tells at once, and what it brings is given back.
    pub(super) fn give_up(&mut self) -> Option<BoxFuture<'static, ()>> {
        let Some(Call::Claim(_)) = self.call.take() else { return None };
        let (client, claim) = (self.client.clone(), self.claim.take()?);
        Some(Box::pin(async move {
            // A repeat has to be the same request, so one that finds nothing waits again: that is not waited for.
            let Ok(Ok(answer)) = tokio::time::timeout(RECOVERY, call(&client, &claim)).await else { return };
            let giving_back = async {
                for item in &answer.claims {
                    settle::give_back(&client, item).await;
                }
            };
            let _ = tokio::time::timeout(GIVING_BACK, giving_back).await;
        }))
    }
}

fn call(client: &Client, claim: &Keyed) -> BoxFuture<'static, Result<ClaimNextResponse, ClientError>> {
    let (client, request) = (client.with_idempotency_key(&claim.key), claim.request.clone());
    Box::pin(async move { client.claim_next(&request).await })
}
