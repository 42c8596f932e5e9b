//! Rows as items and recipients, and back. Each function names the columns that it expects, in order. What cannot be read is corrupt, never a default.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::{EventId, Priority, QueueName, StoreError, TenantId, Timestamp};
use inbox::{
    AckState, Attempt, Concurrency, DeadLetterState, Generation, Item, ItemFacts, Lease, LeaseHash, Policy, Presence, Recipient,
    RecipientNumber, RecipientRow,
};
use uuid::Uuid;

use crate::codec;
use crate::db::PgRow;
use crate::failure::Failure;
use crate::metrics::StoreMetrics;

/// Columns that items have in common, wherever they are.
const COMMON: usize = 24;

/// The column of a state.
pub(super) const fn state_number(state: AckState) -> i16 {
    match state {
        AckState::Available => 0,
        AckState::Claimed => 1,
        AckState::RetryScheduled => 2,
        AckState::Acked => 3,
        AckState::Expired => 4,
        AckState::DeadLetter => 5,
        AckState::Quarantined => 6,
        AckState::Discarded => 7,
    }
}

/// The state of a column.
pub(super) fn parse_state(number: i16) -> Option<AckState> {
    AckState::ALL.into_iter().find(|state| state_number(*state) == number)
}

pub(super) const fn dead_letter_number(state: DeadLetterState) -> i16 {
    match state {
        DeadLetterState::None => 0,
        DeadLetterState::DeadLettered => 1,
        DeadLetterState::Quarantined => 2,
        DeadLetterState::Redriven => 3,
    }
}

fn parse_dead_letter(number: i16) -> Option<DeadLetterState> {
    use DeadLetterState as State;
    [State::None, State::DeadLettered, State::Quarantined, State::Redriven].into_iter().find(|state| dead_letter_number(*state) == number)
}

pub(super) const fn priority_number(priority: Priority) -> i16 {
    match priority {
        Priority::Low => 0,
        Priority::Normal => 1,
        Priority::High => 2,
        Priority::Urgent => 3,
    }
}

fn parse_priority(number: i16) -> Option<Priority> {
    [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent].into_iter().find(|priority| priority_number(*priority) == number)
}

fn unreadable(what: &str) -> Failure {
    Failure::corrupt(format!("an item with an unreadable {what}"))
}

fn coded<T>(row: &PgRow, column: usize, what: &str, parse: fn(i16) -> Option<T>) -> Result<T, Failure> {
    parse(codec::get(row, column)?).ok_or_else(|| unreadable(what))
}

fn count(row: &PgRow, column: usize) -> Result<u32, Failure> {
    u32::try_from(codec::natural(row, column)?).map_err(|_| unreadable("count"))
}

/// The key of a row that cannot be read.
pub(super) type Lost = (RecipientNumber, Uuid);

