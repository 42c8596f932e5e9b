//! The publish use case.

pub(crate) mod plan;
mod transaction;

use std::collections::HashSet;
use std::sync::Arc;

use authz::{Action, Authorizer, Caller, Denied, PrincipalKind, Target};
use domain::{
    Appended, ChannelRef, Clock, EventId, IdGenerator, PrincipalId, Publication, Seq, StoreError, TenantId, Timestamp, Transactions,
};
use sync::Append;

use crate::error::{Place, PublishError};
use crate::validate::validate;
use crate::{Metrics, NewEvent, NoStaged, PublishTx, ScheduleBell, ScheduleStore, Settings, StagedStore};
use plan::Planned;

/// What became of one published event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedEvent {
    /// The event; the first one when this is a repeat.
    pub id: EventId,
    /// Its position; absent while it is scheduled.
    pub seq: Option<Seq>,
    /// Whether its deduplication key was known, so that the first event stands.
    pub deduplicated: bool,
    /// Whether this very request put it into inboxes, at [`PublishedEvent::seq`].
    pub delivered: bool,
}

impl PublishedEvent {
    /// Whether it waits for its `available_at`.
    pub const fn is_scheduled(&self) -> bool {
        self.seq.is_none()
    }
}

/// What became of a publish request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// One entry per event, in the order of the request.
    pub events: Vec<PublishedEvent>,
    /// The committed head of the log, at least the highest `seq` of the request.
    pub head: Seq,
}

/// What [`Publisher`] and [`crate::Promoter`] work with.
#[derive(Clone)]
pub struct IntakeParts {
    /// Decides who may publish where.
    pub authorizer: Arc<Authorizer>,
    /// The hot path into the log.
    pub append: Arc<dyn Append>,
    /// Transactions for requests that schedule, and for promotion.
    pub transactions: Arc<dyn Transactions<dyn PublishTx>>,
    /// Reads scheduled events.
    pub schedule: Arc<dyn ScheduleStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Makes event ids.
    pub ids: Arc<dyn IdGenerator>,
    /// Rung when something was scheduled.
    pub bell: ScheduleBell,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The settings.
    pub settings: Settings,
}

