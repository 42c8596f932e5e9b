//! The background task that moves staged events into the log.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::{Clock, StoreError, TenantId, Transactions, run_tx};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::batch::{Batch, MoveError, Moved, Take};
use super::{MoveTx, PublishLimits, StagedHint, StagedStore};
use crate::{Metrics, ScheduleBell, Settings};

/// Tenants that are looked for in one go.
const TENANTS: usize = 500;
/// Failed events that are removed in one step.
const PURGE_BATCH: usize = 500;
/// How often failed events are looked for that are old enough to go.
const HOUSEKEEPING: Duration = Duration::from_mins(10);
/// Transactions that one tenant has in its turn.
const BATCHES: usize = 16;
/// Full batches of events that one tenant has in its turn.
const FULL_BATCHES: usize = 4;

/// What [`Mover`] works with.
#[derive(Clone)]
pub struct MoverParts {
    /// Reads staged events.
    pub staged: Arc<dyn StagedStore>,
    /// Moves them.
    pub transactions: Arc<dyn Transactions<dyn MoveTx>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Rung by whoever learns that something may have been staged.
    pub hint: StagedHint,
    /// Rung when something was scheduled.
    pub bell: ScheduleBell,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The settings, those of the other doors.
    pub settings: Settings,
}

impl std::fmt::Debug for MoverParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MoverParts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Moves staged events into the log (issue "PostgreSQL and several nodes", transactional publish). One per process; several do no harm: whoever
/// holds the head of a tenant's log moves its events, and the others find them gone.
#[derive(Debug)]
pub struct Mover {
    parts: MoverParts,
    settings: Arc<Settings>,
}

/// Tenants whose events could not be moved, and until when it is not tried again.
type Resting = HashMap<TenantId, Instant>;

/// What a turn of every tenant came to.
#[derive(Debug, Default)]
struct Round {
    /// Somebody's turn ended before everything was moved.
    is_more: bool,
    /// The last failure of a tenant's turn.
    failure: Option<StoreError>,
}

impl Mover {
    /// A mover over these parts.
    pub fn new(parts: MoverParts) -> Self {
        let settings = Arc::new(parts.settings.clone());
        Self { parts, settings }
    }

