//! Rights at the moment of delivery, denials and their audit, disabled agents, revoked tokens.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Peer, eventually};

use crate::support::{World, seqs};

#[tokio::test]
async fn delivery_and_redelivery_are_filtered_by_the_rights_of_the_moment() {
    let world = World::with(&[("agent.ack_timeout", "1s"), ("sync.cursor_advance_every", "1")]).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let seen = world.cast.say("support/general", "visible").await;
    let hidden = world.cast.say("marketing/plans", "invisible").await;
    assert_eq!(seqs(&peer.dispatched(1).await), [seen]);
    assert!(peer.json_of("cursor").await["seq"].as_u64().unwrap() >= hidden, "skipped numbers are told");
    world.cast.owner.delete(&format!("/v1/grants/{}", world.cast.alpha_general_grant)).await.expect(204);
    let revoked = peer.dispatched(1).await.remove(0);
    assert_eq!((&revoked["type"], &revoked["payload"]["change"]), (&json!("access.changed"), &json!("grant.revoked")));
    world.cast.say("support/general", "after the revoke").await;
    let github = world.cast.say("support/github", "still allowed").await;
    assert_eq!(seqs(&peer.dispatched(1).await), [github]);
    // Nothing is acknowledged: what comes again must not have the event of the revoked channel.
    let again = peer.dispatched(2).await;
    assert_eq!(seqs(&again), [revoked["seq"].as_u64().unwrap(), github]);
}

#[tokio::test]
async fn an_agent_sees_what_is_addressed_to_it_and_changes_of_itself() {
    let world = World::new().await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let direct = json!({"type": "note", "audience": ["alpha"], "payload": {}});
    let seq = world.cast.producer.post("/v1/events", &direct).await.expect(201)["events"][0]["seq"].as_u64().unwrap();
    assert_eq!(seqs(&peer.dispatched(1).await), [seq]);
    world.cast.owner.patch("/v1/principals/alpha", &json!({"display_name": "Alpha"})).await.expect(200);
    assert_eq!(peer.dispatched(1).await[0]["type"], "agent.updated");
}

