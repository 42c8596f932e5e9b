//! Consumers over REST from the outside.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::support::{World, eventually};

const DEFAULT: &str = "/v1/agents/me/consumers/default";

#[tokio::test]
async fn a_consumer_that_never_connected_is_not_found() {
    let world = World::new().await;
    world.get(&world.agent, DEFAULT).await.expect_problem(404, "not_found", None);
    world.post(&world.agent, &format!("{DEFAULT}/ack"), r#"{"seq":0}"#).await.expect_problem(404, "not_found", None);
    assert!(world.memory.state().rows.is_empty(), "looking creates nothing");
}

#[tokio::test]
async fn the_first_poll_begins_at_the_head_and_later_ones_deliver() {
    let world = World::new().await;
    world.memory.publish(r#"{"before":true}"#);
    let first = world.get(&world.agent, &format!("{DEFAULT}/events")).await.expect(200);
    assert_eq!((&first["events"], &first["next_cursor"], &first["head_seq"]), (&json!([]), &json!(1), &json!(1)));
    world.memory.publish(r#"{"n":2}"#);
    let page = world.get(&world.agent, &format!("{DEFAULT}/events")).await.expect(200);
    assert_eq!((&page["events"][0]["seq"], &page["events"][0]["payload"], &page["next_cursor"]), (&json!(2), &json!({"n": 2}), &json!(2)));
    let state = world.post(&world.agent, &format!("{DEFAULT}/ack"), r#"{"seq":2}"#).await.expect(200);
    assert_eq!((&state["acked_seq"], &state["lag"], &state["holder"]), (&json!(2), &json!(0), &json!({"kind": "rest"})));
    let state = world.get(&world.agent, DEFAULT).await.expect(200);
    assert_eq!((&state["consumer"], &state["acked_seq"], &state["in_flight"]), (&json!("default"), &json!(2), &json!(0)));
}

#[tokio::test]
async fn an_acknowledgement_above_the_head_is_refused() {
    let world = World::new().await;
    world.get(&world.agent, &format!("{DEFAULT}/events")).await.expect(200);
    for body in [r#"{"seq":1}"#, r#"{"seq":9007199254740992}"#, r#"{"seq":-1}"#, r#"{"seq":"1"}"#, r#"{"seq":1.5}"#] {
        world.post(&world.agent, &format!("{DEFAULT}/ack"), body).await.expect_problem(400, "validation_failed", Some("/seq"));
    }
    let above = world.get(&world.agent, &format!("{DEFAULT}/events?after=5")).await;
    above.expect_problem(400, "validation_failed", Some("#query/after"));
}

#[tokio::test]
async fn another_epoch_is_gone_and_says_where_reading_goes_on() {
    let world = World::new().await;
    world.memory.publish("{}");
    world.get(&world.agent, &format!("{DEFAULT}/events")).await.expect(200);
    let foreign = "sync_epoch=6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10";
    for (token, target) in [(&world.agent, format!("{DEFAULT}/events?{foreign}")), (&world.owner, format!("/v1/events?{foreign}&after=0"))]
    {
        let problem = world.get(token, &target).await.expect_problem(410, "resync_required", None);
        assert_eq!((&problem["reason"], &problem["head_seq"]), (&json!("epoch_changed"), &json!(1)), "{problem}");
        assert!(problem["sync_epoch"].is_string() && problem["floor_seq"].is_u64(), "{problem}");
    }
}

#[tokio::test]
async fn a_long_poll_answers_as_soon_as_there_is_an_event() {
    let world = World::new().await;
    world.get(&world.agent, &format!("{DEFAULT}/events")).await.expect(200);
    let mut wire = world.wire().await;
    let bearer = format!("Bearer {}", world.agent);
    wire.request("GET", &format!("{DEFAULT}/events?wait_seconds=20"), &[("authorization", &bearer)], b"").await;
    eventually("the poll waits", || world.gateway.metrics().waiting_polls.get() == 1).await;
    let began = Instant::now();
    world.memory.publish("{}");
    let page = wire.answer().await.expect(200);
    assert_eq!(page["events"].as_array().unwrap().len(), 1);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_long_poll() {
    let world = World::new().await;
    world.get(&world.agent, &format!("{DEFAULT}/events")).await.expect(200);
    let mut wire = world.wire().await;
    let bearer = format!("Bearer {}", world.agent);
    wire.request("GET", &format!("{DEFAULT}/events?wait_seconds=30"), &[("authorization", &bearer)], b"").await;
    eventually("the poll waits", || world.gateway.metrics().waiting_polls.get() == 1).await;
    drop(wire);
    eventually("the poll ends", || world.gateway.metrics().waiting_polls.get() == 0).await;
}

#[tokio::test]
async fn an_operator_lists_the_consumers_of_an_agent() {
    let world = World::new().await;
    for name in ["a", "b", "c"] {
        world.get(&world.agent, &format!("/v1/agents/me/consumers/{name}/events")).await.expect(200);
    }
    let page = world.get(&world.owner, "/v1/agents/alpha/consumers?limit=2").await.expect(200);
    let names: Vec<_> = page["items"].as_array().unwrap().iter().map(|item| item["consumer"].as_str().unwrap()).collect();
    assert_eq!((names, &page["next_cursor"], &page["items"][0]["agent"]), (vec!["a", "b"], &json!("b"), &json!("alpha")));
    let rest = world.get(&world.owner, "/v1/agents/alpha/consumers?limit=2&cursor=b").await.expect(200);
    assert_eq!((rest["items"].as_array().unwrap().len(), rest.get("next_cursor")), (1, None));
}

#[tokio::test]
async fn events_are_joined_verbatim() {
    let world = World::new().await;
    world.get(&world.agent, &format!("{DEFAULT}/events")).await.expect(200);
    world.memory.publish("{ \"spaced\" : [1,\n2] , \"big\":123456789012345678901234567890 }");
    let answer = world.get(&world.agent, &format!("{DEFAULT}/events")).await;
    let text = String::from_utf8(answer.body.clone()).unwrap();
    assert!(text.contains("\"payload\":{ \"spaced\" : [1,\n2] , \"big\":123456789012345678901234567890 }"), "{text}");
    answer.expect(200);
}
