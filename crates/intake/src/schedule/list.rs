//! Listing and cancelling what waits: everybody its own, owners and operators all.

use authz::{Action, Caller, Target};
use domain::{EventId, Timestamp, run_tx};

use crate::{Publisher, ScheduleError, Scheduled};

/// One page of scheduled events.
#[derive(Clone, Debug)]
pub struct ScheduledPage {
    /// By time and id.
    pub items: Vec<Scheduled>,
    /// What to pass as `after` for the next page; absent on the last one.
    pub next: Option<(Timestamp, EventId)>,
}

impl Publisher {
    /// Scheduled events, waiting and failed, by due time and id, strictly after `after`: the caller's own; all for owners and operators.
    ///
    /// # Errors
    /// [`ScheduleError`].
    pub async fn scheduled(
        &self,
        caller: &Caller,
        after: Option<(Timestamp, EventId)>,
        limit: usize,
    ) -> Result<ScheduledPage, ScheduleError> {
        self.parts.authorizer.authorize(caller, Action::EventsScheduled, Target::Tenant).await?;
        let publisher = (!caller.role.administers()).then_some(&caller.principal);
        let limit = limit.clamp(1, self.parts.settings.list_max.max(1));
        let mut items = self.parts.schedule.scheduled(&caller.tenant, publisher, after, limit + 1).await?;
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|last| (last.schedule.available_at, last.schedule.publication.id));
        Ok(ScheduledPage { items, next })
    }

    /// Cancels a scheduled event, waiting or failed, and frees its deduplication key.
    ///
    /// # Errors
    /// [`ScheduleError`]; `NotFound` also for one of somebody else.
    pub async fn cancel_scheduled(&self, caller: &Caller, id: EventId) -> Result<Scheduled, ScheduleError> {
        self.parts.authorizer.authorize(caller, Action::EventsScheduled, Target::Tenant).await?;
        let found = self.parts.schedule.scheduled_event(&caller.tenant, id).await?.ok_or(ScheduleError::NotFound)?;
        let publisher = &found.schedule.publisher;
        self.parts.authorizer.authorize(caller, Action::EventsScheduled, Target::Principal(publisher)).await?;
        let tenant = caller.tenant.clone();
        run_tx(&*self.parts.transactions, "events.cancel", move |tx| {
            let tenant = tenant.clone();
            Box::pin(async move { tx.cancel(&tenant, id).await?.ok_or(ScheduleError::AlreadyPromoted) })
        })
        .await
    }
}
