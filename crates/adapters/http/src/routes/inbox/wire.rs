//! How inboxes and their items look on the wire.

use authz::Caller;
use domain::PrincipalId;
use protocol::{
    AckState, AttemptOutcome, ClaimBacklog, ClaimConcurrency, DeadLetterState, InboxItem, InboxItemFilter, InboxPolicy, InboxPresence,
    InboxState, InboxUpdated, ItemAttempt, ItemOutcome, Open, PresenceState, Priority, QueueDigest, RecipientKind, RecipientRef,
};
use serde_json::value::RawValue;

use crate::refusal::Refusal;

/// Whose inbox it is.
pub(super) fn recipient(caller: &Caller, agent: &PrincipalId) -> RecipientRef {
    RecipientRef { tenant_id: caller.tenant.clone(), recipient_kind: Open::Known(RecipientKind::Agent), recipient_id: agent.clone() }
}

pub(super) const fn ack_state(state: inbox::AckState) -> AckState {
    match state {
        inbox::AckState::Available => AckState::Available,
        inbox::AckState::Claimed => AckState::Claimed,
        inbox::AckState::RetryScheduled => AckState::RetryScheduled,
        inbox::AckState::Acked => AckState::Acked,
        inbox::AckState::Expired => AckState::Expired,
        inbox::AckState::DeadLetter => AckState::DeadLetter,
        inbox::AckState::Quarantined => AckState::Quarantined,
        inbox::AckState::Discarded => AckState::Discarded,
    }
}

pub(super) const fn ack_state_of(state: AckState) -> inbox::AckState {
    match state {
        AckState::Available => inbox::AckState::Available,
        AckState::Claimed => inbox::AckState::Claimed,
        AckState::RetryScheduled => inbox::AckState::RetryScheduled,
        AckState::Acked => inbox::AckState::Acked,
        AckState::Expired => inbox::AckState::Expired,
        AckState::DeadLetter => inbox::AckState::DeadLetter,
        AckState::Quarantined => inbox::AckState::Quarantined,
        AckState::Discarded => inbox::AckState::Discarded,
    }
}

pub(super) const fn dead_letter(state: inbox::DeadLetterState) -> DeadLetterState {
    match state {
        inbox::DeadLetterState::None => DeadLetterState::None,
        inbox::DeadLetterState::DeadLettered => DeadLetterState::DeadLettered,
        inbox::DeadLetterState::Quarantined => DeadLetterState::Quarantined,
        inbox::DeadLetterState::Redriven => DeadLetterState::Redriven,
    }
}

pub(super) const fn priority(priority: domain::Priority) -> Priority {
    match priority {
        domain::Priority::Low => Priority::Low,
        domain::Priority::Normal => Priority::Normal,
        domain::Priority::High => Priority::High,
        domain::Priority::Urgent => Priority::Urgent,
    }
}

const fn attempt_outcome(outcome: inbox::AttemptOutcome) -> AttemptOutcome {
    match outcome {
        inbox::AttemptOutcome::Completed => AttemptOutcome::Completed,
        inbox::AttemptOutcome::Discarded => AttemptOutcome::Discarded,
        inbox::AttemptOutcome::Failed => AttemptOutcome::Failed,
        inbox::AttemptOutcome::Released => AttemptOutcome::Released,
        inbox::AttemptOutcome::Snoozed => AttemptOutcome::Snoozed,
        inbox::AttemptOutcome::Interrupted => AttemptOutcome::Interrupted,
        inbox::AttemptOutcome::LeaseExpired => AttemptOutcome::LeaseExpired,
        inbox::AttemptOutcome::Revoked => AttemptOutcome::Revoked,
    }
}

