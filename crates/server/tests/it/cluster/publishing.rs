//! Publishing through many nodes at once: one order, no gap, and the truth about a commit whose answer was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;
use testkit::postgres::Cluster;
use testkit::{Http, Peer};

use super::fleet::Fleet;
use super::proxy::Proxy;
use crate::support::seqs;

/// Rests that differ from call to call without being random.
fn rest(number: u64) -> Duration {
    Duration::from_micros((number.wrapping_mul(2_654_435_761) >> 7) % 9_000)
}

/// Publishes so many events of one writer, one after another with uneven rests, through one node; answers their seqs.
async fn write(producer: Http, writer: usize, count: u64) -> Vec<u64> {
    let mut written = Vec::new();
    for number in 0..count {
        let event = json!({"type": "message.created", "channel": "support/general", "payload": {"writer": writer, "number": number}});
        let answer = producer.post("/v1/events", &event).await.expect(201);
        written.push(answer["events"][0]["seq"].as_u64().unwrap());
        tokio::time::sleep(rest(number + writer as u64 * 1_000)).await;
    }
    written
}

/// Events of each writer.
const EACH: u64 = 60;

#[tokio::test]
async fn writers_on_three_nodes_leave_no_gap_for_any_reader() {
    let fleet = Fleet::of(3, &[("agent.max_inflight_events", "10000")]).await;
    let mut readers = Vec::new();
    for node in 0..3 {
        readers.push(Peer::consumer(fleet.url(node), fleet.cast.alpha.token(), &format!("reader{node}")).await);
    }
    let start = readers[0].ready["head_seq"].as_u64().unwrap();
    let writers: Vec<_> = (0..3).map(|node| tokio::spawn(write(fleet.cast_at(node).producer, node, EACH))).collect();
    let mut written = BTreeSet::new();
    for writer in writers {
        let own = writer.await.unwrap();
        assert!(own.is_sorted(), "what one writer published one after another is in that order");
        written.extend(own);
    }
    let expected: Vec<u64> = (start + 1..=start + 3 * EACH).collect();
    assert_eq!(written.iter().copied().collect::<Vec<_>>(), expected, "gapless");
    for (node, reader) in readers.iter_mut().enumerate() {
        assert_eq!(seqs(&reader.dispatched(expected.len()).await), expected, "the reader on node {node} sees each once, in order");
    }
    // A page over REST is the same on every node.
    for node in 0..3 {
        let log = fleet.owner(node).log_after(start).await;
        assert_eq!(log.iter().map(|(_, seq)| *seq).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn one_key_on_three_nodes_at_once_makes_one_event() {
    let fleet = Fleet::of(3, &[]).await;
    let event = json!({"type": "once", "channel": "support/general", "deduplication_key": "k", "payload": {"n": 1}});
    let calls: Vec<_> = (0..90)
        .map(|number| {
            let (producer, event) = (fleet.cast_at(number % 3).producer, event.clone());
            tokio::spawn(async move { producer.post("/v1/events", &event).await })
        })
        .collect();
    let (mut ids, mut fresh) = (BTreeSet::new(), 0);
    for call in calls {
        let answer = call.await.unwrap();
        assert!(matches!(answer.status, 200 | 201), "{}", answer.status);
        fresh += usize::from(answer.status == 201);
        ids.insert(answer.json()["events"][0]["id"].to_string());
    }
    assert_eq!((ids.len(), fresh), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_connection_is_cut_is_answered_truthfully() {
    let cluster = Cluster::shared();
    let database = cluster.empty_database().await;
    let proxy = Proxy::start(cluster.port()).await;
    let through = database.url.replace(&format!(":{}/", cluster.port()), &format!(":{}/", proxy.port));
    assert_ne!(through, database.url);
    let mut fleet = Fleet::over(&through, 1, &[]).await;
    let mut told: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for round in 0..12 {
        let calls: Vec<_> = (0..8)
            .map(|number| {
                let (producer, text) = (fleet.cast_at(0).producer, format!("round {round} number {number}"));
                tokio::spawn(async move {
                    let event = json!({"type": "message.created", "channel": "support/general", "payload": {"text": text}});
                    (text, producer.post("/v1/events", &event).await)
                })
            })
            .collect();
        tokio::time::sleep(rest(round)).await;
        // In turn: the request is lost, or its answer.
        if round % 2 == 0 {
            proxy.lose_answers();
        } else {
            proxy.cut();
        }
        for call in calls {
            let (text, answer) = call.await.unwrap();
            match answer.status {
                201 => drop(told.insert(text, answer.json()["events"][0]["seq"].as_u64())),
                503 => {
                    assert_ne!(answer.json()["code"], "in_doubt", "the database can be asked what became of it");
                    told.insert(text, None);
                }
                status => panic!("{status}: {}", String::from_utf8_lossy(&answer.body)),
            }
        }
    }
    assert!(told.values().any(Option::is_some));
    let page = fleet.owner(0).get("/v1/events?after=0&limit=1000").await.expect(200);
    let mut stored: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for event in page["events"].as_array().unwrap().iter().filter(|event| event["type"] == "message.created") {
        let text = event["payload"]["text"].as_str().unwrap().to_owned();
        stored.entry(text).or_default().push(event["seq"].as_u64().unwrap());
    }
    for (text, seq) in &told {
        let found = stored.get(text).cloned().unwrap_or_default();
        assert_eq!(found, seq.iter().copied().collect::<Vec<_>>(), "{text}: published once and answered, or 503 and not published");
    }
    assert!(proxy.harmed() >= 6, "connections were cut: {}", proxy.harmed());
    fleet.take(0).kill();
    drop(database);
}
