//! What operators do: redrive, discard, quarantine, pause, presence; and what retention leaves.

use serde_json::{Value, json};
use testkit::eventually;

use super::{ack, claim, claim_one, claim_soon, fast, give, give_many, ids, in_state, item, poll, subscribe};
use crate::support::World;

/// An item that has used its attempts up.
async fn dead(world: &World, more: Value) -> String {
    let mut event = json!({"max_attempts": 1});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let id = give(&world.cast, event).await;
    let claimed = claim_soon(&world.cast.alpha, 60).await;
    assert_eq!(ack(&world.cast.alpha, &claimed, "failed").await["ack_state"], "dead_letter");
    id
}

#[tokio::test]
async fn a_redriven_item_keeps_its_history_and_rings_again() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    let id = dead(&world, json!({})).await;
    let head = poll(alpha, json!({"after_seq": 0})).await["head_seq"].clone();
    let filter = json!({"recipient_id": "alpha", "filter": {"event_type": "task.created"}, "dry_run": true});
    let dry = world.cast.owner.post("/v1/inbox/redrive", &filter).await.expect(200);
    assert_eq!((&dry["matched"], &dry["changed"]), (&json!(1), &json!(0)));
    assert_eq!(item(alpha, &id).await["ack_state"], "dead_letter");
    alpha.post("/v1/inbox/redrive", &filter).await.expect_problem(403, "forbidden");
    let real = json!({"recipient_id": "alpha", "filter": {}});
    let done = world.cast.owner.post("/v1/inbox/redrive", &real).await.expect(200);
    assert_eq!((&done["matched"], &done["changed"]), (&json!(1), &json!(1)));
    let page = poll(alpha, json!({"after_seq": head})).await;
    assert_eq!(ids(&page, "events"), std::slice::from_ref(&id), "a cursor poller sees it again");
    let claimed = claim_one(alpha, json!({})).await;
    assert_eq!((&claimed["delivery_attempts"], &item(alpha, &id).await["dead_letter_state"]), (&json!(2), &json!("redriven")));
    assert_eq!(claimed["prior_attempts"][0]["outcome"], "failed");
    ack(alpha, &claimed, "completed").await;
    let audit = world.cast.owner.get("/v1/audit?action=inbox.manage&decision=allow").await.expect(200);
    assert!(audit["items"].as_array().unwrap().iter().any(|entry| entry["actor"] == "owner"), "{audit}");
}

#[tokio::test]
async fn quarantine_takes_an_item_from_its_worker_and_gives_it_back_when_released() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    let id = give(&world.cast, json!({})).await;
    let claimed = claim_soon(alpha, 60).await;
    let which = json!({"event_id": id, "recipient_id": "alpha"});
    let aside = world.cast.owner.post("/v1/inbox/quarantine", &which).await.expect(200);
    assert_eq!((&aside["ack_state"], &aside["dead_letter_state"]), (&json!("quarantined"), &json!("quarantined")));
    assert_eq!(ack(alpha, &claimed, "completed").await["outcome"], "lease_lost");
    assert_eq!(claim(alpha, json!({})).await.len(), 0);
    world.cast.owner.post("/v1/inbox/quarantine", &which).await.expect_problem(409, "state_conflict");
    world.cast.owner.post("/v1/inbox/unquarantine", &which).await.expect(200);
    let again = claim_one(alpha, json!({})).await;
    assert_eq!((&again["event_id"], &again["delivery_attempts"]), (&json!(id), &json!(2)));
    let discard = json!({"recipient_id": "alpha", "filter": {"event_ids": [id]}});
    assert_eq!(world.cast.owner.post("/v1/inbox/discard", &discard).await.expect(200)["changed"], 1);
    assert_eq!(item(alpha, &id).await["ack_state"], "discarded");
    assert_eq!(ack(alpha, &again, "completed").await["outcome"], "lease_lost");
}

#[tokio::test]
async fn a_pause_holds_back_everything_and_loses_nothing() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    let to = |queue: &str| json!({"recipients": [{"kind": "agent", "id": "alpha", "queue": queue}]});
    give(&world.cast, to("a")).await;
    give(&world.cast, to("b")).await;
    world.cast.owner.post("/v1/inbox/pause", &json!({"recipient_id": "alpha", "queue": "a"})).await.expect(200);
    let page = poll(alpha, json!({"after_seq": 0, "include_claimable_only": true})).await;
    let paused: Vec<_> = page["events"].as_array().unwrap().iter().map(|item| (item["queue"].clone(), item["paused"] == true)).collect();
    assert_eq!(paused, [(json!("a"), true), (json!("b"), false)]);
    assert_eq!(claim(alpha, json!({"limit": 5})).await.len(), 1);
    world.cast.owner.post("/v1/inbox/pause", &json!({"recipient_id": "alpha"})).await.expect(200);
    give(&world.cast, to("b")).await;
    assert_eq!(claim(alpha, json!({"limit": 5})).await.len(), 0);
    let waiting = {
        let alpha = alpha.clone();
        tokio::spawn(async move { claim(&alpha, json!({"limit": 5, "wait_seconds": 20})).await })
    };
    world.cast.owner.post("/v1/inbox/resume", &json!({"recipient_id": "alpha"})).await.expect(200);
    assert_eq!(waiting.await.unwrap().len(), 1, "the end of a pause rings");
    let waiting = {
        let alpha = alpha.clone();
        tokio::spawn(async move { claim(&alpha, json!({"wait_seconds": 25})).await })
    };
    tokio::time::sleep(crate::support::QUIET).await;
    let since = std::time::Instant::now();
    world.cast.owner.post("/v1/inbox/resume", &json!({"recipient_id": "alpha", "queue": "a"})).await.expect(200);
    assert_eq!(waiting.await.unwrap()[0]["queue"], "a");
    assert!(since.elapsed() < std::time::Duration::from_secs(10), "the end of a queue's pause rings too: {:?}", since.elapsed());
}

