//! Other keys: of a hook, and of the vault.

use std::time::Duration;

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::{PrincipalId, Timestamp};

use crate::audit::{audit, value};
use crate::hooks::Job;
use crate::managing::revive;
use crate::ringing::{secret_place, secret_row};
use crate::{
    DisabledCause, Hook, HookError, HookId, HookKey, HookKind, HookState, HookTx, Hooks, KeyId, KeyMaterial, NewKey, Profile, Rotated,
    Sealed, SealedRow, ServerKey, server_keys,
};

/// Rows that are looked at in one step of [`Hooks::reseal`].
const STEP: usize = 200;

impl Hooks {
    /// Gives a notify hook a new secret. The old ones sign too for `hooks.rotation_overlap`. A hook that failures disabled is rung again.
    ///
    /// # Errors
    /// As [`Hooks::get`]; [`HookError::Secrets`].
    pub async fn rotate(&self, caller: &Caller, id: HookId) -> Result<Rotated, HookError> {
        let hook = self.owned(caller, None, HookKind::Notify, id).await?;
        self.change_key(caller, Action::HooksManage, &hook, NewKey::default()).await
    }

    /// Gives a callback another key. The old ones count too for `hooks.rotation_overlap`. A callback that failures disabled is rung again.
    ///
    /// # Errors
    /// As [`Hooks::get`]; [`HookError::Invalid`] for a public key where there was none, none where there was one, or a name that is taken;
    /// [`HookError::Secrets`].
    pub async fn rotate_callback(&self, caller: &Caller, id: HookId, new: NewKey) -> Result<Rotated, HookError> {
        let hook = self.owned(caller, Some(Action::CallbackRotate), HookKind::Callback, id).await?;
        match (hook.profile, &new.public_key) {
            (Profile::MessageEd25519, None) => return Err(HookError::invalid("/public_key", "the callback has one: bring another")),
            (Profile::MessageEd25519, Some(_)) | (_, None) => {}
            (_, Some(_)) => return Err(HookError::invalid("/public_key", "the callback shares a secret")),
        }
        self.change_key(caller, Action::CallbackRotate, &hook, new).await
    }

    async fn change_key(&self, caller: &Caller, action: Action, hook: &Hook, new: NewKey) -> Result<Rotated, HookError> {
        let (secret, key) = match new.public_key {
            Some(public) => (None, self.key(new.key, KeyMaterial::Public(public))),
            None => self.mint(&hook.tenant, hook.id, new.key).map(|(secret, key)| (Some(secret), key))?,
        };
        let id = key.id.clone();
        let settings = &self.parts.settings;
        let job = RotateJob {
            hook: hook.clone(),
            key,
            overlap: settings.rotation_overlap,
            keys_max: settings.keys_max.max(1),
            actor: caller.principal.clone(),
            action,
        };
        let (hook, previous_until) = self.run("rotate_hook_key", job).await?;
        self.changed(&hook.tenant);
        Ok(Rotated { hook, key: id, secret, previous_until })
    }

    /// Wraps every stored secret with the present master key (`doorstep keys rotate`); answers how many were not.
    ///
    /// # Errors
    /// [`HookError::Secrets`] when one cannot be opened; the store's. What was wrapped until then stays so.
    pub async fn reseal(&self) -> Result<u64, HookError> {
        let mut count = self.reseal_server_keys().await?;
        let mut after: Option<(HookId, KeyId)> = None;
        loop {
            let rows = self.parts.store.sealed(after.as_ref().map(|(hook, key)| (*hook, key)), STEP).await?;
            let Some(last) = rows.last() else { return Ok(count) };
            after = Some((last.hook, last.key.clone()));
            let mut changes = Vec::new();
            for row in rows {
                let name = secret_row(row.hook, &row.key);
                let place = secret_place(row.tenant.as_str(), &name);
                if let Some(sealed) = self.parts.vault.rewrap(&place, &row.secret)? {
                    changes.push((row, sealed));
                }
            }
            if !changes.is_empty() {
                count += self.run("reseal", ResealJob { changes }).await?;
            }
        }
    }

    async fn reseal_server_keys(&self) -> Result<u64, HookError> {
        let mut changes = Vec::new();
        for key in self.parts.store.server_keys().await? {
            if let Some(pair) = self.parts.vault.rewrap(&server_keys::place(key.id.as_str()), &key.pair)? {
                changes.push(ServerKey { pair, ..key });
            }
        }
        if changes.is_empty() { Ok(0) } else { self.run("reseal", ResealServerJob { changes }).await }
    }
}

struct RotateJob {
    hook: Hook,
    key: HookKey,
    overlap: Duration,
    keys_max: usize,
    actor: PrincipalId,
    action: Action,
}

#[async_trait]
impl Job for RotateJob {
    type Answer = (Hook, Timestamp);

    async fn run(&self, tx: &mut dyn HookTx) -> Result<(Hook, Timestamp), HookError> {
        let mut hook = tx.hook(&self.hook.tenant, self.hook.id).await?.ok_or(HookError::NotFound)?;
        let (before, now) = (value(&hook), tx.now());
        let until = now.plus(self.overlap);
        let keys = tx.keys(hook.id).await?;
        if keys.iter().any(|key| key.id == self.key.id) {
            return Err(HookError::invalid("/secret_id", "the callback has a key of that name"));
        }
        // The newest come first; what is expired, or one too many, goes.
        let (kept, gone): (Vec<_>, Vec<_>) =
            keys.into_iter().filter(|key| key.is_valid(now)).enumerate().partition(|(place, _)| place + 1 < self.keys_max);
        for (_, key) in kept {
            let ends = key.expires_at.map_or(until, |end| end.min(until));
            if key.expires_at != Some(ends) {
                tx.put_key(hook.id, &HookKey { expires_at: Some(ends), ..key }).await?;
            }
        }
        let gone: Vec<KeyId> = gone.into_iter().map(|(_, key)| key.id).collect();
        tx.remove_keys(hook.id, &gone).await?;
        tx.put_key(hook.id, &self.key).await?;
        // Another key is what a receiver that answered 401 needs. What its owner disabled stays so.
        if !matches!(hook.state, HookState::PendingVerification | HookState::Disabled(DisabledCause::Asked)) && hook.challenge.is_none() {
            revive(tx, &mut hook).await?;
            tx.save_hook(&hook).await?;
        }
        audit(tx, &hook, &self.actor, self.action, Some(&before), Some(&value(&hook))).await?;
        Ok((hook, until))
    }
}

struct ResealJob {
    changes: Vec<(SealedRow, Sealed)>,
}

#[async_trait]
impl Job for ResealJob {
    type Answer = u64;

    async fn run(&self, tx: &mut dyn HookTx) -> Result<u64, HookError> {
        let mut count = 0;
        for (was, sealed) in &self.changes {
            count += u64::from(tx.reseal(was, sealed).await?);
        }
        Ok(count)
    }
}

struct ResealServerJob {
    changes: Vec<ServerKey>,
}

#[async_trait]
impl Job for ResealServerJob {
    type Answer = u64;

    async fn run(&self, tx: &mut dyn HookTx) -> Result<u64, HookError> {
        let present = tx.server_keys().await?;
        let mut count = 0;
        for key in self.changes.iter().filter(|key| present.iter().any(|other| other.id == key.id)) {
            tx.put_server_key(key).await?;
            count += 1;
        }
        Ok(count)
    }
}
