//! What operators and agents see and do about an inbox as a whole.

use serde_json::{Value, json};

use crate::support::World;

const ITEMS: &str = "/v1/inbox/items";
const NOWHERE: &str = "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70";

impl World {
    async fn operate(&self, what: &str, body: &Value) -> Value {
        self.post(&self.owner, &format!("/v1/inbox/{what}"), &body.to_string()).await.expect(200)
    }
}

#[tokio::test]
async fn items_are_listed_in_pages_and_filtered() {
    let world = World::new().await;
    let mut events = Vec::new();
    for queue in ["inbox", "mail", "inbox", "mail", "inbox"] {
        events.push(world.inboxes.publish(queue, "{}").await);
    }
    let (mut seen, mut target) = (Vec::new(), format!("{ITEMS}?limit=2"));
    loop {
        let page = world.get(&world.agent, &target).await.expect(200);
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["event_id"].as_str().unwrap().to_owned()));
        let Value::String(cursor) = &page["next_cursor"] else { break };
        target = format!("{ITEMS}?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, events);
    let of = async |token: &str, query: &str| {
        let page = world.get(token, &format!("{ITEMS}?{query}")).await.expect(200);
        page["items"].as_array().unwrap().len()
    };
    let agent = world.agent.as_str();
    assert_eq!(
        (of(agent, "queue=mail").await, of(agent, "state=acked,claimed").await, of(agent, "event_type=task.created").await),
        (2, 0, 5)
    );
    assert_eq!((of(agent, "created_before=2020-01-01T00:00:00Z").await, of(agent, "created_after=2020-01-01T00:00:00Z").await), (0, 5));
    assert_eq!(
        (of(agent, "recipient_id=alpha&tenant_id=default").await, of(&world.owner, "recipient_id=alpha&limit=999999").await),
        (5, 5)
    );
    for (query, member) in [
        ("limit=0", "limit"),
        ("cursor=x", "cursor"),
        ("state=done", "state"),
        ("queue=A", "queue"),
        ("event_type=A", "event_type"),
        ("created_before=soon", "created_before"),
        ("created_after=", "created_after"),
        ("recipient_id=A", "recipient_id"),
        ("tenant_id=A", "tenant_id"),
    ] {
        let answer = world.get(agent, &format!("{ITEMS}?{query}")).await;
        answer.expect_problem(400, "validation_failed", Some(&format!("#query/{member}")));
    }
}

#[tokio::test]
async fn an_inbox_is_shown_to_its_agent_and_to_operators_only() {
    let world = World::new().await;
    let event = world.inboxes.publish("inbox", "{}").await;
    for target in ["/v1/inbox".to_owned(), ITEMS.to_owned(), format!("{ITEMS}/{event}")] {
        world.get(&world.agent, &target).await.expect(200);
        world.get(&world.owner, &format!("{target}?recipient_id=alpha")).await.expect(200);
        let own = world.get(&world.owner, &target).await.expect_problem(403, "forbidden", None);
        assert_eq!(own["reason"], "subject_kind_not_allowed", "an owner has no inbox: {target}");
        let answer = world.get(&world.app, &format!("{target}?recipient_id=alpha")).await;
        assert!(matches!(answer.status, 403 | 404), "{target}: {}", answer.status);
        world.get(&world.owner, &format!("{target}?recipient_id=nobody")).await.expect_problem(404, "not_found", None);
        world.get(&world.owner, &format!("{target}?recipient_id=alpha&tenant_id=other")).await.expect_problem(404, "not_found", None);
    }
    world.get(&world.agent, &format!("{ITEMS}/{NOWHERE}")).await.expect_problem(404, "not_found", None);
    world.get(&world.agent, &format!("{ITEMS}/x")).await.expect_problem(400, "validation_failed", Some("#path/event"));
    let shown = world.get(&world.agent, "/v1/inbox").await.expect(200);
    assert_eq!((&shown["paused"], &shown["presence"], &shown["head_seq"]), (&json!(false), &json!({"state": "in"}), &json!(1)));
    assert_eq!((&shown["policy"], &shown["backlog"]["available"]), (&json!({"concurrency": "many_sessions"}), &json!(1)));
}

#[tokio::test]
async fn operators_pause_put_aside_redrive_and_discard() {
    let world = World::new().await;
    let event = world.inboxes.publish("mail", "{}").await;
    let state = world.operate("pause", &json!({"recipient_id": "alpha", "queue": "mail"})).await;
    assert_eq!((&state["paused"], &state["paused_queues"]), (&json!(false), &json!(["mail"])));
    let polled = world.post(&world.agent, "/v1/inbox/poll-after-cursor", "{}").await.expect(200);
    assert_eq!(polled["events"][0]["paused"], json!(true));
    assert_eq!(world.post(&world.agent, "/v1/inbox/claim-next", "{}").await.expect(200)["empty"], json!(true));
    let state = world.operate("resume", &json!({"recipient_id": "alpha", "queue": "mail"})).await;
    assert!(state.get("paused_queues").is_none(), "{state}");

    let target = json!({"event_id": event, "recipient_id": "alpha"});
    let item = world.operate("quarantine", &target).await;
    assert_eq!((&item["ack_state"], &item["dead_letter_state"]), (&json!("quarantined"), &json!("quarantined")));
    world.post(&world.owner, "/v1/inbox/quarantine", &target.to_string()).await.expect_problem(409, "state_conflict", None);
    assert_eq!(world.operate("unquarantine", &target).await["ack_state"], json!("available"));

    for _ in 0..2 {
        let claim =
            world.post(&world.agent, "/v1/inbox/claim", &json!({"event_ids": [event]}).to_string()).await.expect(200)["claims"][0].clone();
        let release = json!({"event_id": event, "lease_token": claim["lease_token"]});
        world.post(&world.agent, "/v1/inbox/release", &release.to_string()).await.expect(200);
    }
    assert_eq!(world.inboxes.item(&event).state.as_str(), "dead_letter");
    let bulk = |dry_run| json!({"recipient_id": "alpha", "filter": {"states": ["dead_letter"]}, "dry_run": dry_run});
    let counted = world.operate("redrive", &bulk(true)).await;
    assert_eq!(counted, json!({"matched": 1, "changed": 0, "more_available": false, "dry_run": true}));
    let done = world.operate("redrive", &bulk(false)).await;
    assert_eq!((&done["changed"], &done["dry_run"]), (&json!(1), &json!(false)));
    let done = world.operate("discard", &json!({"recipient_id": "alpha", "filter": {"event_ids": [event]}})).await;
    assert_eq!(done["changed"], json!(1));
    let shown = world.get(&world.agent, &format!("{ITEMS}/{event}")).await.expect(200);
    assert_eq!((&shown["ack_state"], &shown["dead_letter_state"]), (&json!("discarded"), &json!("redriven")));
    assert!(shown.get("acked_at_utc").is_none() && shown["ended_at_utc"].is_string());
    assert!(world.inboxes.rows().audit.len() >= 6);
}

