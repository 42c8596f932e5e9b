//! The cursor use cases that delivery calls.

use std::sync::Arc;

use async_trait::async_trait;
use authz::{Authorizer, Caller, IdentityStore};
use domain::{ConsumerName, Seq};

use crate::{ConsumerError, ConsumerKey, Consumers, CursorStore, Holder, Save, SaveOutcome, Settings, Taken};

/// Implements [`Consumers`] over the durable cursors.
pub struct ConsumerService {
    cursors: Arc<dyn CursorStore>,
    identities: Arc<dyn IdentityStore>,
    authorizer: Arc<Authorizer>,
    settings: Settings,
}

impl std::fmt::Debug for ConsumerService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsumerService").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ConsumerService {
    /// A service over these ports; `identities` answers the committed head of a tenant.
    pub fn new(cursors: Arc<dyn CursorStore>, identities: Arc<dyn IdentityStore>, authorizer: Arc<Authorizer>, settings: Settings) -> Self {
        Self { cursors, identities, authorizer, settings }
    }
}

#[async_trait]
impl Consumers for ConsumerService {
    async fn take(&self, caller: &Caller, name: &ConsumerName, holder: Holder) -> Result<Taken, ConsumerError> {
        let _ = (caller, name, holder, &self.authorizer);
        todo!()
    }

    async fn accept_ack(&self, caller: &Caller, seq: Seq, dispatched_up_to: Seq) -> Result<(), ConsumerError> {
        let _ = (caller, seq, dispatched_up_to, &self.identities);
        todo!()
    }

    async fn save(&self, saves: &[Save]) -> Result<Vec<SaveOutcome>, ConsumerError> {
        Ok(self.cursors.save(saves).await?)
    }

    async fn restart(&self, key: &ConsumerKey, holder: Holder, seq: Seq) -> Result<SaveOutcome, ConsumerError> {
        Ok(self.cursors.restart(key, holder, seq).await?)
    }
}