#[tokio::test]
async fn a_disabled_agent_is_closed_with_4012_after_its_acks_are_stored() {
    let world = World::with(&[("agent.ack_persist_interval", "1h")]).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let sent = world.cast.say("support/general", "one").await;
    peer.dispatched(1).await;
    peer.ack(sent).await;
    peer.send(&json!({"op": "heartbeat"})).await;
    peer.json_of("heartbeat_ack").await;
    world.cast.owner.patch("/v1/principals/alpha", &json!({"enabled": false})).await.expect(200);
    assert_eq!(peer.closed().await, (4012, "unauthenticated".to_owned()));
    let consumers = world.cast.owner.get("/v1/agents/alpha/consumers").await.expect(200);
    assert_eq!(consumers["items"][0]["acked_seq"], sent);
    world.cast.alpha.get("/v1/me").await.expect_problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_revoked_token_closes_its_connections_with_4012_and_others_stay() {
    let world = World::new().await;
    let other = world.cast.owner.post("/v1/principals/alpha/tokens", &json!({})).await.expect(201);
    let mut doomed = Peer::consumer(world.url(), other["token"].as_str().unwrap(), "doomed").await;
    let mut spared = Peer::consumer(world.url(), world.cast.alpha.token(), "spared").await;
    let path = format!("/v1/principals/alpha/tokens/{}", other["token_id"].as_str().unwrap());
    world.cast.owner.delete(&path).await.expect(204);
    assert_eq!(doomed.closed().await.0, 4012);
    let sent = world.cast.say("support/general", "after").await;
    while spared.json_of("dispatch").await["event"]["seq"] != sent {}
}

#[tokio::test]
async fn an_expired_token_closes_its_connection_with_4012() {
    let world = World::new().await;
    let short = world.cast.owner.post("/v1/principals/alpha/tokens", &json!({"expires_in_seconds": 2})).await.expect(201);
    let mut peer = Peer::consumer(world.url(), short["token"].as_str().unwrap(), "default").await;
    assert_eq!(peer.closed().await.0, 4012);
    let late = world.cast.owner.with_token(short["token"].as_str().unwrap());
    late.get("/v1/me").await.expect_problem(401, "unauthenticated");
}

async fn denials(world: &World, action: &str) -> Vec<Value> {
    let page = world.cast.owner.get(&format!("/v1/audit?action={action}&decision=deny&limit=100")).await.expect(200);
    page["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn denied_requests_are_audited_and_delivery_filtering_is_not() {
    let world = World::new().await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    for _ in 0..3 {
        world.cast.say("marketing/plans", "invisible").await;
    }
    let seen = world.cast.say("support/general", "visible").await;
    assert_eq!(seqs(&peer.dispatched(1).await), [seen]);
    for _ in 0..4 {
        let refused = world.cast.sam.get("/v1/agents/me/consumers/default/events").await.expect_problem(403, "forbidden");
        assert_eq!(refused["reason"], "subject_kind_not_allowed");
    }
    let entries = eventually("the denials are written", async || {
        let entries = denials(&world, "agent.events.consume").await;
        let counted: u64 = entries.iter().map(|entry| entry["count"].as_u64().unwrap()).sum();
        (counted == 4).then_some(entries)
    })
    .await;
    assert!(entries.len() <= 2, "aggregated per actor, action and minute: {entries:?}");
    assert!(entries.iter().all(|entry| entry["actor"] == "sam"));
    assert_eq!(denials(&world, "events.read").await, Vec::<Value>::new());
}

#[tokio::test]
async fn what_a_caller_may_not_know_of_does_not_exist() {
    let world = World::new().await;
    let event = |channel: &str| json!({"type": "a", "channel": channel, "payload": {}});
    let sam = &world.cast.sam;
    sam.post("/v1/events", &event("marketing/plans")).await.expect_problem(404, "not_found");
    sam.post("/v1/events", &event("marketing/nothing")).await.expect_problem(404, "not_found");
    sam.post("/v1/events", &event("support/general")).await.expect_problem(403, "forbidden");
    let nowhere = json!({"type": "a", "audience": ["alpha"], "payload": {}});
    sam.post("/v1/events", &nowhere).await.expect_problem(403, "forbidden");
}

#[tokio::test]
async fn a_token_does_no_more_than_its_scopes() {
    let world = World::new().await;
    let narrow = world.cast.owner.post("/v1/principals/producer/tokens", &json!({"scopes": ["read"]})).await.expect(201);
    let narrow = world.cast.owner.with_token(narrow["token"].as_str().unwrap());
    let event = json!({"type": "a", "channel": "support/general", "payload": {}});
    let refused = narrow.post("/v1/events", &event).await.expect_problem(403, "forbidden");
    assert_eq!(refused["reason"], "scope_missing");
}

#[tokio::test]
async fn the_last_owner_can_be_neither_disabled_nor_deleted() {
    let world = World::new().await;
    let owner = &world.cast.owner;
    assert!(owner.patch("/v1/principals/owner", &json!({"enabled": false})).await.status >= 400);
    assert!(owner.delete("/v1/principals/owner").await.status >= 400);
    owner.get("/v1/me").await.expect(200);
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let world = World::new().await;
    let other = world.cast.owner.post("/v1/tenants", &json!({"id": "other"})).await.expect(201);
    let stranger = world.cast.owner.with_token(other["token"].as_str().unwrap());
    world.cast.say("support/general", "secret").await;
    let page = stranger.get("/v1/events?after=0").await.expect(200);
    assert!(!page.to_string().contains("secret"));
    stranger.get("/v1/agents/alpha/consumers").await.expect_problem(404, "not_found");
    let event = json!({"type": "a", "channel": "support/general", "payload": {}});
    stranger.post("/v1/events", &event).await.expect_problem(404, "not_found");
    stranger.post("/v1/tenants", &json!({"id": "third"})).await.expect_problem(403, "forbidden");
    assert_eq!(stranger.get("/v1/me").await.expect(200)["tenant"], "other");
}

#[tokio::test]
async fn a_suspended_tenant_closes_with_4016_and_loses_nothing() {
    let world = World::new().await;
    let other = world.cast.owner.post("/v1/tenants", &json!({"id": "other"})).await.expect(201);
    let owner = world.cast.owner.with_token(other["token"].as_str().unwrap());
    owner.post("/v1/principals", &json!({"kind": "agent", "id": "bot"})).await.expect(201);
    let token = owner.post("/v1/principals/bot/tokens", &json!({})).await.expect(201)["token"].as_str().unwrap().to_owned();
    let mut peer = Peer::consumer(world.url(), &token, "default").await;
    world.cast.owner.patch("/v1/tenants/other", &json!({"state": "suspended"})).await.expect(200);
    assert_eq!(peer.closed().await.0, 4016);
    let refused = owner.post("/v1/events", &json!({"type": "a", "audience": ["bot"], "payload": {}})).await;
    assert_eq!(refused.status, 403);
    world.cast.owner.patch("/v1/tenants/other", &json!({"state": "active"})).await.expect(200);
    tokio::time::timeout(Duration::from_secs(5), Peer::consumer(world.url(), &token, "default")).await.unwrap();
}