/// The word for what became of an item, and what there is to say of it.
pub(super) const fn outcome<T>(outcome: &inbox::ItemOutcome<T>) -> (ItemOutcome, Option<&T>) {
    let word = match outcome {
        inbox::ItemOutcome::Ok(done) => return (ItemOutcome::Ok, Some(done)),
        inbox::ItemOutcome::AlreadyClaimed => ItemOutcome::AlreadyClaimed,
        inbox::ItemOutcome::NotAvailable => ItemOutcome::NotAvailable,
        inbox::ItemOutcome::Expired => ItemOutcome::Expired,
        inbox::ItemOutcome::NotFound => ItemOutcome::NotFound,
        inbox::ItemOutcome::LeaseLost => ItemOutcome::LeaseLost,
        inbox::ItemOutcome::LimitReached => ItemOutcome::LimitReached,
    };
    (word, None)
}

/// An ended attempt.
pub(super) fn attempt(attempt: &inbox::Attempt) -> ItemAttempt {
    ItemAttempt {
        number: attempt.number,
        session_id: attempt.session.clone(),
        claimed_at_utc: attempt.claimed_at,
        last_heartbeat_at_utc: attempt.heartbeat_at,
        ended_at_utc: attempt.ended_at,
        outcome: Open::Known(attempt_outcome(attempt.outcome)),
        summary: attempt.summary.clone(),
        output: attempt.result.clone().and_then(|text| RawValue::from_string(text).ok()),
    }
}

/// An item with its history.
pub(super) fn item(item: inbox::Item, caller: &Caller, agent: &PrincipalId) -> InboxItem {
    let attempts = item.history.iter().map(attempt).collect();
    InboxItem { attempts, ..polled(item, false, caller, agent) }
}

/// An item as polls show it: without its history.
pub(super) fn polled(item: inbox::Item, paused: bool, caller: &Caller, agent: &PrincipalId) -> InboxItem {
    let facts = std::sync::Arc::unwrap_or_clone(item.facts);
    let (lease_until, attempt_deadline, owner) = match item.lease {
        Some(lease) => (Some(lease.until), Some(lease.attempt_deadline), lease.session),
        None => (None, None, None),
    };
    InboxItem {
        event_id: facts.event_id,
        tenant_id: caller.tenant.clone(),
        recipient_kind: Open::Known(RecipientKind::Agent),
        recipient_id: agent.clone(),
        inbox_seq: facts.inbox_seq,
        ring_seq: item.ring_seq,
        event_type: facts.event_type,
        kind: facts.kind,
        source: facts.source,
        summary: facts.summary,
        queue: facts.queue,
        priority: Open::Known(priority(facts.priority)),
        availability_at_utc: facts.available_at,
        expires_at_utc: facts.expires_at,
        deduplication_key: facts.deduplication_key,
        ack_state: Open::Known(ack_state(item.state)),
        paused,
        delivery_attempts: item.delivery_attempts,
        counted_attempts: item.counted_attempts,
        max_attempts: facts.max_attempts,
        visibility_lease_until_utc: lease_until,
        attempt_deadline_utc: attempt_deadline,
        lease_owner_session_id: owner,
        next_retry_at_utc: item.next_retry_at,
        dead_letter_state: Open::Known(dead_letter(item.dead_letter)),
        attempts: Vec::new(),
        created_at_utc: facts.created_at,
        acked_at_utc: item.ended_at.filter(|_| item.state == inbox::AckState::Acked),
        ended_at_utc: item.ended_at,
    }
}

/// What waits.
pub(super) const fn backlog(backlog: inbox::Backlog) -> ClaimBacklog {
    ClaimBacklog { available: backlog.available, claimed: backlog.claimed, resting: backlog.resting, next_due_at_utc: backlog.next_due }
}

/// An inbox as a whole.
pub(super) fn state(state: inbox::InboxState, caller: &Caller) -> InboxState {
    InboxState {
        recipient: recipient(caller, &state.recipient),
        head_seq: state.head,
        sync_epoch: state.epoch,
        paused: state.paused,
        paused_queues: state.paused_queues,
        presence: presence(state.presence),
        policy: policy(state.policy),
        backlog: backlog(state.backlog),
    }
}

const fn presence(presence: inbox::Presence) -> InboxPresence {
    match presence {
        inbox::Presence::In => InboxPresence { state: Open::Known(PresenceState::In), until_utc: None },
        inbox::Presence::Out { until } => InboxPresence { state: Open::Known(PresenceState::Out), until_utc: until },
    }
}

