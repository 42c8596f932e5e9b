//! The inbox on the wire: seed 000's JSON examples, letter for letter, and how requests are refused.
//!
//! What the seed writes as `null` is an absent member here, and our own members may stand beside the seed's.

use protocol::{
    AcknowledgeRequest, AcknowledgeResponse, BulkRequest, ClaimNextRequest, ClaimRequest, ClaimResponse, HeartbeatRequest,
    HeartbeatResponse, InboxItem, InboxPolicy, InboxUpdated, InvalidBody, ItemTarget, PauseRequest, PollRequest, PollResponse,
    PresenceRequest, ReleaseRequest, SessionSubscribed, SubscribeRequest, parse_body,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Every leaf of `expected` is in `own`, under the same name and with the same value; instants may be written with milliseconds.
fn holds(own: &Value, expected: &Value, place: &str) {
    match (own, expected) {
        (_, Value::Null) => assert!(own.is_null(), "{place}: {own}"),
        (Value::Object(own), Value::Object(expected)) => {
            for (name, expected) in expected {
                holds(own.get(name).unwrap_or(&Value::Null), expected, &format!("{place}/{name}"));
            }
        }
        (Value::Array(own), Value::Array(expected)) => {
            assert_eq!(own.len(), expected.len(), "{place}");
            for (index, (own, expected)) in own.iter().zip(expected).enumerate() {
                holds(own, expected, &format!("{place}/{index}"));
            }
        }
        (Value::String(own), Value::String(expected)) if place.ends_with("_utc") => {
            assert_eq!(domain::Timestamp::parse(own).unwrap(), domain::Timestamp::parse(expected).unwrap(), "{place}");
        }
        _ => assert_eq!(own, expected, "{place}"),
    }
}

/// A request of the seed is read, and written as the seed writes it.
fn request<T: DeserializeOwned + Serialize>(seed: &Value) {
    let read: T = parse_body(seed.to_string().as_bytes()).unwrap_or_else(|refusal| panic!("{refusal:?}: {seed}"));
    assert_eq!(&serde_json::to_value(&read).unwrap(), seed);
}

/// An answer of the seed with our members beside: what is written holds the seed's members as they are.
fn answer<T: DeserializeOwned + Serialize>(seed: &Value, place: &str, ours: &Value) {
    let mut whole = seed.clone();
    strip_nulls(&mut whole);
    add(whole.pointer_mut(place).unwrap(), ours);
    let read: T = serde_json::from_value(whole.clone()).unwrap_or_else(|error| panic!("{error}: {whole}"));
    holds(&serde_json::to_value(&read).unwrap(), seed, "");
}

fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(strip_nulls);
        }
        Value::Array(elements) => elements.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

/// Adds members to an object, or to each object of an array.
fn add(value: &mut Value, ours: &Value) {
    match value {
        Value::Object(members) => members.extend(ours.as_object().cloned().unwrap_or_else(Map::new)),
        Value::Array(elements) => elements.iter_mut().for_each(|element| add(element, ours)),
        _ => panic!("nothing to add to"),
    }
}

const SESSION: &str = "sess_01J2M7YGF41B5B2N0T3W3D7SM2";
const EVENT: &str = "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70";
const LEASE: &str = "lease_01J2M7Z7JCC7M5VVM0P7AN0F8J";

#[test]
fn the_seeds_requests_are_read_as_they_are() {
    request::<SubscribeRequest>(&json!({
        "tenant_id": "tenant_42", "agent_id": "agent_alpha", "device_id": "desktop_01",
        "supported_transports": ["sse", "websocket", "long-poll", "poll"], "last_seen_seq": 184_389, "wants_claims": true
    }));
    request::<PollRequest>(&json!({
        "tenant_id": "tenant_42", "recipient_id": "agent_alpha", "after_seq": 184_389, "limit": 100, "wait_seconds": 25,
        "include_claimable_only": true
    }));
    request::<ClaimRequest>(&json!({
        "tenant_id": "tenant_42", "recipient_id": "agent_alpha", "session_id": SESSION, "event_ids": [EVENT], "lease_seconds": 120
    }));
    request::<AcknowledgeRequest>(&json!({
        "tenant_id": "tenant_42", "recipient_id": "agent_alpha", "session_id": SESSION,
        "acks": [{"event_id": EVENT, "lease_token": LEASE, "result": "completed"}]
    }));
    request::<ReleaseRequest>(&json!({
        "tenant_id": "tenant_42", "recipient_id": "agent_alpha", "event_id": EVENT, "lease_token": LEASE,
        "reason": "transient_dependency_failure", "retry_after_seconds": 60
    }));
    request::<HeartbeatRequest>(&json!({
        "tenant_id": "tenant_42", "recipient_id": "agent_alpha", "session_id": SESSION,
        "leases": [{"event_id": EVENT, "lease_token": LEASE, "extend_by_seconds": 120}]
    }));
}

