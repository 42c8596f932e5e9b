//! The inbox from the outside: poll, head, claim, acknowledge, release, heartbeat.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use doorstep_http::Settings;
use inbox::AckState;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{Answer, Inboxes, Options, PATIENCE, World, eventually};

const SUBSCRIBE: &str = "/v1/agent-sessions/subscribe";
const POLL: &str = "/v1/inbox/poll-after-cursor";
const CLAIM: &str = "/v1/inbox/claim";
const NEXT: &str = "/v1/inbox/claim-next";
const ACK: &str = "/v1/inbox/acknowledge";
const RELEASE: &str = "/v1/inbox/release";
const HEARTBEAT: &str = "/v1/inbox/heartbeat";
const HEAD: &str = "/v1/inbox/head";
const NOWHERE: &str = "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70";

impl World {
    async fn ask(&self, target: &str, body: &Value) -> Value {
        let status = if target == SUBSCRIBE { 201 } else { 200 };
        self.post(&self.agent, target, &body.to_string()).await.expect(status)
    }

    async fn take(&self) -> Value {
        let answer = self.ask(NEXT, &json!({})).await;
        assert_eq!(answer["claims"].as_array().unwrap().len(), 1, "{answer}");
        answer["claims"][0].clone()
    }

    /// Waits until every connection but the one that asks is gone.
    async fn is_alone(&self) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.call("GET", "/metrics", &[], b"").await;
            if String::from_utf8_lossy(&answer.body).contains("\ndoorstep_http_connections 1.0\n") {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "never alone");
        }
    }

    async fn ack(&self, claim: &Value, result: &str) -> Value {
        let ack = json!({"event_id": claim["event_id"], "lease_token": claim["lease_token"], "result": result});
        self.ask(ACK, &json!({"acks": [ack]})).await["acks"][0].clone()
    }
}

