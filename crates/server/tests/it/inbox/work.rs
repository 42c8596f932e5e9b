//! `doorstep work`: any command becomes a durable worker.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Deadline, eventually};

use super::{FAST, fast, give, give_many, in_state, item};
use crate::support::World;

/// `doorstep work` with these arguments, as `alpha`.
fn worker(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doorstep"));
    command.arg("work").args(arguments).env("DOORSTEP_URL", world.url()).env("DOORSTEP_TOKEN", world.cast.alpha.token());
    command.current_dir(world.directory.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The exit code of a worker that ends by itself.
fn ended(mut child: Child) -> Option<i32> {
    let deadline = Deadline::usual();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if deadline.passed() {
            let _ = child.kill();
        }
        assert!(!deadline.passed(), "the worker did not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs one item through a shell script; answers the worker's exit code.
fn once(world: &World, script: &str) -> Option<i32> {
    ended(worker(world, &["--once", "--", "sh", "-c", script]).spawn().unwrap())
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_command_gets_the_item_and_its_exit_code_decides() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    let id = give(&world.cast, json!({"summary": "Fix it", "payload": {"n": 7}})).await;
    let script =
        r#"cat > got.json; echo "$DOORSTEP_EVENT_ID $DOORSTEP_EVENT_TYPE $DOORSTEP_QUEUE $DOORSTEP_ATTEMPT" > got.env; echo done well"#;
    assert_eq!(once(&world, script), Some(0));
    let got: Value = serde_json::from_str(&std::fs::read_to_string(world.directory.path().join("got.json")).unwrap()).unwrap();
    assert_eq!((&got["event_id"], &got["payload"], &got["event_type"]), (&json!(id), &json!({"n": 7}), &json!("task.created")));
    assert!(got.get("lease_token").is_none(), "the command needs no secret: {got}");
    assert_eq!(lines(&world.directory.path().join("got.env")), [format!("{id} task.created inbox 1")]);
    let done = item(alpha, &id).await;
    assert_eq!((&done["ack_state"], &done["attempts"][0]["summary"]), (&json!("acked"), &json!("done well")));

    let snoozed = give(&world.cast, json!({"max_attempts": 1})).await;
    once(&world, "exit 75");
    let back = item(alpha, &snoozed).await;
    assert_eq!(back["attempts"][0]["outcome"], "snoozed");
    assert_ne!(back["ack_state"], "dead_letter");
    in_state(alpha, &snoozed, "available").await;

    once(&world, "echo broken >&2; exit 3");
    let failed = in_state(alpha, &snoozed, "dead_letter").await;
    assert_eq!(failed["attempts"][1]["outcome"], "failed");
    let summary = failed["attempts"][1]["summary"].as_str().unwrap();
    assert!(summary.contains('3') && summary.contains("broken"), "{summary}");
}

#[tokio::test]
async fn once_with_nothing_there_says_so_by_its_code() {
    let world = World::new().await;
    let code = once(&world, "true");
    assert!(code.is_some_and(|code| code != 0 && code != 1), "{code:?}");
}

#[tokio::test]
async fn a_lost_lease_ends_the_command_and_everything_it_started() {
    let world = fast(&[]).await;
    let id = give(&world.cast, json!({})).await;
    let script = "sh -c 'while true; do echo tick >> ticks; sleep 0.1; done' & echo $! > grandchild; wait";
    let mut child = worker(&world, &["--lease", "2s", "--", "sh", "-c", script]).spawn().unwrap();
    let ticks = world.directory.path().join("ticks");
    eventually("the grandchild works", async || (lines(&ticks).len() > 2).then_some(())).await;
    world.cast.owner.post("/v1/inbox/quarantine", &json!({"event_id": id, "recipient_id": "alpha"})).await.expect(200);
    eventually("the grandchild is gone", async || {
        let before = lines(&ticks).len();
        tokio::time::sleep(Duration::from_millis(500)).await;
        (lines(&ticks).len() == before).then_some(())
    })
    .await;
    assert!(child.try_wait().unwrap().is_none(), "the worker itself goes on");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(item(&world.cast.alpha, &id).await["ack_state"], "quarantined");
}

#[tokio::test]
async fn sigterm_lets_the_running_command_finish_and_claims_nothing_more() {
    let world = fast(&[]).await;
    let ids = give_many(&world.cast, 2).await;
    let child = worker(&world, &["--", "sh", "-c", "echo begun >> begun; sleep 1; echo ended >> ended"]).spawn().unwrap();
    let begun = world.directory.path().join("begun");
    eventually("the command runs", async || (!lines(&begun).is_empty()).then_some(())).await;
    signal(&child, "TERM");
    assert_eq!(ended(child), Some(0));
    assert_eq!((lines(&begun).len(), lines(&world.directory.path().join("ended")).len()), (1, 1));
    assert_eq!(item(&world.cast.alpha, &ids[0]).await["ack_state"], "acked");
    assert_eq!(item(&world.cast.alpha, &ids[1]).await["ack_state"], "available");
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().unwrap().success());
}

#[tokio::test]
async fn a_sleeping_host_wakes_up_to_a_lost_lease_and_goes_on() {
    let world = fast(&[]).await;
    let id = give(&world.cast, json!({})).await;
    // The worker sleeps, and its command with it.
    let child = worker(&world, &["--lease", "2s", "--", "sh", "-c", "echo $$ >> pids; sleep 1000"]).spawn().unwrap();
    let pids = world.directory.path().join("pids");
    eventually("the command runs", async || (!lines(&pids).is_empty()).then_some(())).await;
    signal(&child, "STOP");
    let lapsed = eventually("the lease lapses", async || {
        let item = item(&world.cast.alpha, &id).await;
        (item["attempts"][0]["outcome"] == "lease_expired").then_some(item)
    })
    .await;
    assert_eq!(lapsed["delivery_attempts"], 1);
    signal(&child, "CONT");
    eventually("the item is worked on again", async || (lines(&pids).len() == 2).then_some(())).await;
    let first = lines(&pids)[0].clone();
    eventually("the first command is gone", async || (!Path::new(&format!("/proc/{first}")).exists()).then_some(())).await;
    signal(&child, "KILL");
    ended(child);
}

/// How many items the large test works off.
const ITEMS: usize = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_items_over_four_workers_with_kills_of_workers_and_server_are_each_acknowledged_once() {
    let mut world = World::with(&FAST).await;
    let mut given = Vec::new();
    for _ in 0..ITEMS / 100 {
        given.extend(give_many_patient(&world, 100).await);
    }
    // Each run notes the item that it works on; only a run that comes to its end can be acknowledged.
    let script = r#"echo "$DOORSTEP_EVENT_ID" >> runs; exit 0"#;
    let start = |world: &World| {
        let mut command = worker(world, &["--concurrency", "2", "--lease", "2s", "--", "sh", "-c", script]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut workers: Vec<Child> = (0..4).map(|_| start(&world)).collect();
    let runs = world.directory.path().join("runs");
    let mut dice: u64 = 0x2545_F491_4F6C_DD1D;
    let mut kills = 0;
    let began = Instant::now();
    while lines(&runs).len() < ITEMS * 9 / 10 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let wanted = (lines(&runs).len() + 40 + usize::try_from((dice >> 33) % 60).unwrap()).min(ITEMS * 9 / 10);
        eventually("runs are made", async || (lines(&runs).len() >= wanted).then_some(())).await;
        if kills % 4 == 3 {
            // The server dies; its address changes, so the workers are started anew.
            world = world.crash();
            for child in &mut workers {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            workers = (0..4).map(|_| start(&world)).collect();
        } else {
            let victim = usize::try_from((dice >> 40) % 4).unwrap();
            workers[victim].kill().unwrap();
            workers[victim].wait().unwrap();
            workers[victim] = start(&world);
        }
        kills += 1;
    }
    assert!(kills > 5, "{kills}");
    eventually("everything is acknowledged", async || {
        let page = super::poll(&world.cast.alpha, json!({"after_seq": 0, "limit": 1})).await;
        page["events"].as_array().unwrap().is_empty().then_some(())
    })
    .await;
    for child in &mut workers {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut runs_of: HashMap<String, u64> = HashMap::new();
    for id in lines(&runs) {
        *runs_of.entry(id).or_default() += 1;
    }
    for id in &given {
        let item = item(&world.cast.alpha, id).await;
        assert_eq!(item["ack_state"], "acked", "{item}");
        let completed = item["attempts"].as_array().unwrap().iter().filter(|attempt| attempt["outcome"] == "completed").count();
        assert_eq!(completed, 1, "{item}");
        assert!(runs_of.get(id).is_some_and(|runs| *runs <= item["delivery_attempts"].as_u64().unwrap()), "{item}");
    }
    println!("{ITEMS} items, {kills} kills, {:?}", began.elapsed());
}

/// Much work with many attempts, so that killed workers make no dead letters.
async fn give_many_patient(world: &World, count: usize) -> Vec<String> {
    let event = |n: usize| json!({"type": "task.created", "recipients": [{"kind": "agent", "id": "alpha"}], "payload": {"n": n}, "max_attempts": 50});
    let events: Vec<_> = (0..count).map(event).collect();
    let answer = world.cast.producer.post("/v1/events", &json!({"events": events})).await.expect(201);
    answer["events"].as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}
