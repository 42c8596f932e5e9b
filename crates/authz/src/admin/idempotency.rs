//! Repeated creating requests: the answer to the first is stored in the transaction that did what it asked for.

use std::sync::Arc;

use domain::BoxFuture;

use super::scene::Scene;
use super::{Admin, AdminError, Done, Tx, unit};
use crate::{Action, Caller, IdempotentAnswer, Target};

/// What a client calls a request, so that repeating it does nothing twice (header `Idempotency-Key`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// What a valid one looks like, as a sentence for people.
    pub const EXPECTATION: &'static str = "1 to 255 printable ASCII characters";

    /// Checks `text`.
    ///
    /// # Errors
    /// [`Self::EXPECTATION`] when it does not have that form.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let valid = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if valid { Ok(Self(text.to_owned())) } else { Err(Self::EXPECTATION) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Something that was to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made<T> {
    /// It was created: 201.
    New(T),
    /// The very same thing was there already, nothing was written: 200.
    Present(T),
}

impl<T> Made<T> {
    /// The thing.
    pub fn get(&self) -> &T {
        match self {
            Self::New(thing) | Self::Present(thing) => thing,
        }
    }
}

/// How a creating request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It was done now.
    Done(Made<T>),
    /// It was done before under the same key: this was answered, without one-time secrets.
    Replayed(IdempotentAnswer),
}

/// The status and body that are stored for a repeat; the body without one-time secrets, saying `secret_shown: true` instead.
pub type AnswerOf<T> = Arc<dyn Fn(&Made<T>) -> (u16, String) + Send + Sync>;

/// What makes a creating request repeatable.
pub struct Idempotent<T> {
    /// The client's name for the request; unique per principal within `authz.idempotency_window`.
    pub key: IdempotencyKey,
    /// SHA-256 of method, path and body.
    pub request_hash: [u8; 32],
    /// Renders what is stored. Called inside the transaction, before it commits.
    pub answer: AnswerOf<T>,
}

impl<T> std::fmt::Debug for Idempotent<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idempotent").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<T> Clone for Idempotent<T> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), request_hash: self.request_hash, answer: Arc::clone(&self.answer) }
    }
}

impl Admin {
    /// Runs a creating unit of work, or answers what it answered before.
    pub(super) async fn create<T, F>(
        &self,
        caller: &Caller,
        tried: (Action, Target<'_>),
        scene: Scene,
        idempotent: Option<Idempotent<T>>,
        work: F,
    ) -> Result<Outcome<T>, AdminError>
    where
        T: Send + Sync + 'static,
        F: for<'t> Fn(&'t mut Tx) -> BoxFuture<'t, Done<Made<T>>> + Clone + Send + Sync + 'static,
    {
        let Some(idempotent) = idempotent else {
            return Ok(Outcome::Done(self.change(caller, tried, work).await?));
        };
        if let Some(answer) = self.replay(caller, &idempotent).await? {
            return Ok(Outcome::Replayed(answer));
        }
        let (stored, not_before) = (idempotent.clone(), scene.now.minus(self.settings().idempotency_window));
        let principal = caller.principal.clone();
        let unit = unit(move |tx| {
            let (work, stored, scene, principal) = (work.clone(), stored.clone(), scene.clone(), principal.clone());
            Box::pin(async move {
                let (made, changes) = work(tx).await?;
                let (status, body) = (stored.answer)(&made);
                let answer = IdempotentAnswer { request_hash: stored.request_hash, status, body };
                let kept = tx.store_answer(&scene.tenant, &principal, stored.key.as_str(), &answer, scene.now, not_before).await;
                match kept {
                    Ok(()) => Ok((made, changes)),
                    Err(domain::StoreError::Conflict(_)) => Err(AdminError::IdempotencyConflict),
                    Err(error) => Err(error.into()),
                }
            })
        });
        match self.change(caller, tried, unit).await {
            Ok(made) => Ok(Outcome::Done(made)),
            // The same request came twice at once, or what it ran into is what it had done itself.
            Err(error @ (AdminError::IdempotencyConflict | AdminError::AlreadyExists)) => {
                self.replay(caller, &idempotent).await?.map(Outcome::Replayed).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The stored answer to the same request.
    async fn replay<T>(&self, caller: &Caller, idempotent: &Idempotent<T>) -> Result<Option<IdempotentAnswer>, AdminError> {
        let not_before = self.clock.now().minus(self.settings().idempotency_window);
        let key = idempotent.key.as_str();
        let answer = self.store.idempotent_answer(&caller.tenant, &caller.principal, key, not_before).await?;
        match answer {
            Some(answer) if answer.request_hash != idempotent.request_hash => Err(AdminError::IdempotencyConflict),
            other => Ok(other),
        }
    }
}