impl std::fmt::Debug for IntakeParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IntakeParts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The only way into the log for what principals send.
#[derive(Clone)]
pub struct Publisher {
    pub(crate) parts: IntakeParts,
    pub(crate) staged: Arc<dyn StagedStore>,
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl Publisher {
    /// A publisher over these parts.
    pub fn new(parts: IntakeParts) -> Self {
        Self { parts, staged: Arc::new(NoStaged) }
    }

    /// The same over a store that applications share, for whose staged events [`Publisher::staged`] is.
    #[must_use]
    pub fn with_staged(mut self, staged: Arc<dyn StagedStore>) -> Self {
        self.staged = staged;
        self
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    /// Publishes `events` together or not at all, in this order. Answers after the durable commit.
    ///
    /// Whether a channel exists is known from memory here, and a removal reaches that memory right after its commit: an event that was let
    /// in during those microseconds is in the log behind the removal, seen by its audience only. A request that schedules something, and
    /// promotion, ask the transaction.
    ///
    /// # Errors
    /// [`PublishError`]. Validation comes first, then authorisation, then recipients, then the log.
    pub async fn publish(&self, caller: &Caller, events: Vec<NewEvent>) -> Result<Published, PublishError> {
        let (settings, now) = (&self.parts.settings, self.parts.clock.now());
        let whole = |detail: String| PublishError::Invalid { place: Place { event: None, member: String::new() }, detail };
        if events.is_empty() {
            return Err(whole("at least one event".to_owned()));
        }
        if events.len() > settings.max_events {
            return Err(whole(format!("{} events; a request has at most {}", events.len(), settings.max_events)));
        }
        for (number, event) in events.iter().enumerate() {
            validate(number, event, settings, now)?;
        }
        self.authorize(caller, &events).await?;
        self.check_recipients(&caller.tenant, &events).await?;
        let planned = self.plan(caller, &events, now)?;
        let published = if planned.iter().all(|planned| matches!(planned, Planned::Now(_))) {
            self.append(&caller.tenant, planned).await?
        } else {
            self.append_and_schedule(&caller.tenant, planned).await?
        };
        self.count(&published);
        Ok(published)
    }

    /// Whether the caller may publish all of it; each channel is asked for once.
    async fn authorize(&self, caller: &Caller, events: &[NewEvent]) -> Result<(), Denied> {
        let mut allowed: HashSet<Option<&ChannelRef>> = HashSet::new();
        for event in events {
            let channel = event.channel.as_ref();
            if events.len() > 1 && !allowed.insert(channel) {
                continue;
            }
            let target = channel.map_or(Target::Tenant, Target::Channel);
            self.parts.authorizer.authorize(caller, Action::EventsPublish, target).await?;
        }
        Ok(())
    }

    /// Recipients must be enabled agents (inbox.md, "Items").
    async fn check_recipients(&self, tenant: &TenantId, events: &[NewEvent]) -> Result<(), PublishError> {
        let mut known: HashSet<&PrincipalId> = HashSet::new();
        for (number, event) in events.iter().enumerate() {
            for (index, recipient) in event.recipients.iter().enumerate() {
                if known.contains(&recipient.id) {
                    continue;
                }
                if self.parts.authorizer.enabled_kind(tenant, &recipient.id).await? != Some(PrincipalKind::Agent) {
                    let place = Place { event: Some(number), member: format!("/recipients/{index}") };
                    return Err(PublishError::RecipientUnknown { place });
                }
                known.insert(&recipient.id);
            }
        }
        Ok(())
    }

    fn plan(&self, caller: &Caller, events: &[NewEvent], now: Timestamp) -> Result<Vec<Planned>, PublishError> {
        let actor = caller.actor();
        let plan = |(number, event): (usize, &NewEvent)| {
            let id = EventId::new(self.parts.ids.uuid());
            plan::plan(event, id, &actor, now, &self.parts.settings).map_err(|error| PublishError::Invalid {
                place: Place { event: Some(number), member: "/payload".to_owned() },
                detail: format!("the payload cannot be read: {error}"),
            })
        };
        events.iter().enumerate().map(plan).collect()
    }

    /// The hot path: many requests share one commit.
    async fn append(&self, tenant: &TenantId, planned: Vec<Planned>) -> Result<Published, PublishError> {
        let publications: Vec<Publication> = planned.into_iter().map(Planned::into_publication).collect();
        let (asked, delivers) = (publications.len(), publications.iter().map(|each| each.work.is_some()).collect::<Vec<_>>());
        let answer = self.parts.append.append(tenant, publications).await?;
        if answer.appended.len() != asked {
            return Err(SHORT_ANSWER.into());
        }
        let answers = answer.appended.iter().zip(delivers).enumerate();
        let events = answers.map(|(number, (appended, delivers))| self.answer(number, *appended, delivers)).collect::<Result<_, _>>()?;
        Ok(Published { events, head: answer.head })
    }

    fn answer(&self, number: usize, appended: Appended, delivers: bool) -> Result<PublishedEvent, PublishError> {
        answer(number, appended, delivers).inspect_err(|_| self.parts.metrics.conflicts.add(1))
    }

    fn count(&self, published: &Published) {
        let metrics = &self.parts.metrics;
        let count = |wanted: fn(&PublishedEvent) -> bool| published.events.iter().filter(|event| wanted(event)).count() as u64;
        metrics.published.add(count(|event| !event.deduplicated && event.seq.is_some()));
        metrics.deduplicated.add(count(|event| event.deduplicated));
        metrics.scheduled.add(count(|event| !event.deduplicated && event.seq.is_none()));
    }
}

/// What the publisher is told of one event; `delivers` says that it has recipients.
fn answer(number: usize, appended: Appended, delivers: bool) -> Result<PublishedEvent, PublishError> {
    match appended {
        Appended::New { seq, id } => Ok(PublishedEvent { id, seq: Some(seq), deduplicated: false, delivered: delivers }),
        Appended::Duplicate { id, seq } => Ok(PublishedEvent { id, seq, deduplicated: true, delivered: false }),
        Appended::Conflict => {
            let place = Place { event: Some(number), member: "/deduplication_key".to_owned() };
            Err(PublishError::DeduplicationConflict { place })
        }
    }
}

/// A store that answers less than it was asked breaks its contract; nothing it says is passed on.
const SHORT_ANSWER: StoreError = StoreError::Conflict("the store answered for fewer events than it was given");
