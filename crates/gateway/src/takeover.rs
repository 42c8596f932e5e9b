//! Taking a consumer: the newest wins (seed 004, design note 4). Gateway sessions and REST polls take in the same way.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use agents::{ConsumerError, ConsumerKey, Holder, Save, SaveOutcome, Taken};
use authz::Caller;
use domain::SessionId;
use protocol::CloseCode;
use tokio::sync::{Mutex, MutexGuard};

use crate::Gateway;
use crate::registry::Held;
use crate::session::{Link, Session};

/// Locks that serialise what moves a consumer between holders in this process. Nobody holds two of them.
#[derive(Debug)]
pub(crate) struct Stripes {
    locks: Vec<Mutex<()>>,
    hasher: RandomState,
}

impl Stripes {
    /// So many consumers can be moved at once.
    const COUNT: usize = 256;

    pub(crate) fn new() -> Self {
        Self { locks: (0..Self::COUNT).map(|_| Mutex::new(())).collect(), hasher: RandomState::new() }
    }

    pub(crate) async fn lock(&self, key: &ConsumerKey) -> Option<MutexGuard<'_, ()>> {
        let index = self.hasher.hash_one(key) as usize % Self::COUNT;
        match self.locks.get(index) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        }
    }
}

/// A new gateway session that takes a consumer.
#[derive(Debug)]
pub(crate) struct Entrant {
    pub(crate) id: SessionId,
    pub(crate) link: Arc<Link>,
}

impl Gateway {
    /// Takes the consumer for a new gateway session, which enters the registry.
    pub(crate) async fn take_for_session(
        &self,
        caller: &Caller,
        key: &ConsumerKey,
        entrant: &Entrant,
    ) -> Result<(Taken, Arc<Session>), ConsumerError> {
        let _serialised = self.stripes.lock(key).await;
        let holder = Holder::Gateway(entrant.id);
        let mut taken = self.take(caller, key, holder).await?;
        self.inherit(key, holder, &mut taken).await?;
        let owner = (caller.tenant.clone(), caller.principal.clone());
        let session = Session::new(entrant.id, owner, Some(key.clone()), taken.epoch, taken.row.acked);
        let displaced = self.registry.enter(&session, &entrant.link);
        self.tell_displaced(key, displaced, holder);
        self.waiters.wake(key);
        Ok((taken, session))
    }

    /// Takes the consumer for REST polls.
    pub(crate) async fn take_for_rest(&self, caller: &Caller, key: &ConsumerKey) -> Result<Taken, ConsumerError> {
        let _serialised = self.stripes.lock(key).await;
        let mut taken = self.take(caller, key, Holder::Rest).await?;
        self.inherit(key, Holder::Rest, &mut taken).await?;
        let displaced = self.registry.displace(key);
        self.tell_displaced(key, displaced, Holder::Rest);
        Ok(taken)
    }

    /// Saves what the present session holds, while it still may, then swaps the holder in the store. The old connection is told only
    /// after that.
    async fn take(&self, caller: &Caller, key: &ConsumerKey, holder: Holder) -> Result<Taken, ConsumerError> {
        let held = self.registry.held(key).map(|held| held.session);
        if let Some(session) = &held {
            self.saver.flush(session).await;
        }
        let taken = self.consumers.take(caller, &key.name, holder).await;
        let own = held.map(|session| session.holder());
        if let Ok(taken) = &taken
            && taken.previous.is_some_and(|previous| previous != holder && Some(previous) != own)
        {
            self.tell_nodes(key);
        }
        if let Err(ConsumerError::TooManyTakeovers(_)) = &taken {
            self.metrics.takeovers_refused.increment();
        }
        taken
    }

    /// What the present session acknowledged while the holder was swapped, or could not save before, is stored by the new holder: nothing
    /// that was acknowledged before the old connection is told comes again.
    async fn inherit(&self, key: &ConsumerKey, holder: Holder, taken: &mut Taken) -> Result<(), ConsumerError> {
        let Some(Held { session, .. }) = self.registry.held(key) else { return Ok(()) };
        if session.epoch() != taken.epoch || session.position() <= taken.row.acked {
            return Ok(());
        }
        let save = Save { key: key.clone(), holder, acked: Some(session.position()) };
        match self.consumers.save(&[save]).await?.first() {
            Some(SaveOutcome::Held(stored)) => {
                taken.row.acked = *stored;
                Ok(())
            }
            _ => Err(ConsumerError::Replaced),
        }
    }

    fn tell_displaced(&self, key: &ConsumerKey, displaced: Option<Held>, holder: Holder) {
        let Some(Held { session, link }) = displaced else { return };
        let Some(link) = link else { return };
        link.close(CloseCode::ConsumerReplaced);
        self.metrics.takeovers.increment();
        tracing::info!(
            tenant.id = %key.tenant, agent.id = %key.agent, consumer.name = %key.name, session.replaced = %session.id(), holder = ?holder,
            "a consumer was taken over"
        );
    }
}
