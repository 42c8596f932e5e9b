//! Reading a log: the ring first, then the store, up to the hub position.

use std::sync::Arc;

use sync::{PageRange, TenantLog};
use tokio::sync::Semaphore;

use crate::fakes::{Setup, numbers, range, seq, tenant};

/// A log of 20 events with the last 8 in the ring.
async fn setup() -> (Setup, Arc<TenantLog>) {
    let setup = Setup::new(&["t"]);
    let log = setup.logs.open(&tenant("t")).await.unwrap();
    setup.publish("t", 20);
    log.wait_for(seq(20)).await.unwrap();
    (setup, log)
}

#[tokio::test(start_paused = true)]
async fn what_the_ring_holds_costs_no_store_read() {
    let (setup, log) = setup().await;
    let pages = setup.store.calls().pages;
    assert_eq!(numbers(&log.read(range(12, None)).await.unwrap().events), (13..=20).collect::<Vec<_>>());
    assert_eq!(numbers(&log.read(range(14, Some(16))).await.unwrap().events), [15, 16]);
    assert!(log.read(range(20, None)).await.unwrap().events.is_empty());
    assert!(log.read(range(25, None)).await.unwrap().events.is_empty());
    assert_eq!(setup.store.calls().pages, pages);
}

#[tokio::test(start_paused = true)]
async fn what_the_ring_let_go_is_read_from_the_store_with_its_floor() {
    let (setup, log) = setup().await;
    setup.store.logs().get_mut(&tenant("t")).unwrap().floor = 4;
    let page = log.read(range(11, None)).await.unwrap();
    assert_eq!((numbers(&page.events), page.head.floor), ((12..=20).collect::<Vec<_>>(), seq(4)));
    assert!(log.read(range(1, None)).await.unwrap().is_below_floor(seq(1)));
}

#[tokio::test(start_paused = true)]
async fn the_ring_never_says_that_what_it_answers_is_below_the_floor() {
    let (setup, log) = setup().await;
    setup.store.logs().get_mut(&tenant("t")).unwrap().floor = 18;
    log.committed_head().await.unwrap();
    let page = log.read(range(14, None)).await.unwrap();
    assert_eq!(numbers(&page.events), (15..=20).collect::<Vec<_>>());
    assert!(!page.is_below_floor(seq(14)));
    assert_eq!(log.read(range(19, None)).await.unwrap().head.floor, seq(18));
}

#[tokio::test(start_paused = true)]
async fn reading_stops_at_the_hub_position_unless_told_otherwise() {
    let (setup, log) = setup().await;
    *setup.recorder.observe_gate.lock().unwrap() = Some(Arc::new(Semaphore::new(0)));
    setup.publish("t", 5);
    assert_eq!(numbers(&log.read(range(10, None)).await.unwrap().events).last(), Some(&20));
    assert_eq!(numbers(&log.read(range(18, None)).await.unwrap().events), [19, 20]);
    assert_eq!(numbers(&log.read(range(20, Some(23))).await.unwrap().events), [21, 22, 23]);
}

#[tokio::test(start_paused = true)]
async fn a_page_is_bounded_by_count_and_bytes_wherever_it_comes_from() {
    let (_setup, log) = setup().await;
    for after in [3, 13] {
        let page = log.read(PageRange { max_events: 2, ..range(after, None) }).await.unwrap();
        assert_eq!(page.events.len(), 2, "after {after}");
    }
    let page = log.read(PageRange { max_bytes: 1, ..range(13, None) }).await.unwrap();
    assert_eq!(numbers(&page.events), [14], "one is always read");
}
