//! People and apps: a cursor of their own, over the gateway, REST and SSE.

use serde_json::{Value, json};
use testkit::{Peer, eventually};

use crate::support::{World, seqs};

#[tokio::test]
async fn a_person_follows_live_and_leaves_no_cursor_row() {
    let world = World::new().await;
    let mut peer = Peer::identify(world.url(), world.cast.sam.token(), json!({"op": "identify", "consumer": "ignored"})).await;
    assert!(peer.ready.get("acked_seq").is_none() && peer.ready.get("consumer").is_none(), "{}", peer.ready);
    let sent = world.cast.say("support/general", "hello").await;
    assert_eq!(seqs(&peer.dispatched(1).await), [sent]);
    peer.ack(sent).await;
    let error = peer.json_of("error").await;
    assert_eq!((&error["refused_op"], &error["code"]), (&json!("ack"), &json!("forbidden")));
    let row = world.cast.owner.get("/v1/agents/sam/consumers").await;
    assert!(row.status == 404 || row.json()["items"] == json!([]), "{row:?}");
}

#[tokio::test]
async fn a_person_catches_up_from_its_own_cursor() {
    let world = World::with(&[("sync.catchup_page_size", "10")]).await;
    let first = world.cast.say("support/general", "first").await;
    let rest = world.cast.say_many("support/general", 35).await;
    let me = Peer::identify(world.url(), world.cast.sam.token(), json!({"op": "identify"})).await;
    let epoch = me.ready["sync_epoch"].clone();
    let identify = json!({"op": "identify", "cursor": first, "sync_epoch": epoch});
    let mut peer = Peer::identify(world.url(), world.cast.sam.token(), identify).await;
    assert_eq!(seqs(&peer.dispatched(35).await), rest);
    assert_eq!(peer.json_of("catchup.complete").await["head_seq"], *rest.last().unwrap());
}