/// A row as an item; one that cannot be read is counted, logged once and remembered in `lost`.
pub(super) fn readable(
    row: &PgRow,
    read: fn(&PgRow) -> Result<Item, Failure>,
    metrics: &StoreMetrics,
    lost: &mut Vec<Lost>,
) -> Result<Option<Item>, Failure> {
    match read(row) {
        Ok(item) => Ok(Some(item)),
        Err(Failure::Store(StoreError::Corrupt(reason))) => {
            let (recipient, event) = (codec::get::<i64>(row, 0)?, codec::uuid(row, 1)?);
            metrics.unreadable_item(recipient, event.as_bytes(), &reason);
            lost.push((RecipientNumber::new(recipient), event));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// An item of `inbox_items`: the common columns, then `lease_until, attempt_deadline, claimed_at, heartbeat_at, session_id, backoff, next_retry_at`.
pub(super) fn hot_item(row: &PgRow) -> Result<Item, Failure> {
    let mut item = item(row)?;
    item.lease = lease(row)?;
    item.next_retry_at = codec::optional_timestamp(row, COMMON + 6)?;
    let leased = item.lease.is_some() == (item.state == AckState::Claimed);
    let resting = item.next_retry_at.is_some() == (item.state == AckState::RetryScheduled);
    if leased && resting && !item.state.is_ended() { Ok(item) } else { Err(unreadable("state")) }
}

/// An item of `inbox_ended`: the common columns, then `ended_at`.
pub(super) fn ended_item(row: &PgRow) -> Result<Item, Failure> {
    let mut item = item(row)?;
    item.ended_at = Some(codec::timestamp(row, COMMON)?);
    if item.state.is_ended() { Ok(item) } else { Err(unreadable("state")) }
}

/// `recipient_number, event_id, inbox_seq, type, kind, source, summary, queue, priority, deduplication_key, available_at, expires_at, max_attempts,
/// created_at, envelope_bytes, ring_seq, state, dead_letter, claim_key, delivery_attempts, counted_attempts, generation, lease_hash, history`.
fn item(row: &PgRow) -> Result<Item, Failure> {
    let facts = ItemFacts {
        recipient: RecipientNumber::new(codec::get(row, 0)?),
        event_id: EventId::new(codec::uuid(row, 1)?),
        inbox_seq: codec::seq(row, 2)?,
        event_type: codec::text(row, 3)?,
        kind: codec::get(row, 4)?,
        source: codec::get(row, 5)?,
        summary: codec::get(row, 6)?,
        queue: codec::text(row, 7)?,
        priority: coded(row, 8, "priority", parse_priority)?,
        deduplication_key: codec::optional_text(row, 9)?,
        available_at: codec::timestamp(row, 10)?,
        expires_at: codec::optional_timestamp(row, 11)?,
        max_attempts: count(row, 12)?,
        created_at: codec::timestamp(row, 13)?,
        envelope_bytes: count(row, 14)?,
    };
    Ok(Item {
        facts: Arc::new(facts),
        ring_seq: codec::seq(row, 15)?,
        state: coded(row, 16, "state", parse_state)?,
        dead_letter: coded(row, 17, "dead-letter state", parse_dead_letter)?,
        claim_key: codec::timestamp(row, 18)?,
        delivery_attempts: count(row, 19)?,
        counted_attempts: count(row, 20)?,
        generation: Generation::new(codec::natural(row, 21)?),
        lease_hash: lease_hash(row, 22)?,
        lease: None,
        next_retry_at: None,
        history: history(row, 23)?,
        ended_at: None,
    })
}

fn lease_hash(row: &PgRow, column: usize) -> Result<Option<LeaseHash>, Failure> {
    let bytes = codec::get::<Option<&[u8]>>(row, column)?;
    bytes.map(|bytes| bytes.try_into().map(LeaseHash::new).map_err(|_| unreadable("lease hash"))).transpose()
}

fn history(row: &PgRow, column: usize) -> Result<Vec<Attempt>, Failure> {
    let text = codec::get::<Option<&str>>(row, column)?;
    text.map_or(Ok(Vec::new()), |text| serde_json::from_str(text).map_err(|_| unreadable("history")))
}

/// The column of a history.
pub(super) fn history_text(history: &[Attempt]) -> Result<Option<String>, Failure> {
    let text = (!history.is_empty()).then(|| serde_json::to_string(history)).transpose();
    text.map_err(|_| Failure::corrupt("the history of an item cannot be written"))
}

fn lease(row: &PgRow) -> Result<Option<Lease>, Failure> {
    let Some(until) = codec::optional_timestamp(row, COMMON)? else { return Ok(None) };
    Ok(Some(Lease {
        until,
        attempt_deadline: codec::timestamp(row, COMMON + 1)?,
        claimed_at: codec::timestamp(row, COMMON + 2)?,
        heartbeat_at: codec::timestamp(row, COMMON + 3)?,
        session: codec::optional_text(row, COMMON + 4)?,
        backoff: Duration::from_micros(codec::natural(row, COMMON + 5)?),
    }))
}

/// A span as its column holds it.
pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// `recipient_number, agent_id, head, next_due, presence, presence_until, paused, paused_queues, max_in_flight, concurrency, active_session`; absent
/// when the first is NULL.
pub(super) fn recipient(row: &PgRow, tenant: &TenantId) -> Result<Option<RecipientRow>, Failure> {
    let Some(number) = codec::get::<Option<i64>>(row, 0)? else { return Ok(None) };
    let limit = codec::get::<Option<i64>>(row, 8)?;
    let limit = limit.map(|limit| u32::try_from(limit).map_err(|_| unreadable_recipient("limit"))).transpose()?;
    Ok(Some(RecipientRow {
        number: RecipientNumber::new(number),
        recipient: Recipient { tenant: tenant.clone(), agent: codec::text(row, 1)? },
        head: codec::seq(row, 2)?,
        next_due: codec::optional_timestamp(row, 3)?,
        presence: presence(row)?,
        paused: codec::get(row, 6)?,
        paused_queues: queues(row, 7)?,
        policy: Policy { max_in_flight: limit, concurrency: concurrency(row)? },
        active_session: codec::optional_text(row, 10)?,
    }))
}

fn presence(row: &PgRow) -> Result<Presence, Failure> {
    match codec::get::<i16>(row, 4)? {
        0 => Ok(Presence::In),
        1 => Ok(Presence::Out { until: codec::optional_timestamp(row, 5)? }),
        _ => Err(unreadable_recipient("presence")),
    }
}

/// The columns of a presence.
pub(super) fn presence_columns(presence: Presence) -> (i16, Option<i64>) {
    match presence {
        Presence::In => (0, None),
        Presence::Out { until } => (1, until.map(Timestamp::as_micros)),
    }
}

fn concurrency(row: &PgRow) -> Result<Concurrency, Failure> {
    match codec::get::<i16>(row, 9)? {
        0 => Ok(Concurrency::ManySessions),
        1 => Ok(Concurrency::SingleActiveSession),
        _ => Err(unreadable_recipient("concurrency")),
    }
}

/// The column of a concurrency.
pub(super) const fn concurrency_number(concurrency: Concurrency) -> i16 {
    match concurrency {
        Concurrency::ManySessions => 0,
        Concurrency::SingleActiveSession => 1,
    }
}

fn queues(row: &PgRow, column: usize) -> Result<BTreeSet<QueueName>, Failure> {
    let text = codec::get::<Option<&str>>(row, column)?;
    text.map_or(Ok(BTreeSet::new()), |text| serde_json::from_str(text).map_err(|_| unreadable_recipient("list of queues")))
}

/// The column of paused queues.
pub(super) fn queues_text(queues: &BTreeSet<QueueName>) -> Result<Option<String>, Failure> {
    let text = (!queues.is_empty()).then(|| serde_json::to_string(queues)).transpose();
    text.map_err(|_| Failure::corrupt("the paused queues of an inbox cannot be written"))
}

fn unreadable_recipient(what: &str) -> Failure {
    Failure::corrupt(format!("an inbox with an unreadable {what}"))
}
