//! Starting, stopping, watching, backing up: what an operator does, and what goes wrong around it.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::{Http, Peer, ServerProcess};

use crate::support::{World, options};

fn doorstep(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_doorstep")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn health_readiness_and_metrics_need_no_token_and_tell_no_secret() {
    let world = World::new().await;
    let nobody = Http::anonymous(world.url());
    nobody.get("/healthz").await.expect(200);
    nobody.get("/readyz").await.expect(200);
    world.cast.say("support/general", "counted").await;
    let metrics = String::from_utf8(nobody.get("/metrics").await.body.to_vec()).unwrap();
    for name in ["doorstep_publish", "doorstep_gateway_connections", "doorstep_http_requests"] {
        assert!(metrics.contains(name), "no {name} in:\n{metrics}");
    }
    for secret in [world.cast.alpha.token(), world.cast.owner.token()] {
        assert!(!metrics.contains(secret) && !world.server.log().contains(secret));
    }
    for private in ["alpha", "support/general"] {
        assert!(!metrics.contains(private), "labels are bounded: {private}");
    }
}

#[tokio::test]
async fn two_processes_on_one_store_refuse_each_other_with_a_clear_message() {
    let world = World::new().await;
    let output = options(&world.directory, &[]).command().output().unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    assert!(said(&output).contains("another doorstep process"), "{}", said(&output));
    world.cast.say("support/general", "the first goes on").await;
}

#[tokio::test]
async fn a_request_id_is_echoed_and_logged() {
    let world = World::new().await;
    let answer = world.cast.owner.call("GET", "/v1/nothing", &[("x-request-id", "given-by-me-17")], "").await;
    assert_eq!(answer.headers["x-request-id"], "given-by-me-17");
    assert_eq!(answer.json()["request_id"], "given-by-me-17");
    let hostile = world.cast.owner.call("GET", "/v1/nothing", &[("x-request-id", "a b{}\"<script>")], "").await;
    assert_ne!(hostile.json()["request_id"], "a b{}\"<script>");
}

#[test]
fn a_wrong_configuration_is_refused_with_2_and_every_fault() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("doorstep.toml");
    std::fs::write(&file, "[agent]\nack_timout = \"1s\"\n[server]\nlisten = \"nowhere\"\n").unwrap();
    for command in ["serve", "config"] {
        let mut arguments = vec![command];
        if command == "config" {
            arguments.push("check");
        }
        arguments.extend(["--config", file.to_str().unwrap()]);
        let output = doorstep(&arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = said(&output);
        assert!(said.contains("agent.ack_timout") && said.contains("did you mean 'agent.ack_timeout'"), "{said}");
        assert!(said.contains("server.listen"), "{said}");
    }
}

#[tokio::test]
async fn a_port_in_use_is_said_plainly() {
    let world = World::new().await;
    let other = tempfile::tempdir().unwrap();
    let address = world.url().trim_start_matches("http://");
    let data = other.path().join("data");
    let output = doorstep(&["serve", "--data-dir", data.to_str().unwrap(), "--listen", address]);
    assert!(!output.status.success());
    assert!(said(&output).contains(address) && said(&output).contains("in use"), "{}", said(&output));
}

