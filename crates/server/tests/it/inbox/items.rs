//! Publishing to agents, polling, claiming in order.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::Http;

use super::{ack, claim, claim_one, fast, give, give_many, ids, in_state, item, poll};
use crate::support::World;

#[tokio::test]
async fn an_event_for_agents_leaves_an_item_for_each_with_the_log_row() {
    let world = World::new().await;
    let beta = world.cast.add("agent", "beta").await;
    let recipients = json!([{"kind": "agent", "id": "alpha", "queue": "reviews"}, {"kind": "agent", "id": "beta"}]);
    let event = json!({
        "type": "review.requested", "channel": "support/general", "recipients": recipients, "priority": "high",
        "deduplication_key": "route:job_5521:v4", "correlation": {"project_id": "proj_88"}, "summary": "Please  review",
        "payload_ref": {"kind": "pull_request", "id": "5521"}, "payload": {"text": "…"},
    });
    let answer = world.cast.producer.post("/v1/events", &event).await.expect(201);
    let published = &answer["events"][0];
    let seq = &published["seq"];
    assert_eq!(published["inbox"], json!([{"recipient_id": "alpha", "inbox_seq": seq}, {"recipient_id": "beta", "inbox_seq": seq}]));

    let page = poll(&world.cast.alpha, json!({"after_seq": 0, "limit": 10})).await;
    assert_eq!((&page["head_seq"], &page["next_cursor"], &page["more_available"]), (seq, seq, &json!(false)));
    let listed = &page["events"][0];
    for (member, value) in [
        ("event_id", &published["id"]),
        ("inbox_seq", seq),
        ("event_type", &json!("review.requested")),
        ("priority", &json!("high")),
        ("queue", &json!("reviews")),
        ("summary", &json!("Please review")),
        ("deduplication_key", &json!("route:job_5521:v4")),
        ("ack_state", &json!("available")),
        ("delivery_attempts", &json!(0)),
    ] {
        assert_eq!(&listed[member], value, "{member} in {listed}");
    }
    assert!(listed["availability_at_utc"].is_string() && listed.get("expires_at_utc").is_none(), "{listed}");

    let claimed = claim_one(&beta, json!({})).await;
    assert_eq!((&claimed["event_id"], &claimed["queue"], &claimed["ack_state"]), (&published["id"], &json!("inbox"), &json!("claimed")));
    assert_eq!((&claimed["payload"], &claimed["payload_ref"]), (&event["payload"], &event["payload_ref"]));
    assert_eq!((&claimed["correlation"], &claimed["prior_attempts"]), (&event["correlation"], &json!([])));
    assert!(claimed["lease_expires_in_ms"].as_u64().is_some_and(|left| (1..=120_000).contains(&left)), "{claimed}");
    assert_eq!(ack(&beta, &claimed, "completed").await["outcome"], "ok");
    assert_eq!(item(&beta, published["id"].as_str().unwrap()).await["ack_state"], "acked");
    assert_eq!(item(&world.cast.alpha, published["id"].as_str().unwrap()).await["ack_state"], "available", "each has its own");
}

#[tokio::test]
async fn a_publish_is_refused_as_a_whole_when_a_recipient_is_no_enabled_agent() {
    let world = World::new().await;
    let to = |names: &[&str]| {
        let recipients: Vec<_> = names.iter().map(|name| json!({"kind": "agent", "id": name})).collect();
        json!({"type": "t", "recipients": recipients})
    };
    let problem = world.cast.producer.post("/v1/events", &to(&["alpha", "sam"])).await.expect_problem(400, "recipient_unknown");
    assert_eq!(problem["pointer"], "/recipients/1");
    let batch = json!({"events": [to(&["alpha"]), to(&["nobody"])]});
    let problem = world.cast.producer.post("/v1/events", &batch).await.expect_problem(400, "recipient_unknown");
    assert_eq!(problem["pointer"], "/events/1/recipients/0");
    let twice = world.cast.producer.post("/v1/events", &to(&["alpha", "alpha"])).await.expect_problem(400, "validation_failed");
    assert_eq!(twice["pointer"], "/recipients/1");
    let page = poll(&world.cast.alpha, json!({"after_seq": 0})).await;
    assert_eq!((ids(&page, "events"), &page["head_seq"]), (vec![], &json!(0)));
}

