//! Reading a staged event again: the database has looked at it when it was handed in, and what it let pass is held against the rules of this
//! release. Pure.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use domain::{ChannelRef, DeduplicationKey, EventType, PayloadRef, PrincipalId, Priority, QueueName, Timestamp};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::validate::validate;
use crate::{NewEvent, NewRecipient, Settings};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(rename = "type")]
    event_type: EventType,
    #[serde(default, deserialize_with = "present")]
    channel: Option<ChannelRef>,
    #[serde(default)]
    audience: Vec<PrincipalId>,
    #[serde(default)]
    recipients: Vec<Recipient>,
    #[serde(default, deserialize_with = "present")]
    priority: Option<Priority>,
    #[serde(default, deserialize_with = "present")]
    available_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "present")]
    expires_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "present")]
    max_attempts: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "present")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "present")]
    source: Option<String>,
    #[serde(default, deserialize_with = "present")]
    summary: Option<String>,
    #[serde(default, deserialize_with = "present")]
    deduplication_key: Option<DeduplicationKey>,
    #[serde(default, deserialize_with = "present")]
    correlation: Option<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "present")]
    payload_ref: Option<Reference>,
    #[serde(default, deserialize_with = "present")]
    payload: Option<Box<RawValue>>,
}

/// A [`PayloadRef`] as it is handed in: with nothing else in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    kind: String,
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipient {
    kind: Kind,
    id: PrincipalId,
    #[serde(default, deserialize_with = "present")]
    queue: Option<QueueName>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Agent,
}

/// Present means present: `null` stands for nothing.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl From<Recipient> for NewRecipient {
    fn from(recipient: Recipient) -> Self {
        let Kind::Agent = recipient.kind;
        Self { id: recipient.id, queue: recipient.queue }
    }
}

/// Reads an event that was staged at `staged_at`, and holds it against the rules as of that instant.
///
/// # Errors
/// What is wrong, as a sentence for people.
pub(super) fn read(text: &str, staged_at: Timestamp, settings: &Settings) -> Result<NewEvent, String> {
    let body: Body = serde_json::from_str(text).map_err(|error| format!("The event cannot be read: {error}."))?;
    // A number that no double holds is read by nobody.
    if body.payload.as_ref().is_some_and(|payload| serde_json::from_str::<serde_json::Value>(payload.get()).is_err()) {
        return Err("The event is refused: /payload has a number that is too large for any reader.".to_owned());
    }
    let event = NewEvent {
        event_type: body.event_type,
        channel: body.channel,
        audience: body.audience,
        recipients: body.recipients.into_iter().map(NewRecipient::from).collect(),
        priority: body.priority,
        available_at: body.available_at,
        expires_at: body.expires_at,
        max_attempts: body.max_attempts,
        kind: body.kind,
        source: body.source,
        summary: body.summary,
        deduplication_key: body.deduplication_key,
        correlation: body.correlation,
        payload_ref: body.payload_ref.map(|Reference { kind, id }| PayloadRef { kind, id }),
        payload: body.payload,
    };
    validate(0, &event, settings, staged_at).map_err(|refusal| {
        let member = refusal.place().map(|place| place.member.clone()).unwrap_or_default();
        format!("The event is refused: {member} {refusal}.")
    })?;
    Ok(event)
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::read;
    use crate::Settings;

    const AT: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    #[test]
    fn every_member_is_read() {
        let text = r#"{"type": "a.b", "kind": "k", "source": "s", "channel": "x/y", "payload": {"n": 1, "t": [true]}, "summary": "one line",
            "audience": ["sam"], "priority": "high", "expires_at": "2030-01-01T00:00:00Z", "recipients": [{"id": "alpha", "kind": "agent",
            "queue": "review"}, {"id": "beta", "kind": "agent"}], "available_at": "2027-06-01T00:00:00+02:00", "correlation": {"a": "b"},
            "payload_ref": {"id": "1", "kind": "row"}, "max_attempts": 3, "deduplication_key": "once"}"#;
        let event = read(text, AT, &Settings::default()).unwrap();
        assert_eq!((event.event_type.as_str(), event.channel.unwrap().as_str(), event.audience.len()), ("a.b", "x/y", 1));
        assert_eq!(event.recipients[0].queue.as_ref().unwrap().as_str(), "review");
        assert_eq!(event.recipients[1].id.as_str(), "beta");
        assert_eq!(event.payload.unwrap().get(), r#"{"n": 1, "t": [true]}"#);
        assert_eq!((event.kind.unwrap(), event.source.unwrap(), event.summary.unwrap()), ("k".into(), "s".into(), "one line".into()));
        assert_eq!((event.max_attempts.unwrap().get(), event.deduplication_key.unwrap().as_str()), (3, "once"));
        assert_eq!(event.available_at.unwrap().to_string(), "2027-05-31T22:00:00.000Z");
        assert_eq!((event.payload_ref.unwrap().kind, event.correlation.unwrap()["a"].as_str()), ("row".into(), "b"));
        assert!(event.expires_at.is_some() && event.priority.is_some());
    }

    #[test]
    fn what_no_door_lets_pass_is_refused() {
        for text in [
            "[]",
            "{}",
            r#"{"type": "a.b"}"#,
            r#"{"type": "A", "channel": "x/y"}"#,
            r#"{"type": "a.b", "channel": "x/y", "more": 1}"#,
            r#"{"type": "access.changed", "channel": "x/y"}"#,
            r#"{"type": "a.b", "recipients": [{"id": "alpha", "kind": "person"}]}"#,
            r#"{"type": "a.b", "channel": "x/y", "payload": [1]}"#,
            r#"{"type": "a.b", "channel": "x/y", "payload": {"n": 1e400}}"#,
            r#"{"type": "a.b", "channel": "x/y", "kind": null}"#,
            r#"{"type": "a.b", "channel": "x/y", "expires_at": "2020-01-01T00:00:00Z"}"#,
        ] {
            assert!(read(text, AT, &Settings::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn an_event_that_expired_on_its_way_was_in_time_when_it_was_handed_in() {
        let text = format!(r#"{{"type": "a.b", "channel": "x/y", "expires_at": "{}"}}"#, AT.plus(std::time::Duration::from_secs(1)));
        assert!(read(&text, AT, &Settings::default()).is_ok());
    }
}
