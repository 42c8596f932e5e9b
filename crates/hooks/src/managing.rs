//! What owners and operators do with hooks that there are.

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::{PrincipalId, Seq, Timestamp};

use crate::audit::{audit, value};
use crate::hooks::{Job, managing};
use crate::registering::challenge_delivery;
use crate::{
    AttemptRecord, Challenge, Delivery, DisabledCause, Hook, HookError, HookId, HookKind, HookPatch, HookState, HookTx, Hooks, Reason,
    WebhookId,
};

impl Hooks {
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
        let agent = agent.unwrap_or(&caller.principal);
        let agent = self.agents(caller, managing(kind, *agent == caller.principal), agent).await?;
        if limit == 0 {
            return Err(HookError::invalid("#query/limit", "at least 1"));
        }
        let most = self.parts.settings.max_per_tenant.max(1);
        Ok(self.parts.store.hooks(&caller.tenant, Some(&agent), kind, after, limit.min(most)).await?)
    }

    /// One hook.
    ///
    /// # Errors
    /// [`HookError::Denied`]; [`HookError::NotFound`], also for another's; the store's.
    pub async fn get(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<Hook, HookError> {
        self.owned(caller, None, kind, id).await
    }

    /// The last attempts of a hook, newest first, at most `hooks.log_max`.
    ///
    /// # Errors
    /// As [`Hooks::get`].
    pub async fn deliveries(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<Vec<AttemptRecord>, HookError> {
        let hook = self.owned(caller, None, kind, id).await?;
        Ok(self.parts.store.attempts(hook.id, self.parts.settings.log_max).await?)
    }

    /// Changes a notify hook. Rings that are on their way go where the hook now points.
    ///
    /// # Errors
    /// As [`Hooks::create`] and [`Hooks::get`].
    pub async fn update(&self, caller: &Caller, id: HookId, patch: HookPatch) -> Result<Hook, HookError> {
        let hook = self.owned(caller, None, HookKind::Notify, id).await?;
        if let Some(queues) = &patch.queues {
            self.check_queues(queues)?;
        }
        let mut challenge = None;
        if let Some(url) = &patch.url {
            self.check_url(url).await?;
            if self.parts.settings.require_verification && *url != hook.url {
                challenge = Some(self.challenge(hook.id)?);
            }
        }
        self.change(caller, &hook, Change::Patch(Box::new(patch), challenge)).await
    }

    /// Has a hook rung again, and rings for what waits. One that has not answered its challenge is sent a new one.
    ///
    /// # Errors
    /// As [`Hooks::get`]; [`HookError::UrlRefused`].
    pub async fn enable(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<Hook, HookError> {
        let hook = self.owned(caller, None, kind, id).await?;
        self.check_url(&hook.url).await?;
        let challenge = self.challenge(hook.id)?;
        self.change(caller, &hook, Change::Enable(challenge)).await
    }

    /// Has a hook not rung any more, at once.
    ///
    /// # Errors
    /// As [`Hooks::get`].
    pub async fn disable(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<Hook, HookError> {
        let hook = self.owned(caller, None, kind, id).await?;
        self.change(caller, &hook, Change::Disable).await
    }

    /// Removes a hook.
    ///
    /// # Errors
    /// As [`Hooks::get`].
    pub async fn delete(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<(), HookError> {
        let hook = self.owned(caller, None, kind, id).await?;
        self.change(caller, &hook, Change::Delete).await.map(drop)
    }

    async fn change(&self, caller: &Caller, hook: &Hook, change: Change) -> Result<Hook, HookError> {
        let action = managing(hook.kind, hook.agent == caller.principal);
        let changed = self.run("change_hook", ChangeJob { hook: hook.clone(), change, actor: caller.principal.clone(), action }).await?;
        self.changed(&hook.tenant);
        Ok(changed)
    }
}

#[derive(Clone, Debug)]
enum Change {
    /// With the challenge that another URL has to answer.
    Patch(Box<HookPatch>, Option<Challenge>),
    /// With the challenge of a hook that has not answered one.
    Enable(Challenge),
    Disable,
    Delete,
}

struct ChangeJob {
    hook: Hook,
    change: Change,
    actor: PrincipalId,
    action: Action,
}

#[async_trait]
impl Job for ChangeJob {
    type Answer = Hook;

    async fn run(&self, tx: &mut dyn HookTx) -> Result<Hook, HookError> {
        let mut hook = tx.hook(&self.hook.tenant, self.hook.id).await?.ok_or(HookError::NotFound)?;
        let before = value(&hook);
        match &self.change {
            Change::Patch(patch, challenge) => apply(tx, &mut hook, patch, challenge.clone()).await?,
            Change::Enable(_) if hook.challenge.is_none() => revive(tx, &mut hook).await?,
            Change::Enable(challenge) => ask(tx, &mut hook, challenge.clone()).await?,
            Change::Disable => {
                hook.state = HookState::Disabled(DisabledCause::Asked);
                tx.clear_deliveries(hook.id).await?;
            }
            Change::Delete => {
                tx.delete_hook(&hook.tenant, hook.id).await?;
                audit(tx, &hook, &self.actor, self.action, Some(&before), None).await?;
                return Ok(hook);
            }
        }
        tx.save_hook(&hook).await?;
        audit(tx, &hook, &self.actor, self.action, Some(&before), Some(&value(&hook))).await?;
        Ok(hook)
    }
}

async fn apply(tx: &mut dyn HookTx, hook: &mut Hook, patch: &HookPatch, challenge: Option<Challenge>) -> Result<(), HookError> {
    if let Some(queues) = &patch.queues {
        hook.queues.clone_from(queues);
    }
    hook.ignore_presence = patch.ignore_presence.unwrap_or(hook.ignore_presence);
    let Some(url) = patch.url.as_ref().filter(|url| **url != hook.url) else { return Ok(()) };
    hook.url = url.clone();
    // What the old receiver did is no guide to the new one.
    hook.health.exhausted_in_row = 0;
    match challenge {
        Some(challenge) => ask(tx, hook, challenge).await,
        None => Ok(()),
    }
}

/// Has the receiver prove itself before it is rung.
async fn ask(tx: &mut dyn HookTx, hook: &mut Hook, challenge: Challenge) -> Result<(), HookError> {
    tx.clear_deliveries(hook.id).await?;
    hook.state = HookState::PendingVerification;
    hook.challenge = Some(challenge);
    let now = tx.now();
    if let Some(delivery) = challenge_delivery(hook, now, now) {
        tx.add_deliveries(&[delivery]).await?;
    }
    Ok(())
}

/// Has a hook rung from now on, and for what waits already; what is active and healthy stays as it is. The caller saves it.
pub(crate) async fn revive(tx: &mut dyn HookTx, hook: &mut Hook) -> Result<(), HookError> {
    if hook.state == HookState::Active && hook.health.exhausted_in_row == 0 {
        return Ok(());
    }
    let (head, now) = (tx.head_of_log(&hook.tenant).await?.seq, tx.now());
    if hook.state != HookState::Active {
        hook.since = head;
    }
    hook.state = HookState::Active;
    hook.health.exhausted_in_row = 0;
    tx.add_deliveries(&[catch_up(hook, head, now, now)]).await?;
    Ok(())
}

/// The ring for what waits already: found out about when it is sent, so that nothing that comes meanwhile falls between.
pub(crate) fn catch_up(hook: &Hook, cause: Seq, created_at: Timestamp, next_at: Timestamp) -> Delivery {
    let (reason, id) = match hook.kind {
        HookKind::Notify => (Reason::Backlog, WebhookId::of_backlog(hook.id, None, cause, created_at)),
        HookKind::Callback => (Reason::Signal, WebhookId::of_signal(hook.id, cause, created_at)),
    };
    Delivery { tenant: hook.tenant.clone(), hook: hook.id, id, reason, cause, event: None, queue: None, attempts: 0, next_at, created_at }
}
