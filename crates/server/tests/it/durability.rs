//! Nothing acknowledged is lost, whatever is killed when.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Bytes, Checker, Deadline, Frame, Http, Peer, Record, ServerProcess, eventually};

use crate::support::{World, options, seqs};

#[tokio::test]
async fn five_hundred_concurrent_publishes_with_one_key_make_one_event() {
    let world = World::new().await;
    let event = json!({"type": "once", "channel": "support/general", "deduplication_key": "k", "payload": {"n": 1}});
    let calls = (0..500).map(|_| {
        let (producer, event) = (world.cast.producer.clone(), event.clone());
        tokio::spawn(async move { producer.post("/v1/events", &event).await })
    });
    let (mut ids, mut fresh) = (HashSet::new(), 0);
    for call in calls.collect::<Vec<_>>() {
        let answer = call.await.unwrap();
        let event = answer.json()["events"][0].clone();
        fresh += usize::from(answer.status == 201);
        assert_eq!(answer.status, if event["deduplicated"] == true { 200 } else { 201 }, "{event}");
        ids.insert((event["id"].to_string(), event["seq"].as_u64().unwrap()));
    }
    assert_eq!((ids.len(), fresh), (1, 1));
    let world = world.crash();
    let repeat = world.cast.producer.post("/v1/events", &event).await.expect(200);
    assert_eq!(repeat["events"][0]["deduplicated"], true, "the key is remembered over a crash");
    let other = json!({"type": "once", "channel": "support/general", "deduplication_key": "k", "payload": {"n": 2}});
    world.cast.producer.post("/v1/events", &other).await.expect_problem(409, "deduplication_conflict");
}

#[tokio::test]
async fn a_request_is_atomic() {
    let world = World::new().await;
    let event = |key: &str, n: u64| json!({"type": "a", "channel": "support/general", "deduplication_key": key, "payload": {"n": n}});
    world.cast.producer.post("/v1/events", &event("taken", 1)).await.expect(201);
    let before = world.cast.sam.get("/v1/events").await.expect(200)["head_seq"].clone();
    let body = json!({"events": [event("x", 1), event("taken", 2), event("y", 1)]});
    let problem = world.cast.producer.post("/v1/events", &body).await.expect_problem(409, "deduplication_conflict");
    assert!(problem["pointer"].as_str().unwrap().starts_with("/events/1"), "{problem}");
    assert_eq!(world.cast.sam.get("/v1/events").await.expect(200)["head_seq"], before);
    let twice = json!({"events": [event("z", 1), event("z", 1)]});
    let answer = world.cast.producer.post("/v1/events", &twice).await.expect(201);
    assert_eq!((&answer["events"][0]["deduplicated"], &answer["events"][1]["deduplicated"]), (&json!(false), &json!(true)));
    assert_eq!(answer["events"][0]["id"], answer["events"][1]["id"]);
}

/// Payloads of the shape and size that a code forge posts.
fn forge_events(count: usize) -> Vec<Value> {
    let names = ["push", "issue_comment", "pull_request_review", "release", "check_run"];
    let event = |n: usize| {
        let body = "Lorem ipsum dolor sit amet, consetetur. ".repeat(1 + (n * 37) % 400);
        json!({"type": format!("github.{}", names[n % names.len()]), "channel": "support/github", "deduplication_key": format!("delivery:{n}"),
               "payload": {"action": "created", "number": n, "body": body, "sender": {"login": "octocat", "emoji": "🐙"}}})
    };
    (0..count).map(event).collect()
}