#[test]
fn a_data_directory_that_cannot_be_used_is_said_plainly() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    let output = doorstep(&["serve", "--data-dir", file.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    assert!(!output.status.success());
    assert!(said(&output).contains("a-file"), "{}", said(&output));
}

#[tokio::test]
async fn a_corrupt_store_is_refused_and_never_serves_a_shorter_log() {
    let world = World::new().await;
    let marker = "a marker that is easy to find in the file";
    world.cast.say("support/general", marker).await;
    for _ in 0..20 {
        world.cast.say("support/general", "more").await;
    }
    let owner = world.cast.owner.clone();
    world.server.ask_to_stop();
    let options = world.server.options().clone();
    assert!(world.server.wait().success());
    let path = options.data.join("doorstep.sqlite");
    let mut bytes = std::fs::read(&path).unwrap();
    let mut damaged = 0;
    while let Some(at) = bytes.windows(marker.len()).position(|window| window == marker.as_bytes()) {
        bytes[at] = b'X';
        damaged += 1;
    }
    assert!(damaged > 0);
    std::fs::write(&path, bytes).unwrap();
    let check = doorstep(&["check", "--data-dir", options.data.to_str().unwrap()]);
    assert_eq!(check.status.code(), Some(1), "{check:?}");
    // One damaged row in the middle: the server may start, but does not read past it.
    let server = ServerProcess::start(options);
    let answer = owner.at(&server.url).get("/v1/events?after=0&limit=1000").await;
    answer.expect_problem(500, "internal");
    assert!(!String::from_utf8_lossy(&answer.body).contains("checksum"), "no inside detail: {answer:?}");
}

#[tokio::test]
async fn a_backup_is_online_and_consistent_and_a_restore_changes_the_epoch() {
    let world = World::with(&[("agent.ack_persist_interval", "20ms")]).await;
    let sent = world.cast.say_many("support/general", 10).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let old_epoch = peer.ready["sync_epoch"].clone();
    let backup = world.directory.path().join("backup.sqlite");
    let storm = {
        let cast = world.cast.clone();
        tokio::spawn(async move {
            for _ in 0..200 {
                cast.say("support/general", "during the backup").await;
            }
        })
    };
    let (url, token) = (world.url().to_owned(), world.cast.owner.token().to_owned());
    let target = backup.to_str().unwrap().to_owned();
    let made = tokio::task::spawn_blocking(move || doorstep(&["backup", &target, "--url", &url, "--token", &token])).await.unwrap();
    assert!(made.status.success(), "{made:?}");
    storm.await.unwrap();
    let later = peer.dispatched(200).await.last().unwrap()["seq"].as_u64().unwrap();
    peer.ack(later).await;
    testkit::eventually("the ack is stored", async || {
        let state = world.cast.alpha.get("/v1/agents/me/consumers/default").await.expect(200);
        (state["acked_seq"] == later).then_some(())
    })
    .await;
    world.server.ask_to_stop();
    let old = world.server.options().clone();
    assert!(world.server.wait().success());

    let fresh = world.directory.path().join("restored");
    let restored = doorstep(&["restore", backup.to_str().unwrap(), "--data-dir", fresh.to_str().unwrap()]);
    assert!(restored.status.success(), "{restored:?}");
    let again = doorstep(&["restore", backup.to_str().unwrap(), "--data-dir", fresh.to_str().unwrap()]);
    assert!(!again.status.success(), "a store that is there is not overwritten");
    let check = doorstep(&["check", "--data-dir", fresh.to_str().unwrap()]);
    assert!(check.status.success(), "{check:?}");

    let server = ServerProcess::start(testkit::ServerOptions { data: fresh, ..old });
    let sam = world.cast.sam.at(&server.url);
    let page = sam.get(&format!("/v1/events?after={}&limit=1000", sent[0] - 1)).await.expect(200);
    let events = page["events"].as_array().unwrap();
    assert!(events.len() >= 10 && events.len() <= 210);
    let peer = Peer::consumer(&server.url, world.cast.alpha.token(), "default").await;
    assert_ne!(peer.ready["sync_epoch"], old_epoch);
    assert!(peer.ready["acked_seq"].as_u64() <= page["head_seq"].as_u64(), "a cursor above the restored head is reset");
    let stale = sam.get(&format!("/v1/events?sync_epoch={}", old_epoch.as_str().unwrap())).await;
    assert_eq!(stale.expect_problem(410, "resync_required")["reason"], "epoch_changed");
}

#[tokio::test]
async fn readiness_drops_first_when_the_server_stops_and_a_waiting_poll_is_told() {
    let world = World::new().await;
    let alpha = world.cast.alpha.clone();
    alpha.get("/v1/agents/me/consumers/default/events").await.expect(200);
    let waiting = tokio::spawn(async move { alpha.get("/v1/agents/me/consumers/default/events?wait_seconds=30").await });
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let since = std::time::Instant::now();
    world.server.ask_to_stop();
    let answer = waiting.await.unwrap();
    assert!([200, 503].contains(&answer.status), "{answer:?}");
    assert!(world.server.wait().success());
    assert!(since.elapsed() < std::time::Duration::from_secs(10), "{:?}", since.elapsed());
}

#[tokio::test]
async fn the_api_documents_are_served_and_describe_what_is_there() {
    let world = World::new().await;
    let document = Http::anonymous(world.url()).get("/v1/openapi.json").await.expect(200);
    let operations: Vec<&Value> =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values()).collect();
    let ids: Vec<&str> = operations.iter().filter_map(|operation| operation["operationId"].as_str()).collect();
    for id in ["getConsumerState", "pollAgentEvents", "ackAgentEvents", "listConsumers", "publishEvents", "listEvents", "streamEvents"] {
        assert!(ids.contains(&id), "no {id} in {ids:?}");
    }
    for operation in operations.iter().filter(|operation| operation["operationId"] == "pollAgentEvents") {
        assert_eq!(operation["x-action"], "agent.events.consume");
    }
    let frames = Http::anonymous(world.url()).get("/v1/asyncapi.json").await.expect(200);
    assert_eq!(frames["asyncapi"].as_str().unwrap().chars().next(), Some('3'));
    assert!(frames.to_string().contains("consumer_replaced"));
    let _ = json!({});
}