/// Our members of an item that the seed does not name.
fn of_items() -> Value {
    json!({
        "tenant_id": "tenant_42", "recipient_kind": "agent", "recipient_id": "agent_alpha", "ring_seq": 184_391, "summary": "line",
        "queue": "inbox", "counted_attempts": 0, "max_attempts": 5, "dead_letter_state": "none", "created_at_utc": "2026-07-12T16:22:03Z"
    })
}

#[test]
fn the_seeds_envelope_and_poll_answer_are_written_under_the_same_names() {
    // The seed's correlation and payload_ref stay in the log; they come with a claim.
    answer::<InboxItem>(
        &json!({
            "event_id": EVENT, "tenant_id": "tenant_42", "recipient_kind": "agent", "recipient_id": "agent_alpha", "inbox_seq": 184_392,
            "event_type": "meeting_room.message_posted", "availability_at_utc": "2026-07-12T16:22:03Z",
            "expires_at_utc": "2026-08-11T16:22:03Z", "priority": "normal", "deduplication_key": "msg:room_7:920155",
            "ack_state": "available", "delivery_attempts": 0, "visibility_lease_until_utc": null, "next_retry_at_utc": null,
            "dead_letter_state": "none"
        }),
        "",
        &of_items(),
    );
    let seed = json!({
        "head_seq": 184_392,
        "events": [
            {
                "event_id": EVENT, "inbox_seq": 184_390, "event_type": "routing.decision_ready", "priority": "high",
                "availability_at_utc": "2026-07-12T16:22:03Z", "expires_at_utc": "2026-07-19T16:22:03Z",
                "deduplication_key": "route:job_5521:v4", "ack_state": "available", "delivery_attempts": 0
            },
            {
                "event_id": "0197f0ab-4521-7227-a2f1-5b34bd0ad973", "inbox_seq": 184_391, "event_type": "meeting_room.message_posted",
                "priority": "normal", "availability_at_utc": "2026-07-12T16:22:03Z", "expires_at_utc": "2026-08-11T16:22:03Z",
                "deduplication_key": "msg:room_7:920155", "ack_state": "available", "delivery_attempts": 0
            }
        ],
        "next_cursor": 184_391,
        "more_available": true
    });
    let mut whole = seed.clone();
    add(&mut whole["events"], &of_items());
    whole["sync_epoch"] = json!("6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10");
    let read: PollResponse = serde_json::from_value(whole).unwrap();
    holds(&serde_json::to_value(&read).unwrap(), &seed, "");
}

