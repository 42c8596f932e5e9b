//! Creating requests that may be repeated (`Idempotency-Key`): the answer to the first is stored in the transaction that did what it asked for.

use std::sync::Arc;

use authz::{Caller, Idempotent, IdempotentAnswer, Made, Outcome};
use domain::{PrincipalId, StoreError, Timestamp};

use crate::{Created, Hook, HookError, HookTx, Hooks, NewCallback, NewHook, Registered};

/// What a repeat is answered, made from the hook as it was stored.
type Render = dyn Fn(&Hook) -> (u16, String) + Send + Sync;

/// An answer to keep with the hook that it is about.
pub(crate) struct Keep {
    principal: PrincipalId,
    key: String,
    request_hash: [u8; 32],
    /// A key that was used before is free again.
    not_before: Timestamp,
    render: Arc<Render>,
}

impl Keep {
    pub(crate) async fn store(&self, tx: &mut dyn HookTx, hook: &Hook) -> Result<(), HookError> {
        let (status, body) = (self.render)(hook);
        let answer = IdempotentAnswer { request_hash: self.request_hash, status, body };
        let now = tx.now();
        match tx.store_answer(&hook.tenant, &self.principal, &self.key, &answer, now, self.not_before).await {
            Err(StoreError::Conflict(_)) => Err(HookError::IdempotencyConflict),
            stored => Ok(stored?),
        }
    }
}

impl Hooks {
    /// [`Hooks::create`] under the key of a request, if it has one: whoever repeats it is answered the same without the secret, and no second
    /// hook is made.
    ///
    /// # Errors
    /// As [`Hooks::create`]; [`HookError::IdempotencyConflict`] when the key was used for another request.
    pub async fn create_once(
        &self,
        caller: &Caller,
        new: NewHook,
        idempotent: Option<Idempotent<Created>>,
    ) -> Result<Outcome<Created>, HookError> {
        if let Some(answer) = self.replay(caller, idempotent.as_ref()).await? {
            return Ok(Outcome::Replayed(answer));
        }
        let made = self.create_kept(caller, new, idempotent.clone()).await;
        self.outcome(caller, idempotent.as_ref(), made).await
    }

    /// [`Hooks::register_callback`] under the key of a request, if it has one.
    ///
    /// # Errors
    /// As [`Hooks::register_callback`]; [`HookError::IdempotencyConflict`] when the key was used for another request.
    pub async fn register_callback_once(
        &self,
        caller: &Caller,
        new: NewCallback,
        idempotent: Option<Idempotent<Registered>>,
    ) -> Result<Outcome<Registered>, HookError> {
        if let Some(answer) = self.replay(caller, idempotent.as_ref()).await? {
            return Ok(Outcome::Replayed(answer));
        }
        let made = self.register_callback_kept(caller, new, idempotent.clone()).await;
        self.outcome(caller, idempotent.as_ref(), made).await
    }

    /// What is to be kept of a request; `made` gives what was created, as it is answered, for the stored hook.
    pub(crate) fn keep<T: 'static>(
        &self,
        caller: &Caller,
        idempotent: Option<Idempotent<T>>,
        made: impl Fn(&Hook) -> T + Send + Sync + 'static,
    ) -> Option<Keep> {
        let Idempotent { key, request_hash, answer } = idempotent?;
        Some(Keep {
            principal: caller.principal.clone(),
            key: key.as_str().to_owned(),
            request_hash,
            not_before: self.answers_from(),
            render: Arc::new(move |hook| answer(&Made::New(made(hook)))),
        })
    }

    async fn outcome<T>(
        &self,
        caller: &Caller,
        idempotent: Option<&Idempotent<T>>,
        made: Result<T, HookError>,
    ) -> Result<Outcome<T>, HookError> {
        match made {
            Ok(made) => Ok(Outcome::Done(Made::New(made))),
            // The same request came twice at once: this one lost, perhaps against the ceiling.
            Err(error @ (HookError::IdempotencyConflict | HookError::LimitReached(_))) => {
                self.replay(caller, idempotent).await?.map(Outcome::Replayed).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The stored answer to the same request.
    async fn replay<T>(&self, caller: &Caller, idempotent: Option<&Idempotent<T>>) -> Result<Option<IdempotentAnswer>, HookError> {
        let Some(idempotent) = idempotent else { return Ok(None) };
        let (key, not_before) = (idempotent.key.as_str(), self.answers_from());
        let answer = self.parts.identities.idempotent_answer(&caller.tenant, &caller.principal, key, not_before).await?;
        match answer {
            Some(answer) if answer.request_hash != idempotent.request_hash => Err(HookError::IdempotencyConflict),
            other => Ok(other),
        }
    }

    /// `authz.idempotency_window` ago.
    fn answers_from(&self) -> Timestamp {
        self.parts.clock.now().minus(self.parts.authorizer.settings().idempotency_window)
    }
}
