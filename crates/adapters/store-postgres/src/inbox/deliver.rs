//! The items that events leave in inboxes: what the append's function is handed beside the rows of the log. It inserts them in the same statement.

use domain::{Publication, StoreError};
use serde_json::{Map, Value};

use super::rows;
use crate::failure::Failure;

/// Adds one object for each recipient of a publication. What its columns cannot hold is refused here, as a conflict of its request.
pub(crate) fn deliveries(publication: &Publication, all: &mut Vec<Value>) -> Result<(), Failure> {
    let Some(work) = publication.work.as_deref() else { return Ok(()) };
    let texts = [work.kind.as_deref(), work.source.as_deref(), Some(work.summary.as_str())];
    if texts.into_iter().flatten().any(|text| text.contains('\0')) {
        return Err(StoreError::Conflict("a text of an event's work contains NUL").into());
    }
    let key = publication.deduplication.as_ref().map(|deduplication| deduplication.key.as_str());
    for recipient in &work.recipients {
        let fields = [
            ("event_id", Value::from(publication.id.to_string())),
            ("type", publication.event_type.as_str().into()),
            ("deduplication_key", key.into()),
            ("created_at", publication.created_at.as_micros().into()),
            ("envelope_bytes", u32::try_from(publication.body.len()).unwrap_or(u32::MAX).into()),
            ("agent", recipient.agent.as_str().into()),
            ("queue", recipient.queue.as_str().into()),
            ("kind", work.kind.as_deref().into()),
            ("source", work.source.as_deref().into()),
            ("summary", work.summary.as_str().into()),
            ("priority", rows::priority_number(work.priority).into()),
            ("available_at", work.available_at.as_micros().into()),
            ("claim_key", work.claim_key.as_micros().into()),
            ("expires_at", work.expires_at.map(domain::Timestamp::as_micros).into()),
            ("max_attempts", work.max_attempts.into()),
        ];
        all.push(Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()));
    }
    Ok(())
}