#[tokio::test]
async fn a_cursor_that_cannot_be_served_gets_its_reason() {
    let world = World::with(&[("sync.max_catchup_events", "20")]).await;
    let sent = world.cast.say_many("support/general", 50).await;
    let head = *sent.last().unwrap();
    let epoch = Peer::identify(world.url(), world.cast.sam.token(), json!({"op": "identify"})).await.ready["sync_epoch"].clone();
    let cases = [
        (json!({"op": "identify", "cursor": sent[0], "sync_epoch": epoch}), "too_far_behind"),
        (json!({"op": "identify", "cursor": head + 5, "sync_epoch": epoch}), "cursor_ahead"),
        (json!({"op": "identify", "cursor": head, "sync_epoch": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70"}), "epoch_changed"),
    ];
    for (identify, reason) in cases {
        let mut peer = Peer::identify(world.url(), world.cast.sam.token(), identify).await;
        let resync = peer.json().await;
        assert_eq!((&resync["op"], &resync["reason"]), (&json!("resync_required"), &json!(reason)));
        for member in ["head_seq", "sync_epoch", "floor_seq"] {
            assert!(resync.get(member).is_some(), "{resync}");
        }
        let live = world.cast.say("support/general", "live").await;
        assert_eq!(seqs(&peer.dispatched(1).await), [live]);
    }
}

#[tokio::test]
async fn list_events_pages_through_what_is_visible() {
    let world = World::new().await;
    let start = world.cast.sam.get("/v1/events").await.expect(200)["head_seq"].as_u64().unwrap();
    let mut visible = Vec::new();
    for n in 0..30 {
        world.cast.say("marketing/plans", "hidden").await;
        if n % 3 == 0 {
            visible.push(world.cast.say("support/general", "seen").await);
        }
    }
    let (mut after, mut got) = (start, Vec::new());
    for _ in 0..100 {
        let page = world.cast.sam.get(&format!("/v1/events?after={after}&limit=4")).await.expect(200);
        let events: Vec<Value> = page["events"].as_array().unwrap().clone();
        assert!(events.len() <= 4);
        got.extend(seqs(&events));
        let next = page["next_cursor"].as_u64().unwrap();
        if next == page["head_seq"].as_u64().unwrap() {
            break;
        }
        assert!(next > after, "every page advances: {page}");
        after = next;
    }
    assert_eq!(got, visible);
    world.cast.alpha.get("/v1/events").await.expect_problem(403, "forbidden");
    let other = "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70";
    let refused = world.cast.sam.get(&format!("/v1/events?sync_epoch={other}")).await.expect_problem(410, "resync_required");
    assert_eq!(refused["reason"], "epoch_changed");
}

/// Reads an SSE stream until `wanted` says so; answers the blocks.
async fn sse(world: &World, last: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let text = world.cast.sam.read_stream("/v1/events/stream", &[("last-event-id", last)], wanted).await;
    text.split("\n\n").map(str::to_owned).collect()
}

#[tokio::test]
async fn server_sent_events_go_on_after_the_last_event_id() {
    let world = World::new().await;
    let sent = world.cast.say_many("support/general", 3).await;
    let me = Peer::identify(world.url(), world.cast.sam.token(), json!({"op": "identify"})).await;
    let epoch = me.ready["sync_epoch"].as_str().unwrap().to_owned();
    let id = |seq: u64| format!("{epoch}:{seq}");
    let last_wanted = format!("id: {}", id(sent[2]));
    let last = id(sent[0]);
    let blocks = sse(&world, &last, |text| text.contains(&last_wanted) && text.ends_with("\n\n")).await;
    let events: Vec<&String> = blocks.iter().filter(|block| block.contains("data: {\"seq\"")).collect();
    assert_eq!(events.len(), 2, "{blocks:?}");
    assert!(events[0].contains(&format!("id: {}", id(sent[1]))));

    let other = format!("0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70:{}", sent[0]);
    let blocks = sse(&world, &other, |text| text.contains("epoch_changed")).await;
    assert!(blocks.iter().any(|block| block.contains("resync_required")), "{blocks:?}");
}

#[tokio::test]
async fn a_scheduled_event_enters_the_log_when_due_and_can_be_cancelled_before() {
    let world = World::new().await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let producer = &world.cast.producer;
    let at = |seconds: u64| {
        let due = std::time::SystemTime::now() + std::time::Duration::from_secs(seconds);
        let micros = due.duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
        domain_text(i64::try_from(micros).unwrap())
    };
    let event = |seconds: u64, key: &str| json!({"type": "later", "channel": "support/general", "available_at": at(seconds), "deduplication_key": key, "payload": {"k": key}});
    let kept = producer.post("/v1/events", &event(1, "kept")).await.expect(201)["events"][0].clone();
    assert_eq!((&kept["scheduled"], kept.get("seq")), (&json!(true), None), "{kept}");
    let repeat = producer.post("/v1/events", &event(1, "kept")).await;
    assert!([200, 409].contains(&repeat.status), "{repeat:?}");
    let doomed = producer.post("/v1/events", &event(3600, "doomed")).await.expect(201)["events"][0]["id"].as_str().unwrap().to_owned();
    let listed = producer.get("/v1/events/scheduled").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
    producer.delete(&format!("/v1/events/scheduled/{doomed}")).await.expect(204);
    producer.delete(&format!("/v1/events/scheduled/{doomed}")).await.expect_problem(404, "not_found");
    let arrived = peer.dispatched(1).await.remove(0);
    assert_eq!((&arrived["id"], &arrived["payload"]["k"]), (&kept["id"], &json!("kept")));
    // Cancelling freed the key.
    let anew = json!({"type": "now", "channel": "support/general", "deduplication_key": "doomed", "payload": {}});
    assert_eq!(producer.post("/v1/events", &anew).await.expect(201)["events"][0]["deduplicated"], false);
    eventually("nothing is scheduled any more", async || {
        (producer.get("/v1/events/scheduled").await.expect(200)["items"] == json!([])).then_some(())
    })
    .await;
}

/// An instant as the API writes it.
fn domain_text(micros: i64) -> String {
    domain::Timestamp::from_micros(micros).to_string()
}
