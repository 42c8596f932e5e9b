//! A node that stops: it says so, its connections leave one after another, and the other node has them.

use std::time::{Duration, Instant};

use testkit::{Http, Peer};

use super::fleet::Fleet;
use crate::support::seqs;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_a_node_that_stops_leave_one_after_another_and_lose_nothing() {
    let mut fleet = Fleet::of(2, &[("shutdown.drain_spread", "3s"), ("agent.ack_persist_interval", "1h")]).await;
    let token = fleet.cast.alpha.token().to_owned();
    let mut peers = Vec::new();
    for number in 0..12 {
        peers.push((format!("c{number}"), Peer::consumer(fleet.url(1), &token, &format!("c{number}")).await));
    }
    let sent = fleet.cast.say_many("support/general", 3).await;
    for (_, peer) in &mut peers {
        assert_eq!(seqs(&peer.dispatched(3).await), sent);
        peer.ack(sent[1]).await;
    }
    let leaving = fleet.take(1);
    let url = leaving.url.clone();
    leaving.ask_to_stop();
    let began = Instant::now();
    let closing: Vec<_> = peers
        .into_iter()
        .map(|(name, mut peer)| {
            tokio::spawn(async move {
                let code = peer.closed().await.0;
                (name, code, Instant::now())
            })
        })
        .collect();
    // It is not ready any more, says so, and still answers.
    let ready = Http::anonymous(&url);
    testkit::eventually("it is not ready", async || (ready.get("/readyz").await.status == 503).then_some(())).await;
    assert!(began.elapsed() < Duration::from_secs(2), "at once");
    fleet.cast.producer.at(&url).get("/v1/me").await.expect(200);
    assert!(Peer::try_consumer(&url, &token, "late").await.is_none(), "nobody new");
    let mut ends = Vec::new();
    for end in closing {
        let (name, code, at) = end.await.unwrap();
        assert_eq!(code, 4013, "{name}");
        ends.push(at);
    }
    ends.sort();
    let span = *ends.last().unwrap() - ends[0];
    assert!(span >= Duration::from_secs(2), "spread over `shutdown.drain_spread`, not all at once: {span:?}");
    let widest = ends.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(widest < Duration::from_millis(1_500), "evenly: {widest:?}");
    assert!(leaving.wait().success(), "a clean end");
    assert!(began.elapsed() < Duration::from_secs(20), "within shutdown.total_timeout");
    // What was acknowledged was saved before the connection was closed, whichever it was.
    for number in [0, 6, 11] {
        let peer = Peer::consumer(fleet.url(0), &token, &format!("c{number}")).await;
        assert_eq!(peer.ready["acked_seq"], sent[1], "c{number}");
    }
}
