//! What tells a repeat from a conflict: SHA-256 of the RFC 8785 form of the body that was published.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use domain::{BodyHash, ChannelRef, EventType, PayloadRef, PrincipalId, Priority, QueueName, Timestamp};
use ring::digest;
use serde::Serialize;
use serde_json::Value;

use crate::NewEvent;

/// The published body, but for the deduplication key that it is kept under.
#[derive(Serialize)]
struct Published<'a> {
    #[serde(rename = "type")]
    event_type: &'a EventType,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a ChannelRef>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    audience: &'a [PrincipalId],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recipients: Vec<Recipient<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<Priority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    available_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<NonZeroU32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_ref: Option<&'a PayloadRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Value>,
}

#[derive(Serialize)]
struct Recipient<'a> {
    kind: &'static str,
    id: &'a PrincipalId,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
}

/// An instant, however it was spelled: microseconds as text, exact where a JSON number might not be.
struct Instant(Timestamp);

impl Serialize for Instant {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.as_micros())
    }
}

/// The fingerprint of an event's body. Member order, white space and the spelling of texts, numbers and instants make no difference.
///
/// # Errors
/// When the payload cannot be read as JSON values: a number that no double holds.
pub(crate) fn fingerprint(event: &NewEvent) -> serde_json::Result<BodyHash> {
    let payload = event.payload.as_ref().map(|payload| serde_json::from_str(payload.get())).transpose()?;
    let recipients = event.recipients.iter();
    let published = Published {
        event_type: &event.event_type,
        channel: event.channel.as_ref(),
        audience: &event.audience,
        recipients: recipients.map(|to| Recipient { kind: "agent", id: &to.id, queue: to.queue.as_ref().map(QueueName::as_str) }).collect(),
        priority: event.priority,
        available_at: event.available_at.map(Instant),
        expires_at: event.expires_at.map(Instant),
        max_attempts: event.max_attempts,
        kind: event.kind.as_deref(),
        source: event.source.as_deref(),
        summary: event.summary.as_deref(),
        correlation: event.correlation.as_ref(),
        payload_ref: event.payload_ref.as_ref(),
        payload,
    };
    let canonical = serde_json_canonicalizer::to_vec(&published)?;
    let mut hash = BodyHash::default();
    hash.copy_from_slice(digest::digest(&digest::SHA256, &canonical).as_ref());
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use domain::{EventType, Timestamp};
    use serde_json::value::RawValue;

    use super::fingerprint;
    use crate::NewEvent;

    fn event(payload: &str) -> NewEvent {
        let payload = RawValue::from_string(payload.to_owned()).unwrap();
        NewEvent { payload: Some(payload), ..NewEvent::new(EventType::parse("a.b").unwrap()) }
    }

    fn same(left: &str, right: &str) -> bool {
        fingerprint(&event(left)).unwrap() == fingerprint(&event(right)).unwrap()
    }

    #[test]
    fn the_spelling_of_a_body_makes_no_difference() {
        assert!(same(r#"{"a":1,"b":[true,"\u00e4"]}"#, "{ \"b\" : [ true, \"ä\" ],\n \"a\" : 1.0 }"));
        assert!(same(r#"{"n":1e2}"#, r#"{"n":100}"#));
        assert!(same(r#"{"n":0.000001}"#, r#"{"n":1e-6}"#));
        assert!(same(r#"{"n":-0}"#, r#"{"n":0}"#));
        assert!(same(r#"{"n":1e21}"#, r#"{"n":1000000000000000000000}"#));
        assert!(same(r#"{"n":333333333.33333329}"#, r#"{"n":333333333.3333333}"#));
    }

    #[test]
    fn another_body_has_another_fingerprint() {
        for (left, right) in
            [(r#"{"a":1}"#, r#"{"a":2}"#), (r#"{"a":"1"}"#, r#"{"a":1}"#), ("{}", r#"{"a":null}"#), (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#)]
        {
            assert!(!same(left, right), "{left} {right}");
        }
        let timed = |micros| NewEvent { available_at: Some(Timestamp::from_micros(micros)), ..event("{}") };
        assert_ne!(fingerprint(&timed(1)).unwrap(), fingerprint(&timed(2)).unwrap());
        assert_ne!(fingerprint(&timed(1)).unwrap(), fingerprint(&event("{}")).unwrap());
    }

    #[test]
    fn a_number_that_no_double_holds_is_an_error() {
        assert!(fingerprint(&event(r#"{"n":1e400}"#)).is_err());
    }
}