#[tokio::test]
async fn dead_letters_survive_retention_of_the_log_and_a_poll_below_the_floor_is_told_to_start_again() {
    let keys = [("sync.event_retention", "300ms"), ("sync.retention_interval", "50ms"), ("sync.retention_grace", "50ms")];
    let world = fast(&keys).await;
    let alpha = &world.cast.alpha;
    let lost = dead(&world, json!({"payload": {"text": "still here"}})).await;
    let open = give(&world.cast, json!({"payload": {"text": "open"}})).await;
    give_many(&world.cast, 3).await;
    eventually("the log is empty below its head", async || {
        world.cast.say("support/general", "push").await;
        let page = world.cast.owner.get("/v1/events?after=1").await;
        (page.status == 410).then_some(())
    })
    .await;
    assert_eq!(item(alpha, &lost).await["ack_state"], "dead_letter");
    let problem = alpha.post("/v1/inbox/poll-after-cursor", &json!({"after_seq": 1})).await.expect_problem(410, "cursor_reset_required");
    assert!(problem["oldest_available_seq"].is_u64() && problem["resync_url"].is_string(), "{problem}");
    let listed = alpha.get(problem["resync_url"].as_str().unwrap()).await.expect(200);
    assert!(ids(&listed, "items").contains(&lost), "{listed}");
    let from_the_oldest = poll(alpha, json!({"after_seq": 0})).await;
    assert_eq!(ids(&from_the_oldest, "events")[0], open);
    let claimed = claim_one(alpha, json!({})).await;
    assert_eq!((&claimed["event_id"], &claimed["payload"]), (&json!(open), &json!({"text": "open"})));
    world.cast.owner.post("/v1/inbox/redrive", &json!({"recipient_id": "alpha", "filter": {"event_ids": [lost]}})).await.expect(200);
    let answer = alpha.post("/v1/inbox/claim", &json!({"event_ids": [lost]})).await.expect(200);
    assert_eq!(answer["claims"][0]["payload"], json!({"text": "still here"}));
}

#[tokio::test]
async fn the_inbox_survives_backup_and_restore_with_a_new_epoch() {
    let world = fast(&[]).await;
    let id = give(&world.cast, json!({})).await;
    let claimed = claim_soon(&world.cast.alpha, 600).await;
    let backup = world.directory.path().join("backup.db");
    world.cast.owner.post("/v1/admin/backup", &json!({"path": backup})).await.expect(201);
    let after = give(&world.cast, json!({})).await;
    let epoch = poll(&world.cast.alpha, json!({"after_seq": 0})).await["sync_epoch"].clone();
    let options = world.server.kill();
    let fresh = world.directory.path().join("restored");
    let mut restore = std::process::Command::new(env!("CARGO_BIN_EXE_doorstep"));
    let restored = restore.arg("restore").arg(&backup).arg("--data-dir").arg(&fresh).output().unwrap();
    assert!(restored.status.success(), "{restored:?}");
    let world = World::on(testkit::ServerProcess::start(testkit::ServerOptions { data: fresh, ..options }), world.cast, world.directory);
    let alpha = &world.cast.alpha;
    let body = json!({"after_seq": 1, "sync_epoch": epoch});
    alpha.post("/v1/inbox/poll-after-cursor", &body).await.expect_problem(410, "resync_required");
    assert_eq!(ids(&poll(alpha, json!({"after_seq": 0})).await, "events"), [id]);
    alpha.get(&format!("/v1/inbox/items/{after}")).await.expect_problem(404, "not_found");
    assert_eq!(ack(alpha, &claimed, "completed").await["outcome"], "ok", "the lease was in the backup");
}

#[tokio::test]
async fn ended_items_go_after_their_retention() {
    let world = fast(&[("inbox.ended_retention", "200ms"), ("inbox.prune_interval", "50ms")]).await;
    let alpha = &world.cast.alpha;
    let id = give(&world.cast, json!({})).await;
    let claimed = claim_soon(alpha, 60).await;
    ack(alpha, &claimed, "completed").await;
    eventually("the item is gone", async || (alpha.get(&format!("/v1/inbox/items/{id}")).await.status == 404).then_some(())).await;
}

#[tokio::test]
async fn an_absent_agent_is_not_rung_and_works_all_the_same() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    let put =
        async |body: Value| alpha.call("PUT", "/v1/agents/me/presence", &[("content-type", "application/json")], body.to_string()).await;
    put(json!({"state": "out", "for_seconds": 1})).await.expect(200);
    let id = give(&world.cast, json!({})).await;
    assert_eq!(claim_one(alpha, json!({})).await["event_id"], json!(id));
    give(&world.cast, json!({})).await;
    let head = poll(alpha, json!({"after_seq": 0})).await["head_seq"].as_u64().unwrap();
    let stream = subscribe(alpha).await;
    let text = alpha.read_stream(&stream, &[], |text| text.contains("inbox.updated")).await;
    assert!(text.contains("\"resync\":true"), "back by itself, and told to look at everything: {text}");
    assert!(poll(alpha, json!({"after_seq": 0})).await["head_seq"].as_u64().unwrap() > head);
    put(json!({"state": "gone"})).await.expect_problem(400, "validation_failed");
    in_state(alpha, &id, "claimed").await;
}
