//! Leases: heartbeats, lapses, late and repeated answers, attempts that count and those that do not.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::Peer;

use super::{LAPSE, ack, claim, claim_one, claim_soon, fast, give, heartbeat, in_state, item, release};
use crate::support::World;

#[tokio::test]
async fn a_lapsed_lease_gives_the_item_to_the_next_and_the_late_acknowledge_is_refused() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    let id = give(&world.cast, json!({})).await;
    let first = claim_soon(alpha, 1).await;
    tokio::time::sleep(LAPSE).await;
    let second = claim_soon(alpha, 60).await;
    assert_eq!((&second["event_id"], &second["delivery_attempts"]), (&json!(id), &json!(2)));
    assert_ne!(first["lease_token"], second["lease_token"]);
    assert_eq!(second["prior_attempts"][0]["outcome"], "lease_expired");
    let late = ack(alpha, &first, "completed").await;
    assert_eq!(late["outcome"], "lease_lost");
    let back = release(alpha, &first, json!({})).await;
    back.expect_problem(409, "lease_lost");
    assert_eq!(heartbeat(alpha, &first, 60).await["outcome"], "lease_lost");
    assert_eq!(ack(alpha, &second, "completed").await["outcome"], "ok");
    assert_eq!(item(alpha, &id).await["ack_state"], "acked");
}

#[tokio::test]
async fn an_acknowledge_past_the_leases_end_counts_while_nobody_else_has_the_item() {
    let world = World::with(&[("inbox.sweep_interval", "1h")]).await;
    give(&world.cast, json!({})).await;
    let claimed = claim_soon(&world.cast.alpha, 1).await;
    tokio::time::sleep(LAPSE).await;
    assert_eq!(ack(&world.cast.alpha, &claimed, "completed").await["outcome"], "ok");
}

#[tokio::test]
async fn a_repeated_acknowledge_is_a_success_and_another_result_is_not() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    for result in ["completed", "failed", "discarded"] {
        give(&world.cast, json!({})).await;
        let claimed = claim_one(alpha, json!({})).await;
        let first = ack(alpha, &claimed, result).await;
        assert_eq!(first["outcome"], "ok", "{result}");
        assert_eq!(ack(alpha, &claimed, result).await["outcome"], "ok", "{result} repeated");
        let other = if result == "completed" { "failed" } else { "completed" };
        assert_eq!(ack(alpha, &claimed, other).await["outcome"], "lease_lost");
    }
    let forged = json!({"event_id": give(&world.cast, json!({})).await, "lease_token": "lease_forged"});
    assert_eq!(ack(alpha, &forged, "completed").await["outcome"], "lease_lost");
}

#[tokio::test]
async fn an_answer_that_is_lost_after_the_commit_loses_nothing() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    let id = give(&world.cast, json!({})).await;
    let claimed = claim_one(alpha, json!({})).await;
    let body = json!({"acks": [{"event_id": id, "lease_token": claimed["lease_token"], "result": "completed"}]}).to_string();
    // Sent, and the connection closed without reading the answer.
    let address = world.url().trim_start_matches("http://").to_owned();
    let request = format!(
        "POST /v1/inbox/acknowledge HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        alpha.token(),
        body.len()
    );
    {
        use std::io::Write as _;
        std::net::TcpStream::connect(&address).unwrap().write_all(request.as_bytes()).unwrap();
    }
    assert_eq!(ack(alpha, &claimed, "completed").await["outcome"], "ok");
    let done = in_state(alpha, &id, "acked").await;
    assert_eq!(done["delivery_attempts"], 1);
}

#[tokio::test]
async fn heartbeats_hold_a_lease_through_reconnects_and_one_that_is_lost_loses_nothing() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    let id = give(&world.cast, json!({})).await;
    let mut peer = Peer::consumer(world.url(), alpha.token(), "default").await;
    let claimed = claim_soon(alpha, 2).await;
    let since = Instant::now();
    // Each third of a lease but for one.
    for beat in 0..7 {
        tokio::time::sleep(Duration::from_millis(660)).await;
        if beat == 3 {
            continue;
        }
        peer.close().await;
        peer = Peer::consumer(world.url(), alpha.token(), "default").await;
        let entry = heartbeat(alpha, &claimed, 2).await;
        assert_eq!(entry["outcome"], "ok", "{entry}");
        assert!(entry["lease_expires_in_ms"].as_u64().is_some_and(|left| (1_000..=2_000).contains(&left)), "{entry}");
    }
    assert!(since.elapsed() > Duration::from_secs(4), "several leases long");
    assert_eq!(item(alpha, &id).await["ack_state"], "claimed");
    assert_eq!(ack(alpha, &claimed, "completed").await["outcome"], "ok");
}

