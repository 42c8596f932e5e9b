//! `doorstep hooks`.

use serde_json::{Value, json};

use crate::http::Http;
use crate::support::{Ended, start};

const HOOK: &str = "0197f0ab-9e45-7f99-8b62-af4c8ebf6f55";

fn hook(more: Value) -> Value {
    let mut hook = json!({
        "id": HOOK, "agent": "agent_alpha", "url": "https://agent-alpha.example.net/doorstep", "queues": ["mail"], "ignore_presence": false,
        "state": "active", "health": {"last_status": 200, "last_attempt_at": "2026-07-12T16:22:04.000Z", "consecutive_failures": 0},
        "created_at": "2026-07-12T16:00:00.000Z"
    });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    hook
}

fn attempt(status: u16, result: &str) -> Value {
    json!({"webhook_id": "msg_1", "reason": "test", "attempt": 1, "at": "2026-07-12T16:22:04.000Z", "latency_ms": 41, "status": status, "result": result})
}

/// Runs a command whose one request has to be `expected`; answers what it sent, and how it ended.
async fn exchange(arguments: &[&str], expected: &str, answer: Value) -> (Value, Ended) {
    let mut http = Http::bind().await;
    let running = start(http.address, arguments, std::io::empty());
    let request = http.expect(expected).await;
    let body = request.body.clone();
    request.answer(answer).await;
    (body, running.ended().await)
}

#[tokio::test]
async fn a_new_hooks_secret_alone_goes_to_standard_output() {
    let answer = hook(json!({"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}));
    let line = ["hooks", "add", "https://agent-alpha.example.net/doorstep?key=1", "--queue", "mail", "-q", "inbox", "--ignore-presence"];
    let (body, ended) = exchange(&line, "POST /v1/notify-hooks", answer).await;
    assert_eq!(
        body,
        json!({"url": "https://agent-alpha.example.net/doorstep?key=1", "queues": ["mail", "inbox"], "ignore_presence": true})
    );
    assert_eq!((ended.code, ended.out.text().as_str()), (0, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"));
    assert!(ended.err.text().contains(HOOK), "{}", ended.err.text());
}

#[tokio::test]
async fn what_is_not_said_is_not_sent() {
    let answer = hook(json!({"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}));
    let (body, _) = exchange(&["hooks", "add", "https://a.example/"], "POST /v1/notify-hooks", answer).await;
    assert_eq!(body, json!({"url": "https://a.example/"}));
}

#[tokio::test]
async fn a_list_tells_why_a_hook_is_disabled() {
    let disabled = hook(json!({"state": "disabled", "disabled_cause": "exhausted", "health": {"consecutive_failures": 10}}));
    let (_, ended) =
        exchange(&["hooks", "ls", "--agent", "agent_alpha"], "GET /v1/notify-hooks?agent=agent_alpha", json!({"items": [disabled]})).await;
    let text = ended.out.text();
    assert!(text.contains("disabled (exhausted)") && text.contains(" 10 ") && text.contains("mail"), "{text}");
}

#[tokio::test]
async fn a_rotated_secret_alone_goes_to_standard_output() {
    let answer = json!({"id": HOOK, "key_id": "key_1", "secret": "whsec_new", "previous_until": "2026-07-13T16:22:03.000Z"});
    let (_, ended) = exchange(&["hooks", "rotate", HOOK], &format!("POST /v1/notify-hooks/{HOOK}/rotate"), answer).await;
    assert_eq!(ended.out.text(), "whsec_new\n");
    assert!(ended.err.text().contains("2026-07-13"), "{}", ended.err.text());
}

#[tokio::test]
async fn hooks_are_enabled_and_disabled() {
    for action in ["enable", "disable"] {
        let (_, ended) = exchange(&["hooks", action, HOOK], &format!("POST /v1/notify-hooks/{HOOK}/{action}"), hook(json!({}))).await;
        assert_eq!(ended.code, 0);
        assert!(ended.out.text().contains("agent-alpha.example.net"), "{}", ended.out.text());
    }
}

#[tokio::test]
async fn a_test_that_is_not_delivered_fails() {
    let path = format!("POST /v1/notify-hooks/{HOOK}/test");
    let (_, delivered) = exchange(&["hooks", "test", HOOK], &path, attempt(202, "delivered")).await;
    assert_eq!(delivered.code, 0, "{}", delivered.err.text());
    let (_, failed) = exchange(&["hooks", "test", HOOK], &path, attempt(503, "server_error")).await;
    assert_eq!(failed.code, 1);
    assert!(failed.err.text().contains("server_error"), "{}", failed.err.text());
}

#[tokio::test]
async fn the_log_has_a_line_for_each_attempt() {
    let answer = json!({"items": [attempt(503, "server_error"), attempt(202, "delivered")]});
    let (_, ended) = exchange(&["hooks", "log", HOOK], &format!("GET /v1/notify-hooks/{HOOK}/deliveries"), answer).await;
    assert_eq!(ended.out.lines().len(), 3, "{}", ended.out.text());
}

#[tokio::test]
async fn a_hook_is_deleted_and_what_is_no_id_is_not_asked_for() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["hooks", "rm", HOOK], std::io::empty());
    http.expect(&format!("DELETE /v1/notify-hooks/{HOOK}")).await.respond(204, "text/plain", &[], "").await;
    assert_eq!(running.ended().await.code, 0);
    for bad in ["", "..", "a/b", "a b"] {
        use clap::Parser as _;
        assert!(crate::support::Line::try_parse_from(["doorstep", "hooks", "rm", bad]).is_err(), "{bad}");
    }
}
