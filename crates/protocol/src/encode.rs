//! How the server writes events: an envelope is encoded once, when it is accepted; afterwards its bytes are only concatenated.

use domain::{Actor, ChannelRef, DeduplicationKey, EventId, EventType, PrincipalId, Seq, SyncEpoch, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Correlation, Label, PayloadRef, Priority, Summary};

/// What an envelope is made of, but for its `seq`. The members are written in this order.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EnvelopeParts<'a> {
    /// Its identity.
    pub id: EventId,
    /// What happened.
    #[serde(rename = "type")]
    pub event_type: &'a EventType,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// Who caused it.
    pub actor: &'a Actor,
    /// Where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<&'a ChannelRef>,
    /// To whom, recipients included.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub audience: &'a [PrincipalId],
    /// How urgent it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// By what a repeat is recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplication_key: Option<&'a DeduplicationKey>,
    /// References.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<&'a Correlation>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_ref: Option<&'a PayloadRef>,
    /// The publisher's own word for the kind of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'a Label>,
    /// The publisher's own word for where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'a Label>,
    /// One line about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'a Summary>,
    /// After when nobody needs to work on it any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What the publisher sent, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<&'a RawValue>,
}

impl<'a> EnvelopeParts<'a> {
    /// The parts that every envelope has.
    pub const fn new(id: EventId, event_type: &'a EventType, created_at: Timestamp, actor: &'a Actor) -> Self {
        Self {
            id,
            event_type,
            created_at,
            actor,
            channel: None,
            audience: &[],
            priority: None,
            deduplication_key: None,
            correlation: None,
            payload_ref: None,
            kind: None,
            source: None,
            summary: None,
            expires_at: None,
            payload: None,
        }
    }
}

/// Drops the first byte, the opening brace; the rest goes to the vector.
struct WithoutBrace<'a> {
    out: &'a mut Vec<u8>,
    seen: bool,
}

impl std::io::Write for WithoutBrace<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let rest = match bytes.split_first() {
            Some((_, rest)) if !self.seen => rest,
            _ => bytes,
        };
        self.seen |= !bytes.is_empty();
        self.out.extend_from_slice(rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The JSON text of an envelope without its opening brace and its `seq`, as [`domain::Event::body`] holds it.
pub fn encode_body(parts: &EnvelopeParts<'_>) -> Vec<u8> {
    let payload = parts.payload.map_or(0, |payload| payload.get().len());
    let mut out = Vec::with_capacity(payload + 512);
    // Cannot fail: the writer never does, and every map key is a text.
    let written = serde_json::to_writer(WithoutBrace { out: &mut out, seen: false }, parts);
    debug_assert!(written.is_ok());
    out
}

/// Appends an event page to `out`, from events that are encoded already (see [`domain::Event::write_envelope`]).
pub fn write_event_page(
    out: &mut Vec<u8>,
    events: impl IntoIterator<Item = impl AsRef<[u8]>>,
    next_cursor: Seq,
    head_seq: Seq,
    sync_epoch: SyncEpoch,
    unproven: bool,
) {
    out.extend_from_slice(br#"{"events":["#);
    for (index, event) in events.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(event.as_ref());
    }
    let tail = format!(r#"],"next_cursor":{next_cursor},"head_seq":{head_seq},"sync_epoch":"{sync_epoch}""#);
    out.extend_from_slice(tail.as_bytes());
    out.extend_from_slice(if unproven { br#","unproven":true}"# } else { b"}" });
}
