//! The REST use cases of consumers (seed 004, design note 10). Each authorises first.

use std::sync::Arc;
use std::time::Duration;

use authz::{Authorizer, Caller, IdentityStore};
use domain::{ConsumerName, PrincipalId, Seq, SyncEpoch, Timestamp};

use crate::{ConsumerError, ConsumerFeed, CursorStore, FeedPage, Holder, Settings};

/// Where a consumer stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerState {
    /// The consumer.
    pub consumer: ConsumerName,
    /// Everything up to here is acknowledged.
    pub acked: Seq,
    /// The committed head.
    pub head: Seq,
    /// Positions from `acked` to `head`, also those that the agent may not see.
    pub lag: u64,
    /// Events dispatched and not acknowledged; absent while a gateway session holds the consumer.
    pub in_flight: Option<u64>,
    /// Who holds it.
    pub holder: Option<Holder>,
    /// When the stored row was last written.
    pub updated_at: Timestamp,
}

/// What a poll asks for.
#[derive(Clone, Debug, Default)]
pub struct Poll {
    /// The consumer.
    pub name: ConsumerName,
    /// At most this many events, at least 1; `agent.max_inflight_events` when absent, and never more.
    pub limit: Option<usize>,
    /// How long to wait for an admissible event; at most `agent.poll_wait_max`.
    pub wait: Duration,
    /// Where the client says it stands.
    pub after: Option<Seq>,
    /// The epoch the client says it is in.
    pub epoch: Option<SyncEpoch>,
}

/// The REST use cases of consumers.
pub struct ConsumerApi {
    cursors: Arc<dyn CursorStore>,
    identities: Arc<dyn IdentityStore>,
    authorizer: Arc<Authorizer>,
    feed: Arc<dyn ConsumerFeed>,
    settings: Settings,
}

impl std::fmt::Debug for ConsumerApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsumerApi").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ConsumerApi {
    /// The use cases over these ports.
    pub fn new(
        cursors: Arc<dyn CursorStore>,
        identities: Arc<dyn IdentityStore>,
        authorizer: Arc<Authorizer>,
        feed: Arc<dyn ConsumerFeed>,
        settings: Settings,
    ) -> Self {
        Self { cursors, identities, authorizer, feed, settings }
    }

    /// `getConsumerState`: reads the row and takes nothing over.
    ///
    /// # Errors
    /// [`ConsumerError::Unknown`] for a consumer that never connected.
    pub async fn state(&self, caller: &Caller, name: &ConsumerName) -> Result<ConsumerState, ConsumerError> {
        let _ = (caller, name, &self.cursors, &self.authorizer);
        todo!()
    }

    /// `pollAgentEvents`: delivers, taking the consumer over from a gateway session if one holds it.
    ///
    /// # Errors
    /// [`ConsumerError::Resync`] for another epoch or a position that cannot be served.
    pub async fn poll(&self, caller: &Caller, poll: Poll) -> Result<FeedPage, ConsumerError> {
        let _ = (caller, poll, &self.feed);
        todo!()
    }

    /// `ackAgentEvents`: acknowledges everything up to `seq`, stored at once, whoever holds the consumer. Takes nothing over.
    ///
    /// # Errors
    /// [`ConsumerError::Unknown`]; [`ConsumerError::Ack`] above the committed head; [`ConsumerError::Resync`] when the row or the client is in another epoch.
    pub async fn ack(
        &self,
        caller: &Caller,
        name: &ConsumerName,
        seq: Seq,
        epoch: Option<SyncEpoch>,
    ) -> Result<ConsumerState, ConsumerError> {
        let _ = (caller, name, seq, epoch);
        todo!()
    }

    /// `listConsumers`: the consumers of an agent by name, strictly after `after`, at most `limit`; for operators.
    ///
    /// # Errors
    /// [`ConsumerError::Denied`] with [`authz::Denied::NotFound`] when there is no such agent.
    pub async fn list(
        &self,
        caller: &Caller,
        agent: &PrincipalId,
        after: Option<&ConsumerName>,
        limit: usize,
    ) -> Result<Vec<ConsumerState>, ConsumerError> {
        let _ = (caller, agent, after, limit, &self.identities);
        todo!()
    }
}
