//! Rows as the values of `intake`.

use std::sync::Arc;

use domain::{Audience, Deduplication, DeduplicationKey, EventId, Publication, StoreError, Work};
use intake::{Schedule, Scheduled, ScheduledState};

use crate::codec::{self, parse_audience};
use crate::db::PgRow;
use crate::failure::Failure;
use crate::log;

/// `event_id, available_at, publisher, state, failure, type, channel, audience, origin, created_at, key, body_hash, key_expires_at, body, work`.
pub(super) fn scheduled(row: &PgRow) -> Result<Scheduled, Failure> {
    let publication = Publication {
        id: EventId::new(codec::uuid(row, 0)?),
        event_type: codec::text(row, 5)?,
        channel: codec::optional_text(row, 6)?,
        audience: audience(row, 7)?,
        origin: log::parse_origin(codec::get(row, 8)?).ok_or_else(|| Failure::corrupt("a scheduled event of unknown origin"))?,
        created_at: codec::timestamp(row, 9)?,
        deduplication: deduplication(row)?,
        body: codec::get::<String>(row, 13)?.into(),
        work: work(row, 14)?,
    };
    let schedule = Schedule { publication, publisher: codec::text(row, 2)?, available_at: codec::timestamp(row, 1)? };
    Ok(Scheduled { schedule, state: codec::word(row, 3, parse_state)?, failure: codec::get(row, 4)? })
}

fn audience(row: &PgRow, column: usize) -> Result<Audience, Failure> {
    match codec::get::<Option<&str>>(row, column)? {
        Some(text) => parse_audience(text).ok_or_else(|| Failure::corrupt("a scheduled event with an unreadable audience")),
        None => Ok(Audience::default()),
    }
}

/// What the event will leave in inboxes, as its column holds it.
pub(super) fn work_text(work: Option<&Work>) -> Result<Option<String>, Failure> {
    let text = work.map(serde_json::to_string).transpose();
    text.map_err(|_| StoreError::Conflict("the work of a scheduled event cannot be written").into())
}

fn work(row: &PgRow, column: usize) -> Result<Option<Arc<Work>>, Failure> {
    let Some(text) = codec::get::<Option<&str>>(row, column)? else { return Ok(None) };
    let work = serde_json::from_str(text).map_err(|_| Failure::corrupt("a scheduled event with unreadable work"))?;
    Ok(Some(Arc::new(work)))
}

fn deduplication(row: &PgRow) -> Result<Option<Deduplication>, Failure> {
    let Some(key) = codec::optional_text::<DeduplicationKey>(row, 10)? else { return Ok(None) };
    Ok(Some(Deduplication { key, body_hash: codec::digest(row, 11)?, expires_at: codec::timestamp(row, 12)? }))
}

fn parse_state(word: &str) -> Option<ScheduledState> {
    match word {
        "waiting" => Some(ScheduledState::Waiting),
        "failed" => Some(ScheduledState::Failed),
        _ => None,
    }
}
