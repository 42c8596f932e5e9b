//! The use cases of hooks as one service: what it works with, and what every use case shares.

use std::sync::Arc;

use async_trait::async_trait;
use authz::{Action, Authorizer, Caller, Denied, DeniedReason, IdentityStore, PrincipalKind, Target};
use domain::{Clock, IdGenerator, PrincipalId, TenantId, Transactions, run_tx};
use inbox::{InboxStore, Tails};
use sync::LogStore;
use tokio::sync::Notify;

use crate::places::Places;
use crate::{
    EveryGroup, GroupLeases, GroupNumber, Hook, HookBell, HookError, HookId, HookKind, HookStore, HookTx, HookUrl, Metrics, OutboundClient,
    Settings, UrlRefusal, Vault,
};

/// A hook is not rung any more because of its failures.
pub const HOOK_DISABLED: &str = "hook.disabled";

/// What [`Hooks`] works with.
#[derive(Clone)]
pub struct HooksParts {
    /// Reads hooks.
    pub store: Arc<dyn HookStore>,
    /// Changes them.
    pub transactions: Arc<dyn Transactions<dyn HookTx>>,
    /// Reads the items that are rung for.
    pub inboxes: Arc<dyn InboxStore>,
    /// Reads the log.
    pub logs: Arc<dyn LogStore>,
    /// Keeps tails running, so that [`HookBell`] is told of news.
    pub tails: Arc<dyn Tails>,
    /// Decides who may.
    pub authorizer: Arc<Authorizer>,
    /// Tells which agents there are.
    pub identities: Arc<dyn IdentityStore>,
    /// Calls receivers.
    pub outbound: Arc<dyn OutboundClient>,
    /// Keeps secrets.
    pub vault: Arc<dyn Vault>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Makes ids of hooks, keys, events, challenges.
    pub ids: Arc<dyn IdGenerator>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is configured.
    pub settings: Settings,
}

impl std::fmt::Debug for HooksParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HooksParts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Registrations of hooks, and what their owners and operators do with them.
pub struct Hooks {
    pub(crate) parts: HooksParts,
    pub(crate) bell: Arc<HookBell>,
    /// Has the sender look for what is due.
    pub(crate) due: Notify,
    pub(crate) places: Arc<Places>,
    pub(crate) leases: Arc<dyn GroupLeases>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks").field("parts", &self.parts).field("places", &self.places).finish_non_exhaustive()
    }
}

/// What runs in a transaction. It may run several times.
#[async_trait]
pub(crate) trait Job: Send + Sync + 'static {
    /// What it answers.
    type Answer: Send + 'static;
    /// Does it.
    async fn run(&self, tx: &mut dyn HookTx) -> Result<Self::Answer, HookError>;
}

impl Hooks {
    /// Hooks over these parts, in a store that this process alone uses.
    pub fn new(parts: HooksParts) -> Arc<Self> {
        Self::sharing(parts, Arc::new(EveryGroup::default()))
    }

    /// Hooks over these parts, in a store that several nodes use; `leases` tells for which tenants this one dispatches and sends.
    pub fn sharing(parts: HooksParts, leases: Arc<dyn GroupLeases>) -> Arc<Self> {
        let places = Places::new(&parts.settings);
        Arc::new(Self { parts, bell: Arc::default(), due: Notify::new(), places, leases })
    }

    /// The bell: whoever tails the log hands committed events to [`HookBell::observe`].
    pub const fn bell(&self) -> &Arc<HookBell> {
        &self.bell
    }

    /// What is counted.
    pub const fn metrics(&self) -> &Arc<Metrics> {
        &self.parts.metrics
    }

    /// The settings in force.
    pub const fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// Waits until no ring of the group's tenants is on its way from this node, and what became of those that were is written. For whoever gives a
    /// group up that [`GroupLeases::held`] names no more; whoever waits bounds the wait.
    pub async fn quiet(&self, group: GroupNumber) {
        self.places.quiet(group).await;
    }

    /// A hook of the caller's own, or, for operators, of an agent of its tenant.
    pub(crate) async fn owned(&self, caller: &Caller, action: Option<Action>, kind: HookKind, id: HookId) -> Result<Hook, HookError> {
        let found = self.parts.store.hook(&caller.tenant, id).await?.filter(|hook| hook.kind == kind);
        let hook = found.ok_or(HookError::NotFound)?;
        let action = action.unwrap_or_else(|| managing(kind, hook.agent == caller.principal));
        self.parts.authorizer.authorize(caller, action, Target::Principal(&hook.agent)).await?;
        Ok(hook)
    }

    /// Whether a URL may be called now.
    pub(crate) async fn check_url(&self, url: &HookUrl) -> Result<(), HookError> {
        self.parts.outbound.check(url).await.map_err(|refusal: UrlRefusal| {
            self.parts.metrics.urls_refused.increment();
            HookError::UrlRefused(refusal)
        })
    }

    /// Has dispatcher and sender look at what a change made.
    pub(crate) fn changed(&self, tenant: &TenantId) {
        self.bell.change(tenant);
        self.due.notify_one();
    }

    /// The agent whose hooks the caller may manage.
    pub(crate) async fn agents(&self, caller: &Caller, action: Action, agent: &PrincipalId) -> Result<PrincipalId, HookError> {
        self.parts.authorizer.authorize(caller, action, Target::Principal(agent)).await?;
        let kind = if *agent == caller.principal {
            Some(caller.kind)
        } else {
            self.parts.identities.principal(&caller.tenant, agent).await?.map(|principal| principal.kind)
        };
        match kind {
            Some(PrincipalKind::Agent) => Ok(agent.clone()),
            _ if *agent == caller.principal => Err(Denied::Forbidden(DeniedReason::SubjectKindNotAllowed).into()),
            _ => Err(HookError::NotFound),
        }
    }

    /// Runs a job in a transaction.
    pub(crate) async fn run<J: Job>(&self, name: &'static str, job: J) -> Result<J::Answer, HookError> {
        let job = Arc::new(job);
        run_tx::<dyn HookTx, _, _, _>(&*self.parts.transactions, name, move |tx| {
            let job = Arc::clone(&job);
            Box::pin(async move { job.run(tx).await })
        })
        .await
    }
}

/// What is asked about whoever manages a hook of this kind.
pub(crate) const fn managing(kind: HookKind, is_own: bool) -> Action {
    match kind {
        HookKind::Callback if is_own => Action::CallbackRegister,
        HookKind::Callback | HookKind::Notify => Action::HooksManage,
    }
}