#[tokio::test]
async fn what_operators_do_is_refused_to_others_and_checked() {
    let world = World::new().await;
    let (bulk, item, inbox) = (
        json!({"recipient_id": "alpha", "filter": {}}),
        json!({"event_id": NOWHERE, "recipient_id": "alpha"}),
        json!({"recipient_id": "alpha"}),
    );
    for (what, body) in
        [("redrive", &bulk), ("discard", &bulk), ("quarantine", &item), ("unquarantine", &item), ("pause", &inbox), ("resume", &inbox)]
    {
        let target = format!("/v1/inbox/{what}");
        for token in [&world.agent, &world.app] {
            let answer = world.post(token, &target, &body.to_string()).await;
            assert!(matches!(answer.status, 403 | 404), "{what}: {}", answer.status);
        }
        let with = |member: &str, value: Value| {
            let mut body = body.clone();
            body[member] = value;
            body.to_string()
        };
        world.post(&world.owner, &target, &with("recipient_id", json!("nobody"))).await.expect_problem(404, "not_found", None);
        world.post(&world.owner, &target, &with("tenant_id", json!("other"))).await.expect_problem(404, "not_found", None);
        world.post(&world.owner, &target, &with("extra", json!(1))).await.expect_problem(400, "validation_failed", Some("/extra"));
        world.post(&world.owner, &target, "{}").await.expect(400);
    }
    for (filter, pointer) in [(json!({"states": []}), "/filter/states"), (json!({"event_ids": []}), "/filter/event_ids")] {
        let body = json!({"recipient_id": "alpha", "filter": filter}).to_string();
        world.post(&world.owner, "/v1/inbox/discard", &body).await.expect_problem(400, "validation_failed", Some(pointer));
    }
}

#[tokio::test]
async fn presence_is_set_by_the_agent_and_by_operators() {
    let world = World::new().await;
    let out = world.put(&world.agent, "/v1/agents/me/presence", r#"{"state":"out","for_seconds":3600}"#).await.expect(200);
    assert_eq!(out["presence"]["state"], json!("out"));
    assert!(out["presence"]["until_utc"].is_string());
    let back = world.put(&world.owner, "/v1/agents/alpha/presence", r#"{"state":"in"}"#).await.expect(200);
    assert_eq!(back["presence"], json!({"state": "in"}));
    world.put(&world.agent, "/v1/agents/alpha/presence", r#"{"state":"out"}"#).await.expect(200);
    let with_end = world.put(&world.agent, "/v1/agents/me/presence", r#"{"state":"in","for_seconds":1}"#).await;
    with_end.expect_problem(400, "validation_failed", Some("/for_seconds"));
    world.put(&world.agent, "/v1/agents/me/presence", r#"{"state":"here"}"#).await.expect_problem(400, "validation_failed", Some("/state"));
    world.put(&world.agent, "/v1/agents/A/presence", r#"{"state":"in"}"#).await.expect_problem(
        400,
        "validation_failed",
        Some("#path/agent"),
    );
    world.put(&world.owner, "/v1/agents/nobody/presence", r#"{"state":"in"}"#).await.expect_problem(404, "not_found", None);
    let answer = world.put(&world.app, "/v1/agents/alpha/presence", r#"{"state":"in"}"#).await;
    assert!(matches!(answer.status, 403 | 404), "{}", answer.status);
}

#[tokio::test]
async fn a_policy_is_replaced_as_a_whole() {
    let world = World::new().await;
    let target = "/v1/agents/alpha/inbox-policy";
    let policy = json!({"max_in_flight": 3, "concurrency": "single_active_session"});
    assert_eq!(world.put(&world.owner, target, &policy.to_string()).await.expect(200), policy);
    assert_eq!(world.get(&world.owner, target).await.expect(200), policy);
    assert_eq!(world.put(&world.owner, target, "{}").await.expect(200), json!({"concurrency": "many_sessions"}));
    let answer = world.put(&world.agent, target, "{}").await;
    assert!(matches!(answer.status, 403 | 404), "{}", answer.status);
    for (body, pointer) in [(r#"{"max_in_flight":0}"#, "/max_in_flight"), (r#"{"concurrency":"x"}"#, "/concurrency"), (r#"{"x":1}"#, "/x")]
    {
        world.put(&world.owner, target, body).await.expect_problem(400, "validation_failed", Some(pointer));
    }
}
