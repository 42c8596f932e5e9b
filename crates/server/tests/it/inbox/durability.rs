//! An item has at most one valid lease and is never lost, whatever is killed when.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Bytes, Http, LeaseChecker, LeaseRecord, eventually};

use super::{FAST, poll};
use crate::support::World;

type History = Arc<Mutex<Vec<LeaseRecord>>>;

fn note(history: &History, record: LeaseRecord) {
    history.lock().unwrap().push(record);
}

fn completed(history: &History) -> usize {
    history.lock().unwrap().iter().filter(|record| matches!(record, LeaseRecord::Completed { .. })).count()
}

async fn call(http: &Http, path: &str, body: &Value) -> Option<Value> {
    let headers = [("content-type", "application/json")];
    let answer = http.try_call("POST", path, &headers, Bytes::from(body.to_string())).await?;
    (answer.status < 300).then(|| answer.json())
}

/// Publishes work until the server is gone.
async fn publish_storm(producer: Http, history: History) {
    let event = json!({"type": "storm", "recipients": [{"kind": "agent", "id": "alpha"}], "max_attempts": 1000});
    while let Some(answer) = call(&producer, "/v1/events", &json!({"events": [event, event]})).await {
        for event in answer["events"].as_array().unwrap() {
            note(&history, LeaseRecord::Published { id: event["id"].as_str().unwrap().to_owned() });
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Works until the server is gone or `enough` says so: completes most, fails and releases some, forgets some, heartbeats some.
async fn work_storm(agent: Http, history: History, seed: u64, enough: impl Fn() -> bool) {
    let mut dice = seed;
    let mut roll = move || {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        dice >> 33
    };
    while !enough() {
        let asked_at = Instant::now();
        let body = json!({"limit": 1 + roll() % 4, "lease_seconds": 1, "wait_seconds": 1});
        let Some(answer) = call(&agent, "/v1/inbox/claim-next", &body).await else { return };
        let answered_at = Instant::now();
        for claimed in answer["claims"].as_array().unwrap() {
            let (id, token) = (text(&claimed["event_id"]), text(&claimed["lease_token"]));
            let lasts = Duration::from_millis(claimed["lease_expires_in_ms"].as_u64().unwrap());
            note(&history, LeaseRecord::Claimed { id: id.clone(), token: token.clone(), asked_at, answered_at, lasts });
            let choice = roll() % 20;
            if choice == 0 {
                // The worker dies with it.
                continue;
            }
            if choice < 4 {
                let asked_at = Instant::now();
                let body = json!({"leases": [{"event_id": id, "lease_token": token, "extend_by_seconds": 1}]});
                let Some(answer) = call(&agent, "/v1/inbox/heartbeat", &body).await else { return };
                if answer["leases"][0]["outcome"] == "ok" {
                    let lasts = Duration::from_millis(answer["leases"][0]["lease_expires_in_ms"].as_u64().unwrap());
                    note(&history, LeaseRecord::Extended { id: id.clone(), token: token.clone(), asked_at, lasts });
                }
            }
            note(&history, LeaseRecord::Ending { id: id.clone(), token: token.clone() });
            match choice {
                1 | 5 => {
                    let body = json!({"event_id": id, "lease_token": token, "reason": "transient_dependency_failure"});
                    call(&agent, "/v1/inbox/release", &body).await;
                }
                2 | 6 => {
                    let body = json!({"acks": [{"event_id": id, "lease_token": token, "result": "failed"}]});
                    call(&agent, "/v1/inbox/acknowledge", &body).await;
                }
                _ => {
                    let body = json!({"acks": [{"event_id": id, "lease_token": token, "result": "completed"}]});
                    let Some(answer) = call(&agent, "/v1/inbox/acknowledge", &body).await else { return };
                    if answer["acks"][0]["outcome"] == "ok" {
                        note(&history, LeaseRecord::Completed { id, token });
                    }
                }
            }
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// How often the server is killed.
const KILLS: u64 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_at_random_points_of_a_storm_of_claims_breaks_no_lease_and_loses_no_item() {
    let mut world = World::with(&FAST).await;
    let history = History::default();
    let mut point: u64 = 0x9E37_79B9_7F4A_7C15;
    for round in 0..KILLS {
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(publish_storm(world.cast.producer.clone(), history.clone()));
        for worker in 0..4 {
            tasks.spawn(work_storm(world.cast.alpha.clone(), history.clone(), round * 31 + worker, || false));
        }
        point = point.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let wanted = completed(&history) + usize::try_from(5 + (point >> 33) % 60).unwrap();
        eventually("items are completed", async || (completed(&history) >= wanted).then_some(())).await;
        tokio::time::sleep(Duration::from_micros((point >> 40) % 3_000)).await;
        world = world.crash();
        while let Some(ended) = tasks.join_next().await {
            ended.expect("a storm ends with its server");
        }
    }
    // What is left is worked off in peace. A publish or an acknowledge that was on its way may have been stored unseen.
    let alpha = world.cast.alpha.clone();
    let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..4 {
        let over = over.clone();
        tasks.spawn(work_storm(alpha.clone(), history.clone(), 1_000 + worker, move || over.load(std::sync::atomic::Ordering::SeqCst)));
    }
    eventually("nothing is left", async || {
        let page = poll(&alpha, json!({"after_seq": 0, "limit": 1})).await;
        page["events"].as_array().unwrap().is_empty().then_some(())
    })
    .await;
    over.store(true, std::sync::atomic::Ordering::SeqCst);
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let mut history = history.lock().unwrap().clone();
    // An acknowledge whose answer was lost counts when the server says that the item is over.
    for (id, token) in unanswered(&history) {
        let item = super::item(&alpha, &id).await;
        if item["ack_state"] == "acked" {
            history.push(LeaseRecord::Completed { id, token });
        }
    }
    let done = history.iter().filter(|record| matches!(record, LeaseRecord::Completed { .. })).count();
    assert!(done > 200, "the storm was none: {done}");
    assert_eq!(LeaseChecker::check(&history, 2 * usize::try_from(KILLS).unwrap()), []);
}

/// Items whose last lease was being ended when the server died: id and token.
fn unanswered(history: &[LeaseRecord]) -> Vec<(String, String)> {
    let mut open = std::collections::BTreeMap::new();
    for record in history {
        match record {
            LeaseRecord::Ending { id, token } => _ = open.insert(id.clone(), token.clone()),
            LeaseRecord::Completed { id, .. } => _ = open.remove(id),
            _ => {}
        }
    }
    open.into_iter().collect()
}

#[tokio::test]
async fn a_publish_that_was_acknowledged_has_its_items_after_a_crash_and_one_that_was_not_has_none_or_all() {
    let world = World::new().await;
    let beta = world.cast.add("agent", "beta").await;
    let recipients = json!([{"kind": "agent", "id": "alpha"}, {"kind": "agent", "id": "beta"}]);
    let producer = world.cast.producer.clone();
    let storm = tokio::spawn(async move {
        let mut answered = Vec::new();
        while let Some(answer) = call(&producer, "/v1/events", &json!({"type": "t", "recipients": recipients})).await {
            answered.push(text(&answer["events"][0]["id"]));
        }
        answered
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let world = world.crash();
    let answered = storm.await.unwrap();
    assert!(!answered.is_empty());
    let inbox = async |agent: &Http| {
        let (mut after, mut all) = (json!(0), Vec::new());
        loop {
            let page = poll(agent, json!({"after_seq": after, "limit": 1000})).await;
            all.extend(super::ids(&page, "events"));
            after = page["next_cursor"].clone();
            if page["more_available"] == false {
                return all;
            }
        }
    };
    let (alphas, betas) = (inbox(&world.cast.alpha).await, inbox(&beta.at(world.url())).await);
    assert_eq!(alphas, betas, "both or none");
    assert!(alphas.len() - answered.len() <= 1, "{} items, {} answered", alphas.len(), answered.len());
    assert_eq!(alphas[..answered.len()], answered);
}
