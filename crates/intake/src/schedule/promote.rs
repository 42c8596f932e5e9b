//! The background task that appends scheduled events when they are due.

use std::sync::Arc;
use std::time::Duration;

use domain::{Appended, EventId, Publication, StoreError, TenantId, Timestamp, restamp_body, run_tx};
use tokio_util::sync::CancellationToken;

use crate::{IntakeParts, PublishTx, Schedule, Scheduled, ScheduledState};

/// Why an event whose channel is gone was not appended.
const NO_CHANNEL: &str = "The channel does not exist any more.";
/// Why an event whose recipient is gone was not appended.
const NO_RECIPIENT: &str = "A recipient does not exist any more, or is disabled.";
/// Why an event that the store refuses was not appended.
const REFUSED: &str = "The event could not be appended.";

/// Appends scheduled events when they are due (stream.md, "Scheduled publish"). One per process; several do no harm.
#[derive(Debug)]
pub struct Promoter {
    parts: IntakeParts,
}

/// When to look again.
enum Next {
    AtOnce,
    After(Duration),
}

impl Promoter {
    /// A promoter over the same parts as the publisher.
    pub const fn new(parts: IntakeParts) -> Self {
        Self { parts }
    }

    /// Promotes until `token` is cancelled: at the next due time, when something was scheduled, and every `intake.promote_interval`.
    pub async fn run(&self, token: CancellationToken) {
        while !token.is_cancelled() {
            let next = match self.step().await {
                Ok(next) => next,
                Err(error) => {
                    self.parts.metrics.promotion_errors.add(1);
                    tracing::warn!(error = %error, "scheduled events could not be promoted; it is tried again");
                    self.rest_after_failure()
                }
            };
            let pause = match next {
                Next::AtOnce => continue,
                Next::After(pause) => pause,
            };
            tokio::select! {
                () = token.cancelled() => {}
                () = self.parts.bell.rung() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn rest_after_failure(&self) -> Next {
        Next::After(self.parts.settings.promote_retry)
    }

    /// Promotes what is due now, at most one batch.
    async fn step(&self) -> Result<Next, StoreError> {
        let (now, batch) = (self.parts.clock.now(), self.parts.settings.promote_batch.max(1));
        let due = self.parts.schedule.due(now, batch).await?;
        if due.is_empty() {
            return self.next_due(now).await;
        }
        let (mut settled, mut failed) = (0, false);
        for (tenant, ids) in by_tenant(due) {
            match self.promote(&tenant, &ids, now).await {
                Ok(done) => settled += done.promoted + done.failed,
                Err(error) => {
                    self.parts.metrics.promotion_errors.add(1);
                    tracing::warn!(error = %error, tenant.id = %tenant, "scheduled events could not be promoted; it is tried again");
                    failed = true;
                }
            }
        }
        // A step that settled nothing would settle nothing at once again.
        if failed || settled == 0 { Ok(self.rest_after_failure()) } else { Ok(Next::AtOnce) }
    }

    async fn next_due(&self, now: Timestamp) -> Result<Next, StoreError> {
        let longest = self.parts.settings.promote_interval;
        let next = self.parts.schedule.next_due().await?;
        Ok(match next.map(|due| due.since(now)) {
            Some(Duration::ZERO) => Next::AtOnce,
            Some(pause) => Next::After(pause.min(longest)),
            None => Next::After(longest),
        })
    }

    /// Promotes these events of a tenant together; one by one when the store refuses them together, so that one of them blocks nobody.
    async fn promote(&self, tenant: &TenantId, ids: &[EventId], now: Timestamp) -> Result<Done, StoreError> {
        match self.promote_together(tenant, ids, now).await {
            Err(error) if is_refusal(&error) => {}
            other => return other,
        }
        let mut done = Done::default();
        for id in ids {
            match self.promote_together(tenant, std::slice::from_ref(id), now).await {
                Err(error) if is_refusal(&error) => {
                    tracing::error!(error = %error, tenant.id = %tenant, event.id = %id, "a scheduled event is marked as failed");
                    done.failed += self.fail(tenant, *id).await?;
                }
                other => done.add(&other?),
            }
        }
        Ok(done)
    }

    async fn promote_together(&self, tenant: &TenantId, ids: &[EventId], now: Timestamp) -> Result<Done, StoreError> {
        let mut waiting = Vec::with_capacity(ids.len());
        for id in ids {
            let found = self.parts.schedule.scheduled_event(tenant, *id).await?;
            waiting.extend(found.filter(|event| event.state == ScheduledState::Waiting));
        }
        let batch = Arc::new(Batch { tenant: tenant.clone(), waiting, now });
        let done = run_tx(&*self.parts.transactions, "events.promote", move |tx| {
            let batch = Arc::clone(&batch);
            Box::pin(async move { batch.write(tx).await })
        })
        .await?;
        self.parts.metrics.promoted.add(done.promoted);
        self.parts.metrics.failed.add(done.failed);
        Ok(done)
    }

    async fn fail(&self, tenant: &TenantId, id: EventId) -> Result<u64, StoreError> {
        let tenant = tenant.clone();
        let failed = run_tx(&*self.parts.transactions, "events.fail", move |tx| {
            let tenant = tenant.clone();
            Box::pin(async move { tx.fail(&tenant, id, REFUSED).await })
        })
        .await?;
        self.parts.metrics.failed.add(u64::from(failed));
        Ok(u64::from(failed))
    }
}

/// Due events of one tenant.
struct Batch {
    tenant: TenantId,
    waiting: Vec<Scheduled>,
    now: Timestamp,
}

/// What one transaction did.
#[derive(Default)]
struct Done {
    promoted: u64,
    failed: u64,
}

impl Done {
    fn add(&mut self, other: &Self) {
        self.promoted += other.promoted;
        self.failed += other.failed;
    }
}

impl Batch {
    async fn write(&self, tx: &mut dyn PublishTx) -> Result<Done, StoreError> {
        let mut done = Done::default();
        let mut publications = Vec::with_capacity(self.waiting.len());
        for Scheduled { schedule: Schedule { publication, .. }, .. } in &self.waiting {
            if let Some(reason) = self.obstacle(tx, publication).await? {
                done.failed += u64::from(tx.fail(&self.tenant, publication.id, reason).await?);
            } else if let Some(schedule) = tx.promote(&self.tenant, publication.id).await? {
                publications.push(restamp(schedule.publication, self.now));
            }
        }
        if publications.is_empty() {
            return Ok(done);
        }
        let appended = tx.append(&self.tenant, &publications).await?;
        if appended.contains(&Appended::Conflict) {
            return Err(StoreError::Conflict("a scheduled event's own deduplication key was taken for another's"));
        }
        done.promoted = publications.len() as u64;
        Ok(done)
    }
}

impl Batch {
    /// What vanished since the event was accepted, as a sentence for people.
    async fn obstacle(&self, tx: &mut dyn PublishTx, publication: &Publication) -> Result<Option<&'static str>, StoreError> {
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

/// An event enters the log when it is due: that is when it was accepted, as far as its readers and retention are concerned.
fn restamp(mut publication: Publication, now: Timestamp) -> Publication {
    if let Some(body) = restamp_body(&publication.body, now) {
        publication.body = body;
        publication.created_at = now;
    }
    publication
}

/// Whether an error is about these very events and comes again with them.
fn is_refusal(error: &StoreError) -> bool {
    matches!(error, StoreError::Conflict(_))
}

/// Groups by tenant; tenants in the order of their first event, events in their order.
fn by_tenant(due: Vec<(TenantId, EventId)>) -> Vec<(TenantId, Vec<EventId>)> {
    let mut groups: Vec<(TenantId, Vec<EventId>)> = Vec::new();
    for (tenant, id) in due {
        match groups.iter_mut().find(|(known, _)| *known == tenant) {
            Some((_, ids)) => ids.push(id),
            None => groups.push((tenant, vec![id])),
        }
    }
    groups
}
