//! Rules that hold for any input.

use domain::{Actor, ActorKind, Seq};
use proptest::prelude::*;
use protocol::{
    ClientFrame, CloudEventsMode, EventEnvelope, EventInput, EventPage, FrameFault, InvalidBody, PublishLimits, ServerFrame, Summary,
    parse_cloudevents, parse_publish, write_event_page,
};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::golden::{at, epoch, event_id, principal};

fn limits() -> PublishLimits {
    PublishLimits { max_events: 100, max_payload_bytes: 1 << 16, max_depth: 32, ..crate::publish::limits() }
}

/// JSON values with texts that need escaping.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(any::<String>(), value(), 0..6).prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// Texts that are nearly publish requests: pieces of them in any order.
fn nearly_a_request() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\"type\"",
        "\"a.b\"",
        "\"events\"",
        "\"payload\"",
        "\"audience\"",
        "\"correlation\"",
        "\"recipients\"",
        "{\"type\":\"a\"}",
        "null",
        "1",
        "-1e999",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"op\"",
        "\"ack\"",
        "\"seq\"",
        "\"x\"",
        "\"specversion\"",
        "\"1.0\"",
        "\"source\"",
        "\"id\"",
        "\"data\"",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Whether a text holds the escape of NUL, judged by another reader.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(elements) => elements.iter().any(holds_nul),
        Value::Object(members) => members.iter().any(|(name, member)| name.contains('\0') || holds_nul(member)),
        _ => false,
    }
}

fn every_reader_survives(bytes: &[u8]) {
    let limits = limits();
    check_outcome(parse_publish(bytes, &limits));
    for mode in [CloudEventsMode::Structured, CloudEventsMode::Batch] {
        check_outcome(parse_cloudevents(bytes, mode, &limits));
    }
    if let Err(fault) = ClientFrame::parse(bytes) {
        let stays = matches!(fault, FrameFault::OutOfRange { .. });
        assert_eq!(fault.close_code().is_none(), stays);
    }
    let _ = ServerFrame::parse(bytes);
}

fn check_outcome(outcome: Result<Vec<EventInput>, InvalidBody>) {
    match outcome {
        Ok(events) => {
            assert!(!events.is_empty());
            events.iter().for_each(check_kept);
        }
        Err(refusal) => {
            assert!(refusal.pointer.is_empty() || refusal.pointer.starts_with('/'), "{refusal:?}");
            assert!(refusal.pointer.len() <= InvalidBody::MAX_POINTER && !refusal.detail.is_empty(), "{refusal:?}");
        }
    }
}

/// What was taken can be read again by a reader that knows nothing of us.
fn check_kept(event: &EventInput) {
    if let Some(payload) = &event.payload {
        let read: Value = serde_json::from_str(payload.get()).unwrap();
        assert!(read.is_object() && !holds_nul(&read), "{payload}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        every_reader_survives(&bytes);
    }

    #[test]
    fn any_text_is_read_or_refused(text in nearly_a_request()) {
        every_reader_survives(text.as_bytes());
    }

    #[test]
    fn any_value_is_read_or_refused(value in value()) {
        every_reader_survives(value.to_string().as_bytes());
    }

    #[test]
    fn a_request_cut_or_altered_is_read_or_refused(payload in object(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = format!(r#"{{"events":[{{"type":"a","correlation":{{"k":"v"}},"payload":{payload}}}]}}"#).into_bytes();
        let at = at.index(body.len());
        every_reader_survives(&body[..at]);
        body[at] = byte;
        every_reader_survives(&body);
    }

    #[test]
    fn a_payload_is_kept_exactly_unless_it_holds_nul(payload in object()) {
        let text = payload.to_string();
        let read = parse_publish(format!(r#"{{"type":"a","payload":{text}}}"#).as_bytes(), &limits());
        if holds_nul(&payload) {
            let refusal = read.unwrap_err();
            prop_assert!(refusal.pointer.starts_with("/payload"), "{:?}", refusal);
        } else {
            let events = read.unwrap();
            prop_assert_eq!(events[0].payload.as_deref().map(RawValue::get), Some(text.as_str()));
        }
    }

    #[test]
    fn a_pointer_of_a_refused_payload_leads_to_the_fault(path in prop::collection::vec("[a-z/~]{1,4}", 1..6)) {
        let mut value = Value::from("\0");
        for name in path.iter().rev() {
            value = serde_json::json!({"fine": 1, (name): value});
        }
        let refusal = parse_publish(serde_json::json!({"type": "a", "payload": value}).to_string().as_bytes(), &limits()).unwrap_err();
        let found = value.pointer(refusal.pointer.strip_prefix("/payload").unwrap());
        prop_assert_eq!(found, Some(&Value::from("\0")), "{}", refusal.pointer);
    }

    #[test]
    fn an_encoded_body_reads_back_as_the_envelope(payload in object(), seq in 1..=Seq::MAX.get(), summary in "\\PC{1,40}") {
        let event_type = domain::EventType::parse("a.b").unwrap();
        let actor = Actor { kind: ActorKind::App, id: principal("feeder") };
        let payload = RawValue::from_string(payload.to_string()).unwrap();
        let summary = Summary::parse(&summary).ok();
        let mut parts = domain::EnvelopeParts::new(event_id(), &event_type, at("2026-07-12T16:22:03.123Z"), &actor);
        parts.payload = Some(&payload);
        parts.summary = summary.as_ref().map(Summary::as_str);
        let mut text = format!(r#"{{"seq":{seq},"#).into_bytes();
        text.extend_from_slice(&domain::encode_body(&parts).unwrap());
        let envelope: EventEnvelope = serde_json::from_slice(&text).unwrap();
        prop_assert_eq!((envelope.seq.get(), envelope.id, &envelope.event_type), (seq, event_id(), &event_type));
        prop_assert_eq!(envelope.payload.as_deref().map(RawValue::get), Some(payload.get()));
        prop_assert_eq!(envelope.summary.as_deref(), summary.as_ref().map(Summary::as_str));
        let written = serde_json::to_vec(&envelope).unwrap();
        prop_assert_eq!(&written, &text);
        let mut page = Vec::new();
        write_event_page(&mut page, [&text, &text], Seq::MAX, Seq::MAX, epoch(), false);
        let page: EventPage = serde_json::from_slice(&page).unwrap();
        prop_assert!(page.events.iter().all(|event| event.get().as_bytes() == text));
    }

    #[test]
    fn a_summary_is_always_one_printable_line(text in "(?s).{0,220}") {
        if let Ok(summary) = Summary::parse(&text) {
            let line = summary.as_str();
            prop_assert!(!line.is_empty() && line.trim() == line && line.chars().count() <= Summary::MAX_CHARS);
            prop_assert!(!line.chars().any(char::is_control) && !line.contains("  "));
            prop_assert_eq!(Summary::parse(line), Ok(summary.clone()));
        }
    }
}
