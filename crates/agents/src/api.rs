//! The REST use cases of consumers (seed 004, design note 10). Each authorises first.

use std::sync::Arc;
use std::time::Duration;

use authz::{Action, Authorizer, Caller, Denied, IdentityStore, PrincipalKind, Target};
use domain::{ConsumerName, PrincipalId, Seq, SyncEpoch, TenantId, Timestamp};

use crate::service::{authorize, key_of};
use crate::{
    AckEffect, ConsumerError, ConsumerFeed, ConsumerStatus, CursorRow, CursorStore, FeedPage, Holder, PollRequest, ResyncReason, Settings,
    check_ack,
};

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

impl From<ConsumerStatus> for ConsumerState {
    fn from(status: ConsumerStatus) -> Self {
        let ConsumerStatus { name, row, head, updated_at, .. } = status;
        Self {
            consumer: name,
            acked: row.acked,
            head,
            lag: head.since(row.acked),
            in_flight: in_flight(&row),
            holder: row.holder,
            updated_at,
        }
    }
}

/// What polls have on its way. A gateway session keeps that in memory, in whichever process holds it.
fn in_flight(row: &CursorRow) -> Option<u64> {
    let on_its_way = |seq: Seq| seq > row.acked && seq <= row.window.read;
    match row.holder {
        Some(Holder::Gateway(_)) => None,
        Some(Holder::Rest) | None => Some(row.window.in_flight.iter().filter(|entry| on_its_way(entry.seq)).count() as u64),
    }
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
        authorize(&self.authorizer, caller).await?;
        let status = self.cursors.status(&key_of(caller, name)).await?;
        status.map(ConsumerState::from).ok_or(ConsumerError::Unknown)
    }

    /// `pollAgentEvents`: delivers, taking the consumer over from a gateway session if one holds it.
    ///
    /// # Errors
    /// [`ConsumerError::Resync`] for another epoch or a position that cannot be served.
    pub async fn poll(&self, caller: &Caller, poll: Poll) -> Result<FeedPage, ConsumerError> {
        authorize(&self.authorizer, caller).await?;
        if let Some(epoch) = poll.epoch {
            // Before anything is taken over: a client of another history must not adopt the present one by asking.
            self.expect_epoch(&caller.tenant, epoch).await?;
        }
        let most = self.settings.max_inflight_events.max(1);
        let request = PollRequest {
            name: poll.name,
            limit: poll.limit.unwrap_or(most).clamp(1, most),
            wait: poll.wait.min(self.settings.poll_wait_max),
            after: poll.after,
            epoch: poll.epoch,
        };
        self.feed.poll(caller, request).await
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
        authorize(&self.authorizer, caller).await?;
        let key = key_of(caller, name);
        let before = self.cursors.status(&key).await?.ok_or(ConsumerError::Unknown)?;
        self.expect_served_in(&caller.tenant, &before, epoch).await?;
        let status = match check_ack(seq, before.row.acked, before.head)? {
            AckEffect::Nothing => before,
            AckEffect::Advances => self.cursors.ack(&key, seq).await?.ok_or(ConsumerError::Unknown)?,
        };
        // The history may have been replaced in between; then nothing was stored.
        self.expect_served_in(&caller.tenant, &status, epoch).await?;
        self.feed.acked(&key, status.row.acked);
        Ok(status.into())
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
        self.authorizer.authorize(caller, Action::ConsumersList, Target::Principal(agent)).await?;
        let principal = self.identities.principal(&caller.tenant, agent).await?;
        if principal.is_none_or(|principal| principal.kind != PrincipalKind::Agent) {
            return Err(Denied::NotFound.into());
        }
        let listed = self.cursors.list(&caller.tenant, agent, after, limit).await?;
        Ok(listed.into_iter().map(ConsumerState::from).collect())
    }

    /// Refuses what belongs to another history: the row, or what the client says.
    async fn expect_served_in(&self, tenant: &TenantId, status: &ConsumerStatus, said: Option<SyncEpoch>) -> Result<(), ConsumerError> {
        if status.row.epoch == status.epoch && said.is_none_or(|said| said == status.epoch) {
            return Ok(());
        }
        Err(self.epoch_changed(tenant).await)
    }

    async fn expect_epoch(&self, tenant: &TenantId, said: SyncEpoch) -> Result<(), ConsumerError> {
        if self.feed.head(tenant).await?.epoch == said { Ok(()) } else { Err(self.epoch_changed(tenant).await) }
    }

    async fn epoch_changed(&self, tenant: &TenantId) -> ConsumerError {
        match self.feed.head(tenant).await {
            Ok(head) => ConsumerError::Resync { reason: ResyncReason::EpochChanged, head: head.head, epoch: head.epoch, floor: head.floor },
            Err(error) => error,
        }
    }
}
