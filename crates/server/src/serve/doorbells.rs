//! How the inbox is joined to the log's tail and to the gateway: who rings, who keeps the tail running, who passes hints on.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use authz::{Authorizer, Caller};
use domain::{Event, StoreError, TenantId};
use gateway::{Hints, InboxHints};
use inbox::{Inbox, Signal, SignalStream, Tails};
use protocol::InboxUpdated;
use sync::{Logs, Observer};

/// Sees every event before readers do: first the rights, then the bells, so that whoever is rung is judged by the rights of that moment.
pub(super) struct TailObservers {
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) inbox: Arc<Inbox>,
}

#[async_trait]
impl Observer for TailObservers {
    async fn tail_started(&self, tenant: &TenantId) -> Result<(), StoreError> {
        self.authorizer.tail_started(tenant).await
    }

    async fn observe(&self, tenant: &TenantId, events: &[Arc<Event>]) -> Result<(), StoreError> {
        self.authorizer.observe(tenant, events).await?;
        self.inbox.bells().observe(tenant, events);
        Ok(())
    }

    fn tail_stopped(&self, tenant: &TenantId) {
        self.authorizer.tail_stopped(tenant);
    }
}

/// Keeps a tenant's tail running while somebody waits for its inboxes. The logs come later than the inbox that is rung by them.
#[derive(Debug, Default)]
pub(super) struct LogTails(OnceLock<Arc<Logs>>);

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
        Some(Box::new(Listening { inbox: Arc::clone(&self.0), caller: caller.clone(), stream: None }))
    }
}

/// The hints of one connection. The stream opens with the first question, which has time to wait.
struct Listening {
    inbox: Arc<Inbox>,
    caller: Caller,
    stream: Option<Box<SignalStream>>,
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("agent", &self.caller.principal).finish_non_exhaustive()
    }
}

#[async_trait]
impl Hints for Listening {
    async fn next(&mut self) -> Option<InboxUpdated> {
        if self.stream.is_none() {
            match self.inbox.signals(&self.caller, None, None).await {
                Ok(stream) => self.stream = Some(Box::new(stream)),
                Err(error) => {
                    tracing::warn!(error.cause = %error, agent.id = %self.caller.principal, "a connection gets no hints about its inbox");
                    return None;
                }
            }
        }
        self.stream.as_mut()?.next().await.map(frame)
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
        delivery_id: signal.delivery.to_string(),
        sent_at_utc: signal.sent_at,
    }
}
