//! The rules of agent consumers over the gateway (seed 004, "Integration").

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Frame, Peer, eventually};

use crate::support::{QUIET, World, flagged, seqs};

const QUICK: &[(&str, &str)] = &[("agent.ack_timeout", "1s"), ("agent.ack_persist_interval", "100ms")];

async fn stored_ack(world: &World, consumer: &str) -> u64 {
    let state = world.cast.alpha.get(&format!("/v1/agents/me/consumers/{consumer}")).await.expect(200);
    state["acked_seq"].as_u64().unwrap()
}

#[tokio::test]
async fn first_connection_starts_at_the_head() {
    let world = World::new().await;
    world.cast.say("support/general", "before").await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let head = peer.ready["head_seq"].as_u64().unwrap();
    assert_eq!(peer.ready["acked_seq"], head);
    assert_eq!(stored_ack(&world, "default").await, head);
    assert_eq!(peer.json_of("catchup.complete").await["head_seq"], head);
    let after = world.cast.say("support/general", "after").await;
    assert_eq!(seqs(&peer.dispatched(1).await), [after]);
    assert!(after > head);
}

#[tokio::test]
async fn a_later_connection_continues_after_what_is_acknowledged() {
    let world = World::with(QUICK).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let sent = world.cast.say_many("support/general", 5).await;
    assert_eq!(seqs(&peer.dispatched(5).await), sent);
    peer.ack(sent[1]).await;
    peer.close().await;
    let more = world.cast.say_many("support/general", 2).await;
    let mut again = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    assert_eq!(again.ready["acked_seq"], sent[1]);
    let events = again.dispatched(5).await;
    assert_eq!(seqs(&events), [&sent[2..], &more].concat());
    assert_eq!(flagged(&events), Vec::<u64>::new());
}

#[tokio::test]
async fn at_most_max_inflight_events_are_on_the_way_and_an_ack_releases_exactly_as_many() {
    let world = World::with(&[("agent.max_inflight_events", "4")]).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let sent = world.cast.say_many("support/general", 10).await;
    assert_eq!(seqs(&peer.dispatched(4).await), sent[..4]);
    peer.expect_no_dispatch(QUIET).await;
    peer.ack(sent[2]).await;
    assert_eq!(seqs(&peer.dispatched(3).await), sent[4..7]);
    peer.expect_no_dispatch(QUIET).await;
}

#[tokio::test]
async fn unacknowledged_events_come_again_flagged_and_nothing_else_is_flagged() {
    let world = World::with(&[("agent.ack_timeout", "1s"), ("agent.max_inflight_events", "3")]).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let sent = world.cast.say_many("support/general", 5).await;
    let first = peer.dispatched(3).await;
    assert_eq!((seqs(&first), flagged(&first)), (sent[..3].to_vec(), vec![]));
    let again = peer.dispatched(3).await;
    assert_eq!((seqs(&again), flagged(&again)), (sent[..3].to_vec(), sent[..3].to_vec()));
    peer.ack(sent[2]).await;
    let fresh = peer.dispatched(2).await;
    assert_eq!((seqs(&fresh), flagged(&fresh)), (sent[3..].to_vec(), vec![]));
    peer.ack(sent[4]).await;
    peer.expect_no_dispatch(Duration::from_millis(1500)).await;
    let page = world.cast.sam.get("/v1/events?after=0&limit=1000").await.expect(200);
    for event in page["events"].as_array().unwrap() {
        assert!(event.get("redelivered").is_none(), "the stored row has the flag: {event}");
    }
}

#[tokio::test]
async fn a_second_identify_takes_the_consumer_over_and_the_first_closes_with_4015() {
    let world = World::with(&[("agent.ack_persist_interval", "1h")]).await;
    let mut first = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let mut bystander = Peer::consumer(world.url(), world.cast.alpha.token(), "other").await;
    let sent = world.cast.say_many("support/general", 3).await;
    first.dispatched(3).await;
    first.ack(sent[1]).await;
    // The ack is on the way; a frame that is answered comes after it.
    first.send(&json!({"op": "heartbeat"})).await;
    first.json_of("heartbeat_ack").await;
    let mut second = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    assert_eq!(first.closed().await, (4015, "consumer_replaced".to_owned()));
    assert_eq!(second.ready["acked_seq"], sent[1], "what the first acknowledged is stored");
    assert_eq!(seqs(&second.dispatched(1).await), sent[2..]);
    let later = world.cast.say("support/general", "later").await;
    assert_eq!(seqs(&second.dispatched(1).await), [later]);
    let holder = world.cast.owner.get("/v1/agents/alpha/consumers").await.expect(200);
    assert_eq!(holder["items"].as_array().unwrap().len(), 2);

    let mut resumer = Peer::open(world.url(), Some(world.cast.alpha.token())).await;
    resumer.send(&json!({"op": "resume", "gateway_session_id": first.session()})).await;
    assert_eq!(resumer.closed().await.0, 4006, "the replaced session cannot be resumed");

    // The other name is untouched: open, and with a cursor of its own.
    assert_eq!(seqs(&bystander.dispatched(4).await), [sent.as_slice(), &[later]].concat());
}

