//! A consumer that goes from node to node: taken over, polled everywhere, its rights changed elsewhere.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Peer, eventually};

use super::fleet::Fleet;
use crate::support::{flagged, seqs};

/// Longer than a hint takes, much shorter than any interval that could be the cause instead.
const AT_ONCE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_consumer_taken_on_another_node_closes_the_old_connection_with_4015_at_once() {
    // Nothing is saved or verified for an hour: the hint alone can be the cause.
    let fleet = Fleet::of(2, &[("agent.ack_persist_interval", "1h")]).await;
    let token = fleet.cast.alpha.token().to_owned();
    let mut old = Peer::consumer(fleet.url(0), &token, "default").await;
    let mut new = Peer::consumer(fleet.url(1), &token, "default").await;
    let began = Instant::now();
    assert_eq!(old.closed().await.0, 4015);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let seq = fleet.cast.say("support/general", "for the new one").await;
    assert_eq!(seqs(&new.dispatched(1).await), [seq]);
    // A session that was replaced cannot be resumed, wherever it is tried.
    let mut late = Peer::open(fleet.url(0), Some(&token)).await;
    late.send(&json!({"op": "resume", "gateway_session_id": old.session()})).await;
    assert_eq!(late.closed().await.0, 4006);
}

#[tokio::test]
async fn a_poll_on_another_node_takes_the_consumer_over_and_a_session_takes_it_back() {
    let fleet = Fleet::of(2, &[("agent.ack_persist_interval", "1h")]).await;
    let token = fleet.cast.alpha.token().to_owned();
    let mut session = Peer::consumer(fleet.url(0), &token, "default").await;
    let there = fleet.cast_at(1).alpha;
    there.get("/v1/agents/me/consumers/default/events").await.expect(200);
    let began = Instant::now();
    assert_eq!(session.closed().await.0, 4015);
    assert!(began.elapsed() < AT_ONCE);
    // A poll that waits on one node ends at once when a session takes the consumer on the other.
    let waiting = tokio::spawn(async move { there.get("/v1/agents/me/consumers/default/events?wait_seconds=25").await });
    let url = fleet.url(1).to_owned();
    eventually("the poll waits", async || (super::fleet::metric(&url, "doorstep_waiting_polls").await == 1).then_some(())).await;
    let began = Instant::now();
    let _session = Peer::consumer(fleet.url(0), &token, "default").await;
    let page = waiting.await.unwrap().expect(200);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(page["events"], json!([]));
}

#[tokio::test]
async fn a_save_is_fenced_across_nodes() {
    let fleet = Fleet::deaf(2, &[("agent.ack_persist_interval", "1s")]).await;
    let token = fleet.cast.alpha.token().to_owned();
    let mut old = Peer::consumer(fleet.url(0), &token, "default").await;
    let start = old.ready["acked_seq"].as_u64().unwrap();
    let sent = fleet.cast.say_many("support/general", 3).await;
    old.dispatched(3).await;
    let new = Peer::consumer(fleet.url(1), &token, "default").await;
    assert_eq!(new.ready["acked_seq"], start);
    let began = Instant::now();
    // It may have been closed already: then it is refused in another way.
    let _ = old.try_send(&json!({"op": "ack", "seq": sent[2]})).await;
    assert_eq!(old.closed().await.0, 4015, "within the interval, without any hint");
    assert!(began.elapsed() < Duration::from_secs(1) + AT_ONCE, "{:?}", began.elapsed());
    let state = fleet.cast_at(1).alpha.get("/v1/agents/me/consumers/default").await.expect(200);
    assert_eq!(state["acked_seq"], start, "a late save changes nothing");
    let holder = state["holder"].to_string();
    assert!(holder.contains(&new.session()) || state["holder"] == json!("gateway") || !holder.is_empty());
}

#[tokio::test]
async fn a_right_revoked_through_one_node_is_heeded_by_the_other_also_in_what_comes_again() {
    let fleet = Fleet::of(2, &[("agent.ack_timeout", "2s")]).await;
    let mut peer = Peer::consumer(fleet.url(1), fleet.cast.alpha.token(), "default").await;
    let seen = fleet.cast.say("support/general", "before").await;
    assert_eq!(seqs(&peer.dispatched(1).await), [seen]);
    fleet.owner(0).delete(&format!("/v1/grants/{}", fleet.cast.alpha_general_grant)).await.expect(204);
    let hidden = fleet.cast.say("support/general", "after").await;
    let shown = fleet.cast.say("support/github", "still allowed").await;
    let events = peer.dispatched(2).await;
    assert_eq!(events[0]["type"], "access.changed");
    let revoked = events[0]["seq"].as_u64().unwrap();
    assert_eq!(seqs(&events), [revoked, shown], "nothing of the channel after the revocation: {hidden}");
    // Nothing is acknowledged: all of it comes again but what may not be seen any more.
    let again = peer.dispatched(2).await;
    assert_eq!((seqs(&again), flagged(&again)), (vec![revoked, shown], vec![revoked, shown]));
}

