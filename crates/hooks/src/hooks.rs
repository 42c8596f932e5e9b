//! The use cases of hooks as one service: what it works with, and what every use case shares.

use std::sync::Arc;

use async_trait::async_trait;
use authz::{Action, Authorizer, Caller, Denied, DeniedReason, IdentityStore, PrincipalKind, Target};
use domain::{Clock, IdGenerator, PrincipalId, StoreError, Transactions, run_tx};
use inbox::{InboxStore, Tails};
use sync::LogStore;

use crate::{
    AttemptRecord, Created, Hook, HookBell, HookError, HookId, HookKind, HookPatch, HookStore, HookTx, Metrics, NewCallback, NewHook,
    NewKey, OutboundClient, PublishedKey, Registered, Rotated, Settings, Vault,
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
#[derive(Debug)]
pub struct Hooks {
    pub(crate) parts: HooksParts,
    pub(crate) bell: Arc<HookBell>,
}

/// What runs in a transaction. It may run several times.
#[async_trait]
pub(crate) trait Job: Send + Sync + 'static {
    /// What it answers.
    type Answer: Send + 'static;
    /// Does it.
    async fn run(&self, tx: &mut dyn HookTx) -> Result<Self::Answer, HookError>;
}

const LATER: HookError = HookError::Store(StoreError::Unavailable);

impl Hooks {
    /// Hooks over these parts.
    pub fn new(parts: HooksParts) -> Arc<Self> {
        Arc::new(Self { parts, bell: Arc::default() })
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

    /// Makes a notify hook.
    ///
    /// # Errors
    /// [`HookError::Denied`], [`HookError::NotFound`], [`HookError::UrlRefused`], [`HookError::Invalid`], [`HookError::LimitReached`] over
    /// `hooks.max_per_agent` or `hooks.max_per_tenant`, [`HookError::Secrets`], the store's.
    pub async fn create(&self, caller: &Caller, new: NewHook) -> Result<Created, HookError> {
        let _ = (caller, new);
        Err(LATER)
    }

    /// Hooks of a kind by id, strictly after `after`, at most `limit`: of one agent, the caller's own when absent.
    ///
    /// # Errors
    /// [`HookError::Denied`], [`HookError::NotFound`], [`HookError::Invalid`] for a limit of zero, the store's.
    pub async fn list(
        &self,
        caller: &Caller,
        agent: Option<&PrincipalId>,
        kind: HookKind,
        after: Option<HookId>,
        limit: usize,
    ) -> Result<Vec<Hook>, HookError> {
        let _ = (caller, agent, kind, after, limit);
        Err(LATER)
    }

    /// One hook.
    ///
    /// # Errors
    /// [`HookError::Denied`]; [`HookError::NotFound`], also for another's; the store's.
    pub async fn get(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<Hook, HookError> {
        let _ = (caller, kind, id);
        Err(LATER)
    }

    /// Changes a notify hook.
    ///
    /// # Errors
    /// As [`Hooks::create`] and [`Hooks::get`].
    pub async fn update(&self, caller: &Caller, id: HookId, patch: HookPatch) -> Result<Hook, HookError> {
        let _ = (caller, id, patch);
        Err(LATER)
    }

    /// Removes a hook.
    ///
    /// # Errors
    /// As [`Hooks::get`].
    pub async fn delete(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<(), HookError> {
        let _ = (caller, kind, id);
        Err(LATER)
    }

    /// Gives a notify hook a new secret. The old ones sign too for `hooks.rotation_overlap`.
    ///
    /// # Errors
    /// As [`Hooks::get`]; [`HookError::Secrets`].
    pub async fn rotate(&self, caller: &Caller, id: HookId) -> Result<Rotated, HookError> {
        let _ = (caller, id);
        Err(LATER)
    }

    /// Has a hook rung again, and rings for what waits.
    ///
    /// # Errors
    /// As [`Hooks::get`].
    pub async fn enable(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<Hook, HookError> {
        let _ = (caller, kind, id);
        Err(LATER)
    }

    /// Has a hook not rung any more, at once.
    ///
    /// # Errors
    /// As [`Hooks::get`].
    pub async fn disable(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<Hook, HookError> {
        let _ = (caller, kind, id);
        Err(LATER)
    }

    /// Rings a hook once, now, and answers what that brought. Changes its health only for the better.
    ///
    /// # Errors
    /// As [`Hooks::get`]; [`HookError::LimitReached`] when too many attempts run; [`HookError::Secrets`].
    pub async fn test(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<AttemptRecord, HookError> {
        let _ = (caller, kind, id);
        Err(LATER)
    }

    /// The last attempts of a hook, newest first, at most `hooks.log_max`.
    ///
    /// # Errors
    /// As [`Hooks::get`].
    pub async fn deliveries(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<Vec<AttemptRecord>, HookError> {
        let _ = (caller, kind, id);
        Err(LATER)
    }

    /// Registers a callback of the calling agent, and sends it a challenge.
    ///
    /// # Errors
    /// As [`Hooks::create`].
    pub async fn register_callback(&self, caller: &Caller, new: NewCallback) -> Result<Registered, HookError> {
        let _ = (caller, new);
        Err(LATER)
    }

    /// Verifies a hook that is pending: with `response`, the answer to the open challenge; without, sends a new challenge now and looks at what
    /// is answered. A hook that is verified stays as it is.
    ///
    /// # Errors
    /// As [`Hooks::get`]; [`HookError::Unverified`]; [`HookError::NotInThatState`] when no challenge is open any more.
    pub async fn verify_callback(&self, caller: &Caller, id: HookId, response: Option<&str>) -> Result<Hook, HookError> {
        let _ = (caller, id, response);
        Err(LATER)
    }

    /// Gives a callback another key. The old ones count too for `hooks.rotation_overlap`.
    ///
    /// # Errors
    /// As [`Hooks::get`]; [`HookError::Invalid`] for a public key where there was none, or none where there was one; [`HookError::Secrets`].
    pub async fn rotate_callback(&self, caller: &Caller, id: HookId, new: NewKey) -> Result<Rotated, HookError> {
        let _ = (caller, id, new);
        Err(LATER)
    }

    /// The server's public signing keys: the present one, the next, and those that signed until lately. Makes them on the first call.
    ///
    /// # Errors
    /// [`HookError::Secrets`], the store's.
    pub async fn keys(&self) -> Result<Vec<PublishedKey>, HookError> {
        Err(LATER)
    }

    /// Wraps every stored secret with the present master key (`doorstep keys rotate`); answers how many were not.
    ///
    /// # Errors
    /// [`HookError::Secrets`] when one cannot be opened, the store's.
    pub async fn reseal(&self) -> Result<u64, HookError> {
        Err(LATER)
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