#[tokio::test]
async fn late_teardown_of_a_replaced_session_leaves_the_new_one_alone() {
    let world = World::with(QUICK).await;
    let mut first = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let sent = world.cast.say_many("support/general", 2).await;
    first.dispatched(2).await;
    // The first peer reads nothing more, so its socket is torn down whenever the server gets to it.
    let mut second = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    second.dispatched(2).await;
    second.ack(sent[1]).await;
    drop(first);
    eventually("the second's ack is stored", async || (stored_ack(&world, "default").await == sent[1]).then_some(())).await;
    let later = world.cast.say("support/general", "later").await;
    assert_eq!(seqs(&second.dispatched(1).await), [later]);
}

#[tokio::test]
async fn an_ack_is_stored_within_the_persist_interval() {
    let world = World::with(&[("agent.ack_persist_interval", "500ms")]).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let sent = world.cast.say("support/general", "one").await;
    peer.dispatched(1).await;
    peer.ack(sent).await;
    let since = Instant::now();
    eventually("the ack is stored", async || (stored_ack(&world, "default").await == sent).then_some(())).await;
    assert!(since.elapsed() < Duration::from_millis(1500), "it took {:?}", since.elapsed());
}

#[tokio::test]
async fn shutdown_stores_acks_before_it_closes_with_4013() {
    let world = World::with(&[("agent.ack_persist_interval", "1h")]).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let sent = world.cast.say("support/general", "one").await;
    peer.dispatched(1).await;
    peer.ack(sent).await;
    peer.send(&json!({"op": "heartbeat"})).await;
    peer.json_of("heartbeat_ack").await;
    world.server.ask_to_stop();
    assert_eq!(peer.closed().await, (4013, "shutting_down".to_owned()));
    let options = world.server.options().clone();
    assert!(world.server.wait().success());
    let world = World::on(testkit::ServerProcess::start(options), world.cast, world.directory);
    assert_eq!(stored_ack(&world, "default").await, sent);
}

#[tokio::test]
async fn acks_are_validated_and_a_refused_one_keeps_the_connection() {
    let world = World::with(QUICK).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let sent = world.cast.say_many("support/general", 2).await;
    peer.dispatched(2).await;
    peer.ack(sent[1] + 100).await;
    let error = peer.json_of("error").await;
    assert_eq!((&error["refused_op"], &error["code"], &error["pointer"]), (&json!("ack"), &json!("validation_failed"), &json!("/seq")));
    peer.ack(sent[1]).await;
    peer.ack(sent[0]).await;
    eventually("the ack is stored", async || (stored_ack(&world, "default").await == sent[1]).then_some(())).await;

    let alpha = &world.cast.alpha;
    let ack = "/v1/agents/me/consumers/default/ack";
    assert_eq!(alpha.post(ack, &json!({"seq": sent[1] + 100})).await.expect_problem(400, "validation_failed")["pointer"], "/seq");
    assert_eq!(alpha.post(ack, &json!({"seq": -1})).await.expect_problem(400, "validation_failed")["pointer"], "/seq");
    alpha.post("/v1/agents/me/consumers/nobody/ack", &json!({"seq": 0})).await.expect_problem(404, "not_found");
    assert_eq!(alpha.post(ack, &json!({"seq": sent[0]})).await.expect(200)["acked_seq"], sent[1], "below changes nothing");
}

#[tokio::test]
async fn acknowledging_past_what_was_dispatched_skips_it() {
    let world = World::with(&[("agent.max_inflight_events", "2")]).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let sent = world.cast.say_many("support/general", 6).await;
    peer.dispatched(2).await;
    peer.ack(sent[4]).await;
    assert_eq!(seqs(&peer.dispatched(1).await), sent[5..]);
}

#[tokio::test]
async fn a_consumer_name_follows_the_pattern_or_closes_with_4002() {
    let world = World::new().await;
    for name in ["", "-a", "A", "a b", "a/b", &"x".repeat(65)] {
        let mut peer = Peer::open(world.url(), Some(world.cast.alpha.token())).await;
        peer.send(&json!({"op": "identify", "consumer": name})).await;
        assert_eq!(peer.closed().await, (4002, "invalid_frame".to_owned()), "{name}");
    }
    world.cast.alpha.get("/v1/agents/me/consumers/A").await.expect_problem(400, "validation_failed");
    let problem = world.cast.alpha.get("/v1/agents/me/consumers/A/events").await.expect_problem(400, "validation_failed");
    assert_eq!(problem["pointer"], "#path/consumer");
    let peer = Peer::identify(world.url(), world.cast.alpha.token(), json!({"op": "identify"})).await;
    assert_eq!(peer.ready["consumer"], "default");
}

