//! The one encoder of envelopes: an event is written as JSON when it is accepted, afterwards its bytes are only concatenated.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Actor, ChannelRef, DeduplicationKey, EventId, EventType, PrincipalId, Timestamp};

/// How urgent an event is for those who work on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// After everything else.
    Low,
    /// In turn; what an event without a priority has.
    Normal,
    /// Before what is normal.
    High,
    /// Before everything else.
    Urgent,
}

/// What an event is about, in the publisher's own system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadRef {
    /// The kind of thing.
    pub kind: String,
    /// The thing.
    pub id: String,
}

/// What an envelope is made of, but for its `seq`. The members are written in this order; what is absent is left out, never `null`.
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
    /// References by which a receiver finds what belongs together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<&'a BTreeMap<String, String>>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_ref: Option<&'a PayloadRef>,
    /// The publisher's own word for the kind of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'a str>,
    /// The publisher's own word for where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'a str>,
    /// One line about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'a str>,
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

/// What the members around the payload take, about.
const USUAL_LENGTH: usize = 448;
const CREATED_AT: &[u8] = br#""created_at":""#;

/// The JSON text of an envelope without its opening brace and its `seq`, as [`crate::Event::body`] holds it.
///
/// # Errors
/// When a member cannot be written, which no value of these types brings about.
pub fn encode_body(parts: &EnvelopeParts<'_>) -> serde_json::Result<Bytes> {
    let payload = parts.payload.map_or(0, |payload| payload.get().len());
    let mut text = Vec::with_capacity(payload + USUAL_LENGTH);
    serde_json::to_writer(&mut text, parts)?;
    Ok(Bytes::from(text).slice(1..))
}

/// `body` with another `created_at`: a scheduled event is accepted into the log only when it is due. `None` when `body` is no envelope.
pub fn restamp_body(body: &[u8], created_at: Timestamp) -> Option<Bytes> {
    // Nothing before it can hold a quotation mark of its own: an id and a type.
    let start = body.windows(CREATED_AT.len()).position(|window| window == CREATED_AT)? + CREATED_AT.len();
    let (before, rest) = body.split_at_checked(start)?;
    let end = rest.iter().position(|&byte| byte == b'"')?;
    let after = rest.get(end..)?;
    Some([before, created_at.to_string().as_bytes(), after].concat().into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;
    use uuid::Uuid;

    use super::{EnvelopeParts, PayloadRef, Priority, encode_body, restamp_body};
    use crate::{Actor, ActorKind, ChannelRef, DeduplicationKey, EventId, EventType, PrincipalId, Timestamp};

    #[test]
    fn members_come_in_the_documented_order_and_the_payload_verbatim() {
        let event_type = EventType::parse("message.created").unwrap();
        let actor = Actor { kind: ActorKind::Person, id: PrincipalId::parse("sam").unwrap() };
        let channel = ChannelRef::parse("support/general").unwrap();
        let key = DeduplicationKey::parse("msg:\"7\"").unwrap();
        let correlation = BTreeMap::from([("meeting_room_id".to_owned(), "room_7".to_owned())]);
        let payload_ref = PayloadRef { kind: "meeting_room_message".to_owned(), id: "920155".to_owned() };
        let payload = RawValue::from_string("{ \"n\": 1.0,\"text\":\"\\u00e4\" }".to_owned()).unwrap();
        let parts = EnvelopeParts {
            channel: Some(&channel),
            audience: &[PrincipalId::parse("agent_alpha").unwrap()],
            priority: Some(Priority::Normal),
            deduplication_key: Some(&key),
            correlation: Some(&correlation),
            payload_ref: Some(&payload_ref),
            summary: Some("line"),
            payload: Some(&payload),
            ..EnvelopeParts::new(EventId::new(Uuid::nil()), &event_type, Timestamp::from_micros(1_500), &actor)
        };
        let expected = concat!(
            r#""id":"00000000-0000-0000-0000-000000000000","type":"message.created","created_at":"1970-01-01T00:00:00.001Z","#,
            r#""actor":{"kind":"person","id":"sam"},"channel":"support/general","audience":["agent_alpha"],"priority":"normal","#,
            r#""deduplication_key":"msg:\"7\"","correlation":{"meeting_room_id":"room_7"},"#,
            r#""payload_ref":{"kind":"meeting_room_message","id":"920155"},"summary":"line","payload":{ "n": 1.0,"text":"\u00e4" }}"#,
        );
        assert_eq!(encode_body(&parts).unwrap(), expected);
    }

    #[test]
    fn what_is_absent_is_left_out() {
        let event_type = EventType::parse("a").unwrap();
        let actor = Actor { kind: ActorKind::Agent, id: PrincipalId::parse("x").unwrap() };
        let body = encode_body(&EnvelopeParts::new(EventId::new(Uuid::nil()), &event_type, Timestamp::from_micros(0), &actor)).unwrap();
        let expected = concat!(
            r#""id":"00000000-0000-0000-0000-000000000000","type":"a","created_at":"1970-01-01T00:00:00.000Z","#,
            r#""actor":{"kind":"agent","id":"x"}}"#
        );
        assert_eq!(body, expected);
    }

    #[test]
    fn a_restamped_body_differs_in_its_instant_only() {
        let body = br#""id":"1","type":"a","created_at":"1970-01-01T00:00:00.000Z","payload":{"created_at":"x"}}"#;
        let restamped = restamp_body(body, Timestamp::from_micros(2_000_000)).unwrap();
        assert_eq!(restamped, r#""id":"1","type":"a","created_at":"1970-01-01T00:00:02.000Z","payload":{"created_at":"x"}}"#);
        assert_eq!(restamp_body(b"{}", Timestamp::from_micros(0)), None);
    }
}
