//! Rows as items and recipients, and back. Each function names the columns that it expects, in order. What cannot be read is corrupt, never a default.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use domain::{EventId, Priority, QueueName, TenantId, Timestamp};
use inbox::{
    AckState, Attempt, Concurrency, DeadLetterState, Generation, Item, ItemFacts, Lease, LeaseHash, Policy, Presence, Recipient,
    RecipientNumber, RecipientRow,
};
use rusqlite::Row;

use crate::codec;
use crate::failure::Failure;

/// Columns that items have in common, wherever they are.
const COMMON: usize = 24;

/// The column of a state.
pub(crate) const fn state_number(state: AckState) -> i64 {
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
pub(crate) fn parse_state(number: i64) -> Option<AckState> {
    AckState::ALL.into_iter().find(|state| state_number(*state) == number)
}

pub(super) const fn dead_letter_number(state: DeadLetterState) -> i64 {
    match state {
        DeadLetterState::None => 0,
        DeadLetterState::DeadLettered => 1,
        DeadLetterState::Quarantined => 2,
        DeadLetterState::Redriven => 3,
    }
}

fn parse_dead_letter(number: i64) -> Option<DeadLetterState> {
    use DeadLetterState as State;
    [State::None, State::DeadLettered, State::Quarantined, State::Redriven].into_iter().find(|state| dead_letter_number(*state) == number)
}

pub(super) const fn priority_number(priority: Priority) -> i64 {
    match priority {
        Priority::Low => 0,
        Priority::Normal => 1,
        Priority::High => 2,
        Priority::Urgent => 3,
    }
}

fn parse_priority(number: i64) -> Option<Priority> {
    [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent].into_iter().find(|priority| priority_number(*priority) == number)
}

fn unreadable(what: &str) -> Failure {
    Failure::corrupt(format!("an item with an unreadable {what}"))
}

fn coded<T>(row: &Row<'_>, column: usize, what: &str, parse: fn(i64) -> Option<T>) -> Result<T, Failure> {
    row.get_ref(column)?.as_i64().ok().and_then(parse).ok_or_else(|| unreadable(what))
}

fn count(row: &Row<'_>, column: usize) -> Result<u32, Failure> {
    u32::try_from(codec::natural(row, column)?).map_err(|_| unreadable("count"))
}

fn string(row: &Row<'_>, column: usize) -> Result<Option<String>, Failure> {
    Ok(row.get_ref(column)?.as_str_or_null().map_err(|_| unreadable("text"))?.map(str::to_owned))
}

/// An item of `inbox_items`: the common columns, then `lease_until, attempt_deadline, claimed_at, heartbeat_at, session_id, backoff, next_retry_at`.
pub(crate) fn hot_item(row: &Row<'_>) -> Result<Item, Failure> {
    let mut item = item(row)?;
    item.lease = lease(row)?;
    item.next_retry_at = codec::optional_timestamp(row, COMMON + 6)?;
    let leased = item.lease.is_some() == (item.state == AckState::Claimed);
    let resting = item.next_retry_at.is_some() == (item.state == AckState::RetryScheduled);
    if leased && resting && !item.state.is_ended() { Ok(item) } else { Err(unreadable("state")) }
}

/// An item of `inbox_ended`: the common columns, then `ended_at`.
pub(crate) fn ended_item(row: &Row<'_>) -> Result<Item, Failure> {
    let mut item = item(row)?;
    item.ended_at = Some(codec::timestamp(row, COMMON)?);
    if item.state.is_ended() { Ok(item) } else { Err(unreadable("state")) }
}

/// `recipient_number, event_id, inbox_seq, type, kind, source, summary, queue, priority, deduplication_key, available_at, expires_at, max_attempts,
/// created_at, envelope_bytes, ring_seq, state, dead_letter, claim_key, delivery_attempts, counted_attempts, generation, lease_hash, history`.
fn item(row: &Row<'_>) -> Result<Item, Failure> {
    let facts = ItemFacts {
        recipient: RecipientNumber::new(row.get(0)?),
        event_id: EventId::new(codec::uuid(row, 1)?),
        inbox_seq: codec::seq(row, 2)?,
        event_type: codec::text(row, 3)?,
        kind: string(row, 4)?,
        source: string(row, 5)?,
        summary: string(row, 6)?.ok_or_else(|| unreadable("summary"))?,
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

fn lease_hash(row: &Row<'_>, column: usize) -> Result<Option<LeaseHash>, Failure> {
    let bytes = row.get_ref(column)?.as_blob_or_null().map_err(|_| unreadable("lease hash"))?;
    bytes.map(|bytes| bytes.try_into().map(LeaseHash::new).map_err(|_| unreadable("lease hash"))).transpose()
}

fn history(row: &Row<'_>, column: usize) -> Result<Vec<Attempt>, Failure> {
    let text = row.get_ref(column)?.as_str_or_null().map_err(|_| unreadable("history"))?;
    text.map_or(Ok(Vec::new()), |text| serde_json::from_str(text).map_err(|_| unreadable("history")))
}

/// The column of a history.
pub(super) fn history_text(history: &[Attempt]) -> Result<Option<String>, Failure> {
    let text = (!history.is_empty()).then(|| serde_json::to_string(history)).transpose();
    text.map_err(|_| Failure::corrupt("the history of an item cannot be written"))
}

fn lease(row: &Row<'_>) -> Result<Option<Lease>, Failure> {
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

/// A number as its column holds it.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// `recipient_number, agent_id, head, next_due, presence, presence_until, paused, paused_queues, max_in_flight, concurrency, active_session`.
pub(super) fn recipient(row: &Row<'_>, tenant: &TenantId) -> Result<RecipientRow, Failure> {
    let limit = row.get_ref(8)?.as_i64_or_null().map_err(|_| unreadable_recipient("limit"))?;
    let limit = limit.map(|limit| u32::try_from(limit).map_err(|_| unreadable_recipient("limit"))).transpose()?;
    Ok(RecipientRow {
        number: RecipientNumber::new(row.get(0)?),
        recipient: Recipient { tenant: tenant.clone(), agent: codec::text(row, 1)? },
        head: codec::seq(row, 2)?,
        next_due: codec::optional_timestamp(row, 3)?,
        presence: presence(row)?,
        paused: codec::natural(row, 6)? != 0,
        paused_queues: queues(row, 7)?,
        policy: Policy { max_in_flight: limit, concurrency: concurrency(row)? },
        active_session: codec::optional_text(row, 10)?,
    })
}

fn presence(row: &Row<'_>) -> Result<Presence, Failure> {
    match codec::natural(row, 4)? {
        0 => Ok(Presence::In),
        1 => Ok(Presence::Out { until: codec::optional_timestamp(row, 5)? }),
        _ => Err(unreadable_recipient("presence")),
    }
}

/// The columns of a presence.
pub(super) fn presence_columns(presence: Presence) -> (i64, Option<i64>) {
    match presence {
        Presence::In => (0, None),
        Presence::Out { until } => (1, until.map(Timestamp::as_micros)),
    }
}

fn concurrency(row: &Row<'_>) -> Result<Concurrency, Failure> {
    match codec::natural(row, 9)? {
        0 => Ok(Concurrency::ManySessions),
        1 => Ok(Concurrency::SingleActiveSession),
        _ => Err(unreadable_recipient("concurrency")),
    }
}

/// The column of a concurrency.
pub(super) const fn concurrency_number(concurrency: Concurrency) -> i64 {
    match concurrency {
        Concurrency::ManySessions => 0,
        Concurrency::SingleActiveSession => 1,
    }
}

fn queues(row: &Row<'_>, column: usize) -> Result<BTreeSet<QueueName>, Failure> {
    let text = row.get_ref(column)?.as_str_or_null().map_err(|_| unreadable_recipient("list of queues"))?;
    text.map_or(Ok(BTreeSet::new()), |text| serde_json::from_str(text).map_err(|_| unreadable_recipient("list of queues")))
}

fn unreadable_recipient(what: &str) -> Failure {
    Failure::corrupt(format!("an inbox with an unreadable {what}"))
}

/// Parses the text of a key column that is already in memory.
pub(super) fn parsed<T: FromStr>(text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| unreadable("name"))
}
