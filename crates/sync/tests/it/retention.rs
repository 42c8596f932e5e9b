//! Retention's rules over a store that answers as the test says.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use domain::{Clock, Seq, StoreError, TenantId, Timestamp};
use sync::{LogStore, Retention, Retired, Settings};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::fakes::{FakeStore, tenant};
use crate::identities::Tenants;

const HOUR: Duration = Duration::from_hours(1);

#[derive(Debug)]
struct FixedClock(AtomicI64);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

fn retention(store: &Arc<FakeStore>, tenants: &[&str], event_retention: Option<Duration>) -> Arc<Retention> {
    let settings = Settings { event_retention, retention_chunk: 10, ..Settings::default() };
    let clock = Arc::new(FixedClock(AtomicI64::new(1_000_000_000_000)));
    let log_store: Arc<dyn LogStore> = store.clone();
    Retention::new(log_store, Tenants::active(tenants), clock, settings)
}

fn step(removed: u64, more: bool) -> Retired {
    Retired { floor: Seq::ZERO, removed, more }
}

fn names(calls: &[(TenantId, Timestamp)]) -> Vec<&str> {
    calls.iter().map(|(tenant, _)| tenant.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn events_are_judged_by_their_age_and_rows_go_a_grace_after_the_floor() {
    let store = FakeStore::with(&["a"]);
    retention(&store, &["a"], Some(HOUR)).pass().await;
    let calls = store.calls();
    let now = Timestamp::from_micros(1_000_000_000_000);
    assert_eq!(calls.raises, [(tenant("a"), now.minus(HOUR))]);
    assert_eq!(calls.sweeps, [(tenant("a"), now.minus(Settings::default().retention_grace))]);
    assert!(Settings::default().retention_grace >= Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn without_retention_no_floor_is_raised_but_what_was_raised_before_is_swept_and_keys_expire() {
    let store = FakeStore::with(&["a"]);
    store.expired.lock().unwrap().extend([10, 10, 3]);
    let retention = retention(&store, &["a"], None);
    retention.pass().await;
    assert!(store.calls().raises.is_empty());
    assert_eq!(names(&store.calls().sweeps), ["a"]);
    assert_eq!((store.calls().expiries, retention.metrics().expired_keys.get()), (3, 23), "whole chunks until one is not full");
}

#[tokio::test(start_paused = true)]
async fn a_large_log_gets_one_step_a_round_and_delays_no_other() {
    let store = FakeStore::with(&["a", "b"]);
    // Raise, sweep, raise, sweep, … of the large one.
    let large = [step(0, true), step(10, true), step(0, true), step(10, true), step(0, false), step(5, false)];
    store.steps.lock().unwrap().insert(tenant("a"), large.map(Ok).into());
    let retention = retention(&store, &["a", "b"], Some(HOUR));
    retention.pass().await;
    assert_eq!(names(&store.calls().raises), ["a", "b", "a", "a"]);
    assert_eq!(names(&store.calls().sweeps), ["a", "b", "a", "a"]);
    assert_eq!(retention.metrics().removed_events.get(), 25);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_is_left_to_the_next_pass_and_stops_no_other_tenant() {
    let store = FakeStore::with(&["a", "b"]);
    store.steps.lock().unwrap().insert(tenant("a"), VecDeque::from([Err(StoreError::Full), Err(StoreError::TenantInactive)]));
    let retention = retention(&store, &["a", "b"], Some(HOUR));
    retention.pass().await;
    assert_eq!(names(&store.calls().raises), ["a", "b"]);
    assert_eq!(retention.metrics().failures.get(), 1, "a tenant that is gone is no failure");
    retention.pass().await;
    assert_eq!(names(&store.calls().raises), ["a", "b", "a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn every_tenant_is_found_however_many_there_are() {
    let all: Vec<String> = (0..1_203).map(|number| format!("t{number:05}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let store = FakeStore::with(&all);
    retention(&store, &all, Some(HOUR)).pass().await;
    assert_eq!(names(&store.calls().raises), all);
}

#[tokio::test(start_paused = true)]
async fn passes_repeat_until_the_task_is_cancelled() {
    let store = FakeStore::with(&["a"]);
    let retention = retention(&store, &["a"], Some(HOUR));
    let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
    retention.start(&tracker, cancel.clone());
    tokio::time::sleep(Settings::default().retention_interval * 3 + Duration::from_secs(1)).await;
    assert_eq!(retention.metrics().passes.get(), 4);
    cancel.cancel();
    tracker.close();
    tracker.wait().await;
}
