//! `doorstep inbox`, `doorstep presence` and `doorstep watch`.

use serde_json::{Value, json};

use crate::http::Http;
use crate::support::{EPOCH, Ended, alone, id, start};

const AT: &str = "2026-07-12T16:22:03.123Z";

pub(crate) fn item(state: &str) -> Value {
    json!({
        "event_id": id(1), "tenant_id": "default", "recipient_kind": "agent", "recipient_id": "alpha", "inbox_seq": 1, "ring_seq": 1,
        "event_type": "mail.received", "summary": "Sam\u{1b}[31m asks", "queue": "mail", "priority": "high", "availability_at_utc": AT,
        "ack_state": state, "delivery_attempts": 1, "counted_attempts": 1, "max_attempts": 5, "dead_letter_state": "none",
        "created_at_utc": AT, "attempts": [{
            "number": 1, "claimed_at_utc": AT, "last_heartbeat_at_utc": AT, "ended_at_utc": AT, "outcome": "failed", "summary": "no answer"
        }]
    })
}

fn recipient() -> Value {
    json!({"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "alpha"})
}

fn inbox_state() -> Value {
    json!({
        "recipient": recipient(), "head_seq": 7, "sync_epoch": EPOCH, "paused": false, "paused_queues": ["mail"],
        "presence": {"state": "out", "until_utc": AT}, "policy": {}, "backlog": {"available": 3, "claimed": 1, "resting": 0}
    })
}

/// Runs a command that makes one call, which has to be `line` with `body`.
async fn call(arguments: &[&str], line: &str, body: &Value, answer: Value) -> Ended {
    let mut http = Http::bind().await;
    let running = start(http.address, arguments, std::io::empty());
    let request = http.request().await;
    assert_eq!((request.line.as_str(), &request.body), (line, body), "{arguments:?}");
    assert_eq!(request.header("authorization"), Some("Bearer dsp_agent_secretsecret"), "{arguments:?}");
    request.answer(answer).await;
    running.ended().await
}

#[tokio::test]
async fn every_command_makes_the_call_it_stands_for_and_speaks_json() {
    let event = id(1);
    let held = json!({"event_id": event, "lease_token": "t"});
    let with = |more: Value| {
        let mut body = held.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let done = json!({"acks": [{"event_id": event, "outcome": "ok", "ack_state": "acked", "dead_letter_state": "none"}]});
    let extended = json!({"leases": [{"event_id": event, "outcome": "ok", "visibility_lease_until_utc": AT, "lease_expires_in_ms": 5}]});
    let bulk = json!({"matched": 2, "changed": 0, "more_available": false, "dry_run": true});
    let target = json!({"event_id": event, "recipient_id": "alpha"});
    let (whole, policy) = (inbox_state(), json!({"max_in_flight": 4}));
    let of = |queue: bool| if queue { json!({"recipient_id": "alpha", "queue": "mail"}) } else { json!({"recipient_id": "alpha"}) };
    let cases: Vec<(Vec<&str>, String, Value, Value)> = vec![
        (
            vec!["inbox", "show", &event, "--agent", "alpha"],
            format!("GET /v1/inbox/items/{event}?recipient_id=alpha"),
            Value::Null,
            item("acked"),
        ),
        (vec!["inbox", "policy", "alpha"], "GET /v1/agents/alpha/inbox-policy".to_owned(), Value::Null, policy.clone()),
        (
            vec!["inbox", "policy", "alpha", "--max-in-flight", "4"],
            "PUT /v1/agents/alpha/inbox-policy".to_owned(),
            policy.clone(),
            policy.clone(),
        ),
        (vec!["inbox", "policy", "alpha", "--reset"], "PUT /v1/agents/alpha/inbox-policy".to_owned(), json!({}), json!({})),
        (
            vec!["inbox", "ack", &event, "t", "--summary", "s", "--output", "{\"n\":1}"],
            "POST /v1/inbox/acknowledge".to_owned(),
            json!({"acks": [with(json!({"result": "completed", "summary": "s", "output": {"n": 1}}))]}),
            done.clone(),
        ),
        (
            vec!["inbox", "ack", &event, "t", "--discard"],
            "POST /v1/inbox/acknowledge".to_owned(),
            json!({"acks": [with(json!({"result": "discarded"}))]}),
            done.clone(),
        ),
        (
            vec!["inbox", "fail", &event, "t", "--summary", "s"],
            "POST /v1/inbox/acknowledge".to_owned(),
            json!({"acks": [with(json!({"result": "failed", "summary": "s"}))]}),
            done,
        ),
        (
            vec!["inbox", "release", &event, "t", "--reason", "snooze", "--after", "10m"],
            "POST /v1/inbox/release".to_owned(),
            with(json!({"reason": "snooze", "retry_after_seconds": 600})),
            item("retry_scheduled"),
        ),
        (
            vec!["inbox", "heartbeat", &event, "t", "--lease", "2m"],
            "POST /v1/inbox/heartbeat".to_owned(),
            json!({"leases": [with(json!({"extend_by_seconds": 120}))]}),
            extended,
        ),
        (
            vec!["inbox", "redrive", "alpha", "--queue", "mail", "--dry-run"],
            "POST /v1/inbox/redrive".to_owned(),
            json!({"recipient_id": "alpha", "filter": {"states": ["dead_letter"], "queue": "mail"}, "dry_run": true}),
            bulk.clone(),
        ),
        (
            vec!["inbox", "discard", "alpha", "--event", &event],
            "POST /v1/inbox/discard".to_owned(),
            json!({"recipient_id": "alpha", "filter": {"event_ids": [event]}}),
            bulk,
        ),
        (
            vec!["inbox", "quarantine", &event, "--agent", "alpha"],
            "POST /v1/inbox/quarantine".to_owned(),
            target.clone(),
            item("quarantined"),
        ),
        (vec!["inbox", "unquarantine", &event, "--agent", "alpha"], "POST /v1/inbox/unquarantine".to_owned(), target, item("available")),
        (vec!["inbox", "pause", "alpha", "--queue", "mail"], "POST /v1/inbox/pause".to_owned(), of(true), whole.clone()),
        (vec!["inbox", "resume", "alpha"], "POST /v1/inbox/resume".to_owned(), of(false), whole.clone()),
        (
            vec!["presence", "out", "--for", "8h"],
            "PUT /v1/agents/me/presence".to_owned(),
            json!({"state": "out", "for_seconds": 28_800}),
            whole.clone(),
        ),
        (vec!["presence", "in", "--agent", "alpha"], "PUT /v1/agents/alpha/presence".to_owned(), json!({"state": "in"}), whole),
    ];
    for (arguments, line, body, answer) in cases {
        let ended = call(&arguments, &line, &body, answer.clone()).await;
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err.text());
        assert!(!ended.out.text().contains('\u{1b}'), "{arguments:?}");
        let json: Vec<_> = arguments.into_iter().chain(["--json"]).collect();
        let ended = call(&json, &line, &body, answer).await;
        assert_eq!((ended.code, ended.out.values().len()), (0, 1), "{json:?}: {}", ended.err.text());
    }
}

#[tokio::test]
async fn items_are_listed_page_by_page_up_to_the_limit() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["inbox", "ls", "--agent", "alpha", "--state", "dead_letter", "--limit", "2"], std::io::empty());
    let first = http.request().await;
    assert_eq!(first.line, "GET /v1/inbox/items?limit=2&recipient_id=alpha&state=dead_letter");
    first.answer(json!({"items": [item("dead_letter")], "next_cursor": "c"})).await;
    let second = http.request().await;
    assert_eq!((second.query("cursor").as_deref(), second.query("limit").as_deref()), (Some("c"), Some("1")));
    second.answer(json!({"items": [item("dead_letter")], "next_cursor": "d"})).await;
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.out.lines().len()), (0, 3), "{}", ended.out.text());
    assert!(ended.out.lines()[0].starts_with("EVENT "), "{}", ended.out.text());
}

