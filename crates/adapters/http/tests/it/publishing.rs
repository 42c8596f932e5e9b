//! `publishEvents` from the outside.

use serde_json::json;

use crate::support::World;

#[tokio::test]
async fn one_event_is_answered_after_it_is_in_the_log() {
    let world = World::new().await;
    let answer = world.post(&world.app, "/v1/events", r#"{"type":"a.b","channel":"support/general","payload":{"n":1}}"#).await.expect(201);
    assert_eq!(
        (&answer["events"][0]["seq"], &answer["events"][0]["deduplicated"], &answer["head_seq"]),
        (&json!(1), &json!(false), &json!(1))
    );
    let page = world.get(&world.owner, "/v1/events").await.expect(200);
    let event = &page["events"][0];
    assert_eq!((&event["id"], &event["payload"]), (&answer["events"][0]["id"], &json!({"n": 1})));
    assert_eq!(event["actor"], json!({"kind": "app", "id": "shop"}));
}

#[tokio::test]
async fn a_batch_is_answered_in_the_order_of_the_request() {
    let world = World::new().await;
    let events: Vec<_> = (0..100).map(|n| json!({"type": "a", "channel": "support/general", "payload": {"n": n}})).collect();
    let answer = world.post(&world.app, "/v1/events", &json!({"events": events}).to_string()).await.expect(201);
    let seqs: Vec<_> = answer["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=100).collect::<Vec<_>>());
    assert_eq!(answer["head_seq"], 100);
}

#[tokio::test]
async fn cloudevents_are_taken_in_both_modes() {
    let world = World::new().await;
    let bearer = format!("Bearer {}", world.app);
    let event = json!({
        "specversion": "1.0", "id": "1", "source": "/orders", "type": "com.example.Order", "channel": "support/general", "data": {"n": 1}
    });
    for (media, body, count) in [
        ("application/cloudevents+json", event.clone(), 1),
        ("application/cloudevents-batch+json; charset=utf-8", json!([event, event]), 2),
    ] {
        let headers = [("authorization", bearer.as_str()), ("content-type", media)];
        let answer = world.call("POST", "/v1/events", &headers, body.to_string().as_bytes()).await.expect(201);
        assert_eq!(answer["events"].as_array().unwrap().len(), count, "{media}");
    }
    let page = world.get(&world.owner, "/v1/events").await.expect(200);
    assert_eq!(page["events"][0]["type"], "com.example.order");
}

#[tokio::test]
async fn what_is_wrong_is_pointed_at_in_the_body_that_came() {
    let world = World::new().await;
    let expired = r#"{"type":"a","channel":"support/general","expires_at":"2000-01-01T00:00:00Z","available_at":"2001-01-01T00:00:00Z"}"#;
    let unknown = r#"{"type":"a","channel":"support/general","recipients":[{"kind":"agent","id":"nobody"}]}"#;
    let good = r#"{"type":"a","channel":"support/general"}"#;
    for (body, code, pointer) in [
        (r#"{"channel":"support/general"}"#.to_owned(), "validation_failed", "/type"),
        (r#"{"type":"a","chanel":"support/general"}"#.to_owned(), "validation_failed", "/chanel"),
        (format!(r#"{{"events":[{good},{{"type":"A"}}]}}"#), "validation_failed", "/events/1/type"),
        (expired.to_owned(), "validation_failed", "/expires_at"),
        (format!(r#"{{"events":[{expired}]}}"#), "validation_failed", "/events/0/expires_at"),
        (unknown.to_owned(), "recipient_unknown", "/recipients/0"),
        (format!(r#"{{"events":[{good},{unknown}]}}"#), "recipient_unknown", "/events/1/recipients/0"),
        (r#"{"events":[]}"#.to_owned(), "validation_failed", "/events"),
        (format!(r#"{{"events":[{}]}}"#, vec![good; 1_001].join(",")), "validation_failed", "/events"),
    ] {
        world.post(&world.app, "/v1/events", &body).await.expect_problem(400, code, Some(pointer));
    }
    assert!(world.memory.state().events.is_empty(), "a refused request leaves nothing");
}

#[tokio::test]
async fn a_payload_above_its_limit_is_too_large() {
    let world = World::new().await;
    let body = json!({"type": "a", "channel": "support/general", "payload": {"text": "x".repeat(1024 * 1024)}}).to_string();
    world.post(&world.app, "/v1/events", &body).await.expect_problem(413, "payload_too_large", Some("/payload"));
}

#[tokio::test]
async fn a_channel_that_one_may_not_know_of_does_not_exist() {
    let world = World::new().await;
    world.post(&world.app, "/v1/events", r#"{"type":"a","channel":"marketing/plans"}"#).await.expect_problem(404, "not_found", None);
}

#[tokio::test]
async fn many_requests_on_one_connection_are_answered_in_their_order() {
    let world = World::new().await;
    let mut wire = world.wire().await;
    let bearer = format!("Bearer {}", world.app);
    for _ in 0..20 {
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        wire.request("POST", "/v1/events", &headers, br#"{"type":"a","channel":"support/general"}"#).await;
    }
    for seq in 1..=20 {
        assert_eq!(wire.answer().await.expect(201)["events"][0]["seq"], seq);
    }
}