#[tokio::test]
async fn a_session_is_told_where_everything_is() {
    let world = World::new().await;
    let asked =
        json!({"tenant_id": "default", "agent_id": "alpha", "supported_transports": ["carrier-pigeon", "sse"], "wants_claims": true});
    let answer = world.ask(SUBSCRIBE, &asked).await;
    let session = answer["session_id"].as_str().unwrap();
    assert_eq!(answer["recipient"], json!({"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "alpha"}));
    assert_eq!(
        (&answer["current_head_seq"], &answer["recommended_transport"], &answer["poll_after_cursor_url"]),
        (&json!(0), &json!("sse"), &json!(POLL))
    );
    assert_eq!(answer["sse_url"], format!("/v1/streams/sse?session_id={session}"));
    assert_eq!(answer["websocket_url"], "ws://doorstep/v1/gateway");
    assert_eq!((&answer["heartbeat_interval_seconds"], &answer["lease_default_seconds"]), (&json!(30), &json!(120)));
    assert!(world.inboxes.rows().sessions.keys().any(|id| id.as_str() == session));

    let http = Settings { public_url: Some("https://doorstep.example.net".to_owned()), ..Settings::default() };
    let world = World::with(Options { http, ..Options::default() }).await;
    let answer = world.ask(SUBSCRIBE, &json!({})).await;
    assert_eq!(answer["websocket_url"], "wss://doorstep.example.net/v1/gateway");
    assert!(answer["sse_url"].as_str().unwrap().starts_with("https://doorstep.example.net/v1/streams/sse?session_id=sess_"));
}

#[tokio::test]
async fn another_tenant_or_another_agent_is_not_there() {
    let world = World::new().await;
    let item = json!({"event_id": NOWHERE, "lease_token": "t"});
    for (target, rest) in [
        (POLL, json!({})),
        (CLAIM, json!({"event_ids": [NOWHERE]})),
        (NEXT, json!({})),
        (ACK, json!({"acks": [{"event_id": NOWHERE, "lease_token": "t", "result": "completed"}]})),
        (RELEASE, item.clone()),
        (HEARTBEAT, json!({"leases": [item.clone()]})),
        (SUBSCRIBE, json!({})),
    ] {
        let agent = if target == SUBSCRIBE { "agent_id" } else { "recipient_id" };
        for (member, value) in [("tenant_id", "other"), (agent, "beta")] {
            let mut body = rest.clone();
            body[member] = json!(value);
            world.post(&world.agent, target, &body.to_string()).await.expect_problem(404, "not_found", None);
        }
        let mut own = rest.clone();
        (own["tenant_id"], own[agent]) = (json!("default"), json!("alpha"));
        assert!(!matches!(world.post(&world.agent, target, &own.to_string()).await.expect_any(), 400 | 403), "{target}");
        let problem = world.post(&world.owner, target, &rest.to_string()).await.expect_problem(403, "forbidden", None);
        assert_eq!(problem["reason"], "subject_kind_not_allowed", "{target}");
    }
    assert!(world.inboxes.rows().items.is_empty());
}

impl Answer {
    /// The status, whatever it is.
    fn expect_any(&self) -> u16 {
        self.status
    }
}

#[tokio::test]
async fn a_poll_shows_what_waits_and_changes_nothing() {
    let world = World::new().await;
    let (first, second) = (world.inboxes.publish("inbox", "{}").await, world.inboxes.publish("mail", "{}").await);
    let before = format!("{:?}", world.inboxes.rows().items);
    let page = world.ask(POLL, &json!({"limit": 1})).await;
    let item = &page["events"][0];
    assert_eq!((&page["head_seq"], &page["next_cursor"], &page["more_available"]), (&json!(2), &json!(1), &json!(true)));
    assert_eq!((&item["event_id"], &item["ack_state"], &item["inbox_seq"]), (&json!(first), &json!("available"), &json!(1)));
    assert_eq!((&item["queue"], &item["priority"], &item["delivery_attempts"]), (&json!("inbox"), &json!("high"), &json!(0)));
    assert!(item["availability_at_utc"].is_string() && item.get("expires_at_utc").is_none() && item.get("payload").is_none(), "{item}");
    let page = world.ask(POLL, &json!({"after_seq": 1, "sync_epoch": page["sync_epoch"], "include_claimable_only": true})).await;
    assert_eq!((&page["events"][0]["event_id"], &page["more_available"]), (&json!(second), &json!(false)));
    let page = world.ask(POLL, &json!({"queues": ["mail"]})).await;
    assert_eq!((page["events"].as_array().unwrap().len(), &page["events"][0]["queue"]), (1, &json!("mail")));
    assert_eq!(before, format!("{:?}", world.inboxes.rows().items));
}

#[tokio::test]
async fn a_poll_that_waits_is_answered_by_a_publish() {
    let world = World::new().await;
    let mut wire = world.wire().await;
    let bearer = format!("Bearer {}", world.agent);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    wire.request("POST", POLL, &headers, br#"{"wait_seconds":99999999999999999999}"#).await;
    eventually("the poll waits", || world.inbox.metrics().waiters.get() == 1).await;
    world.inboxes.publish("inbox", "{}").await;
    assert_eq!(wire.answer().await.expect(200)["events"].as_array().unwrap().len(), 1);
    wire.request("POST", POLL, &headers, br#"{"after_seq":1,"wait_seconds":30}"#).await;
    eventually("the poll waits", || world.inbox.metrics().waiters.get() == 1).await;
    drop(wire);
    eventually("a client that is gone does not wait", || world.inbox.metrics().waiters.get() == 0).await;
}

#[tokio::test]
async fn a_position_that_cannot_be_served_says_where_to_begin_again() {
    let world = World::new().await;
    world.inboxes.publish("inbox", "{}").await;
    let above = world.post(&world.agent, POLL, r#"{"after_seq":17}"#).await;
    let problem = above.expect_problem(410, "cursor_reset_required", None);
    assert_eq!((&problem["oldest_available_seq"], &problem["head_seq"]), (&json!(1), &json!(1)), "{problem}");
    assert!(problem["sync_epoch"].is_string());
    let listing = world.get(&world.agent, problem["resync_url"].as_str().unwrap()).await.expect(200);
    assert_eq!(listing["items"].as_array().unwrap().len(), 1);
    let foreign = world.post(&world.agent, POLL, &json!({"after_seq": 1, "sync_epoch": NOWHERE}).to_string()).await;
    assert_eq!(foreign.expect_problem(410, "resync_required", None)["reason"], "epoch_changed");
}

#[tokio::test]
async fn the_head_is_not_modified_until_something_becomes_claimable() {
    let world = World::new().await;
    let bearer = format!("Bearer {}", world.agent);
    let ask = async |tag: Option<&str>| {
        let headers: Vec<_> = [("authorization", bearer.as_str())].into_iter().chain(tag.map(|tag| ("if-none-match", tag))).collect();
        world.call("GET", HEAD, &headers, b"").await
    };
    let first = ask(None).await;
    let (tag, body) = (first.header("etag").unwrap().to_owned(), first.expect(200));
    assert_eq!((&body["head_seq"], &body["recipient"]["recipient_id"]), (&json!(0), &json!("alpha")));
    assert_eq!(tag, format!("\"default:alpha:0:{}\"", body["sync_epoch"].as_str().unwrap()));
    for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
        let answer = ask(Some(&known)).await;
        assert_eq!((answer.status, answer.body.len(), answer.header("etag")), (304, 0, Some(tag.as_str())), "{known}");
    }
    world.inboxes.publish("inbox", "{}").await;
    let moved = ask(Some(&tag)).await;
    assert_ne!(moved.header("etag"), Some(tag.as_str()));
    assert_eq!(moved.expect(200)["head_seq"], json!(1));
    let claim = world.take().await;
    world.ack(&claim, "completed").await;
    assert_eq!(ask(moved.header("etag")).await.status, 304, "working it off rings nobody");
    let metrics = world.inbox.metrics();
    assert_eq!((metrics.head_checks.get(), metrics.not_modified.get()), (7, 5));
    world.get(&world.owner, HEAD).await.expect_problem(403, "forbidden", None);
}

#[tokio::test]
async fn a_claim_carries_the_payload_verbatim_and_ends_with_an_acknowledge() {
    let world = World::new().await;
    let payload = "{ \"spaced\" : [1,\n2] , \"big\":123456789012345678901234567890 }";
    let event = world.inboxes.publish("inbox", payload).await;
    let answer = world.post(&world.agent, NEXT, r#"{"limit":10,"lease_seconds":60}"#).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let text = String::from_utf8(answer.body.clone()).unwrap();
    assert!(text.contains(&format!("\"payload\":{payload}}}")), "{text}");
    let body = answer.expect(200);
    assert_eq!((&body["empty"], &body["recipient"]["recipient_id"]), (&json!(false), &json!("alpha")));
    assert_eq!((&body["backlog"]["available"], &body["backlog"]["claimed"]), (&json!(0), &json!(1)));
    let claim = &body["claims"][0];
    assert_eq!((&claim["event_id"], &claim["outcome"], &claim["ack_state"]), (&json!(event), &json!("ok"), &json!("claimed")));
    assert_eq!((&claim["delivery_attempts"], &claim["summary"]), (&json!(1), &json!("something \"to do\"")));
    assert_eq!(claim["correlation"], json!({"meeting_room_id": "room_7"}));
    assert_eq!(claim["payload_ref"], json!({"kind": "meeting_room_message", "id": "920155"}));
    assert!((1..=60_000).contains(&claim["lease_expires_in_ms"].as_u64().unwrap()), "{claim}");
    assert!(claim["visibility_lease_until_utc"].is_string() && claim["attempt_deadline_utc"].is_string());

    let report = json!({"acks": [{
        "event_id": event, "lease_token": claim["lease_token"], "result": "completed", "summary": "done", "output": {"n": [1, 2.0]}
    }]});
    for _ in 0..2 {
        let done = world.ask(ACK, &report).await;
        assert_eq!(done, json!({"acks": [{"event_id": event, "outcome": "ok", "ack_state": "acked", "dead_letter_state": "none"}]}));
    }
    let shown = world.get(&world.agent, &format!("/v1/inbox/items/{event}")).await.expect(200);
    assert_eq!((&shown["ack_state"], &shown["attempts"][0]["outcome"]), (&json!("acked"), &json!("completed")));
    assert_eq!((&shown["attempts"][0]["summary"], &shown["attempts"][0]["output"]), (&json!("done"), &json!({"n": [1, 2.0]})));
    assert!(shown["acked_at_utc"].is_string() && shown["acked_at_utc"] == shown["ended_at_utc"]);
    let none = world.ask(NEXT, &json!({})).await;
    assert_eq!((&none["claims"], &none["empty"]), (&json!([]), &json!(true)));
}

#[tokio::test]
async fn batches_are_answered_item_by_item_in_the_order_of_the_request() {
    let world = World::new().await;
    let (first, second) = (world.inboxes.publish("inbox", "{}").await, world.inboxes.publish("inbox", "{}").await);
    let held = world.take().await;
    assert_eq!(held["event_id"], json!(first));
    let claims = world.ask(CLAIM, &json!({"event_ids": [NOWHERE, first, second]})).await;
    let outcomes: Vec<_> =
        claims["claims"].as_array().unwrap().iter().map(|claim| (claim["event_id"].clone(), claim["outcome"].clone())).collect();
    assert_eq!(outcomes, [(json!(NOWHERE), json!("not_found")), (json!(first), json!("already_claimed")), (json!(second), json!("ok"))]);
    assert_eq!(claims["claims"][0].as_object().unwrap().len(), 2);
    let beat = |event: &str, token: &Value| json!({"event_id": event, "lease_token": token, "extend_by_seconds": 600});
    let leases = [beat(&first, &json!("wrong")), beat(NOWHERE, &held["lease_token"]), beat(&first, &held["lease_token"])];
    let leases = world.ask(HEARTBEAT, &json!({"leases": leases})).await["leases"].clone();
    assert_eq!(leases[0], json!({"event_id": first, "outcome": "lease_lost"}));
    assert_eq!((&leases[1]["outcome"], &leases[2]["outcome"]), (&json!("not_found"), &json!("ok")));
    assert!((590_000..=600_000).contains(&leases[2]["lease_expires_in_ms"].as_u64().unwrap()), "{leases}");
    let ack = |event: &str, token: &Value| json!({"event_id": event, "lease_token": token, "result": "failed"});
    let acks = [ack(&second, &held["lease_token"]), ack(&first, &held["lease_token"])];
    let acks = world.ask(ACK, &json!({"acks": acks})).await["acks"].clone();
    assert_eq!(acks[0], json!({"event_id": second, "outcome": "lease_lost"}));
    assert_eq!((&acks[1]["outcome"], &acks[1]["ack_state"]), (&json!("ok"), &json!("retry_scheduled")));
    assert!(acks[1]["next_retry_at_utc"].is_string());
}

#[tokio::test]
async fn a_release_answers_the_item_and_a_lost_lease_is_a_problem() {
    let world = World::new().await;
    world.inboxes.publish("inbox", "{}").await;
    let claim = world.take().await;
    let release = json!({
        "event_id": claim["event_id"], "lease_token": claim["lease_token"], "reason": "snooze", "retry_after_seconds": 999_999_999
    });
    let item = world.ask(RELEASE, &release).await;
    assert_eq!(
        (&item["ack_state"], &item["counted_attempts"], &item["delivery_attempts"]),
        (&json!("retry_scheduled"), &json!(0), &json!(1))
    );
    let rest = world.inboxes.item(claim["event_id"].as_str().unwrap());
    let longest = world.inbox.settings().rules.retry_cap;
    assert!(rest.next_retry_at.unwrap().since(rest.history[0].ended_at) <= longest, "a rest is capped");
    let lost = json!({"event_id": claim["event_id"], "lease_token": "other"});
    world.post(&world.agent, RELEASE, &lost.to_string()).await.expect_problem(409, "lease_lost", None);
    let unknown = json!({"event_id": NOWHERE, "lease_token": "other"});
    world.post(&world.agent, RELEASE, &unknown.to_string()).await.expect_problem(404, "not_found", None);
}

#[tokio::test]
async fn a_repeat_under_the_same_key_is_answered_with_the_same_leases() {
    let world = World::new().await;
    for _ in 0..3 {
        world.inboxes.publish("inbox", "{}").await;
    }
    let bearer = format!("Bearer {}", world.agent);
    let ask = async |key: &str, body: &str| {
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", key)];
        world.call("POST", NEXT, &headers, body.as_bytes()).await
    };
    let first = ask("one", r#"{"limit":2}"#).await.expect(200);
    let again = ask("one", r#"{"limit":2}"#).await.expect(200);
    let tokens = |answer: &Value| answer["claims"].as_array().unwrap().iter().map(|claim| claim["lease_token"].clone()).collect::<Vec<_>>();
    assert_eq!((tokens(&first).len(), tokens(&first)), (2, tokens(&again)));
    ask("one", r#"{"limit":1}"#).await.expect_problem(409, "idempotency_conflict", Some("#header/idempotency-key"));
    assert_eq!(tokens(&ask("two", r#"{"limit":2}"#).await.expect(200)).len(), 1);
    ask("", "{}").await.expect_problem(400, "validation_failed", Some("#header/idempotency-key"));
}

#[tokio::test]
async fn what_lies_below_a_minimum_is_refused_and_what_lies_above_a_maximum_is_capped() {
    let world = World::new().await;
    let event = world.inboxes.publish("inbox", "{}").await;
    let many = vec![NOWHERE; 101];
    let ack = |more: Value| {
        let mut ack = json!({"event_id": NOWHERE, "lease_token": "t", "result": "completed"});
        ack.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"acks": [ack]})
    };
    for (target, body, pointer) in [
        (NEXT, json!({"lease_seconds": 0}), "/lease_seconds"),
        (NEXT, json!({"limit": 0}), "/limit"),
        (NEXT, json!({"wait_seconds": -1}), "/wait_seconds"),
        (NEXT, json!({"queues": []}), "/queues"),
        (NEXT, json!({"queues": ["A b"]}), "/queues/0"),
        (NEXT, json!({"session_id": "x"}), "/session_id"),
        (NEXT, json!({"unknown": 1}), "/unknown"),
        (CLAIM, json!({"event_ids": []}), "/event_ids"),
        (CLAIM, json!({"event_ids": many}), "/event_ids"),
        (CLAIM, json!({"event_ids": ["x"]}), "/event_ids/0"),
        (CLAIM, json!({"event_ids": [NOWHERE], "lease_seconds": 0}), "/lease_seconds"),
        (ACK, json!({"acks": []}), "/acks"),
        (ACK, ack(json!({"summary": "x".repeat(2_049)})), "/acks/0/summary"),
        (ACK, ack(json!({"summary": "a\u{0}b"})), "/acks/0/summary"),
        (ACK, ack(json!({"output": "x".repeat(65_535)})), "/acks/0/output"),
        (ACK, ack(json!({"output": {"a": "\u{0}"}})), "/acks/0/output"),
        (ACK, ack(json!({"result": "maybe"})), "/acks/0/result"),
        (HEARTBEAT, json!({"leases": []}), "/leases"),
        (HEARTBEAT, json!({"leases": [{"event_id": NOWHERE, "lease_token": "t", "extend_by_seconds": 0}]}), "/leases/0/extend_by_seconds"),
        (RELEASE, json!({"event_id": NOWHERE, "lease_token": "t", "retry_after_seconds": -1}), "/retry_after_seconds"),
        (RELEASE, json!({"event_id": NOWHERE, "lease_token": "t", "reason": ""}), "/reason"),
        (POLL, json!({"limit": 0}), "/limit"),
        (POLL, json!({"after_seq": -1}), "/after_seq"),
        (SUBSCRIBE, json!({"device_id": ""}), "/device_id"),
    ] {
        world.post(&world.agent, target, &body.to_string()).await.expect_problem(400, "validation_failed", Some(pointer));
    }
    assert_eq!(world.inboxes.item(&event).delivery_attempts, 0, "nothing of a refused request is done");
    let claim = world.ask(NEXT, &json!({"limit": 1_000_000, "lease_seconds": 1_000_000_000})).await["claims"][0].clone();
    let longest = world.inbox.settings().rules.lease_max.as_millis();
    assert!(u128::from(claim["lease_expires_in_ms"].as_u64().unwrap()) <= longest, "{claim}");
}

#[tokio::test]
async fn an_agent_held_to_one_session_hears_which_one_may_claim() {
    let world = World::new().await;
    world.inboxes.publish("inbox", "{}").await;
    let policy = r#"{"concurrency":"single_active_session","max_in_flight":1}"#;
    world.put(&world.owner, "/v1/agents/alpha/inbox-policy", policy).await.expect(200);
    let session = world.ask(SUBSCRIBE, &json!({"wants_claims": true})).await["session_id"].clone();
    let refused = world.post(&world.agent, NEXT, "{}").await.expect_problem(409, "state_conflict", None);
    assert_eq!(refused["reason"], "session_not_active");
    let answer = world.ask(NEXT, &json!({"session_id": session})).await;
    assert_eq!(answer["claims"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_waiting_claim_is_answered_by_a_publish() {
    let world = World::new().await;
    let mut wire = world.wire().await;
    let bearer = format!("Bearer {}", world.agent);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    wire.request("POST", NEXT, &headers, br#"{"wait_seconds":20}"#).await;
    eventually("the claim waits", || world.inbox.metrics().waiters.get() == 1).await;
    let event = world.inboxes.publish("inbox", "{}").await;
    assert_eq!(wire.answer().await.expect(200)["claims"][0]["event_id"], json!(event));
}

#[tokio::test]
async fn what_is_sent_behind_a_waiting_claim_is_answered_after_it_and_the_claim_is_held() {
    let world = World::new().await;
    let mut wire = world.wire().await;
    let bearer = format!("Bearer {}", world.agent);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    wire.request("POST", NEXT, &headers, br#"{"wait_seconds":20}"#).await;
    wire.request("GET", "/v1/inbox/head", &headers, b"").await;
    wire.request("POST", NEXT, &headers, br#"{"wait_seconds":0}"#).await;
    eventually("the claim waits", || world.inbox.metrics().waiters.get() == 1).await;
    let event = world.inboxes.publish("inbox", "{}").await;
    assert_eq!(wire.answer().await.expect(200)["claims"][0]["event_id"], json!(event));
    assert_eq!(wire.answer().await.expect(200)["head_seq"], 1, "each in its turn");
    assert_eq!(wire.answer().await.expect(200)["empty"], true);
    assert_eq!(world.inboxes.item(&event).state, AckState::Claimed);
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_waits_leaves_nothing_claimed() {
    let world = World::new().await;
    let mut wire = world.wire().await;
    let bearer = format!("Bearer {}", world.agent);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    wire.request("POST", NEXT, &headers, br#"{"wait_seconds":30}"#).await;
    eventually("the claim waits", || world.inbox.metrics().waiters.get() == 1).await;
    drop(wire);
    eventually("nobody waits", || world.inbox.metrics().waiters.get() == 0).await;
    let event = world.inboxes.publish("inbox", "{}").await;
    let item = world.inboxes.item(&event);
    assert_eq!((item.state, item.delivery_attempts), (AckState::Available, 0));
}

/// Stops a claim between its commit and its answer, has the client go away, and lets it go on.
async fn broken_off(target: &str, body: impl Fn(&str) -> Value) {
    let world = World::new().await;
    let event = world.inboxes.publish("inbox", "{}").await;
    let stopped = world.inboxes.envelopes.acquire().await.unwrap();
    let mut wire = world.wire().await;
    let bearer = format!("Bearer {}", world.agent);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    wire.request("POST", target, &headers, body(&event).to_string().as_bytes()).await;
    eventually("the claim is committed", || world.inboxes.item(&event).state == AckState::Claimed).await;
    drop(wire);
    world.is_alone().await;
    drop(stopped);
    eventually("the item is back", || world.inboxes.item(&event).state == AckState::Available).await;
    let item = world.inboxes.item(&event);
    assert_eq!((item.counted_attempts, item.lease), (0, None), "it does not count");
    assert_eq!(world.inbox.metrics().given_back_unread.get(), 1);
    assert_eq!(world.take().await["event_id"], json!(event));
}

#[tokio::test]
async fn a_claim_whose_client_goes_away_after_its_commit_is_given_back_uncounted() {
    broken_off(NEXT, |_| json!({"wait_seconds": 30})).await;
    broken_off(CLAIM, |event| json!({"event_ids": [event]})).await;
}

#[tokio::test]
async fn an_answer_that_is_dropped_before_it_was_written_gives_its_claims_back() {
    let world = World::new().await;
    let events = [
        world.inboxes.publish("inbox", "{}").await,
        world.inboxes.publish("inbox", &json!({"text": "x".repeat(200_000)}).to_string()).await,
    ];
    let request = || {
        let request = Request::post(NEXT).header("authorization", format!("Bearer {}", world.agent));
        request.header("content-type", "application/json").body(Body::from(r#"{"limit":10}"#)).unwrap()
    };
    let states = || events.each_ref().map(|event| world.inboxes.item(event).state);
    let response = world.router.clone().oneshot(request()).await.unwrap();
    assert_eq!((response.status(), states()), (StatusCode::OK, [AckState::Claimed; 2]));
    drop(response);
    eventually("both are back", || states() == [AckState::Available; 2]).await;

    // Begun, but not to its end.
    let response = world.router.clone().oneshot(request()).await.unwrap();
    let mut body = Box::pin(response.into_body());
    let first = std::future::poll_fn(|cx| http_body::Body::poll_frame(body.as_mut(), cx)).await.unwrap().unwrap();
    assert!(first.data_ref().unwrap().len() <= 64 * 1024);
    drop(body);
    eventually("both are back again", || states() == [AckState::Available; 2]).await;

    let response = world.router.clone().oneshot(request()).await.unwrap();
    let length: usize = http_body::Body::size_hint(response.body()).exact().unwrap().try_into().unwrap();
    let text = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    assert_eq!((text.len(), serde_json::from_slice::<Value>(&text).unwrap()["claims"].as_array().unwrap().len()), (length, 2));
    tokio::time::timeout(Duration::from_secs(5), async {
        world.tasks.close();
        world.tasks.wait().await;
    })
    .await
    .unwrap();
    assert_eq!(states(), [AckState::Claimed; 2], "what was read is the client's");
    assert_eq!(world.inbox.metrics().given_back_unread.get(), 4);
}

#[tokio::test]
async fn a_store_that_fails_is_said_so_and_nothing_is_claimed() {
    let world = World::new().await;
    let event = world.inboxes.publish("inbox", "{}").await;
    for (error, code) in [(domain::StoreError::Full, "storage_full"), (domain::StoreError::InDoubt, "in_doubt")] {
        world.memory.state().broken_writes = Some(error);
        world.post(&world.agent, NEXT, "{}").await.expect_problem(503, code, None);
    }
    world.memory.state().broken_writes = None;
    assert_eq!(world.inboxes.item(&event).state, AckState::Available);
    assert_eq!(world.inboxes.rows().recipients[&Inboxes::recipient("alpha")].head.get(), 1);
}