fn claimed() -> Value {
    json!({
        "event_id": id(1), "outcome": "ok", "inbox_seq": 1, "event_type": "mail.received", "queue": "mail", "priority": "high",
        "ack_state": "claimed", "delivery_attempts": 1, "max_attempts": 5, "lease_token": "lease-1", "visibility_lease_until_utc": AT,
        "lease_expires_in_ms": 90_000, "attempt_deadline_utc": AT, "payload": {"n": 1}
    })
}

fn claims(claims: &[Value]) -> Value {
    json!({"claims": claims, "empty": claims.is_empty(), "backlog": {"available": 0, "claimed": 0}, "recipient": recipient()})
}

#[tokio::test]
async fn a_claim_shows_the_lease_token_and_says_by_its_exit_code_that_nothing_is_there() {
    let arguments = ["inbox", "claim", "--queue", "mail", "--limit", "2", "--lease", "90s", "--wait", "30s"];
    let body = json!({"queues": ["mail"], "limit": 2, "lease_seconds": 90, "wait_seconds": 30});
    let ended = call(&arguments, "POST /v1/inbox/claim-next", &body, claims(&[claimed()])).await;
    assert_eq!(ended.code, 0, "{}", ended.err.text());
    assert!(ended.out.text().contains("lease-1") && ended.out.text().contains(r#"{"n":1}"#), "{}", ended.out.text());
    let ended = call(&["inbox", "claim", "--json"], "POST /v1/inbox/claim-next", &json!({"limit": 1}), claims(&[])).await;
    assert_eq!((ended.code, ended.out.text(), ended.err.text()), (3, String::new(), String::new()));
}

#[tokio::test]
async fn a_claim_by_name_fails_when_one_is_refused_and_shows_the_others() {
    let refused = json!({"event_id": id(2), "outcome": "already_claimed"});
    let body = json!({"event_ids": [id(1), id(2)]});
    let ended = call(&["inbox", "claim", &id(1), &id(2)], "POST /v1/inbox/claim", &body, json!({"claims": [claimed(), refused]})).await;
    assert_eq!(ended.code, 1);
    assert!(ended.out.text().contains("lease-1"), "{}", ended.out.text());
    assert!(ended.err.text().contains("already_claimed"), "{}", ended.err.text());
}

#[tokio::test]
async fn a_lease_that_is_lost_fails_the_acknowledgement() {
    let body = json!({"acks": [{"event_id": id(1), "lease_token": "t", "result": "completed"}]});
    let answer = json!({"acks": [{"event_id": id(1), "outcome": "lease_lost"}]});
    let ended = call(&["inbox", "ack", &id(1), "t"], "POST /v1/inbox/acknowledge", &body, answer).await;
    assert_eq!(ended.code, 1);
    assert!(ended.err.text().contains("lease_lost"), "{}", ended.err.text());
}

#[tokio::test]
async fn nothing_is_discarded_or_redriven_without_saying_what() {
    for line in [["inbox", "discard", "alpha", "--dry-run"], ["inbox", "redrive", "alpha", "--dry-run"]] {
        let ended = alone(&line, "").await;
        assert_eq!(ended.code, 2);
        assert!(ended.err.text().contains("--all"), "{}", ended.err.text());
    }
    let body = json!({"recipient_id": "alpha", "filter": {"states": ["dead_letter"]}});
    let answer = json!({"matched": 2, "changed": 2, "more_available": false, "dry_run": false});
    assert_eq!(call(&["inbox", "redrive", "alpha", "--all"], "POST /v1/inbox/redrive", &body, answer).await.code, 0);
}

#[tokio::test]
async fn the_status_counts_what_has_come_to_a_stop_and_shows_the_policy() {
    for (json, more) in [(false, true), (true, false)] {
        let mut http = Http::bind().await;
        let arguments = ["inbox", "status", "--agent", "alpha", "--json"];
        let running = start(http.address, if json { &arguments } else { &arguments[..4] }, std::io::empty());
        http.expect("GET /v1/inbox?recipient_id=alpha").await.answer(inbox_state()).await;
        let mut page = json!({"items": [item("dead_letter"), item("dead_letter")]});
        if more {
            page["next_cursor"] = json!("c");
        }
        http.expect("GET /v1/inbox/items?limit=100&recipient_id=alpha&state=dead_letter").await.answer(page).await;
        let refused = http.expect("GET /v1/inbox/items?limit=100&recipient_id=alpha&state=quarantined").await;
        refused.problem(403, json!({"code": "forbidden"})).await;
        let hook = |state: &str| {
            json!({
                "id": "0197f0ab-9e45-7f99-8b62-af4c8ebf6f55", "agent": "alpha", "url": "https://agent.example/", "queues": [],
                "ignore_presence": false, "state": state, "health": {"consecutive_failures": 0}, "created_at": "2026-07-12T16:00:00.000Z"
            })
        };
        let hooks = json!({"items": [hook("active"), hook("disabled"), hook("active")]});
        http.expect("GET /v1/notify-hooks?").await.answer(hooks).await;
        let ended = running.ended().await;
        let text = ended.out.text();
        assert_eq!(ended.code, 0, "{}", ended.err.text());
        if json {
            assert_eq!(ended.out.values()[0]["dead_letter"], json!({"count": 2, "more": false}));
            assert_eq!(ended.out.values()[0]["backlog"]["available"], 3);
            assert_eq!(ended.out.values()[0]["hooks"], json!({"active": 2, "pending_verification": 0, "disabled": 1}));
        } else {
            let line = |name: &str| text.lines().find(|line| line.starts_with(name)).map(|line| line.replace(name, "").trim().to_owned());
            assert_eq!(line("dead_letter").as_deref(), Some("2+"), "{text}");
            assert_eq!(line("hooks").as_deref(), Some("2 active, 1 disabled"), "{text}");
            assert_eq!((line("quarantined"), line("most at once").as_deref()), (None, Some("unlimited")), "{text}");
        }
    }
}

#[tokio::test]
async fn who_has_no_inbox_is_told_to_name_the_agent() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["inbox", "ls"], std::io::empty());
    http.request().await.problem(403, json!({"code": "forbidden", "reason": "subject_kind_not_allowed"})).await;
    let ended = running.ended().await;
    assert_eq!(ended.code, 1);
    assert!(ended.err.text().contains("--agent"), "{}", ended.err.text());
}