#[test]
fn the_demo_tells_its_story_and_exits_0() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_doorstep")).arg("demo").current_dir(directory.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}\n{}", said(&output));
    for step in ["publish", "follow", "crash", "resume", "take"] {
        assert!(told.to_lowercase().contains(step), "{told}");
    }
    assert!(!told.contains('\u{1b}'), "no colour where nobody sees it");
}

#[tokio::test]
async fn a_full_store_answers_503_keeps_what_it_has_and_recovers() {
    let world = World::with(&[("database.max_bytes", "2MiB")]).await;
    let event = json!({"type": "big", "channel": "support/general", "payload": {"text": "x".repeat(100_000)}});
    let mut stored = Vec::new();
    let refused = loop {
        let answer = world.cast.producer.post("/v1/events", &event).await;
        if answer.status != 201 {
            break answer;
        }
        stored.push(answer.json()["events"][0]["seq"].as_u64().unwrap());
        assert!(stored.len() < 100, "it never became full");
    };
    refused.expect_problem(503, "storage_full");
    let start = stored[0] - 1;
    let held = async |world: &World| world.cast.sam.log_after(start).await.into_iter().map(|(_, seq)| seq).collect::<Vec<_>>();
    assert_eq!(held(&world).await, stored, "reading goes on");
    let mut options = world.server.kill();
    options.config.clear();
    let world = World::on(ServerProcess::start(options), world.cast, world.directory);
    assert_eq!(held(&world).await, stored, "nothing acknowledged is lost");
    world.cast.producer.post("/v1/events", &event).await.expect(201);
}

#[tokio::test]
async fn who_lost_the_owners_token_gets_a_new_one_from_the_store_of_a_stopped_server() {
    let world = World::new().await;
    let data = world.server.options().data.clone();
    let running = doorstep(&["recover-owner", "--data-dir", data.to_str().unwrap()]);
    assert!(!running.status.success(), "a running server has the store");
    let options = world.server.options().clone();
    world.server.ask_to_stop();
    assert!(world.server.wait().success());
    let old = std::fs::read_to_string(data.join("owner-token")).unwrap();
    std::fs::remove_file(data.join("owner-token")).unwrap();
    let unknown = doorstep(&["recover-owner", "--data-dir", data.to_str().unwrap(), "--tenant", "nobody"]);
    assert!(!unknown.status.success(), "{unknown:?}");
    let recovered = doorstep(&["recover-owner", "--data-dir", data.to_str().unwrap()]);
    assert!(recovered.status.success(), "{recovered:?}");
    let server = ServerProcess::start(options);
    assert_ne!(server.owner_token(), old.trim());
    let owner = server.owner();
    assert_eq!(owner.get("/v1/me").await.expect(200)["role"], "owner");
    let audit = owner.get("/v1/audit?action=tokens.manage&limit=1").await.expect(200);
    assert!(audit["items"][0].get("actor").is_none(), "{audit}");
    owner.with_token(old.trim()).get("/v1/me").await.expect(200);
}
