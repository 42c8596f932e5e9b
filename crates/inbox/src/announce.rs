//! The log rows of the inbox: `inbox.requeued`, `inbox.dead_lettered`, `inbox.quarantined`, `inbox.resumed`.

use domain::{
    Actor, Audience, EnvelopeParts, EventId, EventOrigin, EventType, PrincipalId, Publication, QueueName, Seq, StoreError, Timestamp,
    encode_body,
};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::{Item, Recipient, RequeueReason};

/// An item became claimable again.
pub const INBOX_REQUEUED: &str = "inbox.requeued";
/// An item's attempts are used up.
pub const INBOX_DEAD_LETTERED: &str = "inbox.dead_lettered";
/// An item was put aside.
pub const INBOX_QUARANTINED: &str = "inbox.quarantined";
/// An agent or a queue is to be rung again.
pub const INBOX_RESUMED: &str = "inbox.resumed";

/// Why an inbox is to be rung again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeCause {
    /// The agent is back.
    Presence,
    /// A pause is over.
    Unpaused,
    /// A hook was enabled.
    HookEnabled,
}

#[derive(Serialize)]
struct ItemPayload<'a> {
    event_id: EventId,
    recipient_id: &'a PrincipalId,
    inbox_seq: Seq,
    queue: &'a QueueName,
    delivery_attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

#[derive(Serialize)]
struct ResumedPayload<'a> {
    recipient_id: &'a PrincipalId,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a QueueName>,
    cause: ResumeCause,
}

/// `inbox.requeued` for an item that came back.
pub(crate) fn requeued(
    recipient: &Recipient,
    item: &Item,
    reason: RequeueReason,
    id: EventId,
    now: Timestamp,
) -> Result<Publication, StoreError> {
    about(recipient, item, INBOX_REQUEUED, Some(reason.as_str()), id, now)
}

/// `inbox.dead_lettered`.
pub(crate) fn dead_lettered(recipient: &Recipient, item: &Item, id: EventId, now: Timestamp) -> Result<Publication, StoreError> {
    about(recipient, item, INBOX_DEAD_LETTERED, None, id, now)
}

/// `inbox.quarantined`.
pub(crate) fn quarantined(recipient: &Recipient, item: &Item, id: EventId, now: Timestamp) -> Result<Publication, StoreError> {
    about(recipient, item, INBOX_QUARANTINED, None, id, now)
}

/// `inbox.resumed`.
pub(crate) fn resumed(
    recipient: &Recipient,
    queue: Option<&QueueName>,
    cause: ResumeCause,
    id: EventId,
    now: Timestamp,
) -> Result<Publication, StoreError> {
    publication(recipient, INBOX_RESUMED, &ResumedPayload { recipient_id: &recipient.agent, queue, cause }, id, now)
}

fn about(
    recipient: &Recipient,
    item: &Item,
    event_type: &'static str,
    reason: Option<&'static str>,
    id: EventId,
    now: Timestamp,
) -> Result<Publication, StoreError> {
    let payload = ItemPayload {
        event_id: item.facts.event_id,
        recipient_id: &recipient.agent,
        inbox_seq: item.facts.inbox_seq,
        queue: &item.facts.queue,
        delivery_attempts: item.delivery_attempts,
        reason,
    };
    publication(recipient, event_type, &payload, id, now)
}

fn publication(
    recipient: &Recipient,
    event_type: &'static str,
    payload: &impl Serialize,
    id: EventId,
    now: Timestamp,
) -> Result<Publication, StoreError> {
    const UNWRITABLE: StoreError = StoreError::Conflict("an event of the inbox cannot be written");
    let event_type = EventType::parse(event_type).map_err(|_| UNWRITABLE)?;
    let (actor, audience) = (Actor::server(), [recipient.agent.clone()]);
    let payload = to_raw_value(payload).map_err(|_| UNWRITABLE)?;
    let parts = EnvelopeParts { audience: &audience, payload: Some(&payload), ..EnvelopeParts::new(id, &event_type, now, &actor) };
    let body = encode_body(&parts).map_err(|_| UNWRITABLE)?;
    let (channel, audience, origin) = (None, Audience::new(&audience), EventOrigin::Server);
    Ok(Publication { id, event_type, channel, audience, origin, created_at: now, body, deduplication: None, work: None })
}
