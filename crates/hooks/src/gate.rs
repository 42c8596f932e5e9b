//! The gate before every attempt: whether a ring is still worth making, by what is stored now.

use std::time::Duration;

use bytes::Bytes;
use domain::{QueueName, Seq, StoreError, Timestamp};
use inbox::{AckState, InboxView, Presence, QueueFilter, RecipientRow};

use crate::behind::most_queues;
use crate::{Delivery, Hook, HookKind, HookState, Hooks, Reason, WebhookId, body};

/// Up to how many items a ring counts.
const COUNT_MAX: u64 = 10_000;

/// What is to be done with a ring that is due.
#[derive(Clone, Debug)]
pub(crate) enum Gate {
    /// Send this.
    Ring {
        /// The body.
        body: Bytes,
        /// Up to which position of the log the body tells.
        told: Seq,
    },
    /// Nobody needs it any more.
    Withdraw,
    /// Not before then.
    Wait(Timestamp),
    /// These instead.
    Expand(Vec<Delivery>),
}

impl Hooks {
    /// Looks at what is stored now.
    pub(crate) async fn gate(&self, hook: &Hook, delivery: &Delivery, now: Timestamp) -> Result<Gate, StoreError> {
        if let Some(gate) = gate_of_state(hook, delivery, now) {
            return Ok(gate);
        }
        let view = self.parts.inboxes.view(&hook.recipient()).await?;
        let Some(row) = view.row.as_ref().filter(|row| is_heard(row, hook, now)) else { return Ok(Gate::Withdraw) };
        match (delivery.reason, &delivery.queue) {
            (Reason::Created | Reason::Requeued, _) => self.gate_of_item(hook, delivery, row).await,
            (Reason::Backlog, Some(queue)) => self.gate_of_backlog(hook, delivery, row, queue, now).await,
            (Reason::Backlog, None) => Ok(Gate::Expand(self.expand(hook, delivery, row, now).await?)),
            (Reason::Signal, _) => self.gate_of_signal(hook, delivery, &view, row, now).await,
            (Reason::Challenge | Reason::Test, _) => Ok(Gate::Withdraw),
        }
    }

    async fn gate_of_item(&self, hook: &Hook, delivery: &Delivery, row: &RecipientRow) -> Result<Gate, StoreError> {
        let Some(event) = delivery.event else { return Ok(Gate::Withdraw) };
        let item = self.parts.inboxes.item(&hook.recipient(), event).await?;
        let rings = |item: &inbox::Item| {
            let queue = &item.facts.queue;
            item.ring_seq == delivery.cause && item.state == AckState::Available && hook.is_for(queue) && !row.is_paused(queue)
        };
        Ok(match item.filter(rings) {
            Some(item) => Gate::Ring { body: body::item(hook, delivery.reason, &item), told: item.ring_seq },
            None => Gate::Withdraw,
        })
    }

    async fn gate_of_backlog(
        &self,
        hook: &Hook,
        delivery: &Delivery,
        row: &RecipientRow,
        queue: &QueueName,
        now: Timestamp,
    ) -> Result<Gate, StoreError> {
        if !hook.is_for(queue) || row.is_paused(queue) {
            return Ok(Gate::Withdraw);
        }
        let only = QueueFilter { only: Some(vec![queue.clone()]), except: Vec::new() };
        let waiting = self.parts.inboxes.backlog(&hook.recipient(), &only, now, COUNT_MAX).await?.available;
        Ok(match waiting {
            0 => Gate::Withdraw,
            waiting => Gate::Ring { body: body::backlog(hook, queue, waiting, delivery.created_at), told: delivery.cause },
        })
    }

    async fn gate_of_signal(
        &self,
        hook: &Hook,
        delivery: &Delivery,
        view: &InboxView,
        row: &RecipientRow,
        now: Timestamp,
    ) -> Result<Gate, StoreError> {
        let queues = QueueFilter { only: None, except: row.paused_queues.iter().cloned().collect() };
        let backlog = self.parts.inboxes.backlog(&hook.recipient(), &queues, now, COUNT_MAX).await?;
        if backlog.available == 0 {
            return Ok(Gate::Withdraw);
        }
        let body = body::signal(hook, &delivery.id, view.head(), backlog.unacked(), now);
        Ok(Gate::Ring { body, told: view.head() })
    }

    /// One ring for each queue in which something may wait: whether it does is asked before each. A hook that names queues is for no other.
    async fn expand(&self, hook: &Hook, catch_up: &Delivery, row: &RecipientRow, now: Timestamp) -> Result<Vec<Delivery>, StoreError> {
        let queues = match hook.queues.as_slice() {
            [] => {
                let paused: Vec<QueueName> = row.paused_queues.iter().cloned().collect();
                self.parts.inboxes.claimable_queues(&hook.recipient(), &paused, most_queues(&self.parts.settings)).await?
            }
            named => named.to_vec(),
        };
        Ok(queues.iter().filter(|queue| !row.is_paused(queue)).map(|queue| ring_of_queue(hook, catch_up, queue, now)).collect())
    }

    /// When the rate of a hook permits its next request.
    pub(crate) fn permitted_at(hook: &Hook) -> Option<Timestamp> {
        let (rate, last) = (hook.max_rate_per_minute?, hook.health.last_attempt_at?);
        Some(last.plus(Duration::from_mins(1).checked_div(rate.max(1)).unwrap_or_default()))
    }
}

/// What follows from the hook alone.
fn gate_of_state(hook: &Hook, delivery: &Delivery, now: Timestamp) -> Option<Gate> {
    let open = hook.challenge.as_ref().filter(|open| open.delivery == delivery.id && now < open.expires_at);
    match (delivery.reason, hook.state) {
        (Reason::Challenge, HookState::PendingVerification) => {
            let Some(open) = open else { return Some(Gate::Withdraw) };
            Some(wait(hook, now).unwrap_or_else(|| Gate::Ring { body: body::challenge(open), told: Seq::ZERO }))
        }
        (Reason::Challenge | Reason::Test, _) | (_, HookState::PendingVerification | HookState::Disabled(_)) => Some(Gate::Withdraw),
        (Reason::Signal, HookState::Active) if hook.kind == HookKind::Notify => Some(Gate::Withdraw),
        (_, HookState::Active) => wait(hook, now),
    }
}

fn wait(hook: &Hook, now: Timestamp) -> Option<Gate> {
    Hooks::permitted_at(hook).filter(|at| *at > now).map(Gate::Wait)
}

/// Whether the agent wants this hook rung.
fn is_heard(row: &RecipientRow, hook: &Hook, now: Timestamp) -> bool {
    !row.paused && (hook.ignore_presence || row.presence.at(now) == Presence::In)
}

fn ring_of_queue(hook: &Hook, catch_up: &Delivery, queue: &QueueName, now: Timestamp) -> Delivery {
    let id = WebhookId::of_backlog(hook.id, Some(queue), catch_up.cause, catch_up.created_at);
    Delivery { id, queue: Some(queue.clone()), attempts: 0, next_at: now, ..catch_up.clone() }
}
