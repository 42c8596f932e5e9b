//! Making hooks: notify hooks and callbacks.

use std::time::Duration;

use async_trait::async_trait;
use authz::{Action, Caller, Idempotent};
use domain::{PrincipalId, QueueName, Seq, TenantId, Timestamp};

use crate::audit::{audit, value};
use crate::hooks::Job;
use crate::once::Keep;
use crate::ringing::{random_text, secret_place, secret_row};
use crate::{
    AuthMode, Challenge, Created, Delivery, Health, Hook, HookError, HookId, HookKey, HookKind, HookState, HookTx, Hooks, KeyId,
    KeyMaterial, NewCallback, NewHook, Profile, Reason, Registered, Secret, WebhookId,
};

impl Hooks {
    /// Makes a notify hook. With `hooks.require_verification` it is sent a challenge, and rung only after it has answered.
    ///
    /// # Errors
    /// [`HookError::Denied`], [`HookError::NotFound`], [`HookError::UrlRefused`], [`HookError::Invalid`], [`HookError::LimitReached`] over
    /// `hooks.max_per_agent` or `hooks.max_per_tenant`, [`HookError::Secrets`], the store's.
    pub async fn create(&self, caller: &Caller, new: NewHook) -> Result<Created, HookError> {
        self.create_kept(caller, new, None).await
    }

    /// The same; what a repeat of the request is answered is kept with the hook.
    pub(crate) async fn create_kept(
        &self,
        caller: &Caller,
        new: NewHook,
        idempotent: Option<Idempotent<Created>>,
    ) -> Result<Created, HookError> {
        let agent = new.agent.as_ref().unwrap_or(&caller.principal);
        let agent = self.agents(caller, Action::HooksManage, agent).await?;
        self.check_queues(&new.queues)?;
        self.check_url(&new.url).await?;
        let settings = &self.parts.settings;
        let mut hook = Hook {
            queues: new.queues,
            ignore_presence: new.ignore_presence,
            ..self.blank(&caller.tenant, &agent, HookKind::Notify, Profile::StandardWebhooks, new.url)
        };
        if settings.require_verification {
            hook.state = HookState::PendingVerification;
            hook.challenge = Some(self.challenge(hook.id)?);
        }
        let (secret, key) = self.mint(&hook.tenant, hook.id, None)?;
        let shown = secret.clone();
        let keep = self.keep(caller, idempotent, move |hook| Created { hook: hook.clone(), secret: shown.clone() });
        let hook = self.register(caller, Action::HooksManage, hook, key, keep).await?;
        Ok(Created { hook, secret })
    }

    /// Registers a callback of the calling agent, and sends it a challenge.
    ///
    /// # Errors
    /// As [`Hooks::create`].
    pub async fn register_callback(&self, caller: &Caller, new: NewCallback) -> Result<Registered, HookError> {
        self.register_callback_kept(caller, new, None).await
    }

    /// The same; what a repeat of the request is answered is kept with the registration.
    pub(crate) async fn register_callback_kept(
        &self,
        caller: &Caller,
        new: NewCallback,
        idempotent: Option<Idempotent<Registered>>,
    ) -> Result<Registered, HookError> {
        let agent = self.agents(caller, Action::CallbackRegister, &caller.principal).await?;
        let most = self.parts.settings.callback_rate_max.max(1);
        let rate = match new.max_rate_per_minute {
            Some(0) => return Err(HookError::invalid("/max_rate_per_minute", "at least 1")),
            rate => rate.unwrap_or(most).min(most),
        };
        let profile = match (new.auth_mode, &new.public_key) {
            (AuthMode::HmacSha256, None) => Profile::CallbackHmac,
            (AuthMode::HttpMessageSignatures, None) => Profile::MessageHmac,
            (AuthMode::HttpMessageSignatures, Some(_)) => Profile::MessageEd25519,
            (AuthMode::HmacSha256, Some(_)) => {
                return Err(HookError::invalid("/public_key", "only with auth_mode http-message-signatures"));
            }
        };
        self.check_url(&new.url).await?;
        if profile == Profile::MessageEd25519 {
            // The key that will sign is there, and published, before anybody needs it.
            self.keys().await?;
        }
        let mut hook = self.blank(&caller.tenant, &agent, HookKind::Callback, profile, new.url);
        let challenge = self.challenge(hook.id)?;
        let (challenge_delivery, expires_at) = (challenge.delivery.clone(), challenge.expires_at);
        hook.ignore_presence = new.ignore_presence;
        hook.max_rate_per_minute = Some(rate);
        hook.state = HookState::PendingVerification;
        hook.challenge = Some(challenge);
        let (secret, key) = match new.public_key {
            Some(public) => (None, self.key(new.key, KeyMaterial::Public(public))),
            None => self.mint(&hook.tenant, hook.id, new.key).map(|(secret, key)| (Some(secret), key))?,
        };
        let id = key.id.clone();
        let registered = move |hook: Hook| Registered {
            hook,
            key: id.clone(),
            secret: secret.clone(),
            challenge_delivery: challenge_delivery.clone(),
            expires_at,
        };
        let shown = registered.clone();
        let keep = self.keep(caller, idempotent, move |hook| shown(hook.clone()));
        Ok(registered(self.register(caller, Action::CallbackRegister, hook, key, keep).await?))
    }

