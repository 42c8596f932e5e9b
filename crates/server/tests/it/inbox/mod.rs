//! The inbox: claim, lease, acknowledge, retry, and rings for whoever is connected (design/inbox.md; seed 000).

mod durability;
mod items;
mod leases;
mod operate;
mod signals;
mod work;

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Cast, Http, eventually};

use crate::support::World;

/// Time runs fast: rests and sweeps that a test can wait for.
pub(crate) const FAST: [(&str, &str); 3] = [("inbox.retry_base", "50ms"), ("inbox.retry_cap", "10s"), ("inbox.sweep_interval", "50ms")];

/// A server on which time runs fast, with these keys beside.
pub(crate) async fn fast(more: &[(&str, &str)]) -> World {
    World::with(&FAST.iter().chain(more).copied().collect::<Vec<_>>()).await
}

/// Work for `alpha`; answers the event's id.
pub(crate) async fn give(cast: &Cast, more: Value) -> String {
    let mut event = json!({"type": "task.created", "recipients": [{"kind": "agent", "id": "alpha"}], "payload": {"n": 1}});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = cast.producer.post("/v1/events", &event).await.expect(201);
    answer["events"][0]["id"].as_str().unwrap().to_owned()
}

/// Much work for `alpha` in one request; answers the events' ids.
pub(crate) async fn give_many(cast: &Cast, count: usize) -> Vec<String> {
    let event = |n: usize| json!({"type": "task.created", "recipients": [{"kind": "agent", "id": "alpha"}], "payload": {"n": n}});
    let events: Vec<_> = (0..count).map(event).collect();
    let answer = cast.producer.post("/v1/events", &json!({"events": events})).await.expect(201);
    answer["events"].as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

/// Claims what is next.
pub(crate) async fn claim(agent: &Http, more: Value) -> Vec<Value> {
    let answer = agent.post("/v1/inbox/claim-next", &more).await.expect(200);
    answer["claims"].as_array().unwrap().clone()
}

/// Claims one that there is.
pub(crate) async fn claim_one(agent: &Http, more: Value) -> Value {
    let claims = claim(agent, more).await;
    assert_eq!(claims.len(), 1, "{claims:?}");
    claims.into_iter().next().unwrap()
}

/// Claims one as soon as there is one.
pub(crate) async fn claim_soon(agent: &Http, lease_seconds: u64) -> Value {
    claim_one(agent, json!({"wait_seconds": 20, "lease_seconds": lease_seconds})).await
}

/// Acknowledges; answers the entry.
pub(crate) async fn ack(agent: &Http, claimed: &Value, result: &str) -> Value {
    let ack = json!({"event_id": claimed["event_id"], "lease_token": claimed["lease_token"], "result": result});
    let answer = agent.post("/v1/inbox/acknowledge", &json!({"acks": [ack]})).await.expect(200);
    answer["acks"][0].clone()
}

/// Extends the lease by so many seconds; answers the entry.
pub(crate) async fn heartbeat(agent: &Http, claimed: &Value, seconds: u64) -> Value {
    let lease = json!({"event_id": claimed["event_id"], "lease_token": claimed["lease_token"], "extend_by_seconds": seconds});
    agent.post("/v1/inbox/heartbeat", &json!({"leases": [lease]})).await.expect(200)["leases"][0].clone()
}

/// Gives it back.
pub(crate) async fn release(agent: &Http, claimed: &Value, more: Value) -> testkit::Answer {
    let mut body =
        json!({"event_id": claimed["event_id"], "lease_token": claimed["lease_token"], "reason": "transient_dependency_failure"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent.post("/v1/inbox/release", &body).await
}

/// The item as its agent sees it.
pub(crate) async fn item(agent: &Http, id: &str) -> Value {
    agent.get(&format!("/v1/inbox/items/{id}")).await.expect(200)
}

/// Waits until the item is in this state.
pub(crate) async fn in_state(agent: &Http, id: &str, state: &str) -> Value {
    eventually(&format!("{id} is {state}"), async || {
        let item = item(agent, id).await;
        (item["ack_state"] == state).then_some(item)
    })
    .await
}

/// A poll of the inbox.
pub(crate) async fn poll(agent: &Http, body: Value) -> Value {
    agent.post("/v1/inbox/poll-after-cursor", &body).await.expect(200)
}

/// Opens a session; answers the path of its stream.
pub(crate) async fn subscribe(agent: &Http) -> String {
    let body = json!({"supported_transports": ["sse", "long-poll"], "wants_claims": true});
    let subscribed = agent.post("/v1/agent-sessions/subscribe", &body).await.expect(201);
    assert_eq!(subscribed["recommended_transport"], "sse");
    subscribed["sse_url"].as_str().unwrap().to_owned()
}

/// The inbox's head.
pub(crate) async fn head(agent: &Http) -> u64 {
    agent.get("/v1/inbox/head").await.expect(200)["head_seq"].as_u64().unwrap()
}

/// The event ids of a page of items.
pub(crate) fn ids(page: &Value, member: &str) -> Vec<String> {
    page[member].as_array().unwrap().iter().map(|item| item["event_id"].as_str().unwrap().to_owned()).collect()
}

/// Longer than a lease of one second.
pub(crate) const LAPSE: Duration = Duration::from_millis(1_300);
