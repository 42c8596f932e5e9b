//! The use cases of the inbox as one service: what it works with, and what every use case shares.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use authz::{Action, Authorizer, Caller, Denied, DeniedReason, IdentityStore, PrincipalKind, Target};
use domain::{Clock, IdGenerator, PrincipalId, Seq, SyncEpoch, Timestamp, Transactions, run_tx};
use tokio_util::task::TaskTracker;

use crate::bells::Bells;
use crate::change::Kit;
use crate::sessions::Touches;
use crate::{InboxError, InboxStore, InboxTx, InboxView, Metrics, Recipient, Settings, Tails};

/// What [`Inbox`] works with.
#[derive(Clone)]
pub struct InboxParts {
    /// Reads inboxes.
    pub store: Arc<dyn InboxStore>,
    /// Changes them.
    pub transactions: Arc<dyn Transactions<dyn InboxTx>>,
    /// Decides who may.
    pub authorizer: Arc<Authorizer>,
    /// Tells which agents there are.
    pub identities: Arc<dyn IdentityStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Makes ids of events, sessions and signals.
    pub ids: Arc<dyn IdGenerator>,
    /// Keeps tails running while somebody waits.
    pub tails: Arc<dyn Tails>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The settings.
    pub settings: Settings,
}

impl std::fmt::Debug for InboxParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InboxParts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Claimable work: every use case. Each authorises first; each change is one transaction.
#[derive(Debug)]
pub struct Inbox {
    pub(crate) parts: InboxParts,
    pub(crate) bells: Arc<Bells>,
    pub(crate) touches: Touches,
    pub(crate) kit: Arc<Kit>,
    pub(crate) me: Weak<Self>,
    /// Claims under way, and the giving back of those whose client is gone.
    pub(crate) tasks: TaskTracker,
}

/// The part of a use case that runs in a transaction. It may run several times.
#[async_trait]
pub(crate) trait Job: Send + Sync + 'static {
    type Answer: Send + 'static;
    async fn run(&self, tx: &mut dyn InboxTx) -> Result<Self::Answer, InboxError>;
}

impl Inbox {
    /// The inbox over these parts. Nobody heard of workers before this process began: leases that could not be prolonged meanwhile are forgiven.
    pub fn new(parts: InboxParts) -> Arc<Self> {
        let began = parts.clock.now();
        Self::since(parts, began)
    }

    /// The same beside other processes that heard of workers all along: nothing is forgiven.
    pub fn beside_others(parts: InboxParts) -> Arc<Self> {
        Self::since(parts, Timestamp::from_micros(0))
    }

    fn since(parts: InboxParts, started_at: Timestamp) -> Arc<Self> {
        let settings = &parts.settings;
        let bells = Bells::new(settings.max_waiters, settings.max_waiters_per_agent, Arc::clone(&parts.metrics));
        let kit = Arc::new(Kit { ids: Arc::clone(&parts.ids), settings: Arc::new(settings.clone()), started_at });
        let tasks = TaskTracker::new();
        Arc::new_cyclic(|me| Self { bells, touches: Touches::default(), kit, parts, me: me.clone(), tasks })
    }

    /// The bells: whoever tails the log hands committed events to [`Bells::observe`].
    pub const fn bells(&self) -> &Arc<Bells> {
        &self.bells
    }

    /// What is counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.parts.metrics
    }

    /// The settings in force.
    pub const fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// Ends every wait and stream at once, and lets no new one begin: the process drains.
    pub fn drain(&self) {
        self.bells.drain();
    }

    /// Waits until what was begun for clients that are gone is done. To be called after [`Inbox::drain`], when no more calls come.
    pub async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// This service, for what outlives a call.
    ///
    /// # Errors
    /// [`InboxError::ShuttingDown`] when nobody else has it any more.
    pub(crate) fn shared(&self) -> Result<Arc<Self>, InboxError> {
        self.me.upgrade().ok_or(InboxError::ShuttingDown)
    }

    /// The caller's inbox: its head and the identity of the log's history. One look at a fixed number of rows.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an agent with the scope `inbox.poll`, or the store's.
    pub async fn head(&self, caller: &Caller) -> Result<(Seq, SyncEpoch), InboxError> {
        let recipient = self.own(caller, Action::InboxPoll).await?;
        let view = self.view(&recipient).await?;
        Ok((view.head(), view.epoch))
    }

    pub(crate) async fn view(&self, recipient: &Recipient) -> Result<InboxView, InboxError> {
        Ok(self.parts.store.view(recipient).await?)
    }

    /// The caller's own inbox, if it may do `action` with it.
    pub(crate) async fn own(&self, caller: &Caller, action: Action) -> Result<Recipient, InboxError> {
        self.parts.authorizer.authorize(caller, action, Target::Principal(&caller.principal)).await?;
        Ok(recipient(caller, &caller.principal))
    }

    /// An inbox to look at: the caller's own, or any agent's for operators.
    pub(crate) async fn readable(&self, caller: &Caller, agent: Option<&PrincipalId>) -> Result<Recipient, InboxError> {
        match agent.filter(|agent| **agent != caller.principal) {
            Some(agent) => self.agents(caller, Action::InboxRead, agent).await,
            None => self.own(caller, Action::InboxPoll).await,
        }
    }

    /// The inbox of an agent that there is, if the caller may do `action` with it.
    pub(crate) async fn agents(&self, caller: &Caller, action: Action, agent: &PrincipalId) -> Result<Recipient, InboxError> {
        self.parts.authorizer.authorize(caller, action, Target::Principal(agent)).await?;
        let kind = if *agent == caller.principal {
            Some(caller.kind)
        } else {
            self.parts.identities.principal(&caller.tenant, agent).await?.map(|principal| principal.kind)
        };
        match kind {
            Some(PrincipalKind::Agent) => Ok(recipient(caller, agent)),
            _ if *agent == caller.principal => Err(Denied::Forbidden(DeniedReason::SubjectKindNotAllowed).into()),
            _ => Err(InboxError::NotFound),
        }
    }

    /// Runs a job in a transaction.
    pub(crate) async fn run<J: Job>(&self, name: &'static str, job: J) -> Result<J::Answer, InboxError> {
        let job = Arc::new(job);
        run_tx::<dyn InboxTx, _, _, _>(&*self.parts.transactions, name, move |tx| {
            let job = Arc::clone(&job);
            Box::pin(async move { job.run(tx).await })
        })
        .await
    }
}

fn recipient(caller: &Caller, agent: &PrincipalId) -> Recipient {
    Recipient { tenant: caller.tenant.clone(), agent: agent.clone() }
}
