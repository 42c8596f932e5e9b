//! Consumers over REST: the same stream with the same rules (seed 004, design notes 8 to 10; design/stream.md, "REST window").

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Http, Peer};

use crate::support::{World, flagged, seqs};

const EVENTS: &str = "/v1/agents/me/consumers/default/events";
const ACK: &str = "/v1/agents/me/consumers/default/ack";

async fn poll(agent: &Http, query: &str) -> Value {
    agent.get(&format!("{EVENTS}{query}")).await.expect(200)
}

fn events(page: &Value) -> Vec<Value> {
    page["events"].as_array().unwrap().clone()
}

async fn ack(agent: &Http, seq: &Value) -> Value {
    agent.post(ACK, &json!({"seq": seq})).await.expect(200)
}

#[tokio::test]
async fn the_first_poll_starts_at_the_head_and_later_ones_continue() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    let before = world.cast.say("support/general", "before").await;
    alpha.get("/v1/agents/me/consumers/default").await.expect_problem(404, "not_found");
    let page = poll(alpha, "").await;
    assert_eq!((events(&page), &page["next_cursor"], &page["head_seq"]), (vec![], &json!(before), &json!(before)));
    let sent = world.cast.say_many("support/general", 3).await;
    let page = poll(alpha, "?limit=2").await;
    assert_eq!(seqs(&events(&page)), sent[..2]);
    ack(alpha, &page["next_cursor"]).await;
    let page = poll(alpha, "").await;
    assert_eq!(seqs(&events(&page)), sent[2..]);
    let state = ack(alpha, &page["next_cursor"]).await;
    assert_eq!((&state["acked_seq"], &state["lag"]), (&json!(sent[2]), &json!(0)));
}

#[tokio::test]
async fn a_poll_never_gives_more_than_max_inflight_events() {
    let world = World::with(&[("agent.max_inflight_events", "4")]).await;
    let alpha = &world.cast.alpha;
    poll(alpha, "").await;
    let sent = world.cast.say_many("support/general", 10).await;
    let page = poll(alpha, "?limit=1000").await;
    assert_eq!(seqs(&events(&page)), sent[..4]);
    // `after` proves the page received, yet everything of it is still in flight.
    let next = format!("?after={}", page["next_cursor"]);
    assert_eq!(events(&poll(alpha, &next).await), Vec::<Value>::new());
    ack(alpha, &json!(sent[1])).await;
    assert_eq!(seqs(&events(&poll(alpha, &next).await)), sent[4..6]);
}

#[tokio::test]
async fn a_poll_inside_the_timeout_repeats_nothing_and_one_after_it_repeats_exactly_what_was_in_flight() {
    let world = World::with(&[("agent.ack_timeout", "1s")]).await;
    let alpha = &world.cast.alpha;
    poll(alpha, "").await;
    let sent = world.cast.say_many("support/general", 3).await;
    let page = poll(alpha, "").await;
    assert_eq!((seqs(&events(&page)), flagged(&events(&page))), (sent.clone(), vec![]));
    assert_eq!(events(&poll(alpha, &format!("?after={}", page["next_cursor"])).await), Vec::<Value>::new());
    let since = Instant::now();
    let again = poll(alpha, &format!("?after={}&wait_seconds=10", page["next_cursor"])).await;
    assert_eq!((seqs(&events(&again)), flagged(&events(&again))), (sent.clone(), sent.clone()));
    assert!(since.elapsed() < Duration::from_secs(5), "a waiting poll ends at the deadline");
    ack(alpha, &json!(sent[2])).await;
    let fresh = world.cast.say("support/general", "fresh").await;
    let page = poll(alpha, "").await;
    assert_eq!((seqs(&events(&page)), flagged(&events(&page))), (vec![fresh], vec![]));
}

#[tokio::test]
async fn a_poll_response_that_never_arrives_loses_nothing() {
    let world = World::with(&[("agent.ack_timeout", "1s")]).await;
    let alpha = &world.cast.alpha;
    let start = poll(alpha, "").await;
    let lost = world.cast.say_many("support/general", 2).await;
    // This response is "lost": the client neither saw it nor moves its `after`.
    poll(alpha, "").await;
    let later = world.cast.say_many("support/general", 2).await;
    let unproven = poll(alpha, "").await;
    assert_eq!((events(&unproven), &unproven["unproven"], &unproven["next_cursor"]), (vec![], &json!(true), &start["next_cursor"]));
    // A cumulative ack of a later page would have acknowledged the lost one: so it must come first.
    let after_timeout = poll(alpha, "?wait_seconds=10").await;
    assert_eq!(seqs(&events(&after_timeout)), [lost.clone(), later].concat());
    assert_eq!(flagged(&events(&after_timeout)), lost);
}

