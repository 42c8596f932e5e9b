//! Hints between nodes: news travel at once, and without hints they travel too.

use std::time::{Duration, Instant};

use testkit::nats::NatsServer;
use testkit::{Peer, eventually};

use super::fleet::{Fleet, metric};
use crate::support::seqs;

/// How long a commit that nobody announced may stay unseen (`sync.tail_poll_interval`), with room for a busy machine.
const A_POLL: Duration = Duration::from_secs(4);

/// Kills the connections of this kind of all nodes; answers how many.
async fn kill(fleet: &Fleet, kind: &str) -> i64 {
    let sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()";
    fleet.database().number(&format!("SELECT count(*) FROM ({sessions} AND application_name LIKE 'doorstep/% {kind}') AS killed")).await
}

#[tokio::test]
async fn an_event_reaches_a_consumer_on_another_node_without_waiting_for_a_poll() {
    // A poll each hour: only a hint can be the cause.
    let fleet = Fleet::of(2, &[("sync.tail_poll_interval", "1h")]).await;
    let mut peer = Peer::consumer(fleet.url(1), fleet.cast.alpha.token(), "default").await;
    peer.json_of("catchup.complete").await;
    for number in 0..20 {
        let seq = fleet.cast.say("support/general", &number.to_string()).await;
        assert_eq!(seqs(&peer.dispatched(1).await), [seq]);
    }
    assert!(metric(fleet.url(0), "doorstep_hints_total{outcome=\"told\"}").await >= 20);
    assert!(metric(fleet.url(1), "doorstep_hints_total{outcome=\"heard\"}").await >= 20);
    assert_eq!(metric(fleet.url(0), "doorstep_hints_total{outcome=\"heard\"}").await, 0, "nobody hears itself");
}

#[tokio::test]
async fn without_hints_an_event_reaches_another_node_by_polling() {
    let fleet = Fleet::deaf(2, &[]).await;
    let mut peer = Peer::consumer(fleet.url(1), fleet.cast.alpha.token(), "default").await;
    let began = Instant::now();
    let seq = fleet.cast.say("support/general", "slowly").await;
    assert_eq!(seqs(&peer.dispatched(1).await), [seq]);
    assert!(began.elapsed() < A_POLL, "{:?}", began.elapsed());
    assert_eq!(metric(fleet.url(1), "doorstep_hints_listening").await, 0);
}

#[tokio::test]
async fn a_listening_connection_that_is_killed_comes_back_and_delivery_goes_on_meanwhile() {
    let fleet = Fleet::of(2, &[]).await;
    let mut peer = Peer::consumer(fleet.url(1), fleet.cast.alpha.token(), "default").await;
    let killed = kill(&fleet, "listen").await;
    assert!(killed >= 2, "each node listens on a connection of its own: {killed}");
    let began = Instant::now();
    let seq = fleet.cast.say("support/general", "while nobody listens").await;
    assert_eq!(seqs(&peer.dispatched(1).await), [seq]);
    assert!(began.elapsed() < A_POLL, "{:?}", began.elapsed());
    let url = fleet.url(1).to_owned();
    eventually("listening was taken up again", async || {
        (metric(&url, "doorstep_hint_reconnects_total").await >= 1 && metric(&url, "doorstep_hints_listening").await == 1).then_some(())
    })
    .await;
    let heard = "doorstep_hints_total{outcome=\"heard\"}";
    let before = metric(&url, heard).await;
    let seq = fleet.cast.say("support/general", "again").await;
    assert_eq!(seqs(&peer.dispatched(1).await), [seq]);
    eventually("hints are heard again", async || (metric(&url, heard).await > before).then_some(())).await;
}

#[tokio::test]
async fn a_notifying_connection_that_is_killed_comes_back() {
    let fleet = Fleet::of(2, &[]).await;
    let mut peer = Peer::consumer(fleet.url(1), fleet.cast.alpha.token(), "default").await;
    fleet.cast.say("support/general", "first").await;
    peer.dispatched(1).await;
    let killed = kill(&fleet, "notify").await;
    assert!(killed >= 1, "hints are told on a connection of their own");
    let url = fleet.url(0).to_owned();
    // The first one that meets the dead connection is lost; delivery goes on all the same.
    let told = "doorstep_hint_sends_total{outcome=\"done\"}";
    let before = metric(&url, told).await;
    let mut sent = Vec::new();
    eventually("hints are told again", async || {
        sent.push(fleet.cast.say("support/general", "more").await);
        (metric(&url, told).await > before).then_some(())
    })
    .await;
    assert_eq!(seqs(&peer.dispatched(sent.len()).await), sent);
}

#[tokio::test]
async fn hints_over_nats_do_what_hints_over_the_database_do() {
    let server = NatsServer::start();
    let keys = [
        ("cluster.hint_bus", "nats"),
        ("cluster.nats_url", &*server.url()),
        ("sync.tail_poll_interval", "1h"),
        ("agent.ack_persist_interval", "1h"),
    ];
    let fleet = Fleet::of(2, &keys).await;
    let token = fleet.cast.alpha.token().to_owned();
    let mut old = Peer::consumer(fleet.url(1), &token, "default").await;
    old.json_of("catchup.complete").await;
    let seq = fleet.cast.say("support/general", "over NATS").await;
    assert_eq!(seqs(&old.dispatched(1).await), [seq]);
    let _new = Peer::consumer(fleet.url(0), &token, "default").await;
    let began = Instant::now();
    assert_eq!(old.closed().await.0, 4015);
    assert!(began.elapsed() < A_POLL);
    assert_eq!(kill(&fleet, "listen").await + kill(&fleet, "notify").await, 0, "nothing goes over the database");
}