#[test]
fn the_seeds_other_answers_are_written_under_the_same_names() {
    answer::<SessionSubscribed>(
        &json!({
            "session_id": SESSION,
            "recipient": {"tenant_id": "tenant_42", "recipient_kind": "agent", "recipient_id": "agent_alpha"},
            "current_head_seq": 184_392, "recommended_transport": "sse", "poll_after_cursor_url": "/v1/inbox/poll-after-cursor",
            "sse_url": "/v1/streams/sse?session_id=sess_01J2M7YGF41B5B2N0T3W3D7SM2",
            "websocket_url": "wss://coord.example.net/v1/streams/ws", "heartbeat_interval_seconds": 30, "lease_default_seconds": 120,
            "retention_days": 30
        }),
        "",
        &json!({"sync_epoch": "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10"}),
    );
    answer::<ClaimResponse>(
        &json!({
            "claims": [{
                "event_id": EVENT, "lease_token": LEASE, "visibility_lease_until_utc": "2026-07-12T16:24:12Z", "ack_state": "claimed"
            }]
        }),
        "/claims",
        &json!({"outcome": "ok"}),
    );
    // The envelope's correlation and payload reference, as they come with a claim.
    answer::<ClaimResponse>(
        &json!({
            "claims": [{
                "event_id": EVENT,
                "correlation": {
                    "company_id": "co_9", "workspace_id": "ws_12", "project_id": "proj_88", "meeting_room_id": "room_7",
                    "message_id": "920155", "routing_decision_id": null, "memory_update_id": null, "assignment_id": null
                },
                "payload_ref": {"kind": "meeting_room_message", "id": "920155"}
            }]
        }),
        "/claims",
        &json!({"outcome": "ok"}),
    );
    answer::<InboxUpdated>(
        &json!({
            "signal_type": "inbox.updated", "tenant_id": "tenant_42", "recipient_id": "agent_alpha", "head_seq": 184_392,
            "approximate_unacked": 3, "sent_at_utc": "2026-07-12T16:22:04Z", "delivery_id": "0197f0ab-4623-7d52-a87e-27afcf0d9a92"
        }),
        "",
        &json!({}),
    );
    let both: HeartbeatResponse = serde_json::from_value(json!({"leases": [{"event_id": EVENT, "outcome": "lease_lost"}]})).unwrap();
    assert_eq!(serde_json::to_value(both).unwrap(), json!({"leases": [{"event_id": EVENT, "outcome": "lease_lost"}]}));
    let acks: AcknowledgeResponse = serde_json::from_value(json!({"acks": [{"event_id": EVENT, "outcome": "later", "new": 1}]})).unwrap();
    assert_eq!(acks.acks[0].outcome.as_str(), "later", "clients read words and members that are new");
}

