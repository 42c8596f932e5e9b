//! Frames of the gateway, both ways.

use domain::{Audience, ConsumerName, DeliveryFields, Event, EventOrigin, EventType, QueueName, TenantId};
use protocol::{
    Ack, CatchupComplete, ClientFrame, ClientOp, CloseCode, Cursor, Dispatch, EventEnvelope, FrameFault, GatewayError, Heartbeat,
    HeartbeatAck, Hello, Identify, InboxUpdated, PROTOCOL, ProblemCode, QueueDigest, Ready, ReadyPrincipal, Reason, Resume, Resumed,
    ResyncReason, ResyncRequired, Secret, ServerFrame, ServerOp, Vocabulary,
};
use serde_json::value::RawValue;

use crate::golden::{AGENT, at, check, consumer, epoch, event_id, principal, read, seq, session_id};

fn client_frames() -> Vec<(&'static str, ClientFrame)> {
    let identify = Identify {
        token: Some(Secret::new("dsp_agent_x".to_owned())),
        protocol: Some(PROTOCOL),
        consumer: Some(ConsumerName::parse("work-2").unwrap()),
        cursor: Some(seq(184_390)),
        sync_epoch: Some(epoch()),
        inbox_hints: Some(true),
    };
    let resume = Resume { token: None, gateway_session_id: session_id(), cursor: Some(seq(184_390)) };
    vec![
        ("frames/client/identify.json", ClientFrame::Identify(identify)),
        ("frames/client/identify_bare.json", ClientFrame::Identify(Identify::default())),
        ("frames/client/resume.json", ClientFrame::Resume(resume)),
        ("frames/client/ack.json", ClientFrame::Ack(Ack { seq: seq(184_392) })),
        ("frames/client/heartbeat.json", ClientFrame::Heartbeat(Heartbeat {})),
    ]
}

fn server_frames() -> Vec<(&'static str, ServerFrame)> {
    let ready = Ready {
        gateway_session_id: session_id(),
        principal: ReadyPrincipal { kind: AGENT.into(), id: principal("agent_alpha") },
        head_seq: seq(184_392),
        sync_epoch: epoch(),
        consumer: Some(consumer()),
        acked_seq: Some(seq(184_390)),
        max_inflight_events: Some(256),
        ack_timeout_ms: Some(60_000),
        resume_window_ms: 120_000,
    };
    let ready_person = Ready { consumer: None, acked_seq: None, max_inflight_events: None, ack_timeout_ms: None, ..ready.clone() };
    let event = RawValue::from_string(read("event/envelope.json")).unwrap();
    let resync =
        ResyncRequired { reason: ResyncReason::Retention.into(), head_seq: seq(184_392), sync_epoch: epoch(), floor_seq: seq(100_001) };
    let signal = InboxUpdated {
        signal_type: "inbox.updated".to_owned(),
        tenant_id: TenantId::parse("default").unwrap(),
        recipient_id: principal("agent_alpha"),
        head_seq: seq(184_392),
        sync_epoch: None,
        approximate_unacked: 3,
        resync: false,
        queues: Vec::new(),
        delivery_id: "0197f0ab-9e45-7a99-9b62-af4c8ebf6055".to_owned(),
        sent_at_utc: at("2026-07-12T16:22:03.123Z"),
    };
    let returned = InboxUpdated {
        sync_epoch: Some(epoch()),
        resync: true,
        queues: vec![QueueDigest { queue: QueueName::parse("inbox").unwrap(), available: 2 }],
        ..signal.clone()
    };
    let refused = GatewayError {
        refused_op: "ack".to_owned(),
        code: ProblemCode::ValidationFailed.into(),
        detail: "a seq lies between 0 and the head".to_owned(),
        pointer: Some("/seq".to_owned()),
        reason: None,
    };
    let forbidden = GatewayError {
        code: ProblemCode::Forbidden.into(),
        detail: "this is for agents".to_owned(),
        pointer: None,
        reason: Some(Reason::SubjectKindNotAllowed.into()),
        ..refused.clone()
    };
    vec![
        ("frames/server/hello.json", ServerFrame::Hello(Hello { heartbeat_interval_ms: 30_000, protocol: PROTOCOL })),
        ("frames/server/ready_agent.json", ServerFrame::Ready(ready)),
        ("frames/server/ready_person.json", ServerFrame::Ready(ready_person)),
        ("frames/server/resumed.json", ServerFrame::Resumed(Resumed { head_seq: seq(184_392), acked_seq: Some(seq(184_390)) })),
        ("frames/server/dispatch.json", ServerFrame::Dispatch(Dispatch { event })),
        ("frames/server/cursor.json", ServerFrame::Cursor(Cursor { seq: seq(184_391) })),
        ("frames/server/catchup_complete.json", ServerFrame::CatchupComplete(CatchupComplete { head_seq: seq(184_392) })),
        ("frames/server/resync_required.json", ServerFrame::ResyncRequired(resync)),
        ("frames/server/inbox_updated.json", ServerFrame::InboxUpdated(signal)),
        ("frames/server/inbox_updated_resync.json", ServerFrame::InboxUpdated(returned)),
        ("frames/server/heartbeat_ack.json", ServerFrame::HeartbeatAck(HeartbeatAck {})),
        ("frames/server/error.json", ServerFrame::Error(refused)),
        ("frames/server/error_reason.json", ServerFrame::Error(forbidden)),
    ]
}

