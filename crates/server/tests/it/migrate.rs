//! `doorstep migrate`: from the embedded store into PostgreSQL, and nobody who is connected can tell.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use domain::{Clock, SystemClock};
use serde_json::{Value, json};
use testkit::postgres::{Cluster, TestDatabase};
use testkit::{Cast, Http, ServerOptions, ServerProcess, eventually};

use crate::inbox::{ack, claim_one, give};
use crate::support::{World, options, seqs};

const EVENTS: &str = "/v1/agents/me/consumers/default/events";

/// The command, for the data directory of `options`.
fn migrate(options: &ServerOptions, database: &TestDatabase) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doorstep"));
    command.arg("migrate").arg("--data-dir").arg(&options.data).env("DOORSTEP__DATABASE__URL", &database.url).stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

async fn poll(agent: &Http, query: &str) -> Value {
    agent.get(&format!("{EVENTS}{query}")).await.expect(200)
}

/// How many rows of the log have arrived.
async fn arrived(database: &TestDatabase) -> i64 {
    if database.number("SELECT (to_regclass('doorstep.event_log') IS NOT NULL)::INTEGER::BIGINT").await == 0 {
        return 0;
    }
    database.number("SELECT count(*) FROM doorstep.event_log").await
}

/// What a world knows of its store, to be found again afterwards.
struct Known {
    claimed: Value,
    waiting: String,
    sent: Vec<u64>,
    head: u64,
    keyed: Value,
    scheduled: Value,
    listed: Value,
}

async fn fill(cast: &Cast) -> Known {
    for _ in 0..12 {
        cast.say_many("support/general", 1000).await;
    }
    give(cast, json!({})).await;
    let claimed = claim_one(&cast.alpha, json!({"lease_seconds": 600})).await;
    let waiting = give(cast, json!({"recipients": [{"kind": "agent", "id": "alpha", "queue": "later"}]})).await;
    let keyed = json!({"type": "message.created", "channel": "support/general", "deduplication_key": "once", "payload": {}});
    let published = cast.producer.post("/v1/events", &keyed).await.expect(201);
    poll(&cast.alpha, "").await;
    let sent = cast.say_many("support/general", 5).await;
    let page = poll(&cast.alpha, "?limit=3").await;
    assert_eq!(seqs(page["events"].as_array().unwrap()), sent[..3]);
    cast.alpha.post("/v1/agents/me/consumers/default/ack", &json!({"seq": sent[1]})).await.expect(200);
    let tomorrow = SystemClock::new().now().plus(Duration::from_hours(24)).to_string();
    let later = json!({"type": "message.created", "channel": "support/general", "available_at": tomorrow, "payload": {}});
    let scheduled = cast.producer.post("/v1/events", &later).await.expect(201)["events"][0].clone();
    let listed = cast.owner.get("/v1/principals").await.expect(200);
    let head = *sent.last().unwrap();
    Known { claimed, waiting, sent, head, keyed: published["events"][0].clone(), scheduled, listed }
}

async fn is_all_there(cast: &Cast, known: &Known) {
    assert_eq!(cast.owner.get("/v1/principals").await.expect(200), known.listed);
    let waiting = cast.alpha.get(&format!("/v1/inbox/items/{}", known.waiting)).await.expect(200);
    assert_eq!(waiting["queue"], "later");
    assert_eq!(ack(&cast.alpha, &known.claimed, "completed").await["outcome"], "ok", "the lease of before holds");
    // What was on its way is not sent again within its time, and what is acknowledged is.
    let state = cast.alpha.get("/v1/agents/me/consumers/default").await.expect(200);
    assert_eq!((&state["acked_seq"], &state["head_seq"]), (&json!(known.sent[1]), &json!(known.head)));
    let page = poll(&cast.alpha, &format!("?after={}", known.sent[2])).await;
    assert_eq!(seqs(page["events"].as_array().unwrap()), known.sent[3..]);
    let keyed = json!({"type": "message.created", "channel": "support/general", "deduplication_key": "once", "payload": {}});
    let again = cast.producer.post("/v1/events", &keyed).await;
    assert_eq!(again.json()["events"][0]["seq"], known.keyed["seq"], "a key of before is known");
    let id = known.scheduled["id"].as_str().unwrap();
    let scheduled = cast.owner.get("/v1/events/scheduled").await.expect(200);
    assert!(scheduled["items"].as_array().unwrap().iter().any(|item| item["id"] == id), "{scheduled}");
    assert_eq!(cast.say("support/general", "more").await, known.head + 1, "positions go on");
}

#[tokio::test]
async fn everything_is_moved_although_it_is_killed_and_nobody_can_tell() {
    let world = World::with(&[("agent.ack_timeout", "10m")]).await;
    let database = Cluster::shared().empty_database().await;
    let known = fill(&world.cast).await;

    let options = options(&world.directory, &[("agent.ack_timeout", "10m")]);
    let refused = migrate(&options, &database).output().unwrap();
    assert!(!refused.status.success() && said(&refused).contains("another doorstep process"), "{}", said(&refused));

    let World { server, cast, directory } = world;
    server.ask_to_stop();
    assert!(server.wait().success());

    for _ in 0..3 {
        let mut running = migrate(&options, &database).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let before = arrived(&database).await;
        eventually("some more of the log arrives", async || (arrived(&database).await > before).then_some(())).await;
        running.kill().unwrap();
        running.wait().unwrap();
    }
    let shared = options.clone().with("database.url", &database.url);
    let half = shared.command().output().unwrap();
    assert!(!half.status.success() && said(&half).contains("has not ended"), "{}", said(&half));

    let done = migrate(&options, &database).output().unwrap();
    assert!(
        done.status.success() && said(&done).contains("going on where") && said(&done).contains("the same on both sides"),
        "{}",
        said(&done)
    );
    let again = migrate(&options, &database).output().unwrap();
    assert!(again.status.success() && said(&again).contains("already"), "{}", said(&again));

    let server = ServerProcess::start(shared);
    let world = World::on(server, cast, directory);
    is_all_there(&world.cast, &known).await;
    let World { server, directory: _kept, .. } = world;
    server.kill();
    let used = migrate(&options, &database).output().unwrap();
    assert!(used.status.success(), "what was moved is still known as that: {}", said(&used));
}

#[tokio::test]
async fn a_database_that_is_in_use_is_left_alone() {
    let world = World::new().await;
    let database = Cluster::shared().empty_database().await;
    let other = tempfile::tempdir().unwrap();
    let shared = options(&other, &[("database.url", &database.url), ("database.auto_migrate", "true")]);
    let server = ServerProcess::start(shared);
    let World { server: embedded, directory, .. } = world;
    embedded.ask_to_stop();
    assert!(embedded.wait().success());
    let refused = migrate(&options(&directory, &[]), &database).output().unwrap();
    assert!(!refused.status.success() && said(&refused).contains("not empty"), "{}", said(&refused));
    server.owner().get("/v1/me").await.expect(200);
}

#[test]
fn without_a_database_it_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_doorstep")).args(["migrate", "--data-dir"]).arg(directory.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said(&output).contains("database.url"));
}
