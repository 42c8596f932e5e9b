//! Redrive and discard of many items by filter: with a dry run, and no more than `inbox.bulk_max` in one call.

use std::sync::Arc;

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::{EventId, PrincipalId};
use serde_json::json;

use crate::audit::item_value;
use crate::change::{Change, Kit, Tally};
use crate::inbox::Job;
use crate::{AckState, Bulk, BulkDone, Inbox, InboxError, InboxTx, ItemFilter, ItemRange, Recipient};

/// Steps of one call that found less than they might have, because each looks at `inbox.scan_max` items at most. Beyond them the caller is told
/// that there may be more.
const SHORT_STEPS: usize = 100;

/// What is done to each item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Redrive,
    Discard,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Self::Redrive => "redrive",
            Self::Discard => "discard",
        }
    }

    /// The states from which it leads somewhere.
    const fn states(self) -> &'static [AckState] {
        match self {
            Self::Redrive => &[AckState::DeadLetter],
            Self::Discard => {
                &[AckState::Available, AckState::Claimed, AckState::RetryScheduled, AckState::Quarantined, AckState::DeadLetter]
            }
        }
    }
}

impl Inbox {
    /// Gives the dead letters of an inbox that match new attempts.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an operator; [`InboxError::NotFound`]; [`InboxError::Invalid`]; the store's.
    pub async fn redrive(&self, caller: &Caller, request: Bulk) -> Result<BulkDone, InboxError> {
        self.bulk(caller, request, Operation::Redrive).await
    }

    /// Discards the items of an inbox that match and have not ended.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an operator; [`InboxError::NotFound`]; [`InboxError::Invalid`]; the store's.
    pub async fn discard(&self, caller: &Caller, request: Bulk) -> Result<BulkDone, InboxError> {
        self.bulk(caller, request, Operation::Discard).await
    }

    async fn bulk(&self, caller: &Caller, request: Bulk, operation: Operation) -> Result<BulkDone, InboxError> {
        let recipient = self.agents(caller, Action::InboxManage, &request.recipient).await?;
        let most = self.settings().poll_max_items;
        if request.filter.event_ids.len() > most {
            return Err(InboxError::invalid("/filter/event_ids", format!("at most {most} entries")));
        }
        let mut filter = request.filter;
        let possible = operation.states().iter().copied();
        filter.states = possible.filter(|state| filter.states.is_empty() || filter.states.contains(state)).collect();
        if filter.states.is_empty() {
            return Ok(BulkDone::default());
        }
        if request.dry_run {
            return self.count_matches(&recipient, &filter).await;
        }
        self.change_matches(&recipient, filter, operation, &caller.principal).await
    }

    /// Counts without the writer.
    async fn count_matches(&self, recipient: &Recipient, filter: &ItemFilter) -> Result<BulkDone, InboxError> {
        let (mut done, mut after, most) = (BulkDone::default(), None, self.settings().bulk_max as u64);
        let (step, mut short) = (self.settings().sweep_batch.max(1), 0);
        loop {
            let page = self.parts.store.items(recipient, filter, self.item_range(after, step)).await?;
            done.matched += page.items.len() as u64;
            after = page.next;
            short += usize::from(page.items.len() < step);
            if done.matched > most {
                return Ok(BulkDone { matched: most, changed: 0, more: true });
            }
            if after.is_none() || short >= SHORT_STEPS {
                return Ok(BulkDone { more: after.is_some(), ..done });
            }
        }
    }

    /// Changes a batch at a time, each in a transaction of its own, so that no other writer waits for all of it.
    async fn change_matches(
        &self,
        recipient: &Recipient,
        filter: ItemFilter,
        operation: Operation,
        actor: &PrincipalId,
    ) -> Result<BulkDone, InboxError> {
        let (mut done, mut after, mut short) = (BulkDone::default(), None, 0);
        loop {
            let left = self.settings().bulk_max.saturating_sub(usize::try_from(done.matched).unwrap_or(usize::MAX));
            let limit = left.min(self.settings().sweep_batch.max(1));
            let job = BulkJob {
                kit: self.kit.clone(),
                recipient: recipient.clone(),
                filter: filter.clone(),
                operation,
                actor: actor.clone(),
                range: self.item_range(after, limit),
            };
            let step = self.run("bulk", job).await?;
            step.tally.count(&self.parts.metrics);
            if operation == Operation::Discard {
                self.parts.metrics.discarded.add(step.changed);
            }
            done.matched += step.matched;
            done.changed += step.changed;
            let is_short = step.matched < limit as u64;
            short += usize::from(is_short);
            after = step.next;
            if after.is_none() || (limit == left && !is_short) || short >= SHORT_STEPS {
                self.bells.make_room(recipient);
                return Ok(BulkDone { more: after.is_some(), ..done });
            }
        }
    }
}

struct BulkJob {
    kit: Arc<Kit>,
    recipient: Recipient,
    filter: ItemFilter,
    operation: Operation,
    actor: PrincipalId,
    range: ItemRange,
}

#[derive(Default)]
struct StepDone {
    matched: u64,
    changed: u64,
    /// Where to go on, when there may be more.
    next: Option<EventId>,
    tally: Tally,
}

#[async_trait]
impl Job for BulkJob {
    type Answer = StepDone;

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<StepDone, InboxError> {
        let Some(mut change) = Change::of(tx, &self.kit, &self.recipient).await? else { return Ok(StepDone::default()) };
        let found = change.tx.matching(change.row.number, &self.filter, self.range).await?;
        let mut done = StepDone { matched: found.items.len() as u64, next: found.next, ..StepDone::default() };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let (now, rules) = (change.now, &self.kit.settings.rules);
        for mut item in found.items {
            let was = item_value(&item);
            let step = match self.operation {
                Operation::Redrive => item.redrive(now, rules),
                Operation::Discard => item.discard(now, rules),
            };
            if let Ok(step) = step {
                before.push(was);
                after.push(item_value(&item));
                change.moved(item, Some(step));
                done.changed += 1;
            }
        }
        if done.changed > 0 {
            let operation = self.operation.name();
            let (before, after) = (json!({ "items": before }), json!({ "operation": operation, "items": after }));
            change.audit(&self.actor, Action::InboxManage, &before, &after).await?;
        }
        done.tally = change.close().await?;
        Ok(done)
    }
}
