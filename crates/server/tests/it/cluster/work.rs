//! Background work is one node's at a time, and another's when that node is gone.

use std::time::{Duration, Instant};

use domain::{Clock, SystemClock};
use serde_json::{Value, json};
use testkit::{Http, PlayedServer, eventually};

use super::fleet::Fleet;
use crate::inbox::{FAST, claim_one, give};

/// A lease of 2 s, the rounds in which nodes look, and room for a busy machine.
const TAKEN_OVER: Duration = Duration::from_secs(15);

async fn events_of(owner: &Http, event_type: &str) -> Vec<Value> {
    let page = owner.get("/v1/events?after=0&limit=1000").await.expect(200);
    page["events"].as_array().unwrap().iter().filter(|event| event["type"] == event_type).cloned().collect()
}

#[tokio::test]
async fn leases_that_lapse_are_swept_by_another_node_when_the_sweeping_one_is_killed() {
    let mut fleet = Fleet::of(2, &FAST).await;
    let id = give(&fleet.cast, json!({})).await;
    let sweeping = fleet.worker(0, "inbox.sweeper").await;
    let other = 1 - sweeping;
    claim_one(&fleet.cast_at(other).alpha, json!({"lease_seconds": 1})).await;
    fleet.take(sweeping).kill();
    let began = Instant::now();
    // Nobody claims: only the sweeper sees that the lease has lapsed.
    let owner = fleet.owner(other);
    eventually("the item came back", async || {
        events_of(&owner, "inbox.requeued").await.iter().any(|event| event["payload"]["event_id"] == json!(id)).then_some(())
    })
    .await;
    assert!(began.elapsed() < TAKEN_OVER, "{:?}", began.elapsed());
    assert_eq!(fleet.worker(other, "inbox.sweeper").await, other);
}

#[tokio::test]
async fn scheduled_events_become_due_on_whichever_node_they_were_scheduled() {
    let mut fleet = Fleet::of(2, &[]).await;
    let promoting = fleet.worker(0, "intake.promoter").await;
    let other = 1 - promoting;
    let schedule = async |node: usize, text: &str| {
        let producer = fleet.cast_at(node).producer;
        let at = SystemClock::new().now().plus(Duration::from_secs(1)).to_string();
        let event = json!({"type": "reminder.due", "channel": "support/general", "available_at": at, "payload": {"text": text}});
        producer.post("/v1/events", &event).await.expect(201);
    };
    schedule(promoting, "here").await;
    schedule(other, "there").await;
    let owner = fleet.owner(other);
    eventually("both are there", async || (events_of(&owner, "reminder.due").await.len() == 2).then_some(())).await;
    schedule(other, "after the end").await;
    fleet.take(promoting).kill();
    eventually("the other node promotes", async || (events_of(&owner, "reminder.due").await.len() == 3).then_some(())).await;
}

#[tokio::test]
async fn hooks_are_rung_by_another_node_when_the_dispatching_one_is_killed() {
    let mut receiver = PlayedServer::bind().await;
    let allowed = receiver.address.to_string();
    let keys = [("hooks.allow_http", "true"), ("hooks.allow_networks", allowed.as_str()), ("inbox.sweep_interval", "50ms")];
    let mut fleet = Fleet::of(2, &keys).await;
    let hook = json!({"url": format!("http://{}/rings", receiver.address)});
    fleet.cast.alpha.post("/v1/notify-hooks", &hook).await.expect(201);
    let first = give(&fleet.cast_at(0), json!({})).await;
    let ring = receiver.request().await;
    assert_eq!(ring.body["todo_id"], json!(first));
    ring.respond(204, "text/plain", &[], "").await;
    // Kill whichever node dispatches for the tenant: the ring that it had under way comes again, from the other.
    let second = give(&fleet.cast_at(1), json!({})).await;
    let ring = receiver.request().await;
    assert_eq!(ring.body["todo_id"], json!(second));
    let id = ring.header("webhook-id").unwrap().to_owned();
    let doomed = dispatching(&fleet).await;
    fleet.take(doomed).kill();
    drop(ring);
    let began = Instant::now();
    loop {
        let ring = receiver.request().await;
        let is_it = ring.header("webhook-id") == Some(id.as_str());
        ring.respond(204, "text/plain", &[], "").await;
        if is_it {
            break;
        }
        assert!(began.elapsed() < TAKEN_OVER, "the same ring comes again");
    }
    assert!(began.elapsed() < TAKEN_OVER, "{:?}", began.elapsed());
    let third = give(&fleet.cast_at(1 - doomed), json!({})).await;
    let ring = receiver.request().await;
    assert_eq!(ring.body["todo_id"], json!(third));
    ring.respond(204, "text/plain", &[], "").await;
}

/// The node whose sender has an attempt under way.
async fn dispatching(fleet: &Fleet) -> usize {
    eventually("a node has an attempt under way", async || {
        for node in 0..2 {
            if super::fleet::metric(fleet.url(node), "doorstep_hook_attempts_in_flight").await >= 1 {
                return Some(node);
            }
        }
        None
    })
    .await
}

#[tokio::test]
async fn an_item_is_claimed_by_one_worker_of_many_nodes() {
    let fleet = Fleet::of(3, &FAST).await;
    let given = crate::inbox::give_many(&fleet.cast, 60).await;
    let workers: Vec<_> = (0..6)
        .map(|worker| {
            let agent = fleet.cast_at(worker % 3).alpha;
            tokio::spawn(async move {
                let mut claimed = Vec::new();
                loop {
                    let claims = crate::inbox::claim(&agent, json!({"limit": 3, "lease_seconds": 60})).await;
                    if claims.is_empty() {
                        return claimed;
                    }
                    for claim in claims {
                        assert_eq!(crate::inbox::ack(&agent, &claim, "completed").await["outcome"], "ok", "{claim}");
                        claimed.push(claim["event_id"].as_str().unwrap().to_owned());
                    }
                }
            })
        })
        .collect();
    let mut claimed = Vec::new();
    for worker in workers {
        claimed.extend(worker.await.unwrap());
    }
    claimed.sort();
    let mut given = given;
    given.sort();
    assert_eq!(claimed, given, "each once");
}
