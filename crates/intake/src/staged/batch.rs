//! One transaction of the mover: which staged events it takes, and what becomes of each.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::{Actor, ActorKind, Appended, ChannelRef, Clock, PrincipalId, Publication, StoreError, TenantId, Timestamp, UnitError};
use thiserror::Error;

use super::{MoveTx, Staged, StagedNumber, event};
use crate::publish::plan::{Planned, plan};
use crate::{Schedule, Settings};

/// Why an event whose channel is gone was not appended.
const NO_CHANNEL: &str = "The channel does not exist any more.";
/// Why an event whose recipient is gone was not appended.
const NO_RECIPIENT: &str = "A recipient does not exist any more, or is disabled.";
/// Why an event whose key stands for another body was not appended.
const CONFLICT: &str = "The deduplication key stands for another body.";
/// Why an event that the store refuses was not appended.
const REFUSED: &str = "The event could not be appended.";

/// What one transaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    /// Events that it looked at.
    pub(super) seen: usize,
    pub(super) appended: u64,
    pub(super) scheduled: u64,
    pub(super) duplicates: u64,
    pub(super) failed: u64,
}

/// Which events one transaction takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Take {
    /// The first so many.
    First(usize),
    /// This one, which was refused alone, for this reason. What is first by now may be another.
    Fail(StagedNumber, &'static str),
}

/// Why a batch was not moved. Nothing of it was.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum MoveError {
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
    pub(super) const fn sentence(&self) -> Option<&'static str> {
        match self {
            Self::Conflict => Some(CONFLICT),
            Self::Store(StoreError::Conflict(_)) => Some(REFUSED),
            Self::Alone(..) | Self::Store(_) => None,
        }
    }

    pub(super) fn into_store(self) -> StoreError {
        match self {
            Self::Alone(..) | Self::Conflict => StoreError::Conflict("a staged event's deduplication key stands for another body"),
            Self::Store(error) => error,
        }
    }
}

/// One transaction's work.
pub(super) struct Batch {
    pub(super) tenant: TenantId,
    pub(super) take: Take,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: Arc<Settings>,
}

/// What is to be done with one staged event.
enum Fate {
    Append(StagedNumber, Publication),
    Schedule(StagedNumber, Box<Schedule>),
    Fail(StagedNumber, String),
}

impl Batch {
    pub(super) async fn write(&self, tx: &mut dyn MoveTx) -> Result<Moved, MoveError> {
        let limit = if let Take::First(limit) = self.take { limit } else { 1 };
        let staged = tx.lock_staged(&self.tenant, limit).await?;
        // From when the log is locked: its events are in the order of their times.
        let now = self.clock.now();
        if let Take::Fail(number, sentence) = self.take {
            self.fail(tx, &[(number, sentence.to_owned())], now).await?;
            return Ok(Moved { seen: 1, failed: 1, ..Moved::default() });
        }
        match (self.move_all(tx, &staged, now).await, &staged[..]) {
            (Err(error), [alone]) => Err(error.sentence().map_or(error, |sentence| MoveError::Alone(alone.number, sentence))),
            (moved, _) => moved,
        }
    }

    async fn move_all(&self, tx: &mut dyn MoveTx, staged: &[Staged], now: Timestamp) -> Result<Moved, MoveError> {
        let mut moved = Moved { seen: staged.len(), ..Moved::default() };
        let fates = self.fates(tx, staged, now).await?;
        for run in fates.chunk_by(|left, right| matches!((left, right), (Fate::Append(..), Fate::Append(..)))) {
            let answers = match run {
                [Fate::Fail(..)] => continue,
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
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for fate in fates {
            match fate {
                Fate::Append(number, _) | Fate::Schedule(number, _) => done.push(number),
                Fate::Fail(number, failure) => failed.push((number, failure)),
            }
        }
        moved.failed = failed.len() as u64;
        self.fail(tx, &failed, now).await?;
        tx.remove_staged(&self.tenant, &done).await?;
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

    async fn fail(&self, tx: &mut dyn MoveTx, failed: &[(StagedNumber, String)], now: Timestamp) -> Result<(), StoreError> {
        if failed.is_empty() {
            return Ok(());
        }
        for (number, failure) in failed {
            tracing::warn!(tenant.id = %self.tenant, staged.number = number.0, failure, "a staged event is marked as failed");
        }
        tx.fail_staged(&self.tenant, now, failed).await
    }

    /// Holds events against the rules and against what there is now. Publishers wait for the log meanwhile, so what there is is asked once for all.
    async fn fates(&self, tx: &mut dyn MoveTx, staged: &[Staged], now: Timestamp) -> Result<Vec<Fate>, StoreError> {
        let planned: Vec<_> = staged.iter().map(|staged| (staged.number, self.planned(staged, now))).collect();
        let publications = || planned.iter().filter_map(|(_, planned)| planned.as_ref().ok()).map(publication);
        let channels: BTreeSet<ChannelRef> = publications().filter_map(|publication| publication.channel.clone()).collect();
        let agents: BTreeSet<PrincipalId> = publications().flat_map(recipients).cloned().collect();
        let channels = if channels.is_empty() { channels } else { tx.existing_channels(&self.tenant, &channels).await? };
        let agents = if agents.is_empty() { agents } else { tx.existing_agents(&self.tenant, &agents).await? };
        let fate = |(number, planned): (StagedNumber, Result<Planned, String>)| {
            let planned = match planned {
                Ok(planned) => planned,
                Err(failure) => return Fate::Fail(number, failure),
            };
            let publication = publication(&planned);
            if publication.channel.as_ref().is_some_and(|channel| !channels.contains(channel)) {
                return Fate::Fail(number, NO_CHANNEL.to_owned());
            }
            if recipients(publication).any(|agent| !agents.contains(agent)) {
                return Fate::Fail(number, NO_RECIPIENT.to_owned());
            }
            match planned {
                Planned::Now(publication) => Fate::Append(number, publication),
                Planned::Later(schedule) => Fate::Schedule(number, Box::new(schedule)),
            }
        };
        Ok(planned.into_iter().map(fate).collect())
    }

    /// What is to become of an event, or why it cannot.
    fn planned(&self, staged: &Staged, now: Timestamp) -> Result<Planned, String> {
        let actor = Actor { kind: ActorKind::App, id: staged.publisher.clone() };
        let event = event::read(&staged.event, staged.staged_at, &self.settings)?;
        plan(&event, staged.id, &actor, now, &self.settings).map_err(|error| format!("The payload cannot be read: {error}."))
    }
}

fn publication(planned: &Planned) -> &Publication {
    let (Planned::Now(publication) | Planned::Later(Schedule { publication, .. })) = planned;
    publication
}

fn recipients(publication: &Publication) -> impl Iterator<Item = &PrincipalId> {
    publication.work.iter().flat_map(|work| &work.recipients).map(|recipient| &recipient.agent)
}