#[tokio::test]
async fn a_token_revoked_on_one_node_closes_its_connection_on_the_other_within_a_second() {
    let fleet = Fleet::of(2, &[]).await;
    let other = fleet.cast.owner.post("/v1/principals/alpha/tokens", &json!({})).await.expect(201);
    let mut peer = Peer::consumer(fleet.url(1), other["token"].as_str().unwrap(), "doomed").await;
    let path = format!("/v1/principals/alpha/tokens/{}", other["token_id"].as_str().unwrap());
    fleet.owner(0).delete(&path).await.expect(204);
    let began = Instant::now();
    assert_eq!(peer.closed().await.0, 4012);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// One poll of a node in turn; answers events and the page.
async fn poll(fleet: &Fleet, node: usize, after: Option<u64>) -> Value {
    let after = after.map_or(String::new(), |after| format!("&after={after}"));
    fleet.cast_at(node).alpha.get(&format!("/v1/agents/me/consumers/default/events?limit=5{after}")).await.expect(200)
}

#[tokio::test]
async fn polls_over_three_nodes_repeat_nothing_inside_the_timeout_and_flag_everything_after_it() {
    let fleet = Fleet::of(3, &[("agent.ack_timeout", "4s"), ("agent.max_inflight_events", "20")]).await;
    poll(&fleet, 0, None).await;
    let sent = fleet.cast.say_many("support/general", 60).await;
    let (mut handed, mut after, mut node) = (Vec::new(), None, 0);
    let began = Instant::now();
    while handed.len() < 20 {
        assert!(began.elapsed() < Duration::from_secs(3), "the pages of a window take a moment: {handed:?}");
        let page = poll(&fleet, node % 3, after).await;
        if page["unproven"] != true {
            after = page["next_cursor"].as_u64();
        }
        let events = page["events"].as_array().unwrap();
        assert_eq!(flagged(events), Vec::<u64>::new());
        handed.extend(seqs(events));
        node += 1;
    }
    assert_eq!(handed, sent[..20], "in order, and nothing twice");
    assert!(node >= 4, "pages of five from one node after another");
    // The window is full: nobody gets more, and nobody gets it again.
    for node in 0..3 {
        assert_eq!(poll(&fleet, node, after).await["events"], json!([]));
    }
    let rest = Duration::from_secs(4).saturating_sub(began.elapsed()) + Duration::from_millis(300);
    tokio::time::sleep(rest).await;
    let (mut again, mut after) = (Vec::new(), None);
    let deadline = Instant::now() + Duration::from_secs(3);
    while again.len() < 20 {
        assert!(Instant::now() < deadline, "{again:?}");
        let page = poll(&fleet, node % 3, after).await;
        if page["unproven"] != true {
            after = page["next_cursor"].as_u64();
        }
        let events = page["events"].as_array().unwrap();
        assert_eq!(flagged(events), seqs(events), "all of it, and flagged");
        again.extend(seqs(events));
        node += 1;
    }
    assert_eq!(again, handed);
    // An acknowledgement on one node moves the others' window.
    let acked = fleet.cast_at(1).alpha.post("/v1/agents/me/consumers/default/ack", &json!({"seq": sent[19]})).await.expect(200);
    assert_eq!(acked["acked_seq"], sent[19]);
    let page = poll(&fleet, 2, None).await;
    assert_eq!(seqs(page["events"].as_array().unwrap()), sent[20..25]);
}

#[tokio::test]
async fn what_one_node_handed_out_another_continues_after_the_first_is_killed_in_mid_window() {
    let mut fleet = Fleet::of(2, &[("agent.ack_persist_interval", "50ms")]).await;
    let mut peer = Peer::consumer(fleet.url(1), fleet.cast.alpha.token(), "default").await;
    let sent = fleet.cast.say_many("support/general", 10).await;
    assert_eq!(seqs(&peer.dispatched(10).await), sent);
    peer.ack(sent[4]).await;
    eventually("the acknowledgement is stored", async || {
        let state = fleet.cast.alpha.get("/v1/agents/me/consumers/default").await.expect(200);
        (state["acked_seq"] == sent[4]).then_some(())
    })
    .await;
    fleet.take(1).kill();
    assert_eq!(peer.closed().await.0, 1006);
    let mut peer = Peer::consumer(fleet.url(0), fleet.cast.alpha.token(), "default").await;
    assert_eq!(peer.ready["acked_seq"], sent[4]);
    let rest: HashSet<u64> = seqs(&peer.dispatched(5).await).into_iter().collect();
    assert_eq!(rest, sent[5..].iter().copied().collect());
}
