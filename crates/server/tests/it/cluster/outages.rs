//! The database goes away and comes back under load: nothing acknowledged is lost, and everything recovers by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::postgres::{Cluster, ClusterOptions, Durability};
use testkit::{Deadline, Frame, Http, Peer, eventually};

use super::fleet::Fleet;
use super::proxy::Proxy;

/// How long recovering may take once the database is back.
const SECONDS: Duration = Duration::from_secs(15);

/// Publishes until it is told to stop; answers what was acknowledged, with how often it was refused.
async fn publish(producer: Http, writer: usize, stop: Arc<AtomicBool>) -> (Vec<(String, u64)>, usize) {
    let (mut acknowledged, mut refused, mut number) = (Vec::new(), 0, 0_u64);
    while !stop.load(Ordering::SeqCst) {
        number += 1;
        let event = json!({"type": "message.created", "channel": "support/general", "payload": {"writer": writer, "number": number}});
        let answer = producer.post("/v1/events", &event).await;
        match answer.status {
            201 => {
                let event = &answer.json()["events"][0];
                acknowledged.push((event["id"].as_str().unwrap().to_owned(), event["seq"].as_u64().unwrap()));
            }
            503 => {
                refused += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            status => unreachable!("{status}: {}", String::from_utf8_lossy(&answer.body)),
        }
    }
    (acknowledged, refused)
}

/// Consumes on a node until everything up to `until` came; connects again whenever it has to.
async fn consume(url: String, token: String, consumer: &str, until: impl Fn() -> Option<u64>) -> Vec<u64> {
    let mut seen = Vec::new();
    let deadline = Deadline::after(Duration::from_secs(90));
    loop {
        assert!(!deadline.passed(), "not everything came: {} events", seen.len());
        let Some(mut peer) = Peer::try_consumer(&url, &token, consumer).await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        loop {
            if until().is_some_and(|last| seen.last().is_some_and(|seq| *seq >= last)) {
                return seen;
            }
            match peer.try_next(Duration::from_millis(200)).await {
                Some(Frame::Json(frame)) if frame["op"] == "dispatch" => {
                    let seq = frame["event"]["seq"].as_u64().unwrap();
                    if seen.last().is_none_or(|last| *last < seq) {
                        seen.push(seq);
                    }
                    if peer.try_send(&json!({"op": "ack", "seq": seq})).await.is_none() {
                        break;
                    }
                }
                Some(Frame::Closed(code, _)) => {
                    assert_ne!(code, 4015, "nobody else takes this consumer");
                    break;
                }
                Some(Frame::Json(_)) | None => {}
            }
        }
    }
}

/// Publishes and consumes on both nodes of `fleet` while `interrupt` does something to the database, and holds what was told against what is there.
async fn holds_under_load(mut fleet: Fleet, interrupt: impl AsyncFnOnce()) {
    fleet.are_listening().await;
    let start = fleet.owner(0).get("/v1/events").await.expect(200)["head_seq"].as_u64().unwrap();
    let last = Arc::new(std::sync::Mutex::new(None));
    let consumers: Vec<_> = (0..2)
        .map(|node| {
            let (url, token, last) = (fleet.url(node).to_owned(), fleet.cast.alpha.token().to_owned(), Arc::clone(&last));
            tokio::spawn(async move { consume(url, token, &format!("reader{node}"), move || *last.lock().unwrap()).await })
        })
        .collect();
    eventually("both read", async || {
        let listed = fleet.owner(0).get("/v1/agents/alpha/consumers").await.expect(200);
        (listed["items"].as_array().unwrap().len() == 2).then_some(())
    })
    .await;
    let stop = Arc::<AtomicBool>::default();
    let writers: Vec<_> =
        (0..4).map(|writer| tokio::spawn(publish(fleet.cast_at(writer % 2).producer, writer, Arc::clone(&stop)))).collect();
    tokio::time::sleep(Duration::from_millis(700)).await;
    interrupt().await;
    works_again(&fleet).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.store(true, Ordering::SeqCst);
    let (mut acknowledged, mut refused) = (Vec::new(), 0);
    for writer in writers {
        let (own, times) = writer.await.unwrap();
        acknowledged.extend(own);
        refused += times;
    }
    assert!(acknowledged.len() > 10, "{}", acknowledged.len());
    let log = fleet.owner(1).log_after(start).await;
    let lost: Vec<_> = acknowledged.iter().filter(|event| !log.contains(event)).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}; refused {refused}");
    let seqs: Vec<u64> = log.iter().map(|(_, seq)| *seq).collect();
    assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "gapless");
    *last.lock().unwrap() = seqs.last().copied();
    for consumer in consumers {
        let seen = consumer.await.unwrap();
        assert_eq!(seen, seqs, "each reader saw each event, in order");
    }
    fleet.are_listening().await;
    for node in 0..2 {
        Http::anonymous(fleet.url(node)).get("/readyz").await.expect(200);
        fleet.take(node).kill();
    }
}

/// Whoever publishes again and again gets through again soon, on both nodes.
async fn works_again(fleet: &Fleet) {
    let back = Instant::now();
    for node in 0..2 {
        let producer = fleet.cast_at(node).producer;
        eventually("publishing works again", async || {
            let event = json!({"type": "message.created", "channel": "support/general", "payload": {"back": node}});
            (producer.post("/v1/events", &event).await.status == 201).then_some(())
        })
        .await;
    }
    assert!(back.elapsed() < SECONDS, "{:?}", back.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_restarts_under_load_costs_503s_and_no_acknowledged_event() {
    let cluster = Cluster::start(&ClusterOptions::new(Durability::Full));
    let database = cluster.empty_database().await;
    let fleet = Fleet::over(&database.url, 2, &[]).await;
    let interrupt = async || {
        cluster.crash();
        tokio::time::sleep(Duration::from_millis(700)).await;
        cluster.start_again();
    };
    holds_under_load(fleet, interrupt).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronous_standby_that_is_promoted_has_every_acknowledged_event() {
    let primary = Cluster::start(&ClusterOptions::new(Durability::Full));
    let database = primary.empty_database().await;
    let proxy = Proxy::start(primary.port()).await;
    let through = database.url.replace(&format!(":{}/", primary.port()), &format!(":{}/", proxy.port));
    let fleet = Fleet::over(&through, 2, &[]).await;
    let standby = primary.standby();
    database.run("ALTER SYSTEM SET synchronous_standby_names = 'standby'").await;
    database.run("SELECT pg_reload_conf()").await;
    database.wait_for("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", 1).await;
    let interrupt = async || {
        primary.crash();
        proxy.cut();
        tokio::time::sleep(Duration::from_millis(300)).await;
        standby.promote();
        proxy.lead_to(standby.port());
    };
    holds_under_load(fleet, interrupt).await;
}