#[tokio::test]
async fn two_hundred_forge_events_reach_both_transports_through_a_crash_in_the_middle() {
    let world = World::with(&[("agent.max_inflight_events", "20"), ("agent.ack_persist_interval", "50ms")]).await;
    let poll = async |agent: &Http, query: &str| agent.get(&format!("/v1/agents/me/consumers/rest/events{query}")).await.expect(200);
    poll(&world.cast.alpha, "").await;
    Peer::consumer(world.url(), world.cast.alpha.token(), "ws").await.close().await;
    let mut published = Vec::new();
    for chunk in forge_events(200).chunks(50) {
        let answer = world.cast.producer.post("/v1/events", &json!({"events": chunk})).await.expect(201);
        published.extend(seqs(answer["events"].as_array().unwrap()));
    }
    // Both take half: acknowledged 90, with 10 more on the way.
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "ws").await;
    let mut over_ws = Vec::new();
    for _ in 0..9 {
        over_ws.extend(seqs(&peer.dispatched(10).await));
        peer.ack(*over_ws.last().unwrap()).await;
    }
    assert_eq!(seqs(&peer.dispatched(10).await), published[90..100]);
    let mut over_rest = Vec::new();
    for _ in 0..9 {
        let page = poll(&world.cast.alpha, "?limit=10").await;
        over_rest.extend(seqs(page["events"].as_array().unwrap()));
        let ack = json!({"seq": over_rest.last().unwrap()});
        world.cast.alpha.post("/v1/agents/me/consumers/rest/ack", &ack).await.expect(200);
    }
    poll(&world.cast.alpha, "?limit=10").await;
    eventually("the acks of the gateway are stored", async || {
        let state = world.cast.alpha.get("/v1/agents/me/consumers/ws").await.expect(200);
        (state["acked_seq"] == published[89]).then_some(())
    })
    .await;

    let world = world.crash();

    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "ws").await;
    assert_eq!(peer.ready["acked_seq"], published[89], "nothing acknowledged comes again");
    while over_ws.len() < 200 {
        over_ws.extend(seqs(&peer.dispatched(10).await));
        peer.ack(*over_ws.last().unwrap()).await;
    }
    assert_eq!(over_ws, published);
    // The response before the crash may have been lost: this client says where it stands, and gets it at once.
    let mut query = format!("?limit=10&after={}", published[89]);
    while over_rest.len() < 200 {
        let page = poll(&world.cast.alpha, &query).await;
        over_rest.extend(seqs(page["events"].as_array().unwrap()));
        query = "?limit=10".to_owned();
        let ack = json!({"seq": over_rest.last().unwrap()});
        world.cast.alpha.post("/v1/agents/me/consumers/rest/ack", &ack).await.expect(200);
    }
    assert_eq!(over_rest, published);
}

type History = Arc<Mutex<Vec<Record>>>;

fn note(history: &History, record: Record) {
    history.lock().unwrap().push(record);
}

/// Publishes until the server is gone.
async fn publish_storm(producer: Http, history: History, tag: String) {
    for n in 0_u32.. {
        let event = json!({"type": "storm", "channel": "support/general", "payload": {"tag": tag, "n": n}});
        let headers = [("content-type", "application/json")];
        let Some(answer) = producer.try_call("POST", "/v1/events", &headers, Bytes::from(event.to_string())).await else { return };
        if answer.status != 201 {
            return;
        }
        let event = answer.json()["events"][0].clone();
        let (id, seq) = (event["id"].as_str().unwrap().to_owned(), event["seq"].as_u64().unwrap());
        note(&history, Record::Published { id, seq });
    }
}

/// Follows over the gateway and acknowledges in small steps until the server is gone.
async fn follow_storm(url: String, agent: Http, consumer: &'static str, history: History, catching_up: Option<u64>) {
    let Some(mut peer) = Peer::try_consumer(&url, agent.token(), consumer).await else { return };
    let acked = peer.ready["acked_seq"].as_u64().unwrap();
    let name = || consumer.to_owned();
    note(&history, Record::Connected { consumer: name(), acked });
    let (mut since_ack, mut last) = (0, acked);
    let deadline = Deadline::usual();
    while catching_up.is_none_or(|head| last < head) {
        let frame = peer.try_next(deadline.left()).await.expect("frames or an end in time");
        let Frame::Json(frame) = frame else { return };
        if frame["op"] != "dispatch" {
            continue;
        }
        let event = &frame["event"];
        last = event["seq"].as_u64().unwrap();
        note(&history, Record::Delivered { consumer: name(), id: event["id"].as_str().unwrap().to_owned(), seq: last });
        since_ack += 1;
        if since_ack == 7 {
            since_ack = 0;
            note(&history, Record::AckSent { consumer: name(), seq: last });
            if peer.try_send(&json!({"op": "ack", "seq": last})).await.is_none() {
                return;
            }
        }
    }
}