    async fn register(&self, caller: &Caller, action: Action, hook: Hook, key: HookKey, keep: Option<Keep>) -> Result<Hook, HookError> {
        let settings = &self.parts.settings;
        let job = RegisterJob {
            first_challenge: settings.retry.first().copied().unwrap_or_default(),
            max_per_agent: settings.max_per_agent as u64,
            max_per_tenant: settings.max_per_tenant as u64,
            actor: caller.principal.clone(),
            action,
            hook,
            key,
            keep,
        };
        let hook = self.run("register_hook", job).await?;
        self.changed(&hook.tenant);
        Ok(hook)
    }

    fn blank(&self, tenant: &TenantId, agent: &PrincipalId, kind: HookKind, profile: Profile, url: crate::HookUrl) -> Hook {
        Hook {
            id: HookId::new(self.parts.ids.uuid()),
            tenant: tenant.clone(),
            agent: agent.clone(),
            kind,
            profile,
            url,
            queues: Vec::new(),
            ignore_presence: false,
            max_rate_per_minute: None,
            state: HookState::Active,
            challenge: None,
            health: Health::default(),
            since: Seq::ZERO,
            created_at: self.parts.clock.now(),
        }
    }

    pub(crate) fn check_queues(&self, queues: &[QueueName]) -> Result<(), HookError> {
        let most = self.parts.settings.max_queues;
        if queues.len() > most {
            return Err(HookError::invalid("/queues", format!("at most {most} queues")));
        }
        match queues.iter().enumerate().find(|(place, queue)| queues.iter().take(*place).any(|other| other == *queue)) {
            Some((place, _)) => Err(HookError::invalid(format!("/queues/{place}"), "named before")),
            None => Ok(()),
        }
    }

    /// A fresh challenge.
    pub(crate) fn challenge(&self, hook: HookId) -> Result<Challenge, HookError> {
        Ok(Challenge {
            delivery: WebhookId::fresh(hook, self.parts.ids.uuid()),
            nonce: random_text()?,
            text: random_text()?,
            expires_at: self.parts.clock.now().plus(self.parts.settings.challenge_ttl),
        })
    }

    /// A fresh secret, and the key that it becomes.
    pub(crate) fn mint(&self, tenant: &TenantId, hook: HookId, name: Option<KeyId>) -> Result<(Secret, HookKey), HookError> {
        let secret = Secret::mint().map_err(|_| crate::VaultError::NoRandomness)?;
        let id = name.unwrap_or_else(|| KeyId::of(self.parts.ids.uuid()));
        let row = secret_row(hook, &id);
        let sealed = self.parts.vault.seal(&secret_place(tenant.as_str(), &row), secret.bytes())?;
        Ok((secret, self.key(Some(id), KeyMaterial::Secret(sealed))))
    }

    pub(crate) fn key(&self, name: Option<KeyId>, material: KeyMaterial) -> HookKey {
        let id = name.unwrap_or_else(|| KeyId::of(self.parts.ids.uuid()));
        HookKey { id, material, created_at: self.parts.clock.now(), expires_at: None }
    }
}

/// The ring that carries a hook's open challenge.
pub(crate) fn challenge_delivery(hook: &Hook, next_at: Timestamp, now: Timestamp) -> Option<Delivery> {
    let challenge = hook.challenge.as_ref()?;
    Some(Delivery {
        tenant: hook.tenant.clone(),
        hook: hook.id,
        id: challenge.delivery.clone(),
        reason: Reason::Challenge,
        cause: Seq::ZERO,
        event: None,
        queue: None,
        attempts: 0,
        next_at,
        created_at: now,
    })
}

struct RegisterJob {
    hook: Hook,
    key: HookKey,
    /// How long the receiver has for putting its secret in place before it is asked for the first time.
    first_challenge: Duration,
    max_per_agent: u64,
    max_per_tenant: u64,
    actor: PrincipalId,
    action: Action,
    keep: Option<Keep>,
}

#[async_trait]
impl Job for RegisterJob {
    type Answer = Hook;

    async fn run(&self, tx: &mut dyn HookTx) -> Result<Hook, HookError> {
        let mut hook = self.hook.clone();
        let (of_agent, of_tenant) = tx.count_hooks(&hook.tenant, &hook.agent).await?;
        if of_agent >= self.max_per_agent {
            return Err(HookError::LimitReached("hooks.max_per_agent"));
        }
        if of_tenant >= self.max_per_tenant {
            return Err(HookError::LimitReached("hooks.max_per_tenant"));
        }
        hook.since = tx.head_of_log(&hook.tenant).await?.seq;
        tx.create_hook(&hook).await?;
        tx.put_key(hook.id, &self.key).await?;
        let now = tx.now();
        if let Some(delivery) = challenge_delivery(&hook, now.plus(self.first_challenge), now) {
            tx.add_deliveries(&[delivery]).await?;
        }
        audit(tx, &hook, &self.actor, self.action, None, Some(&value(&hook))).await?;
        if let Some(keep) = &self.keep {
            keep.store(tx, &hook).await?;
        }
        Ok(hook)
    }
}