#[test]
fn client_frames_are_written_as_agreed_and_read_back() {
    let frames = client_frames();
    for (name, frame) in &frames {
        check(name, &frame.encode());
        assert_eq!(ClientFrame::parse(read(name)).as_ref(), Ok(frame), "{name}");
    }
    for &op in ClientOp::ALL {
        assert!(frames.iter().any(|(_, frame)| frame.op() == op), "{op} has no golden file");
    }
}

#[test]
fn server_frames_are_written_as_agreed_and_read_back() {
    let frames = server_frames();
    for (name, frame) in &frames {
        check(name, &frame.encode());
        assert_eq!(ServerFrame::parse(read(name)).unwrap().encode(), read(name), "{name}");
    }
    for &op in ServerOp::ALL {
        let opens = format!(r#"{{"op":"{op}""#);
        assert!(frames.iter().any(|(_, frame)| frame.encode().starts_with(&opens)), "{op} has no golden file");
    }
}

#[test]
fn a_dispatch_of_the_log_is_a_dispatch_of_the_protocol() {
    let (created_at, event_type) = (at("2026-07-12T16:22:03.123Z"), EventType::parse("tick").unwrap());
    let body = read("event/body_smallest.txt");
    let event =
        Event::new(seq(7), event_id(), event_type, None, Audience::default(), EventOrigin::Server, created_at, body.into_bytes().into());
    for redelivered in [false, true] {
        let ServerFrame::Dispatch(dispatch) = ServerFrame::parse(event.dispatch_frame(DeliveryFields { redelivered })).unwrap() else {
            panic!("not a dispatch")
        };
        let envelope = EventEnvelope::parse(&dispatch.event).unwrap();
        assert_eq!((envelope.seq, envelope.id, envelope.redelivered), (seq(7), event_id(), redelivered));
    }
}

#[test]
fn clients_read_a_dispatch_however_it_is_written() {
    for text in [
        r#"{"op":"dispatch","event":{"seq":1},"later":true}"#,
        r#" { "event" : {"seq":1}, "op" : "dispatch" } "#,
        r#"{"op":"\u0064ispatch","event":{"seq":1}}"#,
    ] {
        let ServerFrame::Dispatch(dispatch) = ServerFrame::parse(text).unwrap() else { panic!("{text}") };
        assert_eq!(dispatch.event.get(), r#"{"seq":1}"#);
    }
}

#[test]
fn clients_ignore_ops_and_members_and_words_that_are_new() {
    let ServerFrame::Unknown { op } = ServerFrame::parse(r#"{"op":"weather","rain":[1,2]}"#).unwrap() else { panic!("known") };
    assert_eq!(op, "weather");
    let hello = ServerFrame::parse(r#"{"heartbeat_interval_ms":1,"protocol":2,"op":"hello","motd":{"x":null}}"#).unwrap();
    assert!(matches!(hello, ServerFrame::Hello(Hello { protocol: 2, .. })));
    let text = read("frames/server/resync_required.json").replace("retention", "full_moon");
    let ServerFrame::ResyncRequired(resync) = ServerFrame::parse(text).unwrap() else { panic!("not a resync") };
    assert_eq!((resync.reason.known(), resync.reason.as_str()), (None, "full_moon"));
    for broken in ["", "[]", "{}", r#"{"op":1}"#, r#"{"op":"cursor"}"#, r#"{"op":"cursor","seq":-1}"#] {
        assert!(ServerFrame::parse(broken).is_err(), "{broken}");
    }
}

#[test]
fn an_unknown_op_is_told_from_an_invalid_frame() {
    for (text, code) in [
        (r#"{"op":"dance"}"#, CloseCode::UnknownOp),
        (r#"{"op":"dance","to":["the",{"end":null}]}"#, CloseCode::UnknownOp),
        (r#"{"op":""}"#, CloseCode::UnknownOp),
        (r#"{"op":"Ack","seq":1}"#, CloseCode::UnknownOp),
        (r#"{"op":"dispatch","event":{}}"#, CloseCode::UnknownOp),
        ("", CloseCode::InvalidFrame),
        ("ack", CloseCode::InvalidFrame),
        ("[]", CloseCode::InvalidFrame),
        (r#"["ack"]"#, CloseCode::InvalidFrame),
        (r#""ack""#, CloseCode::InvalidFrame),
        ("{}", CloseCode::InvalidFrame),
        (r#"{"op":null}"#, CloseCode::InvalidFrame),
        (r#"{"op":1}"#, CloseCode::InvalidFrame),
        (r#"{"op":"heartbeat""#, CloseCode::InvalidFrame),
        (r#"{"op":"heartbeat"}{"op":"heartbeat"}"#, CloseCode::InvalidFrame),
        (r#"{"op":"heartbeat","op":"heartbeat"}"#, CloseCode::InvalidFrame),
    ] {
        let fault = ClientFrame::parse(text).unwrap_err();
        assert_eq!(fault.close_code(), Some(code), "{text}: {fault:?}");
    }
    assert_eq!(ClientFrame::parse(b"\xff").unwrap_err().close_code(), Some(CloseCode::InvalidFrame));
}

#[test]
fn an_unknown_op_is_repeated_at_bounded_length() {
    let text = format!(r#"{{"op":"{}"}}"#, "ü".repeat(500));
    let Err(FrameFault::UnknownOp { op }) = ClientFrame::parse(text) else { panic!("known") };
    assert_eq!(op, "ü".repeat(32));
}

#[test]
fn frames_from_clients_are_read_strictly() {
    for (text, op, pointer) in [
        (r#"{"op":"heartbeat","now":1}"#, ClientOp::Heartbeat, "/now"),
        (r#"{"op":"ack"}"#, ClientOp::Ack, "/seq"),
        (r#"{"op":"ack","seq":"7"}"#, ClientOp::Ack, "/seq"),
        (r#"{"op":"ack","seq":null}"#, ClientOp::Ack, "/seq"),
        (r#"{"op":"ack","seq":1.5}"#, ClientOp::Ack, "/seq"),
        (r#"{"op":"ack","seq":7,"seq":8}"#, ClientOp::Ack, "/seq"),
        (r#"{"op":"ack","seq":7,"consumer":"a"}"#, ClientOp::Ack, "/consumer"),
        (r#"{"op":"identify","consumer":"No"}"#, ClientOp::Identify, "/consumer"),
        (r#"{"op":"identify","consumer":""}"#, ClientOp::Identify, "/consumer"),
        (r#"{"op":"identify","consumer":null}"#, ClientOp::Identify, "/consumer"),
        (r#"{"op":"identify","token":7}"#, ClientOp::Identify, "/token"),
        (r#"{"op":"identify","tokn":"x"}"#, ClientOp::Identify, "/tokn"),
        (r#"{"op":"identify","protocol":"1"}"#, ClientOp::Identify, "/protocol"),
        (r#"{"op":"identify","cursor":-1}"#, ClientOp::Identify, "/cursor"),
        (r#"{"op":"identify","cursor":9007199254740992}"#, ClientOp::Identify, "/cursor"),
        (r#"{"op":"identify","sync_epoch":"x"}"#, ClientOp::Identify, "/sync_epoch"),
        (r#"{"op":"identify","inbox_hints":1}"#, ClientOp::Identify, "/inbox_hints"),
        (r#"{"op":"resume"}"#, ClientOp::Resume, "/gateway_session_id"),
        (r#"{"op":"resume","gateway_session_id":"x"}"#, ClientOp::Resume, "/gateway_session_id"),
        (r#"{"op":"resume","gateway_session_id":"0197f0ab-5a01-7c55-9d2e-6b0f4a7d2c11","consumer":"a"}"#, ClientOp::Resume, "/consumer"),
    ] {
        let Err(FrameFault::Invalid { op: of, pointer: at, .. }) = ClientFrame::parse(text) else { panic!("taken: {text}") };
        assert_eq!((of, at.as_str()), (Some(op), pointer), "{text}");
    }
}

#[test]
fn an_ack_outside_of_all_positions_keeps_the_connection() {
    for number in ["-1", "-9223372036854775808", "9007199254740992", "18446744073709551615", "99999999999999999999", "1e300", "-1e300"] {
        let fault = ClientFrame::parse(format!(r#"{{"op":"ack","seq":{number}}}"#)).unwrap_err();
        assert!(matches!(&fault, FrameFault::OutOfRange { op: ClientOp::Ack, pointer, .. } if pointer == "/seq"), "{number}: {fault:?}");
        assert_eq!(fault.close_code(), None);
    }
    assert_eq!(ClientFrame::parse(r#"{"op":"ack","seq":9007199254740991}"#), Ok(ClientFrame::Ack(Ack { seq: domain::Seq::MAX })));
    assert_eq!(ClientFrame::parse(r#"{"seq":0,"op":"ack"}"#), Ok(ClientFrame::Ack(Ack { seq: domain::Seq::ZERO })));
}

#[test]
fn every_op_has_a_word_of_its_own() {
    for &op in ClientOp::ALL {
        assert_eq!(ServerOp::from_word(op.as_str()), None);
    }
}
