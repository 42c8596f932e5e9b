//! Hooks on the wire: the examples of seed 000 and of the design, letter for letter, and how requests are refused.

use protocol::{
    CallbackRegistered, CallbackRegistration, CallbackRotate, CallbackRotated, CallbackVerify, HookAttempt, InvalidBody,
    NewCallbackRegistration, NewNotifyHook, NotifyHook, NotifyHookChange, NotifyHookCreated, NotifyHookRotated, Page, SigningKeys,
    parse_body,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const HOOK: &str = "0197f0ab-9e45-7f99-8b62-af4c8ebf6f55";
const RING: &str = "msg_5DGhYbWzvFJpq3B0tKx9aQeR1Ls";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A request or an answer is read, and written as it was.
fn both_ways<T: DeserializeOwned + Serialize>(wire: &Value) -> T {
    let read: T = parse_body(wire.to_string().as_bytes()).unwrap_or_else(|refusal| panic!("{refusal:?}: {wire}"));
    assert_eq!(&serde_json::to_value(&read).unwrap(), wire);
    read
}

fn with(wire: &Value, ours: &Value) -> Value {
    let mut whole = wire.clone();
    whole.as_object_mut().unwrap().extend(ours.as_object().unwrap().clone());
    whole
}

fn a_hook() -> Value {
    json!({
        "id": HOOK, "agent": "agent_alpha", "url": "https://agent-alpha.example.net/doorstep", "queues": [], "ignore_presence": false,
        "state": "active", "health": {"consecutive_failures": 0}, "created_at": "2026-07-12T16:00:00.000Z"
    })
}

#[test]
fn the_seeds_callback_registration_is_read_as_it_is_and_answered_under_the_same_names() {
    both_ways::<NewCallbackRegistration>(&json!({
        "tenant_id": "tenant_42", "recipient_id": "agent_alpha", "callback_url": "https://agent-alpha.example.net/matm/callback",
        "auth_mode": "hmac-sha256", "secret_id": "cbksec_2026_07", "delivery_scope": ["signal_only"], "max_rate_per_minute": 30
    }));
    let seed = json!({
        "registration_id": "cbreg_01J2M84JZ6P4JR1Q0S8W4R1G8W", "status": "pending_verification",
        "challenge_delivery_id": "0197f0ab-47af-7be1-b2e8-0f6cd4d6e1d5", "expires_at_utc": "2026-07-12T16:35:00.000Z"
    });
    let ours = json!({
        "tenant_id": "tenant_42", "recipient_id": "agent_alpha", "callback_url": "https://agent-alpha.example.net/matm/callback",
        "auth_mode": "hmac-sha256", "delivery_scope": ["signal_only"], "max_rate_per_minute": 30, "ignore_presence": false,
        "health": {"consecutive_failures": 0}, "created_at_utc": "2026-07-12T16:25:00.000Z"
    });
    let registered = with(&with(&seed, &ours), &json!({"secret_id": "cbksec_2026_07", "secret": SECRET}));
    both_ways::<CallbackRegistered>(&registered);
    both_ways::<CallbackRegistration>(&with(&seed, &ours));
}

#[test]
fn notify_hooks_on_the_wire() {
    both_ways::<NewNotifyHook>(&json!({"url": "https://h.example/", "queues": ["inbox", "mail"], "ignore_presence": true}));
    both_ways::<NewNotifyHook>(&json!({"agent": "agent_alpha", "url": "https://h.example/"}));
    both_ways::<NotifyHookChange>(&json!({"url": "https://h.example/2", "queues": [], "ignore_presence": false}));
    both_ways::<NotifyHookCreated>(&with(&a_hook(), &json!({"secret": SECRET})));
    both_ways::<Page<NotifyHook>>(&json!({"items": [a_hook()]}));
    let disabled = json!({
        "state": "disabled", "disabled_cause": "exhausted",
        "health": {"last_status": 503, "last_attempt_at": "2026-07-12T16:22:04.000Z", "consecutive_failures": 10}
    });
    both_ways::<NotifyHook>(&with(&a_hook(), &disabled));
    both_ways::<NotifyHookRotated>(&json!({"id": HOOK, "key_id": "key_1", "secret": SECRET, "previous_until": "2026-07-13T16:22:03.000Z"}));
    let attempt = json!({
        "webhook_id": RING, "reason": "created", "event_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "attempt": 1,
        "at": "2026-07-12T16:22:04.000Z", "latency_ms": 41, "status": 200, "result": "delivered"
    });
    let failed = json!({
        "webhook_id": RING, "reason": "test", "attempt": 1, "at": "2026-07-12T16:22:04.000Z", "latency_ms": 5000, "result": "timeout"
    });
    both_ways::<Page<HookAttempt>>(&json!({"items": [attempt, failed]}));
}

#[test]
fn callbacks_are_verified_and_given_other_keys() {
    both_ways::<CallbackVerify>(&json!({"response": "3q2+7w=="}));
    let key = json!({"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "BBBB"});
    both_ways::<CallbackRotate>(&json!({"secret_id": "cbksec_2026_08", "public_key": key}));
    both_ways::<CallbackRotated>(
        &json!({"registration_id": HOOK, "secret_id": "k", "secret": SECRET, "previous_until_utc": "2026-07-13T16:22:03.000Z"}),
    );
    both_ways::<CallbackRotated>(&json!({"registration_id": HOOK, "secret_id": "k", "previous_until_utc": "2026-07-13T16:22:03.000Z"}));
    let key = json!({"kid": "key_1", "kty": "OKP", "crv": "Ed25519", "x": "AAAA", "use": "sig", "signs_from": "2026-07-12T16:22:03.000Z"});
    both_ways::<SigningKeys>(&json!({"keys": [key]}));
}

#[test]
fn everything_that_can_be_left_out_may_be() {
    parse_body::<NewNotifyHook>(br#"{"url":"https://h.example/"}"#).unwrap();
    parse_body::<NotifyHookChange>(b"{}").unwrap();
    parse_body::<NewCallbackRegistration>(br#"{"callback_url":"https://h.example/","auth_mode":"http-message-signatures"}"#).unwrap();
    parse_body::<CallbackVerify>(b"{}").unwrap();
    parse_body::<CallbackRotate>(b"{}").unwrap();
}

#[test]
fn a_replay_says_that_the_secret_was_shown_and_shows_none() {
    let replayed = with(&a_hook(), &json!({"secret_shown": true}));
    let read: NotifyHookCreated = both_ways(&replayed);
    assert!(read.secret.is_none() && read.secret_shown);
}

#[test]
fn no_listing_of_notify_hooks_has_a_member_that_is_called_a_secret() {
    let hook: NotifyHook = both_ways(&a_hook());
    assert!(!serde_json::to_string(&Page { items: vec![hook], next_cursor: None }).unwrap().contains("secret"));
}

#[test]
fn clients_read_words_and_members_that_are_new() {
    let hook: NotifyHook = serde_json::from_value(with(&a_hook(), &json!({"state": "resting", "mood": 1}))).unwrap();
    assert_eq!((hook.state.known(), hook.state.as_str()), (None, "resting"));
}

fn pointer<T: DeserializeOwned>(body: &str) -> String {
    let Err(InvalidBody { pointer, .. }) = parse_body::<T>(body.as_bytes()) else { panic!("taken: {body}") };
    pointer
}

#[test]
fn a_wrong_member_is_refused_where_it_stands() {
    for (body, place) in [
        ("{}", "/url"),
        ("[]", ""),
        (r#"{"url":null}"#, "/url"),
        (r#"{"url":1}"#, "/url"),
        (r#"{"url":"u","url":"v"}"#, "/url"),
        (r#"{"url":"u","agent":"A"}"#, "/agent"),
        (r#"{"url":"u","agent":null}"#, "/agent"),
        (r#"{"url":"u","queues":"inbox"}"#, "/queues"),
        (r#"{"url":"u","queues":["inbox","A"]}"#, "/queues/1"),
        (r#"{"url":"u","queues":null}"#, "/queues"),
        (r#"{"url":"u","ignore_presence":1}"#, "/ignore_presence"),
        (r#"{"url":"u","secret":"whsec_x"}"#, "/secret"),
    ] {
        assert_eq!(pointer::<NewNotifyHook>(body), place, "{body}");
    }
    for (body, place) in [
        (r#"{"url":null}"#, "/url"),
        (r#"{"queues":[""]}"#, "/queues/0"),
        (r#"{"ignore_presence":"no"}"#, "/ignore_presence"),
        (r#"{"agent":"a"}"#, "/agent"),
    ] {
        assert_eq!(pointer::<NotifyHookChange>(body), place, "{body}");
    }
    for (members, place) in [
        (r#""auth_mode":"hmac-sha256""#, "/callback_url"),
        (r#""callback_url":"u""#, "/auth_mode"),
        (r#""callback_url":"u","auth_mode":"none""#, "/auth_mode"),
        (r#""callback_url":2,"auth_mode":"hmac-sha256""#, "/callback_url"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","tenant_id":"T""#, "/tenant_id"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","recipient_id":"""#, "/recipient_id"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","secret_id":"a b""#, "/secret_id"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","secret_id":"""#, "/secret_id"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","delivery_scope":["all"]"#, "/delivery_scope/0"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","delivery_scope":"signal_only""#, "/delivery_scope"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","max_rate_per_minute":0"#, "/max_rate_per_minute"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","max_rate_per_minute":-1"#, "/max_rate_per_minute"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","ignore_presence":null"#, "/ignore_presence"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","public_key":["OKP"]"#, "/public_key"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","public_key":{"kty":"OKP","crv":"Ed25519"}"#, "/public_key/x"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","public_key":{"kty":"OKP","crv":"Ed25519","x":"A","d":"B"}"#, "/public_key/d"),
        (r#""callback_url":"u","auth_mode":"hmac-sha256","secret":"s""#, "/secret"),
    ] {
        assert_eq!(pointer::<NewCallbackRegistration>(&format!("{{{members}}}")), place, "{members}");
    }
    assert_eq!(pointer::<CallbackVerify>(r#"{"response":1}"#), "/response");
    assert_eq!(pointer::<CallbackVerify>(r#"{"answer":"x"}"#), "/answer");
    assert_eq!(pointer::<CallbackRotate>(r#"{"secret_id":"ä"}"#), "/secret_id");
    assert_eq!(pointer::<CallbackRotate>(&format!(r#"{{"secret_id":"{}"}}"#, "x".repeat(65))), "/secret_id");
    assert_eq!(pointer::<CallbackRotate>(r#"{"public_key":null}"#), "/public_key");
}

#[test]
fn secrets_and_urls_are_never_shown_in_debug_output() {
    let body = r#"{"url":"https://h.example/CANARY?token=CANARY","queues":[],"agent":"a"}"#;
    assert!(!format!("{:?}", parse_body::<NewNotifyHook>(body.as_bytes()).unwrap()).contains("CANARY"));
    let created: NotifyHookCreated = both_ways(&with(&a_hook(), &json!({"secret": SECRET})));
    let shown = format!("{created:?}");
    assert!(!shown.contains(SECRET) && !shown.contains("example.net"), "{shown}");
}