#[tokio::test]
async fn a_client_that_knows_it_lost_a_response_gets_it_at_once_by_its_own_after() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    let start = poll(alpha, "").await;
    let sent = world.cast.say_many("support/general", 2).await;
    poll(alpha, "").await;
    let again = poll(alpha, &format!("?after={}", start["next_cursor"])).await;
    assert_eq!((seqs(&events(&again)), flagged(&events(&again))), (sent.clone(), sent.clone()));
    let above = sent[1] + 1000;
    let problem = alpha.get(&format!("{EVENTS}?after={above}")).await.expect_problem(400, "validation_failed");
    assert_eq!(problem["pointer"], "#query/after");
}

#[tokio::test]
async fn the_window_survives_a_crash() {
    let world = World::with(&[("agent.ack_timeout", "3s")]).await;
    poll(&world.cast.alpha, "").await;
    let sent = world.cast.say_many("support/general", 2).await;
    let page = poll(&world.cast.alpha, "").await;
    assert_eq!(seqs(&events(&page)), sent);
    let since = Instant::now();
    let world = world.crash();
    let proven = format!("?after={}", page["next_cursor"]);
    assert_eq!(events(&poll(&world.cast.alpha, &proven).await), Vec::<Value>::new(), "still in flight");
    let again = poll(&world.cast.alpha, &format!("{proven}&wait_seconds=20")).await;
    assert_eq!(flagged(&events(&again)), sent);
    assert!(since.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn a_long_poll_answers_as_soon_as_there_is_an_admissible_event() {
    let world = World::new().await;
    let alpha = world.cast.alpha.clone();
    poll(&alpha, "").await;
    for round in 0..20 {
        let waiting = alpha.clone();
        let since = Instant::now();
        let waiter = tokio::spawn(async move { poll(&waiting, "?wait_seconds=20").await });
        // Sometimes before, sometimes between, sometimes after the check: none may be missed.
        tokio::time::sleep(Duration::from_micros(round * 300)).await;
        world.cast.say("marketing/plans", "not for alpha").await;
        let sent = world.cast.say("support/general", "for alpha").await;
        let page = waiter.await.unwrap();
        assert_eq!(seqs(&events(&page)), [sent]);
        assert!(since.elapsed() < Duration::from_secs(10), "round {round} took {:?}", since.elapsed());
        ack(&alpha, &page["next_cursor"]).await;
    }
}

#[tokio::test]
async fn a_poll_takes_over_a_gateway_consumer_and_state_and_ack_take_nothing_over() {
    let world = World::with(&[("agent.ack_persist_interval", "1h")]).await;
    let alpha = &world.cast.alpha;
    let mut peer = Peer::consumer(world.url(), alpha.token(), "default").await;
    let sent = world.cast.say_many("support/general", 3).await;
    peer.dispatched(3).await;
    peer.ack(sent[0]).await;
    let state = alpha.get("/v1/agents/me/consumers/default").await.expect(200);
    assert!(state.get("in_flight").is_none(), "a gateway session holds it: {state}");
    ack(alpha, &json!(sent[1])).await;
    peer.send(&json!({"op": "heartbeat"})).await;
    peer.json_of("heartbeat_ack").await;
    let page = poll(alpha, "").await;
    assert_eq!(peer.closed().await, (4015, "consumer_replaced".to_owned()));
    assert_eq!(seqs(&events(&page)), sent[2..]);
}

#[tokio::test]
async fn a_gateway_session_takes_over_a_polling_consumer() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    poll(alpha, "").await;
    let sent = world.cast.say_many("support/general", 2).await;
    poll(alpha, "").await;
    let mut peer = Peer::consumer(world.url(), alpha.token(), "default").await;
    let events = peer.dispatched(2).await;
    assert_eq!((seqs(&events), flagged(&events)), (sent, vec![]), "a fresh window, so no flag");
}

#[tokio::test]
async fn an_ack_over_rest_is_adopted_by_the_gateway_window() {
    let world = World::with(&[("agent.ack_timeout", "1s"), ("agent.ack_persist_interval", "100ms")]).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let sent = world.cast.say_many("support/general", 2).await;
    peer.dispatched(2).await;
    ack(&world.cast.alpha, &json!(sent[1])).await;
    peer.expect_no_dispatch(Duration::from_millis(1500)).await;
}

#[tokio::test]
async fn retention_answers_410_once_and_moves_the_cursor_to_the_head() {
    let world =
        World::with(&[("sync.event_retention", "300ms"), ("sync.retention_grace", "0s"), ("sync.retention_interval", "100ms")]).await;
    let alpha = &world.cast.alpha;
    poll(alpha, "").await;
    let mut gateway = Peer::consumer(world.url(), alpha.token(), "gw").await;
    gateway.json_of("catchup.complete").await;
    gateway.close().await;
    let sent = world.cast.say_many("support/general", 5).await;
    testkit::eventually("the events are gone", async || {
        let answer = world.cast.sam.get(&format!("/v1/events?after={}", sent[0] - 1)).await;
        (answer.status == 410).then_some(())
    })
    .await;
    let head = *sent.last().unwrap();
    let gone = alpha.get(EVENTS).await.expect_problem(410, "resync_required");
    assert_eq!(gone["reason"], "retention");
    let state = alpha.get("/v1/agents/me/consumers/default").await.expect(200);
    assert_eq!(state["acked_seq"], head);
    assert_eq!(events(&poll(alpha, "").await), Vec::<Value>::new());

    let mut peer = Peer::consumer(world.url(), alpha.token(), "gw").await;
    let resync = peer.json().await;
    assert_eq!((&resync["op"], &resync["reason"], &resync["head_seq"]), (&json!("resync_required"), &json!("retention"), &json!(head)));
    let live = world.cast.say("support/general", "live").await;
    assert_eq!(seqs(&peer.dispatched(1).await), [live], "it stays open and goes on from the head");
}

#[tokio::test]
async fn an_ack_or_poll_of_another_epoch_is_410() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    poll(alpha, "").await;
    let other = "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70";
    let refused = alpha.post(ACK, &json!({"seq": 1, "sync_epoch": other})).await.expect_problem(410, "resync_required");
    assert_eq!(refused["reason"], "epoch_changed");
    let refused = alpha.get(&format!("{EVENTS}?sync_epoch={other}")).await.expect_problem(410, "resync_required");
    assert_eq!(refused["reason"], "epoch_changed");
}