#[tokio::test]
async fn the_head_is_silent_while_nothing_has_come() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["inbox", "head", "--etag", "\"a\""], std::io::empty());
    let request = http.request().await;
    assert_eq!(request.header("if-none-match"), Some("\"a\""));
    request.respond(304, "application/json", &[], "").await;
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.out.text()), (3, String::new()));
    let running = start(http.address, &["inbox", "head", "--json"], std::io::empty());
    let body = json!({"recipient": recipient(), "head_seq": 7, "sync_epoch": EPOCH}).to_string();
    http.request().await.respond(200, "application/json", &[("etag", "\"b\"")], &body).await;
    let ended = running.ended().await;
    assert_eq!((&ended.out.values()[0]["head_seq"], &ended.out.values()[0]["etag"]), (&json!(7), &json!("\"b\"")));
}

pub(crate) fn subscribed() -> Value {
    json!({
        "session_id": "sess_1", "recipient": recipient(), "current_head_seq": 7, "sync_epoch": EPOCH, "recommended_transport": "sse",
        "poll_after_cursor_url": "/p", "sse_url": "/s", "websocket_url": "ws://x", "heartbeat_interval_seconds": 30,
        "lease_default_seconds": 120, "retention_days": 30
    })
}

#[tokio::test]
async fn rings_are_printed_as_they_come_over_lost_streams() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["watch", "--after", "5", "--limit", "2"], std::io::empty());
    let ring = |head: u64| {
        json!({
            "signal_type": "inbox.updated", "tenant_id": "default", "recipient_id": "alpha", "head_seq": head, "approximate_unacked": 1,
            "delivery_id": id(head), "sent_at_utc": AT
        })
    };
    let message = |head: u64| format!("id: {EPOCH}:{head}\nevent: inbox.updated\ndata: {}\n\n", ring(head));
    http.expect("/v1/agent-sessions/subscribe").await.answer(subscribed()).await;
    let stream = http.expect("/v1/streams/sse?session_id=sess_1").await;
    assert_eq!(stream.header("last-event-id"), Some(format!("{EPOCH}:5").as_str()));
    let mut stream = stream.begin("text/event-stream").await;
    stream.say(&message(6)).await;
    drop(stream);
    let stream = http.expect("/v1/streams/sse").await;
    assert_eq!(stream.header("last-event-id"), Some(format!("{EPOCH}:6").as_str()));
    let mut stream = stream.begin("text/event-stream").await;
    stream.say(&message(7)).await;
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.out.values()), (0, vec![ring(6), ring(7)]), "{}", ended.err.text());
    assert_eq!(ended.err.text().matches("not connected").count(), 1);
}