#[tokio::test]
async fn fifty_concurrent_copies_leave_one_item_also_over_a_restart() {
    let world = World::new().await;
    let event = json!({"type": "once", "recipients": [{"kind": "agent", "id": "alpha"}], "deduplication_key": "k"});
    let calls = (0..50).map(|_| {
        let (producer, event) = (world.cast.producer.clone(), event.clone());
        tokio::spawn(async move { producer.post("/v1/events", &event).await.json()["events"][0].clone() })
    });
    let mut seen = HashSet::new();
    for call in calls.collect::<Vec<_>>() {
        seen.insert(call.await.unwrap()["id"].to_string());
    }
    assert_eq!(seen.len(), 1);
    let world = world.crash();
    let repeat = world.cast.producer.post("/v1/events", &event).await.expect(200);
    assert_eq!(repeat["events"][0]["deduplicated"], true);
    assert!(repeat["events"][0].get("inbox").is_none(), "{repeat}");
    assert_eq!(claim(&world.cast.alpha, json!({"limit": 10})).await.len(), 1);
    assert_eq!(claim(&world.cast.alpha, json!({"limit": 10})).await.len(), 0);
}

#[tokio::test]
async fn a_key_lives_as_long_as_an_item_of_it_is_live() {
    let world = World::with(&[("sync.deduplication_window", "100ms")]).await;
    let key = json!({"deduplication_key": "k"});
    let id = give(&world.cast, key.clone()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let event =
        json!({"type": "task.created", "recipients": [{"kind": "agent", "id": "alpha"}], "payload": {"n": 1}, "deduplication_key": "k"});
    let repeat = world.cast.producer.post("/v1/events", &event).await.expect(200);
    assert_eq!((&repeat["events"][0]["deduplicated"], &repeat["events"][0]["id"]), (&json!(true), &json!(id)));
    let claimed = claim_one(&world.cast.alpha, json!({})).await;
    ack(&world.cast.alpha, &claimed, "completed").await;
    let fresh = world.cast.producer.post("/v1/events", &event).await.expect(201);
    assert_ne!(fresh["events"][0]["id"], json!(id), "the item is over, and so is the window");
}

#[tokio::test]
async fn claimers_at_once_get_distinct_items_and_nobody_two() {
    let world = World::new().await;
    let given: HashSet<String> = give_many(&world.cast, 40).await.into_iter().collect();
    let claimers = (0..50).map(|_| {
        let alpha = world.cast.alpha.clone();
        tokio::spawn(async move { claim(&alpha, json!({})).await })
    });
    let mut got = Vec::new();
    for claimer in claimers.collect::<Vec<_>>() {
        let claims = claimer.await.unwrap();
        assert!(claims.len() <= 1);
        got.extend(claims.iter().map(|claim| claim["event_id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(got.len(), 40);
    assert_eq!(got.into_iter().collect::<HashSet<_>>(), given);
}

#[tokio::test]
async fn claims_by_id_say_what_became_of_each() {
    let world = World::new().await;
    let [one, two] = [give(&world.cast, json!({})).await, give(&world.cast, json!({})).await];
    let unknown = "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70";
    claim_one(&world.cast.alpha, json!({})).await;
    let body = json!({"event_ids": [two, one, unknown], "lease_seconds": 120});
    let answer = world.cast.alpha.post("/v1/inbox/claim", &body).await.expect(200);
    let claims = answer["claims"].as_array().unwrap();
    let outcomes: Vec<_> = claims.iter().map(|claim| claim["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["ok", "already_claimed", "not_found"]);
    assert!(claims[0]["lease_token"].is_string() && claims[0]["visibility_lease_until_utc"].is_string(), "{}", claims[0]);
    assert!(claims[1].get("lease_token").is_none(), "{}", claims[1]);
}

#[tokio::test]
async fn a_scheduled_item_is_claimable_when_it_is_due_and_not_before() {
    let world = World::with(&[("intake.promote_interval", "50ms")]).await;
    let due = jiff_in(Duration::from_millis(1_500));
    let event = json!({"type": "t", "recipients": [{"kind": "agent", "id": "alpha"}], "available_at": due});
    let answer = world.cast.producer.post("/v1/events", &event).await.expect(201);
    assert_eq!(answer["events"][0]["scheduled"], true);
    assert_eq!(claim(&world.cast.alpha, json!({})).await.len(), 0);
    let claimed = claim_one(&world.cast.alpha, json!({"wait_seconds": 20})).await;
    assert_eq!(claimed["event_id"], answer["events"][0]["id"]);
    assert!(claimed["created_at_utc"].as_str().unwrap() >= due.as_str(), "{claimed}");
}

/// An instant so far ahead, by the server's clock, which is this machine's.
fn jiff_in(ahead: Duration) -> String {
    use domain::{Clock, SystemClock};
    SystemClock::new().now().plus(ahead).to_string()
}

#[tokio::test]
async fn an_expired_item_is_never_claimed() {
    let world = fast(&[]).await;
    let id = give(&world.cast, json!({"expires_at": jiff_in(Duration::from_millis(400))})).await;
    in_state(&world.cast.alpha, &id, "expired").await;
    assert_eq!(claim(&world.cast.alpha, json!({})).await.len(), 0);
    let answer = world.cast.alpha.post("/v1/inbox/claim", &json!({"event_ids": [id]})).await.expect(200);
    assert_eq!(answer["claims"][0]["outcome"], "expired");
}

#[tokio::test]
async fn queues_keep_work_apart_and_urgent_work_comes_first() {
    let world = World::new().await;
    let to = |queue: &str, priority: &str| json!({"recipients": [{"kind": "agent", "id": "alpha", "queue": queue}], "priority": priority});
    let plain = give(&world.cast, to("a", "normal")).await;
    let urgent = give(&world.cast, to("a", "urgent")).await;
    let other = give(&world.cast, to("b", "low")).await;
    assert_eq!(claim_one(&world.cast.alpha, json!({"queues": ["b"]})).await["event_id"], json!(other));
    assert_eq!(claim(&world.cast.alpha, json!({"queues": ["b"]})).await.len(), 0);
    let both = claim(&world.cast.alpha, json!({"limit": 5})).await;
    assert_eq!(both.iter().map(|claim| claim["event_id"].clone()).collect::<Vec<_>>(), [json!(urgent), json!(plain)]);
}

/// Everything of an inbox that a reader can see.
async fn picture(agent: &Http, id: &str) -> Value {
    json!([item(agent, id).await, agent.get("/v1/inbox/head").await.json(), agent.get("/v1/inbox/items").await.json()])
}

#[tokio::test]
async fn listing_and_polling_never_change_anything() {
    let world = World::new().await;
    let ids = give_many(&world.cast, 5).await;
    let alpha = &world.cast.alpha;
    let before = picture(alpha, &ids[2]).await;
    for after in [0, 1] {
        poll(alpha, json!({"after_seq": after, "limit": 2, "include_claimable_only": true})).await;
        poll(alpha, json!({"after_seq": after})).await;
    }
    for path in ["/v1/inbox/items?state=available", "/v1/inbox/items?limit=2", "/v1/inbox/items?queue=inbox"] {
        alpha.get(path).await.expect(200);
    }
    assert_eq!(picture(alpha, &ids[2]).await, before);
    assert_eq!(claim(alpha, json!({"limit": 10})).await.len(), 5);
}

#[tokio::test]
async fn pages_go_through_everything_once() {
    let world = World::new().await;
    let given = give_many(&world.cast, 25).await;
    let (mut after, mut seen) = (json!(0), Vec::new());
    loop {
        let page = poll(&world.cast.alpha, json!({"after_seq": after, "limit": 10})).await;
        seen.extend(ids(&page, "events"));
        after = page["next_cursor"].clone();
        if page["more_available"] == false {
            break;
        }
    }
    assert_eq!(seen, given);
    let mut listed = Vec::new();
    let mut path = "/v1/inbox/items?limit=10".to_owned();
    loop {
        let page = world.cast.alpha.get(&path).await.expect(200);
        listed.extend(ids(&page, "items"));
        let Some(next) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/inbox/items?limit=10&cursor={next}");
    }
    listed.sort();
    assert_eq!(listed, {
        let mut given = given;
        given.sort();
        given
    });
}

#[tokio::test]
async fn a_token_of_someone_else_finds_nothing_there() {
    let world = World::new().await;
    let beta = world.cast.add("agent", "beta").await;
    let id = give(&world.cast, json!({})).await;
    beta.get(&format!("/v1/inbox/items/{id}")).await.expect_problem(404, "not_found");
    let body = json!({"after_seq": 0, "recipient_id": "alpha"});
    beta.post("/v1/inbox/poll-after-cursor", &body).await.expect_problem(404, "not_found");
    let body = json!({"after_seq": 0, "tenant_id": "elsewhere"});
    world.cast.alpha.post("/v1/inbox/poll-after-cursor", &body).await.expect_problem(404, "not_found");
    let same = json!({"after_seq": 0, "tenant_id": "default", "recipient_id": "alpha"});
    assert_eq!(ids(&poll(&world.cast.alpha, same).await, "events"), std::slice::from_ref(&id));
    world.cast.sam.post("/v1/inbox/claim-next", &json!({})).await.expect_problem(403, "forbidden");
    let listed = world.cast.owner.get("/v1/inbox/items?recipient_id=alpha").await.expect(200);
    assert_eq!(ids(&listed, "items"), [id]);
    world.cast.sam.get("/v1/inbox/items?recipient_id=alpha").await.expect_problem(404, "not_found");
}

#[tokio::test]
async fn a_deleted_agents_items_are_over_and_its_successor_starts_afresh() {
    let world = fast(&[]).await;
    give_many(&world.cast, 3).await;
    world.cast.owner.delete("/v1/principals/alpha").await.expect(204);
    let alpha = world.cast.add("agent", "alpha").await;
    let page = poll(&alpha, json!({"after_seq": 0})).await;
    assert_eq!(ids(&page, "events"), Vec::<String>::new());
    assert_eq!(claim(&alpha, json!({"limit": 10})).await.len(), 0);
}
