//! The tail's rules one by one (design/stream.md, "Tail").

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::StoreError;
use sync::{Head, LogStore, Replaced};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::fakes::{Setup, Told, epoch, event, numbers, range, reach, seq, settings, tenant};

#[tokio::test(start_paused = true)]
async fn what_this_process_committed_arrives_from_memory_without_reading_the_store() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    setup.publish("t", 1);
    reach(&log, |position| position.seq == seq(1)).await;
    let pages = setup.store.calls().pages;
    for _ in 0..5 {
        setup.publish("t", 3);
    }
    let began = Instant::now();
    reach(&log, |position| position.seq == seq(16)).await;
    log.wait_for(seq(16)).await.unwrap();
    log.committed_head().await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(began.elapsed(), Duration::ZERO, "no timer is involved");
    assert_eq!(setup.store.calls().pages, pages);
    assert_eq!(setup.recorder.observed("t"), (1..=16).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_lost_hint_costs_a_poll_interval_and_nothing_else() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    let began = Instant::now();
    setup.store.commit("t", 12);
    reach(&log, |position| position.seq == seq(12)).await;
    assert!(began.elapsed() <= settings().tail_poll_interval, "{:?}", began.elapsed());
    assert_eq!(setup.recorder.observed("t"), (1..=12).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_lies_ahead_makes_the_tail_read_what_is_between() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    setup.store.commit("t", 7);
    setup.publish("t", 2);
    let began = Instant::now();
    reach(&log, |position| position.seq == seq(9)).await;
    assert_eq!(began.elapsed(), Duration::ZERO, "the later batch says that something is missing");
    assert_eq!(setup.recorder.observed("t"), (1..=9).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_was_seen_before_is_dropped_and_one_that_was_seen_in_part_is_completed_from_the_store() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    let batch = setup.store.commit("t", 4);
    setup.announce("t", &batch);
    log.wait_for(seq(4)).await.unwrap();
    setup.announce("t", &batch);
    let more = setup.store.commit("t", 2);
    let overlapping: Vec<_> = batch[2..].iter().chain(&more).cloned().collect();
    setup.announce("t", &overlapping);
    let began = Instant::now();
    reach(&log, |position| position.seq == seq(6)).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(setup.recorder.observed("t"), (1..=6).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn more_than_the_queue_holds_is_read_from_the_store() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    let gate = Arc::new(Semaphore::new(0));
    *setup.recorder.observe_gate.lock().unwrap() = Some(gate.clone());
    for _ in 0..100 {
        setup.publish("t", 1);
    }
    assert!(setup.logs.metrics().batches_dropped.get() >= 80, "the queue is bounded");
    gate.add_permits(1_000);
    let began = Instant::now();
    reach(&log, |position| position.seq == seq(100)).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(setup.recorder.observed("t"), (1..=100).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn the_position_moves_only_after_the_observer_has_seen_the_events() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    let gate = Arc::new(Semaphore::new(0));
    *setup.recorder.observe_gate.lock().unwrap() = Some(gate.clone());
    setup.publish("t", 2);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(setup.recorder.attempts.load(Ordering::SeqCst), 1, "the observer is at it");
    assert_eq!(log.position(), seq(0));
    assert!(log.read(range(0, None)).await.unwrap().events.is_empty(), "nothing is readable before it was observed");
    gate.add_permits(1);
    log.wait_for(seq(2)).await.unwrap();
    assert_eq!(numbers(&log.read(range(0, None)).await.unwrap().events), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_fails_is_asked_again_with_capped_pauses_and_no_position_moves() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    setup.recorder.failing.store(20, Ordering::SeqCst);
    setup.publish("t", 1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((log.position(), setup.logs.metrics().stalled_tails.get()), (seq(0), 1));
    let began = Instant::now();
    reach(&log, |position| position.seq == seq(1)).await;
    assert!(began.elapsed() <= settings().backoff_cap * 20, "{:?}", began.elapsed());
    assert_eq!(setup.recorder.attempts.load(Ordering::SeqCst), 21);
    assert_eq!(setup.recorder.observed("t"), [1]);
    assert_eq!(setup.logs.metrics().stalled_tails.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn another_epoch_replaces_the_log_and_opening_it_again_gives_the_new_history() {
    let setup = Setup::new(&["t"]);
    let old = setup.open("t").await;
    setup.publish("t", 3);
    old.wait_for(seq(3)).await.unwrap();
    {
        let mut logs = setup.store.logs();
        let log = logs.get_mut(&tenant("t")).unwrap();
        (log.epoch, log.events) = (epoch(2), (1..=9).map(|number| event(number, 10)).collect());
    }
    reach(&old, |position| position.replaced).await;
    assert_eq!(old.read(range(0, None)).await.unwrap_err(), StoreError::Conflict("the log's history was replaced"));
    assert_eq!(old.wait_for(seq(4)).await, Err(Replaced));

    let new = setup.logs.open(&tenant("t")).await.unwrap();
    assert_eq!((new.epoch(), new.position(), old.epoch()), (epoch(2), seq(9), epoch(1)));
    let told = setup.recorder.told("t");
    assert_eq!(told, [Told::Started, Told::Observed(vec![1, 2, 3]), Told::Stopped, Told::Started]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_another_epoch_replaces_the_log_at_once() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    sync::CommitListener::committed(&*setup.logs, &tenant("t"), epoch(7), &[event(1, 10)]);
    assert!(log.subscribe().borrow().replaced);
    setup.open("t").await;
    assert_eq!(setup.recorder.told("t"), [Told::Started, Told::Stopped, Told::Started], "the old tail has ended before the new one starts");
}

#[tokio::test(start_paused = true)]
async fn a_head_below_the_position_replaces_the_log() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    setup.publish("t", 3);
    log.wait_for(seq(3)).await.unwrap();
    setup.store.logs().get_mut(&tenant("t")).unwrap().events.truncate(2);
    let began = Instant::now();
    reach(&log, |position| position.replaced).await;
    assert!(began.elapsed() <= settings().tail_poll_interval);
}

#[tokio::test(start_paused = true)]
async fn a_position_that_moves_while_the_heads_are_read_replaces_nothing() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    let gate = Arc::new(Semaphore::new(0));
    *setup.store.heads_gate.lock().unwrap() = Some(gate.clone());
    tokio::time::sleep(Duration::from_secs(5)).await;
    setup.publish("t", 5);
    log.wait_for(seq(5)).await.unwrap();
    let polls = setup.store.calls().heads.len();
    gate.add_permits(100);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(setup.store.calls().heads.len() > polls, "the poll that was overtaken has ended");
    assert!(!log.subscribe().borrow().replaced);
}

#[tokio::test(start_paused = true)]
async fn rows_that_retention_removed_unobserved_replace_the_log() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    setup.store.commit("t", 9);
    setup.store.logs().get_mut(&tenant("t")).unwrap().floor = 5;
    reach(&log, |position| position.replaced).await;
    assert!(setup.recorder.observed("t").is_empty(), "what cannot be observed whole is not observed in part");
}

#[tokio::test(start_paused = true)]
async fn a_log_with_a_hole_is_never_served_shorter() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    setup.store.commit("t", 4);
    setup.store.logs().get_mut(&tenant("t")).unwrap().events.remove(0);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((log.position(), setup.logs.metrics().stalled_tails.get()), (seq(0), 1));
    assert!(setup.recorder.observed("t").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_is_gone_ends_its_tail() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    setup.store.logs().remove(&tenant("t"));
    reach(&log, |position| position.replaced).await;
    assert_eq!(log.committed_head().await.unwrap_err(), StoreError::TenantInactive);
    assert_eq!(setup.logs.open(&tenant("t")).await.unwrap_err(), StoreError::TenantInactive);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_position_makes_the_tail_look_at_once() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    setup.store.commit("t", 3);
    let began = Instant::now();
    log.wait_for(seq(3)).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_committed_head_is_read_from_the_store_and_makes_the_tail_look() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    setup.store.commit("t", 3);
    let began = Instant::now();
    assert_eq!(log.committed_head().await.unwrap(), Head { seq: seq(3), floor: seq(1), epoch: epoch(1) });
    reach(&log, |position| position.seq == seq(3)).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn nothing_committed_between_the_first_head_and_the_start_of_the_tail_is_missed() {
    let setup = Setup::new(&["t"]);
    let gate = Arc::new(Semaphore::new(0));
    *setup.recorder.start_gate.lock().unwrap() = Some(gate.clone());
    let logs = setup.logs.clone();
    let opening = setup.tracker.spawn(async move { logs.open(&tenant("t")).await });
    tokio::time::sleep(Duration::from_millis(1)).await;
    setup.publish("t", 2);
    gate.add_permits(1);
    let log = opening.await.unwrap().unwrap();
    let began = Instant::now();
    reach(&log, |position| position.seq == seq(2)).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(setup.recorder.observed("t"), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn one_query_polls_the_heads_of_all_live_tenants() {
    let setup = Setup::new(&["a", "b", "c"]);
    let _logs = (setup.logs.open(&tenant("a")).await.unwrap(), setup.logs.open(&tenant("b")).await.unwrap());
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    let heads = setup.store.calls().heads.clone();
    assert_eq!(heads, [2, 2, 2], "only live ones, all in one");
}

#[tokio::test(start_paused = true)]
async fn polls_that_fail_are_seen_by_readiness_and_pass() {
    let setup = Setup::new(&["a"]);
    let _log = setup.logs.open(&tenant("a")).await.unwrap();
    setup.store.failing_heads.store(10, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(!setup.logs.is_current());
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(setup.logs.is_current());
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_every_task() {
    let setup = Setup::new(&["a"]);
    let log = setup.logs.open(&tenant("a")).await.unwrap();
    setup.recorder.failing.store(1_000, Ordering::SeqCst);
    setup.publish("a", 1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    setup.cancel.cancel();
    setup.tracker.close();
    setup.tracker.wait().await;
    assert_eq!(log.wait_for(seq(1)).await, Err(Replaced));
    assert_eq!(setup.logs.open(&tenant("a")).await.unwrap_err(), StoreError::Unavailable);
    assert_eq!(setup.store.head(&tenant("a")).await.unwrap().unwrap().seq, seq(1));
    assert_eq!(setup.logs.metrics().stalled_tails.get(), 0);
}