/// What an operator decided.
pub(super) fn policy(policy: inbox::Policy) -> InboxPolicy {
    let concurrency = match policy.concurrency {
        inbox::Concurrency::ManySessions => ClaimConcurrency::ManySessions,
        inbox::Concurrency::SingleActiveSession => ClaimConcurrency::SingleActiveSession,
    };
    InboxPolicy { max_in_flight: policy.max_in_flight.and_then(std::num::NonZeroU32::new), concurrency: Some(concurrency) }
}

/// What an operator decides.
pub(super) fn policy_of(policy: InboxPolicy) -> inbox::Policy {
    let concurrency = match policy.concurrency {
        Some(ClaimConcurrency::SingleActiveSession) => inbox::Concurrency::SingleActiveSession,
        Some(ClaimConcurrency::ManySessions) | None => inbox::Concurrency::ManySessions,
    };
    inbox::Policy { max_in_flight: policy.max_in_flight.map(std::num::NonZeroU32::get), concurrency }
}

/// Which items. A list that is there names something: nothing is matched by accident.
pub(super) fn filter(filter: InboxItemFilter) -> Result<inbox::ItemFilter, Refusal> {
    let empty = |pointer| Err(Refusal::invalid(pointer, "at least one, or no such member"));
    if filter.states.as_ref().is_some_and(Vec::is_empty) {
        return empty("/filter/states");
    }
    if filter.event_ids.as_ref().is_some_and(Vec::is_empty) {
        return empty("/filter/event_ids");
    }
    Ok(inbox::ItemFilter {
        states: filter.states.unwrap_or_default().into_iter().map(ack_state_of).collect(),
        queue: filter.queue,
        event_type: filter.event_type,
        created_before: filter.created_before,
        created_after: filter.created_after,
        event_ids: filter.event_ids.unwrap_or_default(),
    })
}

/// A hint.
pub(super) fn signal(signal: inbox::Signal) -> InboxUpdated {
    InboxUpdated {
        signal_type: "inbox.updated".to_owned(),
        tenant_id: signal.tenant,
        recipient_id: signal.recipient,
        head_seq: signal.head,
        sync_epoch: Some(signal.epoch),
        approximate_unacked: signal.unacked,
        resync: signal.resync,
        queues: signal.queues.into_iter().map(|waiting| QueueDigest { queue: waiting.queue, available: waiting.available }).collect(),
        delivery_id: signal.delivery.to_string(),
        sent_at_utc: signal.sent_at,
    }
}

#[cfg(test)]
mod tests {
    use inbox::{AckState, AttemptOutcome, DeadLetterState, Policy};
    use protocol::{ClaimConcurrency, InboxPolicy, Vocabulary};

    use super::{ack_state, ack_state_of, attempt_outcome, dead_letter, policy, policy_of};

    #[test]
    fn the_words_of_the_core_are_the_words_on_the_wire() {
        for state in AckState::ALL {
            assert_eq!((ack_state(state).as_str(), ack_state_of(ack_state(state))), (state.as_str(), state));
        }
        assert_eq!(protocol::AckState::all().len(), AckState::ALL.len());
        for word in protocol::DeadLetterState::ALL {
            assert_eq!(dead_letter(DeadLetterState::parse(word.as_str()).unwrap()), *word);
        }
        for word in protocol::AttemptOutcome::ALL {
            let own: AttemptOutcome = serde_json::from_str(&format!("\"{word}\"")).unwrap();
            assert_eq!(attempt_outcome(own), *word);
        }
    }

    #[test]
    fn an_empty_policy_is_the_default_one() {
        assert_eq!(policy_of(InboxPolicy::default()), Policy::default());
        assert_eq!(policy(Policy::default()).concurrency, Some(ClaimConcurrency::ManySessions));
        let strict = InboxPolicy { max_in_flight: std::num::NonZeroU32::new(4), concurrency: Some(ClaimConcurrency::SingleActiveSession) };
        assert_eq!(policy(policy_of(strict)), strict);
    }
}
