//! Reading publish requests.

use protocol::{EventBatch, EventInput, InvalidBody, Priority, ProblemCode, PublishLimits, PublishRequest, parse_publish};
use serde_json::value::RawValue;

use crate::golden::{at, check, principal};

pub(crate) fn limits() -> PublishLimits {
    PublishLimits {
        max_events: 4,
        max_payload_bytes: 1024,
        max_depth: 8,
        max_audience: 3,
        max_recipients: 2,
        max_correlation_entries: 16,
        max_correlation_chars: 256,
    }
}

fn refusal(body: &str) -> InvalidBody {
    match parse_publish(body.as_bytes(), &limits()) {
        Ok(events) => panic!("taken: {body}: {events:?}"),
        Err(refusal) => refusal,
    }
}

fn one(body: &str) -> EventInput {
    let mut events = parse_publish(body.as_bytes(), &limits()).unwrap_or_else(|refusal| panic!("{body}: {refusal:?}"));
    assert_eq!(events.len(), 1);
    events.remove(0)
}

const FULL: &str = r#"{"type":"message.created","channel":"support/general","audience":["agent_alpha"],"recipients":[{"kind":"agent","id":"agent_beta","queue":"mail"}],"priority":"high","available_at":"2026-07-12T16:22:03.123Z","expires_at":"2026-07-13T16:22:03.123Z","max_attempts":3,"kind":"message","source":"rooms","summary":"Sam wrote","deduplication_key":"msg:room_7:920155","correlation":{"meeting_room_id":"room_7"},"payload_ref":{"kind":"meeting_room_message","id":"920155"},"payload":{ "text": "…" }}"#;

