//! The background task that moves staged events into the log.

use std::sync::Arc;
use std::time::Duration;

use domain::{Actor, ActorKind, Appended, Clock, Publication, StoreError, TenantId, Timestamp, Transactions, UnitError, run_tx};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::{MoveTx, PublishLimits, Staged, StagedHint, StagedNumber, StagedStore, event};
use crate::publish::plan::{Planned, plan};
use crate::{Metrics, Schedule, ScheduleBell, Settings};

/// Tenants that are looked for in one go.
const TENANTS: usize = 500;
/// Failed events that are removed in one step.
const PURGE_BATCH: usize = 500;
/// How often failed events are looked for that are old enough to go.
const HOUSEKEEPING: Duration = Duration::from_mins(10);

/// Why an event whose channel is gone was not appended.
const NO_CHANNEL: &str = "The channel does not exist any more.";
/// Why an event whose recipient is gone was not appended.
const NO_RECIPIENT: &str = "A recipient does not exist any more, or is disabled.";
/// Why an event whose key stands for another body was not appended.
const CONFLICT: &str = "The deduplication key stands for another body.";
/// Why an event that the store refuses was not appended.
const REFUSED: &str = "The event could not be appended.";

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

/// What one transaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moved {
    /// Events that it looked at.
    seen: usize,
    appended: u64,
    scheduled: u64,
    duplicates: u64,
    failed: u64,
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
        let (mut is_announced, mut kept_at) = (false, None::<tokio::time::Instant>);
        while !token.is_cancelled() {
            let is_time = kept_at.is_none_or(|at| at.elapsed() >= HOUSEKEEPING);
            let pause = match self.step(&mut is_announced, is_time).await {
                Ok(()) => settings.staged_interval,
                Err(error) => {
                    self.parts.metrics.move_errors.increment();
                    tracing::warn!(error = %error, "staged events could not be moved; it is tried again");
                    settings.promote_retry
                }
            };
            if is_time && is_announced {
                kept_at = Some(tokio::time::Instant::now());
            }
            tokio::select! {
                biased;
                () = token.cancelled() => {}
                () = self.parts.hint.rung() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn step(&self, is_announced: &mut bool, is_time: bool) -> Result<(), StoreError> {
        if !*is_announced {
            self.announce().await?;
            *is_announced = true;
        }
        if is_time {
            self.purge().await?;
        }
        self.move_all().await
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
    async fn purge(&self) -> Result<(), StoreError> {
        loop {
            let before = self.parts.clock.now().minus(self.parts.settings.staged_retention);
            let purged = run_tx::<dyn MoveTx, _, _, _>(&*self.parts.transactions, "events.purge_staged", move |tx| {
                Box::pin(async move { tx.purge_staged(before, PURGE_BATCH).await })
            });
            if purged.await? < PURGE_BATCH as u64 {
                return Ok(());
            }
        }
    }

    /// Moves everything that waits, of all tenants. One that cannot be served now keeps no other from its turn.
    ///
    /// # Errors
    /// The store's, the last one.
    pub async fn move_all(&self) -> Result<(), StoreError> {
        let (mut after, mut failure) = (None::<TenantId>, None);
        loop {
            let tenants = self.parts.staged.tenants_with_staged(after.as_ref(), TENANTS).await?;
            for tenant in &tenants {
                match self.move_tenant(tenant).await {
                    // Suspended since: its events wait.
                    Ok(()) | Err(StoreError::TenantInactive) => {}
                    Err(error) => {
                        tracing::warn!(tenant.id = %tenant, error = %error, "staged events of a tenant could not be moved");
                        failure = Some(error);
                    }
                }
            }
            after = tenants.last().cloned();
            if tenants.len() < TENANTS {
                return failure.map_or(Ok(()), Err);
            }
        }
    }

    /// Moves what waits of one tenant, a batch at a time: whoever publishes meanwhile waits for one batch at most. Where the store refuses a batch,
    /// smaller ones find out which event it is about.
    async fn move_tenant(&self, tenant: &TenantId) -> Result<(), StoreError> {
        let most = self.parts.settings.promote_batch.max(1);
        let mut limit = most;
        loop {
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
                return Ok(());
            }
            limit = most.min(limit * 2);
        }
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

/// Which events one transaction takes.
#[derive(Clone, Copy, Debug)]
enum Take {
    /// The first so many.
    First(usize),
    /// This one, which was refused alone, for this reason. What is first by now may be another.
    Fail(StagedNumber, &'static str),
}

/// Why a batch was not moved. Nothing of it was.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
enum MoveError {
    /// A deduplication key stands for another body.
    #[error("a deduplication key stands for another body")]
    Conflict,
    /// There was one event alone, and it is refused for this reason.
    #[error("{1}")]
    Alone(StagedNumber, &'static str),
    /// The store's failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl UnitError for MoveError {
    fn store(&self) -> Option<&StoreError> {
        match self {
            Self::Conflict | Self::Alone(..) => None,
            Self::Store(error) => Some(error),
        }
    }
}

impl MoveError {
    /// What is said of an event that comes again with this error, whatever is tried; `None` when it is not about the events.
    const fn sentence(&self) -> Option<&'static str> {
        match self {
            Self::Conflict => Some(CONFLICT),
            Self::Store(StoreError::Conflict(_)) => Some(REFUSED),
            Self::Alone(..) | Self::Store(_) => None,
        }
    }

    fn into_store(self) -> StoreError {
        match self {
            Self::Alone(..) | Self::Conflict => StoreError::Conflict("a staged event's deduplication key stands for another body"),
            Self::Store(error) => error,
        }
    }
}

struct Batch {
    tenant: TenantId,
    take: Take,
    clock: Arc<dyn Clock>,
    settings: Arc<Settings>,
}

/// What is to be done with one staged event.
enum Fate {
    Append(StagedNumber, Publication),
    Schedule(StagedNumber, Box<Schedule>),
    Fail(StagedNumber, String),
}

impl Batch {
    async fn write(&self, tx: &mut dyn MoveTx) -> Result<Moved, MoveError> {
        let limit = if let Take::First(limit) = self.take { limit } else { 1 };
        let staged = tx.lock_staged(&self.tenant, limit).await?;
        // From when the log is locked: its events are in the order of their times.
        let now = self.clock.now();
        if let Take::Fail(number, sentence) = self.take {
            self.fail(tx, number, now, sentence).await?;
            return Ok(Moved { seen: 1, failed: 1, ..Moved::default() });
        }
        match (self.move_all(tx, &staged, now).await, &staged[..]) {
            (Err(error), [alone]) => Err(error.sentence().map_or(error, |sentence| MoveError::Alone(alone.number, sentence))),
            (moved, _) => moved,
        }
    }

    async fn move_all(&self, tx: &mut dyn MoveTx, staged: &[Staged], now: Timestamp) -> Result<Moved, MoveError> {
        let mut moved = Moved { seen: staged.len(), ..Moved::default() };
        let mut fates = Vec::with_capacity(staged.len());
        for staged in staged {
            fates.push(self.fate(tx, staged, now).await?);
        }
        for run in fates.chunk_by(|left, right| matches!((left, right), (Fate::Append(..), Fate::Append(..)))) {
            let answers = match run {
                [Fate::Fail(number, failure)] => {
                    self.fail(tx, *number, now, failure).await?;
                    moved.failed += 1;
                    continue;
                }
                [Fate::Schedule(_, schedule)] => vec![tx.schedule(&self.tenant, schedule).await?],
                appends => self.append(tx, appends).await?,
            };
            for answer in answers {
                match answer {
                    Some(Appended::Conflict) => return Err(MoveError::Conflict),
                    Some(Appended::New { .. }) => moved.appended += 1,
                    // The application was told the id of its own event; the first one stands.
                    Some(Appended::Duplicate { .. }) => moved.duplicates += 1,
                    None => moved.scheduled += 1,
                }
            }
        }
        let done = fates.iter().filter_map(|fate| match fate {
            Fate::Append(number, _) | Fate::Schedule(number, _) => Some(*number),
            Fate::Fail(..) => None,
        });
        tx.remove_staged(&self.tenant, &done.collect::<Vec<_>>()).await?;
        Ok(moved)
    }

    async fn append(&self, tx: &mut dyn MoveTx, appends: &[Fate]) -> Result<Vec<Option<Appended>>, StoreError> {
        let events = appends.iter().filter_map(|fate| if let Fate::Append(_, event) = fate { Some(event.clone()) } else { None });
        let answers = tx.append(&self.tenant, &events.collect::<Vec<_>>()).await?;
        if answers.len() != appends.len() {
            return Err(StoreError::Unavailable);
        }
        Ok(answers.into_iter().map(Some).collect())
    }

    async fn fail(&self, tx: &mut dyn MoveTx, number: StagedNumber, now: Timestamp, failure: &str) -> Result<(), StoreError> {
        tracing::warn!(tenant.id = %self.tenant, staged.number = number.0, failure, "a staged event is marked as failed");
        tx.fail_staged(&self.tenant, number, now, failure).await
    }

    /// Holds an event against the rules and against what there is now.
    async fn fate(&self, tx: &mut dyn MoveTx, staged: &Staged, now: Timestamp) -> Result<Fate, StoreError> {
        let actor = Actor { kind: ActorKind::App, id: staged.publisher.clone() };
        let planned = event::read(&staged.event, staged.staged_at, &self.settings).and_then(|event| {
            plan(&event, staged.id, &actor, now, &self.settings).map_err(|error| format!("The payload cannot be read: {error}."))
        });
        let planned = match planned {
            Ok(planned) => planned,
            Err(failure) => return Ok(Fate::Fail(staged.number, failure)),
        };
        let (Planned::Now(publication) | Planned::Later(Schedule { publication, .. })) = &planned;
        if let Some(obstacle) = self.obstacle(tx, publication).await? {
            return Ok(Fate::Fail(staged.number, obstacle.to_owned()));
        }
        Ok(match planned {
            Planned::Now(publication) => Fate::Append(staged.number, publication),
            Planned::Later(schedule) => Fate::Schedule(staged.number, Box::new(schedule)),
        })
    }

    async fn obstacle(&self, tx: &mut dyn MoveTx, publication: &Publication) -> Result<Option<&'static str>, StoreError> {
        if let Some(channel) = &publication.channel
            && !tx.has_channel(&self.tenant, channel).await?
        {
            return Ok(Some(NO_CHANNEL));
        }
        for recipient in publication.work.iter().flat_map(|work| &work.recipients) {
            if !tx.has_agent(&self.tenant, &recipient.agent).await? {
                return Ok(Some(NO_RECIPIENT));
            }
        }
        Ok(None)
    }
}
