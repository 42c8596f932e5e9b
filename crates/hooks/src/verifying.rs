//! Rings that somebody waits for: the test of a hook, and the challenge of one that is pending.

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::{PrincipalId, Seq, Timestamp};

use crate::audit::{audit, value};
use crate::hooks::{Job, managing};
use crate::places::{Condition, Place};
use crate::settling::{Outcome, verify};
use crate::{
    AttemptClass, AttemptRecord, Challenge, Delivery, Hook, HookError, HookId, HookKind, HookState, HookTx, Hooks, Reason, WebhookId, body,
    registering::challenge_delivery,
};

impl Hooks {
    /// Rings a hook once, now, and answers what that brought. Changes its health only for the better.
    ///
    /// # Errors
    /// As [`Hooks::get`]; [`HookError::Busy`] when too many attempts run, or one of this hook, or its rate is used up; [`HookError::NotInThatState`] for one that
    /// has not answered its challenge; [`HookError::Secrets`].
    pub async fn test(&self, caller: &Caller, kind: HookKind, id: HookId) -> Result<AttemptRecord, HookError> {
        let hook = self.owned(caller, None, kind, id).await?;
        if hook.challenge.is_some() {
            return Err(HookError::NotInThatState("the hook has not answered its challenge"));
        }
        let now = self.parts.clock.now();
        Self::check_rate(&hook, now)?;
        let place = self.place_of_request(&hook)?;
        let keys = self.parts.store.keys(hook.id).await?;
        let delivery = Delivery {
            tenant: hook.tenant.clone(),
            hook: hook.id,
            id: WebhookId::fresh(hook.id, self.parts.ids.uuid()),
            reason: Reason::Test,
            cause: Seq::ZERO,
            event: None,
            queue: None,
            attempts: 0,
            next_at: now,
            created_at: now,
        };
        let attempted = self.attempt(&hook, &keys, &delivery, body::test(&hook, now)).await?;
        let record = attempted.record.clone();
        self.settle_all(vec![Outcome::Attempted { delivery, attempted, told: Seq::ZERO }]).await;
        drop(place);
        self.due.notify_one();
        Ok(record)
    }

    /// Verifies a hook that is pending: with `response`, the answer to the open challenge; without, sends a new challenge now and looks at what
    /// is answered. A hook that is verified stays as it is.
    ///
    /// # Errors
    /// As [`Hooks::get`]; [`HookError::Unverified`]; [`HookError::NotInThatState`] when no challenge is open; [`HookError::UrlRefused`];
    /// [`HookError::Busy`] when too many attempts run, or the rate of the hook is used up.
    pub async fn verify_callback(&self, caller: &Caller, id: HookId, response: Option<&str>) -> Result<Hook, HookError> {
        self.verify(caller, HookKind::Callback, id, response).await
    }

    /// The same for a hook of either kind (`hooks.require_verification`).
    ///
    /// # Errors
    /// As [`Hooks::verify_callback`].
    pub async fn verify(&self, caller: &Caller, kind: HookKind, id: HookId, response: Option<&str>) -> Result<Hook, HookError> {
        let hook = self.owned(caller, None, kind, id).await?;
        match (hook.state, &hook.challenge) {
            (HookState::Active, None) => return Ok(hook),
            (HookState::PendingVerification, Some(_)) => {}
            _ => return Err(HookError::NotInThatState("the hook is disabled: enable it first")),
        }
        match response {
            Some(response) => self.verify_response(caller, hook, response).await,
            None => self.challenge_now(caller, hook).await,
        }
    }

    /// Whether the hook's rate permits a request at `now`.
    fn check_rate(hook: &Hook, now: Timestamp) -> Result<(), HookError> {
        match Self::permitted_at(hook).filter(|at| *at > now) {
            Some(at) => Err(HookError::Busy("max_rate_per_minute", at.since(now))),
            None => Ok(()),
        }
    }

    /// A place for an attempt that somebody waits for.
    fn place_of_request(&self, hook: &Hook) -> Result<Place, HookError> {
        // Whatever has the places lets go of them within that time.
        let until_free = self.parts.settings.attempt_timeout;
        self.places.take(hook, None, Condition::Failing).ok_or(HookError::Busy("hooks.concurrency", until_free))
    }

