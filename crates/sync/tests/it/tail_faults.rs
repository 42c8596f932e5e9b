//! The tail under seeded faults: hints that are lost, held back and repeated, a store and an observer that fail. Whatever happens, every event is observed and read in order, once.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::{Event, Seq};
use proptest::prelude::*;
use sync::TenantLog;
use tokio_util::sync::CancellationToken;

use crate::fakes::{Setup, range, seq, tenant};

#[derive(Clone, Debug)]
enum Hint {
    Given,
    Lost,
    HeldBack,
    Twice,
}

#[derive(Clone, Debug)]
enum Step {
    Commit(u64, Hint),
    ReleaseHeldBack(prop::sample::Index),
    FailReads(u32),
    FailObserver(u32),
    Pass(u64),
    Yield(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let hint = prop_oneof![5 => Just(Hint::Given), 1 => Just(Hint::Lost), 1 => Just(Hint::HeldBack), 1 => Just(Hint::Twice)];
    prop_oneof![
        6 => (1..12_u64, hint).prop_map(|(count, hint)| Step::Commit(count, hint)),
        2 => any::<prop::sample::Index>().prop_map(Step::ReleaseHeldBack),
        1 => (1..4_u32).prop_map(Step::FailReads),
        1 => (1..4_u32).prop_map(Step::FailObserver),
        2 => (1..1_500_u64).prop_map(Step::Pass),
        3 => (1..20_u8).prop_map(Step::Yield),
    ]
}

/// Reads everything up to every position, as a consumer does.
async fn follow(log: Arc<TenantLog>, read: Arc<Mutex<Vec<u64>>>, stop: CancellationToken) {
    let mut position = log.subscribe();
    let mut after = Seq::ZERO;
    loop {
        while after < log.position() {
            match log.read(range(after.get(), None)).await {
                Ok(page) => {
                    assert!(!page.is_below_floor(after) && !page.events.is_empty(), "what is below the position can be read");
                    read.lock().unwrap().extend(page.events.iter().map(|event| event.seq.get()));
                    after = page.events.last().unwrap().seq;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = position.changed() => changed.unwrap(),
        }
    }
}

async fn run(steps: Vec<Step>) {
    let setup = Setup::new(&["t"]);
    let log = setup.logs.open(&tenant("t")).await.unwrap();
    let (read, stop) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
    let reader = setup.tracker.spawn(follow(log.clone(), read.clone(), stop.clone()));
    let mut held_back: Vec<Vec<Arc<Event>>> = Vec::new();
    for step in steps {
        match step {
            Step::Commit(count, hint) => {
                let batch = setup.store.commit("t", count);
                match hint {
                    Hint::Given => setup.announce("t", &batch),
                    Hint::Twice => (0..2).for_each(|_| setup.announce("t", &batch)),
                    Hint::HeldBack => held_back.push(batch),
                    Hint::Lost => {}
                }
            }
            Step::ReleaseHeldBack(index) if !held_back.is_empty() => {
                let batch = held_back.remove(index.index(held_back.len()));
                setup.announce("t", &batch);
            }
            Step::ReleaseHeldBack(_) => {}
            Step::FailReads(count) => setup.store.failing_pages.store(count, Ordering::SeqCst),
            Step::FailObserver(count) => setup.recorder.failing.store(count, Ordering::SeqCst),
            Step::Pass(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Step::Yield(times) => {
                for _ in 0..times {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
    let head = setup.store.logs()[&tenant("t")].events.len() as u64;
    let all: Vec<u64> = (1..=head).collect();
    tokio::time::timeout(Duration::from_mins(1), log.wait_for(seq(head))).await.expect("the tail gets to the head").unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.cancel();
    reader.await.unwrap();
    assert_eq!(setup.recorder.observed("t"), all, "observed in order, once");
    assert_eq!(*read.lock().unwrap(), all, "read in order, once");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_event_is_observed_and_read_in_order_once_whatever_is_lost_repeated_or_fails(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(steps));
    }
}