#[tokio::test]
async fn a_resumed_session_keeps_its_holder_and_its_acks() {
    let world = World::with(&[("agent.ack_persist_interval", "1h")]).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let session = peer.session();
    let sent = world.cast.say_many("support/general", 3).await;
    peer.dispatched(3).await;
    peer.ack(sent[0]).await;
    peer.send(&json!({"op": "heartbeat"})).await;
    peer.json_of("heartbeat_ack").await;
    drop(peer);
    let mut again = Peer::open(world.url(), Some(world.cast.alpha.token())).await;
    again.send(&json!({"op": "resume", "gateway_session_id": session})).await;
    let resumed = again.json().await;
    assert_eq!((&resumed["op"], &resumed["acked_seq"]), (&json!("resumed"), &json!(sent[0])), "{resumed}");
    assert_eq!(seqs(&again.dispatched(2).await), sent[1..]);
}

#[tokio::test]
async fn a_resume_after_the_window_is_refused() {
    let world = World::with(&[("sync.resume_window", "200ms")]).await;
    let peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let session = peer.session();
    peer.close().await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    let mut late = Peer::open(world.url(), Some(world.cast.alpha.token())).await;
    late.send(&json!({"op": "resume", "gateway_session_id": session})).await;
    let (code, _) = late.closed().await;
    assert!([4006, 4009].contains(&code), "{code}");
}

#[tokio::test]
async fn a_takeover_storm_is_damped() {
    let world = World::with(&[("agent.takeover_burst", "3")]).await;
    let mut held = Vec::new();
    for _ in 0..10 {
        let mut peer = Peer::open(world.url(), Some(world.cast.alpha.token())).await;
        peer.send(&json!({"op": "identify"})).await;
        match peer.next().await {
            Frame::Json(ready) => assert_eq!(ready["op"], "ready"),
            Frame::Closed(code, _) => {
                assert_eq!(code, 4008);
                assert!(held.len() >= 3, "the burst itself is allowed");
                return;
            }
        }
        held.push(peer);
    }
    panic!("ten takeovers in a row were let through");
}

#[tokio::test]
async fn a_publish_storm_during_catch_up_arrives_in_order_and_once() {
    let world = World::with(&[("agent.max_inflight_events", "200"), ("sync.catchup_page_size", "50")]).await;
    Peer::consumer(world.url(), world.cast.alpha.token(), "default").await.close().await;
    let mut expected = Vec::new();
    for _ in 0..10 {
        expected.extend(world.cast.say_many("support/general", 100).await);
    }
    let cast = world.cast.clone();
    let storm = tokio::spawn(async move {
        let mut sent = Vec::new();
        for _ in 0..200 {
            sent.push(cast.say("support/general", "storm").await);
        }
        sent
    });
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let mut got = Vec::new();
    while got.len() < 1200 {
        let event = peer.dispatched(1).await.remove(0);
        assert!(event.get("redelivered").is_none());
        got.push(event["seq"].as_u64().unwrap());
        if got.len() % 50 == 0 {
            peer.ack(*got.last().unwrap()).await;
        }
    }
    expected.extend(storm.await.unwrap());
    assert_eq!(got, expected);
}

#[tokio::test]
async fn what_is_acknowledged_while_another_takes_over_does_not_come_again() {
    let world = World::with(&[("agent.ack_persist_interval", "1h"), ("agent.takeover_burst", "1000")]).await;
    let mut holder = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    for _ in 0..10 {
        let sent = world.cast.say_many("support/general", 20).await;
        holder.dispatched(20).await;
        let acknowledging = async {
            for seq in &sent {
                if holder.try_send(&json!({"op": "ack", "seq": seq})).await.is_none() {
                    break;
                }
            }
        };
        let (next, ()) = tokio::join!(Peer::consumer(world.url(), world.cast.alpha.token(), "default"), acknowledging);
        let acked = next.ready["acked_seq"].as_u64().unwrap();
        assert!(acked <= *sent.last().unwrap());
        holder = next;
        // Whatever the server has taken of them is the new holder's start: it is handed the rest, in order, and nothing below.
        let rest: Vec<u64> = sent.into_iter().filter(|seq| *seq > acked).collect();
        assert_eq!(seqs(&holder.dispatched(rest.len()).await), rest);
        if let Some(last) = rest.last() {
            holder.ack(*last).await;
            holder.send(&json!({"op": "heartbeat"})).await;
            holder.json_of("heartbeat_ack").await;
        }
    }
}