#[test]
fn every_member_is_read_and_the_payload_kept_verbatim() {
    let event = one(FULL);
    assert_eq!(event.event_type.as_str(), "message.created");
    assert_eq!(event.channel.as_ref().map(domain::ChannelRef::as_str), Some("support/general"));
    assert_eq!(event.audience.as_deref(), Some(&[principal("agent_alpha")][..]));
    let recipients = event.recipients.as_deref().unwrap();
    assert_eq!((recipients[0].id.as_str(), recipients[0].queue.as_ref().map(protocol::QueueName::as_str)), ("agent_beta", Some("mail")));
    assert_eq!(event.priority, Some(Priority::High));
    assert_eq!(event.available_at, Some(at("2026-07-12T16:22:03.123Z")));
    assert_eq!(event.correlation.as_ref().and_then(|correlation| correlation.get("meeting_room_id")), Some("room_7"));
    assert_eq!(event.payload.as_deref().map(RawValue::get), Some(r#"{ "text": "…" }"#));
}

#[test]
fn clients_write_what_servers_read() {
    let event = one(FULL);
    check("publish/event.json", &serde_json::to_string(&PublishRequest::One(Box::new(event.clone()))).unwrap());
    let batch = PublishRequest::Several(EventBatch { events: vec![event.clone(), EventInput::new(event.event_type)] });
    let text = serde_json::to_string(&batch).unwrap();
    check("publish/batch.json", &text);
    assert_eq!(parse_publish(text.as_bytes(), &limits()).unwrap().len(), 2);
}

#[test]
fn a_batch_is_recognised_however_it_is_written() {
    for body in [
        r#"{"events":[{"type":"a"},{"type":"b"}]}"#,
        " {\n \"events\" : [ {\"type\":\"a\"} , {\"type\":\"b\"} ] }\n",
        r#"{"\u0065vents":[{"type":"a"},{"type":"b"}]}"#,
    ] {
        let types: Vec<_> =
            parse_publish(body.as_bytes(), &limits()).unwrap().into_iter().map(|event| event.event_type.to_string()).collect();
        assert_eq!(types, ["a", "b"], "{body}");
    }
}

#[test]
fn a_refusal_points_at_the_member() {
    for (body, pointer) in [
        ("", ""),
        ("nonsense", ""),
        (r#"{"type":"a""#, ""),
        (r#"{"type":"a"} {}"#, ""),
        (r#"{"type":"a",}"#, ""),
        ("[]", ""),
        (r#"[{"type":"a"}]"#, ""),
        (r#""a""#, ""),
        ("null", ""),
        ("{}", "/type"),
        (r#"{"type":"A"}"#, "/type"),
        (r#"{"type":null}"#, "/type"),
        (r#"{"type":7}"#, "/type"),
        (r#"{"type":"a","type":"b"}"#, "/type"),
        (r#"{"type":"a","chanel":"s/c"}"#, "/chanel"),
        (r#"{"type":"a","seq":1}"#, "/seq"),
        (r#"{"type":"a","channel":null}"#, "/channel"),
        (r#"{"type":"a","channel":"s"}"#, "/channel"),
        (r#"{"type":"a","audience":"x"}"#, "/audience"),
        (r#"{"type":"a","audience":["x","Y"]}"#, "/audience/1"),
        (r#"{"type":"a","audience":[null]}"#, "/audience/0"),
        (r#"{"type":"a","audience":["a","b","c","d"]}"#, "/audience"),
        (r#"{"type":"a","recipients":[{"kind":"agent","id":"x"},{"kind":"person","id":"x"}]}"#, "/recipients/1/kind"),
        (r#"{"type":"a","recipients":[{"kind":"agent"}]}"#, "/recipients/0/id"),
        (r#"{"type":"a","recipients":[["agent","x"]]}"#, "/recipients/0"),
        (r#"{"type":"a","recipients":[{"kind":"agent","id":"x","queue":null}]}"#, "/recipients/0/queue"),
        (r#"{"type":"a","recipients":[{"kind":"agent","id":"x"},{"kind":"agent","id":"y"},{"kind":"agent","id":"z"}]}"#, "/recipients"),
        (r#"{"type":"a","priority":"soon"}"#, "/priority"),
        (r#"{"type":"a","priority":{"low":null}}"#, "/priority"),
        (r#"{"type":"a","available_at":"tomorrow"}"#, "/available_at"),
        (r#"{"type":"a","available_at":1752337323}"#, "/available_at"),
        (r#"{"type":"a","max_attempts":0}"#, "/max_attempts"),
        (r#"{"type":"a","max_attempts":-1}"#, "/max_attempts"),
        (r#"{"type":"a","max_attempts":1e99}"#, "/max_attempts"),
        (r#"{"type":"a","max_attempts":99999999999999999999}"#, "/max_attempts"),
        (r#"{"type":"a","kind":""}"#, "/kind"),
        (r#"{"type":"a","source":"a\u0000"}"#, "/source"),
        (r#"{"type":"a","source":"\ud800"}"#, "/source"),
        (r#"{"type":"a","summary":" \n "}"#, "/summary"),
        (r#"{"type":"a","deduplication_key":""}"#, "/deduplication_key"),
        (r#"{"type":"a","correlation":[]}"#, "/correlation"),
        (r#"{"type":"a","correlation":{"x":1}}"#, "/correlation/x"),
        (r#"{"type":"a","correlation":{"x":"1","x":"2"}}"#, "/correlation/x"),
        (r#"{"type":"a","correlation":{"":"1"}}"#, "/correlation/"),
        (r#"{"type":"a","correlation":{"x":"\u0000"}}"#, "/correlation/x"),
        (r#"{"type":"a","payload_ref":["k","i"]}"#, "/payload_ref"),
        (r#"{"type":"a","payload_ref":{"kind":"k"}}"#, "/payload_ref/id"),
        (r#"{"type":"a","payload_ref":{"kind":"k","id":"i","x":1}}"#, "/payload_ref/x"),
        (r#"{"type":"a","payload":null}"#, "/payload"),
        (r#"{"type":"a","payload":[]}"#, "/payload"),
        (r#"{"type":"a","payload":"{}"}"#, "/payload"),
        (r#"{"type":"a","payload":7}"#, "/payload"),
        (r#"{"events":[]}"#, "/events"),
        (r#"{"events":null}"#, "/events"),
        (r#"{"events":{}}"#, "/events"),
        (r#"{"events":[[]]}"#, "/events/0"),
        (r#"{"events":[null]}"#, "/events/0"),
        (r#"{"events":[{"type":"a"},{"type":"b"},{"type":"c"},{}]}"#, "/events/3/type"),
        (r#"{"events":[{"type":"a"},{"type":"b","chanel":"s/c"}]}"#, "/events/1/chanel"),
        (r#"{"events":[{"type":"a"},{"type":"b","payload":[]}]}"#, "/events/1/payload"),
        (r#"{"events":[{"type":"a"},{"type":"b","correlation":{"x":1}}]}"#, "/events/1/correlation/x"),
        (r#"{"events":[{"type":"a"},{"events":[]}]}"#, "/events/1/events"),
        (r#"{"events":[{"type":"a"}],"head":1}"#, "/head"),
        (r#"{"head":1,"events":[{"type":"a"}]}"#, "/head"),
        (r#"{"type":"a","events":[{"type":"a"}]}"#, "/type"),
        (r#"{"events":[{"type":"a"}],"events":[{"type":"a"}]}"#, "/events"),
        (r#"{"events":[{"type":"a"},{"type":"a"},{"type":"a"},{"type":"a"},{"type":"a"}]}"#, "/events"),
    ] {
        let refusal = refusal(body);
        assert_eq!((refusal.code, refusal.pointer.as_str()), (ProblemCode::ValidationFailed, pointer), "{body}: {refusal:?}");
        assert!(!refusal.detail.is_empty(), "{body}");
    }
}

#[test]
fn bounds_of_a_correlation_are_those_given() {
    let entries = |count: usize| (0..count).map(|n| format!(r#""k{n}":"v""#)).collect::<Vec<_>>().join(",");
    assert_eq!(one(&format!(r#"{{"type":"a","correlation":{{{}}}}}"#, entries(16))).correlation.map(|c| c.len()), Some(16));
    assert_eq!(refusal(&format!(r#"{{"type":"a","correlation":{{{}}}}}"#, entries(17))).pointer, "/correlation");
    assert!(one(&format!(r#"{{"type":"a","correlation":{{"k":"{}"}}}}"#, "ü".repeat(256))).correlation.is_some());
    assert_eq!(refusal(&format!(r#"{{"type":"a","correlation":{{"k":"{}"}}}}"#, "x".repeat(257))).pointer, "/correlation/k");
}

#[test]
fn payloads_that_no_reader_can_read_again_are_refused_where_the_fault_is() {
    for (payload, pointer, says) in [
        (r#"{"a":"\u0000"}"#, "/payload/a", "U+0000"),
        (r#"{"\u0000":1}"#, "/payload", "U+0000"),
        (r#"{"a":[1,{"b/c":"\ud800"}]}"#, "/payload/a/1/b~1c", "surrogate"),
        (r#"{"a":"\udc00\ud800"}"#, "/payload/a", "surrogate"),
        (r#"{"a":[0,1e400]}"#, "/payload/a/1", "IEEE 754"),
        (r#"{"a":-1E999}"#, "/payload/a", "IEEE 754"),
        (r#"{"a":[[[[[[[[]]]]]]]]}"#, "/payload/a", "deep"),
    ] {
        let refusal = refusal(&format!(r#"{{"type":"a","payload":{payload}}}"#));
        assert!(refusal.pointer.starts_with(pointer), "{payload}: {refusal:?}");
        assert!(refusal.detail.contains(says), "{payload}: {refusal:?}");
    }
    let long = "9".repeat(400);
    assert_eq!(refusal(&format!(r#"{{"type":"a","payload":{{"n":{long}}}}}"#)).pointer, "/payload/n");
    assert_eq!(
        refusal(&format!(r#"{{"events":[{{"type":"a"}},{{"type":"a","payload":{{"n":{long}}}}}]}}"#)).pointer,
        "/events/1/payload/n"
    );
}

#[test]
fn payloads_that_only_look_dangerous_are_kept() {
    for payload in [
        r#"{"a":"\\u0000","b":"\ud83d\ude00","c":"1e999","d":"[[[[[[[[[[[["}"#,
        r#"{"n":[1e308,-1E-999,0.1e+2,123456789012345678901234567890]}"#,
        r#"{"a":null,"a":{"a":null}}"#,
        r#"{"a":[[[[[[[]]]]]]]}"#,
        "{\n\t\"a\" : 1\r\n}",
        "{}",
    ] {
        let event = one(&format!(r#"{{"type":"a","payload":{payload}}}"#));
        assert_eq!(event.payload.as_deref().map(RawValue::get), Some(payload));
    }
}

#[test]
fn a_payload_above_its_bound_is_too_large_and_one_at_it_is_not() {
    let payload = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    assert_eq!(payload(1024).len(), 1024);
    assert!(one(&format!(r#"{{"type":"a","payload":{}}}"#, payload(1024))).payload.is_some());
    let refusal = refusal(&format!(r#"{{"events":[{{"type":"a"}},{{"type":"a","payload":{}}}]}}"#, payload(1025)));
    assert_eq!((refusal.code, refusal.pointer.as_str()), (ProblemCode::PayloadTooLarge, "/events/1/payload"));
}

#[test]
fn nesting_without_end_is_refused_and_not_followed() {
    for body in ["[".repeat(100_000), "{\"a\":".repeat(100_000), format!(r#"{{"type":"a","payload":{}"#, "{\"a\":".repeat(100_000))] {
        assert_eq!(refusal(&body).code, ProblemCode::ValidationFailed);
    }
    let deep = format!(r#"{{"type":"a","x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(refusal(&deep).pointer, "/x");
    let deep = format!(r#"{{"type":"a","audience":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(refusal(&deep).pointer, "/audience/0");
    let wide = PublishLimits { max_payload_bytes: 1 << 20, ..limits() };
    let deep = format!(r#"{{"type":"a","payload":{{"a":{}{}}}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let refusal = parse_publish(deep.as_bytes(), &wide).unwrap_err();
    assert!(refusal.detail.contains("deep"), "{refusal:?}");
}

#[test]
fn a_body_that_is_not_utf_8_is_refused() {
    let refusal = parse_publish(b"{\"type\":\"a\xff\"}", &limits()).unwrap_err();
    assert_eq!((refusal.pointer.as_str(), refusal.detail.as_str()), ("", "not UTF-8 at byte 10"));
}