#[tokio::test]
async fn the_attempts_deadline_ends_a_hung_workers_hold_whatever_it_says() {
    let world = fast(&[("inbox.attempt_deadline", "2s"), ("inbox.lease_default", "1s")]).await;
    let alpha = &world.cast.alpha;
    let id = give(&world.cast, json!({})).await;
    let hung = claim_soon(alpha, 1).await;
    assert!(hung["attempt_deadline_utc"].is_string(), "{hung}");
    let (alpha2, hung2) = (alpha.clone(), hung.clone());
    let beating = tokio::spawn(async move {
        while heartbeat(&alpha2, &hung2, 60).await["outcome"] == "ok" {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let next = claim_soon(alpha, 60).await;
    assert_eq!((&next["event_id"], &next["delivery_attempts"]), (&json!(id), &json!(2)));
    beating.await.unwrap();
    assert_eq!(ack(alpha, &hung, "completed").await["outcome"], "lease_lost");
}

#[tokio::test]
async fn failures_count_up_to_the_dead_letter_and_snoozes_do_not() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    let id = give(&world.cast, json!({"max_attempts": 2})).await;
    for _ in 0..5 {
        let claimed = claim_soon(alpha, 60).await;
        release(alpha, &claimed, json!({"reason": "snooze", "retry_after_seconds": 0})).await.expect(200);
    }
    let claimed = claim_soon(alpha, 60).await;
    assert_eq!(claimed["delivery_attempts"], 6, "every claim is a delivery");
    let failed = ack(alpha, &claimed, "failed").await;
    assert_eq!((&failed["outcome"], &failed["ack_state"]), (&json!("ok"), &json!("retry_scheduled")));
    let claimed = claim_soon(alpha, 60).await;
    let back = release(alpha, &claimed, json!({})).await.expect(200);
    assert_eq!((&back["ack_state"], &back["dead_letter_state"]), (&json!("dead_letter"), &json!("dead_lettered")));
    let dead = item(alpha, &id).await;
    let outcomes: Vec<_> = dead["attempts"].as_array().unwrap().iter().map(|attempt| attempt["outcome"].clone()).collect();
    assert_eq!(outcomes, ["snoozed", "snoozed", "snoozed", "snoozed", "snoozed", "failed", "released"]);
    assert_eq!(claim(alpha, json!({})).await.len(), 0);
}

#[tokio::test]
async fn a_restart_of_the_server_burns_no_attempt_and_breaks_no_lease() {
    let world = fast(&[]).await;
    let id = give(&world.cast, json!({})).await;
    let claimed = claim_soon(&world.cast.alpha, 60).await;
    let options = world.server.options().clone();
    world.server.ask_to_stop();
    assert!(world.server.wait().success());
    let world = World::on(testkit::ServerProcess::start(options), world.cast, world.directory);
    assert_eq!(item(&world.cast.alpha, &id).await["ack_state"], "claimed");
    assert_eq!(heartbeat(&world.cast.alpha, &claimed, 60).await["outcome"], "ok");
    let world = world.crash();
    assert_eq!(claim(&world.cast.alpha, json!({})).await.len(), 0, "the lease stands");
    assert_eq!(ack(&world.cast.alpha, &claimed, "completed").await["outcome"], "ok");
    assert_eq!(item(&world.cast.alpha, &id).await["delivery_attempts"], 1);
}

#[tokio::test]
async fn rests_of_different_length_all_end_on_time() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    let [long, short] = [give(&world.cast, json!({})).await, give(&world.cast, json!({})).await];
    for (seconds, id) in [(3, &long), (1, &short)] {
        let claimed = claim_soon(alpha, 60).await;
        assert_eq!(&claimed["event_id"], id);
        release(alpha, &claimed, json!({"retry_after_seconds": seconds})).await.expect(200);
    }
    let since = Instant::now();
    assert_eq!(claim(alpha, json!({})).await.len(), 0);
    assert_eq!(claim_soon(alpha, 60).await["event_id"], json!(short));
    assert!((Duration::from_millis(800)..Duration::from_millis(2_500)).contains(&since.elapsed()), "{:?}", since.elapsed());
    assert_eq!(claim_soon(alpha, 60).await["event_id"], json!(long));
    assert!((Duration::from_millis(2_700)..Duration::from_secs(6)).contains(&since.elapsed()), "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_claim_decides_about_a_lapsed_lease_like_the_sweeper_would() {
    let world = World::with(&[("inbox.sweep_interval", "1h"), ("inbox.retry_base", "10ms")]).await;
    let alpha = &world.cast.alpha;
    give(&world.cast, json!({"max_attempts": 1})).await;
    let id = give(&world.cast, json!({})).await;
    let both = claim(alpha, json!({"limit": 2, "lease_seconds": 1})).await;
    assert_eq!(both.len(), 2);
    tokio::time::sleep(LAPSE).await;
    let again = claim(alpha, json!({"limit": 2})).await;
    assert_eq!(again.iter().map(|claim| claim["event_id"].clone()).collect::<Vec<_>>(), [json!(id)], "the other is a dead letter");
    assert_eq!(again[0]["prior_attempts"][0]["outcome"], "lease_expired");
    let dead = item(alpha, both[0]["event_id"].as_str().unwrap()).await;
    assert_eq!(dead["ack_state"], "dead_letter");
}

#[tokio::test]
async fn max_in_flight_holds_under_concurrent_claims() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    super::give_many(&world.cast, 30).await;
    world
        .cast
        .owner
        .call("PUT", "/v1/agents/alpha/inbox-policy", &[("content-type", "application/json")], r#"{"max_in_flight":7}"#)
        .await
        .expect(200);
    let claimers = (0..20).map(|_| {
        let alpha = alpha.clone();
        tokio::spawn(async move { claim(&alpha, json!({"limit": 3})).await })
    });
    let mut held = Vec::new();
    for claimer in claimers.collect::<Vec<_>>() {
        held.extend(claimer.await.unwrap());
    }
    assert_eq!(held.len(), 7);
    ack(alpha, &held[0], "completed").await;
    assert_eq!(claim(alpha, json!({"limit": 3})).await.len(), 1);
}

#[tokio::test]
async fn an_idempotency_key_replays_what_is_still_held() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    super::give_many(&world.cast, 3).await;
    let headers = [("content-type", "application/json"), ("idempotency-key", "once")];
    let call = async |body: &str| alpha.call("POST", "/v1/inbox/claim-next", &headers, body.to_owned()).await;
    let first = call(r#"{"limit":2}"#).await.expect(200);
    let again = call(r#"{"limit":2}"#).await.expect(200);
    let tokens = |answer: &serde_json::Value| {
        answer["claims"].as_array().unwrap().iter().map(|claim| claim["lease_token"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((tokens(&first).len(), tokens(&again)), (2, tokens(&first)));
    call(r#"{"limit":1}"#).await.expect_problem(409, "idempotency_conflict");
    ack(alpha, &first["claims"][0], "completed").await;
    assert_eq!(tokens(&call(r#"{"limit":2}"#).await.expect(200)), tokens(&first)[1..]);
    ack(alpha, &first["claims"][1], "completed").await;
    assert_eq!(tokens(&call(r#"{"limit":2}"#).await.expect(200)).len(), 1, "nothing is left: claimed afresh");
}

#[tokio::test]
async fn a_client_that_is_gone_before_the_answer_holds_nothing_and_no_attempt_counts() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    let address = world.url().trim_start_matches("http://").to_owned();
    let body = r#"{"wait_seconds":20,"lease_seconds":600}"#;
    let request = format!(
        "POST /v1/inbox/claim-next HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        alpha.token(),
        body.len()
    );
    {
        use std::io::Write as _;
        let mut gone = std::net::TcpStream::connect(&address).unwrap();
        gone.write_all(request.as_bytes()).unwrap();
        testkit::eventually("the claim waits", async || {
            let metrics = world.cast.owner.get("/metrics").await;
            String::from_utf8_lossy(&metrics.body)
                .lines()
                .any(|line| line == "doorstep_inbox_waiters 1.0")
                .then_some(())
        })
        .await;
    }
    let id = give(&world.cast, json!({"max_attempts": 1})).await;
    let claimed = claim_soon(alpha, 60).await;
    assert_eq!(claimed["event_id"], json!(id));
}
