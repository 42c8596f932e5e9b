//! Events: how the server writes them once, and how clients read them.

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::{
    Actor, ActorKind, Audience, ChannelRef, DeduplicationKey, DeliveryFields, EnvelopeParts, Event, EventOrigin, EventType, PayloadRef,
    Priority, Seq, encode_body,
};
use protocol::{EventEnvelope, EventHead, EventPage, write_event_page};
use serde_json::value::RawValue;

use self::bytes_of::raw;
use crate::golden::{at, check, epoch, event_id, principal, read, seq};

mod bytes_of {
    use serde_json::value::RawValue;

    pub(super) fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }
}

fn stored(seq: u64, body: Bytes) -> Event {
    let (event_type, created_at) = (EventType::parse("message.created").unwrap(), at("2026-07-12T16:22:03.123Z"));
    let (id, audience) = (event_id(), Audience::default());
    Event::new(Seq::new(seq).unwrap(), id, event_type, None, audience, EventOrigin::Published, created_at, body)
}

/// The example of the design page, with every member that can be given.
fn full_body() -> Bytes {
    let event_type = EventType::parse("message.created").unwrap();
    let actor = Actor { kind: ActorKind::Person, id: principal("sam") };
    let channel = ChannelRef::parse("support/general").unwrap();
    let audience = [principal("agent_alpha")];
    let key = DeduplicationKey::parse("msg:room_7:920155").unwrap();
    let correlation = BTreeMap::from([("meeting_room_id".to_owned(), "room_7".to_owned())]);
    let payload_ref = PayloadRef { kind: "meeting_room_message".to_owned(), id: "920155".to_owned() };
    let payload = raw(r#"{ "text": "…",  "n": 1.0 }"#);
    let mut parts = EnvelopeParts::new(event_id(), &event_type, at("2026-07-12T16:22:03.123Z"), &actor);
    parts.channel = Some(&channel);
    parts.audience = &audience;
    parts.priority = Some(Priority::Normal);
    parts.deduplication_key = Some(&key);
    parts.correlation = Some(&correlation);
    parts.payload_ref = Some(&payload_ref);
    parts.kind = Some("message");
    parts.source = Some("https://rooms.example");
    parts.summary = Some("Sam wrote");
    parts.expires_at = Some(at("2026-07-13T00:00:00Z"));
    parts.payload = Some(&payload);
    encode_body(&parts).unwrap()
}

fn smallest_body() -> Bytes {
    let event_type = EventType::parse("tick").unwrap();
    let actor = Actor { kind: ActorKind::Server, id: principal("server") };
    encode_body(&EnvelopeParts::new(event_id(), &event_type, at("2026-07-12T16:22:03.123Z"), &actor)).unwrap()
}

fn text_of(body: &[u8]) -> String {
    std::str::from_utf8(body).unwrap().to_owned()
}

#[test]
fn a_body_is_the_envelope_without_brace_and_seq_in_the_agreed_order() {
    let body = text_of(&full_body());
    check("event/body_full.txt", &body);
    check("event/body_smallest.txt", &text_of(&smallest_body()));
}

#[test]
fn an_envelope_reads_back_as_it_was_made() {
    let event = stored(184_392, full_body());
    let text = String::from_utf8(event.envelope(DeliveryFields::default()).to_vec()).unwrap();
    check("event/envelope.json", &text);
    let envelope = EventEnvelope::parse(&raw(&text)).unwrap();
    assert_eq!(serde_json::to_string(&envelope).unwrap(), text);
    assert_eq!(envelope.payload.as_deref().map(RawValue::get), Some(r#"{ "text": "…",  "n": 1.0 }"#));
    assert!(!envelope.redelivered);
    let again = String::from_utf8(event.envelope(DeliveryFields { redelivered: true }).to_vec()).unwrap();
    check("event/envelope_redelivered.json", &again);
    assert!(EventEnvelope::parse(&raw(&again)).unwrap().redelivered);
    for (text, redelivered) in [(text, false), (again, true)] {
        assert_eq!(EventHead::parse(&raw(&text)).unwrap(), EventHead { seq: seq(184_392), id: event_id(), redelivered });
    }
}

#[test]
fn clients_ignore_members_and_words_of_an_event_that_are_new() {
    let text = r#"{"seq":1,"id":"0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70","type":"a","created_at":"2026-07-12T16:22:03.123Z",
        "actor":{"kind":"robot","id":"r2","model":1},"priority":"someday","payload_ref":{"kind":"k","id":"i","x":1},"trace_context":{"a":[]}}"#;
    let envelope = EventEnvelope::parse(&raw(text)).unwrap();
    assert_eq!(envelope.actor.kind.as_str(), "robot");
    assert_eq!(envelope.priority.and_then(|priority| priority.known()), None);
}

#[test]
fn a_page_is_concatenated_and_reads_back() {
    let first = stored(7, smallest_body()).envelope(DeliveryFields::default());
    let second = stored(9, smallest_body()).envelope(DeliveryFields { redelivered: true });
    for (name, events, unproven) in [
        ("event/page.json", vec![first, second], false),
        ("event/page_empty.json", vec![], false),
        ("event/page_unproven.json", vec![], true),
    ] {
        let mut out = Vec::new();
        write_event_page(&mut out, &events, seq(12), seq(184_392), epoch(), unproven);
        check(name, std::str::from_utf8(&out).unwrap());
        let page: EventPage = serde_json::from_slice(&out).unwrap();
        assert_eq!((page.next_cursor, page.head_seq, page.sync_epoch), (seq(12), seq(184_392), epoch()));
        assert_eq!((page.events.len(), page.unproven), (events.len(), unproven));
        assert_eq!(serde_json::to_string(&page).unwrap(), read(name));
    }
}
