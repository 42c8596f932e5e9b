//! Which tenants have a tail, and for how long.

use std::sync::Arc;
use std::time::Duration;

use domain::StoreError;
use sync::Settings;
use tokio::sync::Semaphore;

use crate::fakes::{Setup, Told, event, range, seq, settings, tenant};

#[tokio::test(start_paused = true)]
async fn an_unknown_tenant_has_no_log() {
    let setup = Setup::new(&[]);
    assert_eq!(setup.logs.open(&tenant("t")).await.unwrap_err(), StoreError::TenantInactive);
    assert!(setup.recorder.told("t").is_empty());
}

#[tokio::test(start_paused = true)]
async fn concurrent_opens_share_one_tail() {
    let setup = Setup::new(&["t"]);
    let opens = (0..50).map(|_| {
        let logs = setup.logs.clone();
        setup.tracker.spawn(async move { logs.open(&tenant("t")).await.unwrap() })
    });
    let mut handles = Vec::new();
    for open in opens.collect::<Vec<_>>() {
        handles.push(open.await.unwrap());
    }
    assert!(handles.iter().all(|handle| Arc::ptr_eq(handle, &handles[0])));
    assert_eq!(setup.recorder.told("t"), [Told::Started]);
    assert_eq!(setup.logs.metrics().live_tails.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tail_outlives_its_last_reader_by_the_linger_and_no_longer() {
    let setup = Setup::new(&["t"]);
    let log = setup.logs.open(&tenant("t")).await.unwrap();
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(setup.recorder.told("t"), [Told::Started], "it runs as long as there is a reader");
    drop(log);
    tokio::time::sleep(Duration::from_secs(8)).await;
    drop(setup.logs.open(&tenant("t")).await.unwrap());
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(setup.recorder.told("t"), [Told::Started], "a reader in between begins the linger anew");
    setup.publish("t", 1);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(setup.recorder.told("t"), [Told::Started, Told::Observed(vec![1]), Told::Stopped]);
    assert_eq!(setup.logs.metrics().live_tails.get(), 0);

    setup.publish("t", 1);
    let log = setup.logs.open(&tenant("t")).await.unwrap();
    assert_eq!(log.position(), seq(2), "a new tail begins at the committed head");
}

#[tokio::test(start_paused = true)]
async fn more_live_tenants_than_allowed_are_refused_and_idle_ones_make_room() {
    let setup = Setup::with(&["a", "b", "c"], Settings { max_live_tenants: 2, ..settings() });
    let a = setup.logs.open(&tenant("a")).await.unwrap();
    let b = setup.logs.open(&tenant("b")).await.unwrap();
    assert_eq!(setup.logs.open(&tenant("c")).await.unwrap_err(), StoreError::Overloaded);
    assert!(setup.logs.open(&tenant("a")).await.is_ok(), "what is live stays open to more readers");
    drop(a);
    let c = setup.logs.open(&tenant("c")).await.unwrap();
    assert_eq!(setup.recorder.told("a"), [Told::Started, Told::Stopped]);
    assert_eq!(setup.recorder.told("b"), [Told::Started]);
    assert_eq!(setup.logs.metrics().opens_refused.get(), 1);
    drop((b, c));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_leaves_no_start_half_done() {
    let setup = Setup::new(&["t"]);
    let gate = Arc::new(Semaphore::new(0));
    *setup.recorder.start_gate.lock().unwrap() = Some(gate.clone());
    assert!(tokio::time::timeout(Duration::from_secs(1), setup.logs.open(&tenant("t"))).await.is_err());
    gate.add_permits(1);
    let log = setup.logs.open(&tenant("t")).await.unwrap();
    assert_eq!(setup.recorder.told("t"), [Told::Started], "the start went on, and is shared");
    drop(log);
}

#[tokio::test(start_paused = true)]
async fn rings_share_the_memory_of_the_process() {
    let limits = Settings { ring_max_events: 1_000, ring_max_bytes: 60_000, ring_total_bytes: 60_000, ..settings() };
    let setup = Setup::with(&["a", "b"], limits);
    let a = setup.logs.open(&tenant("a")).await.unwrap();
    for round in 1..=20 {
        setup.publish("a", 10);
        a.wait_for(seq(10 * round)).await.unwrap();
    }
    let held = |after: u64| {
        let before = setup.logs.metrics().ring_reads.get();
        let (a, logs) = (a.clone(), setup.logs.clone());
        async move {
            assert!(!a.read(range(after, None)).await.unwrap().events.is_empty());
            logs.metrics().ring_reads.get() > before
        }
    };
    assert!(held(0).await, "alone, it has room for everything");
    let _b = setup.logs.open(&tenant("b")).await.unwrap();
    tokio::time::sleep(settings().tail_poll_interval * 2).await;
    let size = event(1, 100).size() as u64;
    let half = limits.ring_total_bytes as u64 / 2 / size;
    assert!(held(200 - half).await, "its half is still there");
    assert!(!held(200 - half - 1).await, "the rest is not");
}
