//! Problems, pages and consumers on the wire, and how bodies are refused.

use protocol::{
    ConsumerAck, ConsumerHolder, ConsumerItem, ConsumerState, HolderKind, InvalidBody, Page, Problem, ProblemCode, PublishResponse,
    PublishedEvent, PublishedItem, Reason, parse_body,
};

use crate::golden::{at, both_ways, consumer, epoch, event_id, principal, seq, session_id};

fn state() -> ConsumerState {
    ConsumerState {
        consumer: consumer(),
        acked_seq: seq(184_390),
        head_seq: seq(184_392),
        lag: 2,
        in_flight: Some(2),
        holder: Some(ConsumerHolder { kind: HolderKind::Rest.into(), gateway_session_id: None, taken_at: None }),
    }
}

#[test]
fn problems_are_rfc_9457_with_our_members() {
    let plain = Problem::new(ProblemCode::NotFound, "there is no such channel", "r-1");
    both_ways("problem/plain.json", &plain);
    let pointed = Problem::new(ProblemCode::ValidationFailed, "at least 1", "r-2").with_pointer("#query/limit");
    both_ways("problem/pointer.json", &pointed);
    let reasoned = Problem::new(ProblemCode::Forbidden, "this is for agents", "r-3").with_reason(Reason::SubjectKindNotAllowed);
    both_ways("problem/reason.json", &reasoned);
    let resync = Problem::new(ProblemCode::ResyncRequired, "the events after the position are gone", "r-4")
        .with_reason(Reason::Retention)
        .with_position(seq(184_392), seq(100_001), epoch());
    both_ways("problem/resync.json", &resync);
    let reset = Problem::new(ProblemCode::CursorResetRequired, "read the items afresh", "r-5").with_reset(
        seq(100_001),
        seq(184_392),
        epoch(),
        "/v1/inbox/items",
    );
    both_ways("problem/cursor_reset.json", &reset);
}

#[test]
fn clients_read_problems_with_words_and_members_that_are_new() {
    let text = r#"{"type":"urn:doorstep:problem:tired","title":"Tired","status":503,"code":"tired","detail":"later","reason":"night",
        "request_id":"r","mood":{"a":[1]}}"#;
    let problem: Problem = serde_json::from_str(text).unwrap();
    assert_eq!((problem.code.as_str(), problem.code.known()), ("tired", None));
    assert_eq!(problem.reason.map(|reason| reason.as_str().to_owned()).as_deref(), Some("night"));
}

#[test]
fn consumers_show_absent_members_as_absent() {
    both_ways("consumer/state_rest.json", &state());
    both_ways("consumer/state_free.json", &ConsumerState { in_flight: None, holder: None, ..state() });
    let holder = ConsumerHolder {
        kind: HolderKind::Gateway.into(),
        gateway_session_id: Some(session_id()),
        taken_at: Some(at("2026-07-12T16:20:00.000Z")),
    };
    let held = ConsumerState { in_flight: None, holder: Some(holder), ..state() };
    let item = ConsumerItem { agent: principal("agent_alpha"), state: held, updated_at: at("2026-07-12T16:22:04.000Z") };
    both_ways("consumer/page.json", &Page { items: vec![item.clone()], next_cursor: Some("ZGVmYXVsdA".to_owned()) });
    both_ways("consumer/last_page.json", &Page { items: vec![item], next_cursor: None });
    both_ways("consumer/ack.json", &ConsumerAck { seq: seq(184_392), sync_epoch: Some(epoch()) });
}

#[test]
fn publish_answers_say_what_became_of_each_event() {
    let event = |seq, deduplicated| PublishedEvent { id: event_id(), seq, deduplicated, scheduled: false, inbox: vec![] };
    let new = event(Some(seq(184_392)), false);
    let repeat = event(Some(seq(184_390)), true);
    let scheduled = PublishedEvent { scheduled: true, ..event(None, false) };
    let item = PublishedItem { recipient_id: principal("agent_alpha"), inbox_seq: seq(184_393) };
    let with_item = PublishedEvent { inbox: vec![item], ..event(Some(seq(184_393)), false) };
    both_ways("publish/response.json", &PublishResponse { events: vec![new, repeat, scheduled, with_item], head_seq: seq(184_393) });
}

#[test]
fn a_refused_body_says_where() {
    for (body, pointer, says) in [
        ("", "", "not JSON"),
        ("{", "", "not JSON"),
        (r#"{"seq":1} x"#, "", "not JSON"),
        ("[1]", "", "expected an acknowledgement"),
        ("null", "", "expected an acknowledgement"),
        ("{}", "/seq", "missing field"),
        (r#"{"seq":-1}"#, "/seq", "invalid value"),
        (r#"{"seq":1.5}"#, "/seq", "invalid type"),
        (r#"{"seq":"1"}"#, "/seq", "invalid type"),
        (r#"{"seq":null}"#, "/seq", "null"),
        (r#"{"seq":9007199254740992}"#, "/seq", "2^53"),
        (r#"{"seq":99999999999999999999}"#, "/seq", "invalid type"),
        (r#"{"seq":1,"sync_epoch":null}"#, "/sync_epoch", "null"),
        (r#"{"seq":1,"sync_epoch":"x"}"#, "/sync_epoch", "UUID"),
        (r#"{"seq":1,"a/b~c":2}"#, "/a~1b~0c", "unknown field"),
        (r#"{"seq":1,"seq":2}"#, "/seq", "duplicate field"),
    ] {
        let refusal = parse_body::<ConsumerAck>(body.as_bytes()).unwrap_err();
        assert_eq!((refusal.code, refusal.pointer.as_str()), (ProblemCode::ValidationFailed, pointer), "{body}: {refusal:?}");
        assert!(refusal.detail.contains(says), "{body}: {refusal:?}");
        assert!(!refusal.detail.contains(" at line ") || pointer.is_empty(), "{body}: {refusal:?}");
    }
    assert_eq!(parse_body::<ConsumerAck>(b"{\"seq\":\xff}").unwrap_err().detail, "not UTF-8 at byte 7");
    assert_eq!(parse_body::<ConsumerAck>(b" {\"seq\": 7 } ").unwrap().seq, seq(7));
}

#[test]
fn a_refusal_repeats_only_so_much_of_what_was_sent() {
    let long = "ü".repeat(100_000);
    for (body, pointer) in [
        (format!(r#"{{"seq":1,"{long}":1}}"#), ""),
        (format!(r#"{{"seq":"{long}"}}"#), "/seq"),
        (format!(r#"{{"seq":1,"sync_epoch":"{long}"}}"#), "/sync_epoch"),
    ] {
        let refusal = parse_body::<ConsumerAck>(body.as_bytes()).unwrap_err();
        assert_eq!(refusal.pointer, pointer);
        assert!(refusal.detail.chars().count() <= InvalidBody::MAX_DETAIL + 1, "{}", refusal.detail.len());
    }
    let refusal = InvalidBody::new(format!("/events/3/payload/{}/{}", "a".repeat(900), "b".repeat(900)), "deep inside");
    assert_eq!(refusal.pointer, format!("/events/3/payload/{}", "a".repeat(900)));
}