/// Polls and acknowledges until the server is gone.
async fn poll_storm(agent: Http, history: History) {
    let base = "/v1/agents/me/consumers/poller";
    let name = || "poller".to_owned();
    let headers = [("content-type", "application/json")];
    let state = agent.try_call("GET", base, &[], Bytes::new()).await;
    let Some(acked) = state.filter(|state| state.status == 200).and_then(|state| state.json()["acked_seq"].as_u64()) else { return };
    note(&history, Record::Connected { consumer: name(), acked });
    let mut after = acked;
    loop {
        let path = format!("{base}/events?wait_seconds=1&after={after}");
        let Some(page) = agent.try_call("GET", &path, &[], Bytes::new()).await else { return };
        if page.status != 200 {
            return;
        }
        let page = page.json();
        if page["unproven"] == true {
            continue;
        }
        for event in page["events"].as_array().unwrap() {
            let (id, seq) = (event["id"].as_str().unwrap().to_owned(), event["seq"].as_u64().unwrap());
            note(&history, Record::Delivered { consumer: name(), id, seq });
        }
        after = page["next_cursor"].as_u64().unwrap();
        note(&history, Record::AckSent { consumer: name(), seq: after });
        let body = Bytes::from(json!({"seq": after}).to_string());
        let Some(answer) = agent.try_call("POST", &format!("{base}/ack"), &headers, body).await else { return };
        if answer.status == 200 {
            note(&history, Record::AckStored { consumer: name(), seq: answer.json()["acked_seq"].as_u64().unwrap() });
        }
    }
}

/// Waits until so many more publishes are acknowledged than were at `before`.
async fn published_since(history: &History, before: usize, more: usize) {
    let count = || history.lock().unwrap().iter().filter(|record| matches!(record, Record::Published { .. })).count();
    eventually("publishes are acknowledged", async || (count() >= before + more).then_some(())).await;
}

/// How often the server is killed.
const KILLS: u64 = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_at_random_points_of_a_publish_and_ack_storm_breaks_no_rule() {
    let config = [("agent.ack_timeout", "2s"), ("agent.ack_persist_interval", "20ms"), ("agent.max_inflight_events", "64")];
    let directory = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(options(&directory, &config));
    let cast = testkit::cast(&server.owner()).await;
    // This agent sees everything, so that the checker may take the whole log for its stream.
    let watcher = cast.add("agent", "watcher").await;
    cast.grant("watcher", "*", "read").await;
    watcher.get("/v1/agents/me/consumers/poller/events").await.expect(200);
    let mut world = World::on(server, cast, directory);
    let history = History::default();
    // Not luck: the same points every time, spread by a fixed sequence.
    let mut point: u64 = 0x2545_F491_4F6C_DD1D;
    for _ in 0..KILLS {
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..4 {
            tasks.spawn(publish_storm(world.cast.producer.clone(), history.clone(), format!("p{n}")));
        }
        let agent = watcher.at(world.url());
        tasks.spawn(follow_storm(world.url().to_owned(), agent.clone(), "follower", history.clone(), None));
        tasks.spawn(poll_storm(agent, history.clone()));
        point = point.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The point is one of progress and not of time, so that a slow machine has a storm as well.
        let before = history.lock().unwrap().iter().filter(|record| matches!(record, Record::Published { .. })).count();
        published_since(&history, before, usize::try_from(5 + (point >> 33) % 120).unwrap()).await;
        tokio::time::sleep(Duration::from_micros((point >> 40) % 3_000)).await;
        world = world.crash();
        while let Some(ended) = tasks.join_next().await {
            ended.expect("a storm ends with its server");
        }
    }
    let log = world.cast.owner.log_after(0).await;
    let head = log.last().unwrap().1;
    let agent = watcher.at(world.url());
    follow_storm(world.url().to_owned(), agent, "follower", history.clone(), Some(head)).await;
    note(&history, Record::Log { events: log });
    let history = history.lock().unwrap();
    let published = history.iter().filter(|record| matches!(record, Record::Published { .. })).count();
    let delivered = history.iter().filter(|record| matches!(record, Record::Delivered { .. })).count();
    assert!(published > 500 && delivered > 500, "the storm was none: {published} published, {delivered} delivered");
    assert_eq!(Checker::check(&history), []);
}