#[test]
fn everything_that_can_be_left_out_may_be() {
    parse_body::<SubscribeRequest>(b"{}").unwrap();
    parse_body::<PollRequest>(b"{}").unwrap();
    parse_body::<ClaimNextRequest>(b"{}").unwrap();
    parse_body::<InboxPolicy>(b"{}").unwrap();
    parse_body::<PresenceRequest>(br#"{"state":"in"}"#).unwrap();
    parse_body::<PauseRequest>(br#"{"recipient_id":"a"}"#).unwrap();
    parse_body::<BulkRequest>(br#"{"recipient_id":"a","filter":{}}"#).unwrap();
    parse_body::<ReleaseRequest>(format!(r#"{{"event_id":"{EVENT}","lease_token":"t"}}"#).as_bytes()).unwrap();
    let output =
        br#"{"acks":[{"event_id":"0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70","lease_token":"t","result":"failed","output": [1, 2.50] }]}"#;
    let read: AcknowledgeRequest = parse_body(output).unwrap();
    assert_eq!(read.acks[0].output.as_ref().unwrap().get(), "[1, 2.50]", "kept verbatim");
}

fn pointer<T: DeserializeOwned>(body: &str) -> String {
    let Err(InvalidBody { pointer, .. }) = parse_body::<T>(body.as_bytes()) else { panic!("taken: {body}") };
    pointer
}

#[test]
fn a_wrong_member_is_refused_where_it_stands() {
    for (body, place) in [
        (r#"{"session_id":"x"}"#, "/session_id"),
        (r#"{"session_id":"sess_"}"#, "/session_id"),
        (r#"{"limit":0}"#, "/limit"),
        (r#"{"limit":-1}"#, "/limit"),
        (r#"{"limit":null}"#, "/limit"),
        (r#"{"wait_seconds":-1}"#, "/wait_seconds"),
        (r#"{"wait_seconds":1.5}"#, "/wait_seconds"),
        (r#"{"lease_seconds":"2"}"#, "/lease_seconds"),
        (r#"{"queues":["A"]}"#, "/queues/0"),
        (r#"{"queues":"a"}"#, "/queues"),
        (r#"{"tenant_id":"T"}"#, "/tenant_id"),
        (r#"{"recipient_id":""}"#, "/recipient_id"),
        (r#"{"wait":1}"#, "/wait"),
        (r#"{"limit":1,"limit":2}"#, "/limit"),
        ("[]", ""),
    ] {
        assert_eq!(pointer::<ClaimNextRequest>(body), place, "{body}");
    }
    for (body, place) in [
        ("{}", "/acks"),
        (r#"{"acks":{}}"#, "/acks"),
        (r#"{"acks":[[]]}"#, "/acks/0"),
        (r#"{"acks":[{}]}"#, "/acks/0/event_id"),
        (r#"{"acks":[{"event_id":"x"}]}"#, "/acks/0/event_id"),
        (r#"{"acks":[{"event_id":"0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70","lease_token":1}]}"#, "/acks/0/lease_token"),
        (r#"{"acks":[{"event_id":"0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70","lease_token":"t","result":"done"}]}"#, "/acks/0/result"),
        (r#"{"acks":[{"event_id":"0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70","lease_token":"t","result":"failed","x":1}]}"#, "/acks/0/x"),
    ] {
        assert_eq!(pointer::<AcknowledgeRequest>(body), place, "{body}");
    }
    for (body, place) in [("{}", "/event_ids"), (r#"{"event_ids":["x"]}"#, "/event_ids/0"), (r#"{"event_ids":[],"lease":1}"#, "/lease")] {
        assert_eq!(pointer::<ClaimRequest>(body), place, "{body}");
    }
    for (body, place) in [
        (r#"{"after_seq":-1}"#, "/after_seq"),
        (r#"{"after_seq":9007199254740992}"#, "/after_seq"),
        (r#"{"sync_epoch":"x"}"#, "/sync_epoch"),
        (r#"{"include_claimable_only":1}"#, "/include_claimable_only"),
    ] {
        assert_eq!(pointer::<PollRequest>(body), place, "{body}");
    }
    for (body, place) in [
        (r#"{"filter":{}}"#, "/recipient_id"),
        (r#"{"recipient_id":"a"}"#, "/filter"),
        (r#"{"recipient_id":"a","filter":[]}"#, "/filter"),
        (r#"{"recipient_id":"a","filter":{"states":["done"]}}"#, "/filter/states/0"),
        (r#"{"recipient_id":"a","filter":{"created_before":"soon"}}"#, "/filter/created_before"),
        (r#"{"recipient_id":"a","filter":{"event_type":"A"}}"#, "/filter/event_type"),
        (r#"{"recipient_id":"a","filter":{"state":"acked"}}"#, "/filter/state"),
        (r#"{"recipient_id":"a","filter":{},"dry_run":0}"#, "/dry_run"),
    ] {
        assert_eq!(pointer::<BulkRequest>(body), place, "{body}");
    }
    assert_eq!(pointer::<ItemTarget>(r#"{"event_id":"0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70"}"#), "/recipient_id");
    assert_eq!(pointer::<PauseRequest>(r#"{"recipient_id":"a","queue":""}"#), "/queue");
    assert_eq!(pointer::<PresenceRequest>(r#"{"state":"away"}"#), "/state");
    assert_eq!(pointer::<PresenceRequest>(r#"{"state":"out","for_seconds":-3}"#), "/for_seconds");
    assert_eq!(pointer::<InboxPolicy>(r#"{"max_in_flight":0}"#), "/max_in_flight");
    assert_eq!(pointer::<InboxPolicy>(r#"{"concurrency":"one"}"#), "/concurrency");
    assert_eq!(pointer::<SubscribeRequest>(r#"{"device_id":"a\u0000"}"#), "/device_id");
    assert_eq!(pointer::<SubscribeRequest>(r#"{"supported_transports":[1]}"#), "/supported_transports/0");
}

#[test]
fn a_lease_token_is_never_shown_in_debug_output() {
    let ack = json!({"acks": [{"event_id": EVENT, "lease_token": LEASE, "result": "completed"}]});
    let read: AcknowledgeRequest = parse_body(ack.to_string().as_bytes()).unwrap();
    assert!(!format!("{read:?}").contains(LEASE));
    let release = json!({"event_id": EVENT, "lease_token": LEASE});
    assert!(!format!("{:?}", parse_body::<ReleaseRequest>(release.to_string().as_bytes()).unwrap()).contains(LEASE));
}