#[tokio::test]
async fn two_polls_at_once_hand_no_event_out_twice() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    poll(alpha, "").await;
    for _ in 0..10 {
        let sent = world.cast.say_many("support/general", 4).await;
        let (one, two) = tokio::join!(poll(alpha, ""), poll(alpha, ""));
        let mut both = [seqs(&events(&one)), seqs(&events(&two))].concat();
        both.sort_unstable();
        assert_eq!(both, sent);
        ack(alpha, &json!(sent[3])).await;
    }
}

#[tokio::test]
async fn a_waiting_poll_whose_token_is_revoked_is_handed_nothing_and_nothing_is_skipped() {
    let world = World::new().await;
    let alpha = world.cast.alpha.clone();
    // The token is there before the consumer is: its creation is an event of alpha's own and would answer the poll at once.
    let other = world.cast.owner.post("/v1/principals/alpha/tokens", &json!({})).await.expect(201);
    poll(&alpha, "").await;
    let doomed = alpha.with_token(other["token"].as_str().unwrap());
    let waiting = tokio::spawn(async move { doomed.get(&format!("{EVENTS}?wait_seconds=20")).await });
    testkit::eventually("the poll waits", async || {
        let metrics = String::from_utf8(world.cast.owner.get("/metrics").await.body.to_vec()).unwrap();
        metrics
            .lines()
            .any(|line| line.starts_with("doorstep_waiting_polls ") && !line.ends_with(" 0") && !line.ends_with(" 0.0"))
            .then_some(())
    })
    .await;
    let path = format!("/v1/principals/alpha/tokens/{}", other["token_id"].as_str().unwrap());
    world.cast.owner.delete(&path).await.expect(204);
    waiting.await.unwrap().expect_problem(401, "unauthenticated");
    let sent = world.cast.say("support/general", "for whoever holds a valid token").await;
    let after = alpha.get("/v1/agents/me/consumers/default").await.expect(200)["acked_seq"].clone();
    let page = poll(&alpha, &format!("?after={after}")).await;
    assert!(seqs(&events(&page)).contains(&sent), "{page}");
}

#[tokio::test]
async fn a_client_that_missed_the_410_is_told_again_by_its_own_after() {
    let world =
        World::with(&[("sync.event_retention", "300ms"), ("sync.retention_grace", "0s"), ("sync.retention_interval", "100ms")]).await;
    let alpha = &world.cast.alpha;
    let start = poll(alpha, "").await["next_cursor"].clone();
    let sent = world.cast.say_many("support/general", 5).await;
    testkit::eventually("the events are gone", async || {
        let answer = world.cast.sam.get(&format!("/v1/events?after={}", sent[0] - 1)).await;
        (answer.status == 410).then_some(())
    })
    .await;
    for _ in 0..2 {
        // The first answer may be lost: a client that still stands below the gap must not be led over it in silence.
        let gone = alpha.get(&format!("{EVENTS}?after={start}")).await.expect_problem(410, "resync_required");
        assert_eq!(gone["reason"], "retention");
    }
    assert_eq!(events(&poll(alpha, "").await), Vec::<Value>::new());
}
