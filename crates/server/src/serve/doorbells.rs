//! How the inbox is joined to the log's tail and to the gateway: who rings, who keeps the tail running, who passes hints on.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use authz::{Authorizer, Caller, Denied};
use domain::{BoxFuture, Event, PrincipalId, StoreError, TenantId};
use gateway::{Hints, InboxHints};
use hooks::Hooks;
use inbox::{Inbox, InboxError, Signal, SignalStream, Tails};
use protocol::{InboxUpdated, QueueDigest};
use sync::{Logs, Observer};

/// Sees every event before readers do: first the rights, then the bells, so that whoever is rung is judged by the rights of that moment.
pub(super) struct TailObservers {
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) hooks: Arc<Hooks>,
}

#[async_trait]
impl Observer for TailObservers {
    async fn tail_started(&self, tenant: &TenantId) -> Result<(), StoreError> {
        self.authorizer.tail_started(tenant).await
    }

    async fn observe(&self, tenant: &TenantId, events: &[Arc<Event>]) -> Result<(), StoreError> {
        self.authorizer.observe(tenant, events).await?;
        self.inbox.bells().observe(tenant, events);
        self.hooks.bell().observe(tenant, events);
        Ok(())
    }

    fn tail_stopped(&self, tenant: &TenantId) {
        self.authorizer.tail_stopped(tenant);
    }
}

/// Keeps a tenant's tail running while somebody waits for its inboxes. The logs come later than the inbox that is rung by them.
#[derive(Debug, Default)]
pub(crate) struct LogTails(OnceLock<Arc<Logs>>);

impl LogTails {
    pub(super) fn join(&self, logs: Arc<Logs>) {
        let _ = self.0.set(logs);
    }
}

#[async_trait]
impl Tails for LogTails {
    async fn keep(&self, tenant: &TenantId) -> Result<Box<dyn Send + Sync>, StoreError> {
        let logs = self.0.get().ok_or(StoreError::Unavailable)?;
        Ok(Box::new(logs.open(tenant).await?))
    }
}

/// The gateway's hints, from the inbox's signals.
pub(super) struct GatewayHints(pub(super) Arc<Inbox>);

impl InboxHints for GatewayHints {
    fn listen(&self, caller: &Caller) -> Option<Box<dyn Hints>> {
        Some(Box::new(Listening::new(Arc::clone(&self.0), caller.clone())))
    }
}

/// One look: answers the stream to go on with and the hint, or nothing when no more will come.
type Look = BoxFuture<'static, Option<(Box<SignalStream>, InboxUpdated)>>;

/// The hints of one connection. A look that was begun goes on when its caller turns to something else, so that a busy connection neither asks the
/// store again and again nor starves.
struct Listening {
    agent: PrincipalId,
    /// Absent when no more will come.
    looking: Option<Look>,
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl Listening {
    fn new(inbox: Arc<Inbox>, caller: Caller) -> Self {
        let agent = caller.principal.clone();
        let looking = Box::pin(async move { next_of(open(&inbox, &caller).await?).await });
        Self { agent, looking: Some(looking) }
    }
}

#[async_trait]
impl Hints for Listening {
    async fn next(&mut self) -> Option<InboxUpdated> {
        let found = self.looking.as_mut()?.await;
        self.looking = None;
        let (stream, hint) = found?;
        self.looking = Some(Box::pin(next_of(stream)));
        Some(hint)
    }
}

async fn next_of(mut stream: Box<SignalStream>) -> Option<(Box<SignalStream>, InboxUpdated)> {
    let signal = stream.next().await?;
    Some((stream, frame(signal)))
}

/// Opens the stream, again and again after what passes: a connection that asked for hints must not stay deaf because of one busy moment.
async fn open(inbox: &Arc<Inbox>, caller: &Caller) -> Option<Box<SignalStream>> {
    let mut is_first = true;
    loop {
        let error = match inbox.signals(caller, None, None).await {
            Ok(stream) => return Some(Box::new(stream)),
            Err(InboxError::ShuttingDown | InboxError::Denied(Denied::NotFound | Denied::Forbidden(_) | Denied::Unauthenticated)) => {
                return None;
            }
            Err(error) => error,
        };
        if is_first {
            tracing::warn!(error.cause = %error, agent.id = %caller.principal, "hints about an inbox have to wait");
            is_first = false;
        }
        tokio::time::sleep(inbox.settings().store_retry).await;
    }
}

fn frame(signal: Signal) -> InboxUpdated {
    InboxUpdated {
        signal_type: "inbox.updated".to_owned(),
        tenant_id: signal.tenant,
        recipient_id: signal.recipient,
        head_seq: signal.head,
        sync_epoch: Some(signal.epoch),
        approximate_unacked: signal.unacked,
        resync: signal.resync,
        queues: signal.queues.into_iter().map(|waiting| QueueDigest { queue: waiting.queue, available: waiting.available }).collect(),
        delivery_id: signal.delivery.to_string(),
        sent_at_utc: signal.sent_at,
    }
}