    async fn verify_response(&self, caller: &Caller, hook: Hook, response: &str) -> Result<Hook, HookError> {
        let metrics = &self.parts.metrics;
        let Some(challenge) = hook.challenge.clone() else { return Err(HookError::NotInThatState("no challenge is open")) };
        if challenge.expires_at <= self.parts.clock.now() {
            metrics.replays_rejected.increment();
            return Err(HookError::NotInThatState("the challenge has expired: ask for another"));
        }
        let keys = self.parts.store.keys(hook.id).await?;
        if !self.proves(&hook, &keys, &challenge, response, self.parts.clock.now()) {
            metrics.verification_failures.increment();
            return Err(HookError::Unverified(AttemptClass::Unproven));
        }
        self.activate(caller, &hook, challenge.delivery).await
    }

    async fn challenge_now(&self, caller: &Caller, hook: Hook) -> Result<Hook, HookError> {
        let now = self.parts.clock.now();
        Self::check_rate(&hook, now)?;
        self.check_url(&hook.url).await?;
        let place = self.place_of_request(&hook)?;
        let challenge = self.challenge(hook.id)?;
        let hook = self.run("challenge_hook", ChallengeJob { hook, challenge }).await?;
        let keys = self.parts.store.keys(hook.id).await?;
        let (Some(delivery), Some(open)) = (challenge_delivery(&hook, now, now), &hook.challenge) else {
            return Err(HookError::NotInThatState("no challenge is open"));
        };
        let attempted = self.attempt(&hook, &keys, &delivery, body::challenge(open)).await?;
        drop(place);
        let record = attempted.record;
        self.run("log_challenge", LogJob { hook: hook.clone(), record: record.clone(), keep: self.parts.settings.log_max }).await?;
        if record.class == AttemptClass::Delivered {
            return self.activate(caller, &hook, delivery.id).await;
        }
        self.parts.metrics.verification_failures.increment();
        Err(HookError::Unverified(record.class))
    }

    async fn activate(&self, caller: &Caller, hook: &Hook, challenge: WebhookId) -> Result<Hook, HookError> {
        let action = managing(hook.kind, hook.agent == caller.principal);
        let job = ActivateJob { hook: hook.clone(), challenge, actor: caller.principal.clone(), action };
        match self.run("activate_hook", job).await? {
            Some(hook) => {
                self.parts.metrics.verifications.increment();
                self.changed(&hook.tenant);
                Ok(hook)
            }
            None => {
                self.parts.metrics.replays_rejected.increment();
                Err(HookError::NotInThatState("the challenge is not open any more"))
            }
        }
    }
}

/// Opens another challenge. The one before counts no more, and is not sent any more.
struct ChallengeJob {
    hook: Hook,
    challenge: Challenge,
}

#[async_trait]
impl Job for ChallengeJob {
    type Answer = Hook;

    async fn run(&self, tx: &mut dyn HookTx) -> Result<Hook, HookError> {
        let mut hook = tx.hook(&self.hook.tenant, self.hook.id).await?.ok_or(HookError::NotFound)?;
        if hook.state != HookState::PendingVerification {
            return Err(HookError::NotInThatState("no challenge is open"));
        }
        tx.clear_deliveries(hook.id).await?;
        hook.challenge = Some(self.challenge.clone());
        tx.save_hook(&hook).await?;
        Ok(hook)
    }
}

struct LogJob {
    hook: Hook,
    record: AttemptRecord,
    keep: usize,
}

#[async_trait]
impl Job for LogJob {
    type Answer = ();

    async fn run(&self, tx: &mut dyn HookTx) -> Result<(), HookError> {
        let Some(mut hook) = tx.hook(&self.hook.tenant, self.hook.id).await? else { return Ok(()) };
        hook.health.last_status = self.record.status;
        hook.health.last_attempt_at = hook.health.last_attempt_at.max(Some(self.record.at));
        tx.save_hook(&hook).await?;
        Ok(tx.log_attempts(&[(hook.id, self.record.clone())], self.keep).await?)
    }
}

struct ActivateJob {
    hook: Hook,
    challenge: WebhookId,
    actor: PrincipalId,
    action: Action,
}

#[async_trait]
impl Job for ActivateJob {
    type Answer = Option<Hook>;

    async fn run(&self, tx: &mut dyn HookTx) -> Result<Option<Hook>, HookError> {
        let mut hook = tx.hook(&self.hook.tenant, self.hook.id).await?.ok_or(HookError::NotFound)?;
        let before = value(&hook);
        if !verify(tx, &mut hook, &self.challenge).await? {
            return Ok(None);
        }
        tx.save_hook(&hook).await?;
        audit(tx, &hook, &self.actor, self.action, Some(&before), Some(&value(&hook))).await?;
        Ok(Some(hook))
    }
}
