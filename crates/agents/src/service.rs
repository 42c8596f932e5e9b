//! The cursor use cases that delivery calls.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use authz::{Action, Authorizer, Caller, IdentityStore, Target};
use domain::{ConsumerName, Seq, StoreError, Timestamp};
use tokio::time::Instant;

use crate::takeovers::Takeovers;
use crate::{ConsumerError, ConsumerKey, Consumers, CursorStore, Holder, Save, SaveOutcome, Settings, Take, Taken, check_ack};

/// Implements [`Consumers`] over the durable cursors.
pub struct ConsumerService {
    cursors: Arc<dyn CursorStore>,
    identities: Arc<dyn IdentityStore>,
    authorizer: Arc<Authorizer>,
    settings: Settings,
    takeovers: Mutex<Takeovers>,
}

impl std::fmt::Debug for ConsumerService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsumerService").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ConsumerService {
    /// A service over these ports; `identities` answers the committed head of a tenant.
    pub fn new(cursors: Arc<dyn CursorStore>, identities: Arc<dyn IdentityStore>, authorizer: Arc<Authorizer>, settings: Settings) -> Self {
        Self { cursors, identities, authorizer, settings, takeovers: Mutex::new(Takeovers::new(settings.takeover_burst)) }
    }

    fn takeovers<T>(&self, act: impl FnOnce(&mut Takeovers) -> T) -> T {
        act(&mut self.takeovers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// `agent.events.consume` is agent-self: an agent for itself, nobody else (seed 004, design note 11).
pub(crate) async fn authorize(authorizer: &Authorizer, caller: &Caller) -> Result<(), ConsumerError> {
    Ok(authorizer.authorize(caller, Action::AgentEventsConsume, Target::Principal(&caller.principal)).await?)
}

pub(crate) fn key_of(caller: &Caller, name: &ConsumerName) -> ConsumerKey {
    ConsumerKey { tenant: caller.tenant.clone(), agent: caller.principal.clone(), name: name.clone() }
}

#[async_trait]
impl Consumers for ConsumerService {
    async fn take(&self, caller: &Caller, name: &ConsumerName, holder: Holder) -> Result<Taken, ConsumerError> {
        authorize(&self.authorizer, caller).await?;
        let key = key_of(caller, name);
        if let Some(wait) = self.takeovers(|takeovers| takeovers.refusal(&key, holder, Instant::now())) {
            return Err(ConsumerError::TooManyTakeovers(wait));
        }
        let take = Take { key, holder };
        let taken = self.cursors.take(&take, self.settings.max_consumers_per_agent).await.map_err(|error| match error {
            StoreError::Conflict(_) => ConsumerError::TooMany,
            error => error.into(),
        })?;
        self.takeovers(|takeovers| takeovers.note(take.key, holder, taken.previous, Instant::now()));
        Ok(taken)
    }

    async fn accept_ack(&self, caller: &Caller, seq: Seq, dispatched_up_to: Seq) -> Result<(), ConsumerError> {
        authorize(&self.authorizer, caller).await?;
        if seq > dispatched_up_to {
            let tenant = self.identities.tenant(&caller.tenant).await?.ok_or(StoreError::TenantInactive)?;
            check_ack(seq, dispatched_up_to, tenant.head)?;
        }
        Ok(())
    }

    async fn save(&self, saves: &[Save]) -> Result<Vec<SaveOutcome>, ConsumerError> {
        Ok(self.cursors.save(saves).await?)
    }

    async fn restart(&self, key: &ConsumerKey, holder: Holder, seq: Seq) -> Result<SaveOutcome, ConsumerError> {
        Ok(self.cursors.restart(key, holder, seq).await?)
    }

    async fn taken_since(&self, since: Timestamp) -> Result<Vec<(ConsumerKey, Option<Holder>)>, ConsumerError> {
        Ok(self.cursors.taken_since(since).await?)
    }

    fn detached(&self, key: &ConsumerKey, holder: Holder) {
        self.takeovers(|takeovers| takeovers.detached(key, holder, Instant::now()));
    }
}