    /// Moves until `token` is cancelled: when the hint rings, and every `intake.staged_interval`.
    pub async fn run(&self, token: CancellationToken) {
        let settings = &self.parts.settings;
        let (mut is_announced, mut kept_at, mut resting) = (false, None::<Instant>, Resting::new());
        while !token.is_cancelled() {
            let is_time = kept_at.is_none_or(|at| at.elapsed() >= HOUSEKEEPING);
            let step = self.step(&mut is_announced, is_time, &mut resting, &token).await;
            let pause = match step {
                // Whoever has more waiting has another turn at once, with the others.
                Ok(Round { is_more: true, .. }) => Duration::ZERO,
                Ok(Round { failure: None, .. }) => settings.staged_interval,
                Ok(Round { failure: Some(_), .. }) => settings.promote_retry,
                Err(error) => {
                    self.parts.metrics.move_errors.increment();
                    tracing::warn!(error = %error, "staged events could not be moved; it is tried again");
                    settings.promote_retry
                }
            };
            if is_time && is_announced {
                kept_at = Some(Instant::now());
            }
            tokio::select! {
                biased;
                () = token.cancelled() => {}
                () = self.parts.hint.rung() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn step(
        &self,
        is_announced: &mut bool,
        is_time: bool,
        resting: &mut Resting,
        token: &CancellationToken,
    ) -> Result<Round, StoreError> {
        if !*is_announced {
            self.announce().await?;
            *is_announced = true;
        }
        if is_time {
            self.purge(token).await?;
        }
        self.round(resting, token).await
    }

    /// Has the database know the limits of this configuration.
    async fn announce(&self) -> Result<(), StoreError> {
        let limits = PublishLimits::from(&self.parts.settings);
        run_tx::<dyn MoveTx, _, _, _>(&*self.parts.transactions, "events.staged_limits", move |tx| {
            Box::pin(async move { tx.put_publish_limits(&limits).await })
        })
        .await
    }

    /// Removes what failed long ago.
    async fn purge(&self, token: &CancellationToken) -> Result<(), StoreError> {
        while !token.is_cancelled() {
            let before = self.parts.clock.now().minus(self.parts.settings.staged_retention);
            let purged = run_tx::<dyn MoveTx, _, _, _>(&*self.parts.transactions, "events.purge_staged", move |tx| {
                Box::pin(async move { tx.purge_staged(before, PURGE_BATCH).await })
            });
            if purged.await? < PURGE_BATCH as u64 {
                break;
            }
        }
        Ok(())
    }

    /// Moves everything that waits, of all tenants. One that cannot be served now keeps no other from its turn.
    ///
    /// # Errors
    /// The store's, the last one.
    pub async fn move_all(&self) -> Result<(), StoreError> {
        let (token, mut resting, mut failure) = (CancellationToken::new(), Resting::new(), None);
        loop {
            let round = self.round(&mut resting, &token).await?;
            failure = round.failure.or(failure);
            if !round.is_more {
                return failure.map_or(Ok(()), Err);
            }
        }
    }

    /// A turn for every tenant that has something waiting and does not rest.
    async fn round(&self, resting: &mut Resting, token: &CancellationToken) -> Result<Round, StoreError> {
        let now = Instant::now();
        resting.retain(|_, until| *until > now);
        let (mut after, mut round) = (None::<TenantId>, Round::default());
        loop {
            let tenants = self.parts.staged.tenants_with_staged(after.as_ref(), TENANTS).await?;
            for tenant in tenants.iter().filter(|tenant| !resting.contains_key(*tenant)).collect::<Vec<_>>() {
                match self.turn(tenant, token).await {
                    Ok(is_more) => round.is_more |= is_more,
                    // Suspended since: its events wait.
                    Err(StoreError::TenantInactive) => {}
                    Err(error) => {
                        self.parts.metrics.move_errors.increment();
                        tracing::warn!(tenant.id = %tenant, error = %error, "staged events of a tenant could not be moved; it is tried again");
                        resting.insert(tenant.clone(), Instant::now() + self.parts.settings.promote_retry);
                        round.failure = Some(error);
                    }
                }
                if token.is_cancelled() {
                    return Ok(round);
                }
            }
            after = tenants.last().cloned();
            if tenants.len() < TENANTS {
                return Ok(round);
            }
        }
    }

    /// Moves what waits of one tenant, a batch at a time and so many at most: whoever publishes meanwhile waits for one batch, and other tenants for one turn.
    /// Answers whether there may be more. Where the store refuses a batch, smaller ones find out which event it is about.
    async fn turn(&self, tenant: &TenantId, token: &CancellationToken) -> Result<bool, StoreError> {
        let most = self.parts.settings.promote_batch.max(1);
        let (mut limit, mut batches, mut seen) = (most, 0, 0);
        while batches < BATCHES && seen < FULL_BATCHES * most && !token.is_cancelled() {
            let moved = match self.write(tenant, Take::First(limit)).await {
                Err(MoveError::Alone(number, sentence)) => {
                    limit = 1;
                    self.write(tenant, Take::Fail(number, sentence)).await.map_err(MoveError::into_store)?
                }
                Err(refusal) if refusal.sentence().is_some() && limit > 1 => {
                    limit /= 2;
                    continue;
                }
                Err(refusal) => return Err(refusal.into_store()),
                Ok(moved) => moved,
            };
            self.count(&moved);
            if moved.seen < limit {
                return Ok(false);
            }
            limit = most.min(limit * 2);
            batches += 1;
            seen += moved.seen;
        }
        Ok(true)
    }

    async fn write(&self, tenant: &TenantId, take: Take) -> Result<Moved, MoveError> {
        let (clock, settings) = (Arc::clone(&self.parts.clock), Arc::clone(&self.settings));
        let batch = Arc::new(Batch { tenant: tenant.clone(), take, clock, settings });
        run_tx::<dyn MoveTx, _, _, _>(&*self.parts.transactions, "events.move", move |tx| {
            let batch = Arc::clone(&batch);
            Box::pin(async move { batch.write(tx).await })
        })
        .await
    }

    fn count(&self, moved: &Moved) {
        let metrics = &self.parts.metrics;
        metrics.moved.add(moved.appended + moved.scheduled);
        metrics.deduplicated.add(moved.duplicates);
        metrics.staged_failed.add(moved.failed);
        if moved.scheduled > 0 {
            self.parts.bell.ring();
        }
    }
}
