//! Appending: order, atomicity, deduplication, bounds.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::{Publication, StoreError};
use doorstep_store_sqlite::StoreOptions;

use crate::support::{Fixture, Gate, new_seq};

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_what_waits_is_done() {
    let fixture = Arc::new(Fixture::with(StoreOptions { queue_max: 3, ..StoreOptions::default() }).await);
    let gate = Gate::close(&fixture).await;
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let fixture = Arc::clone(&fixture);
        waiting.spawn(async move { fixture.append(vec![fixture.event("x")]).await });
    }
    fixture.wait_for(|metrics| metrics.queued == 3).await;
    assert_eq!(fixture.append(vec![fixture.event("x")]).await, Err(StoreError::Overloaded));
    assert_eq!(fixture.store.metrics().snapshot().overloaded, 1);
    gate.open().await;
    assert!(waiting.join_all().await.iter().all(Result::is_ok));
    assert_eq!(fixture.head().await, 3);
}

#[tokio::test]
async fn the_queue_is_bounded_by_bytes_too() {
    let fixture = Arc::new(Fixture::with(StoreOptions { queue_max_bytes: 10_000, ..StoreOptions::default() }).await);
    let gate = Gate::close(&fixture).await;
    let large = Publication { body: Bytes::from(vec![b' '; 20_000]), ..fixture.event("x") };
    let waiting = tokio::task::JoinSet::from_iter([{
        let (fixture, large) = (Arc::clone(&fixture), large.clone());
        async move { fixture.append(vec![large]).await }
    }]);
    fixture.wait_for(|metrics| metrics.queued == 1).await;
    assert_eq!(fixture.append(vec![fixture.event("x")]).await, Err(StoreError::Overloaded));
    gate.open().await;
    assert!(waiting.join_all().await.iter().all(Result::is_ok), "a request above the bound is taken when nothing waits");
}

#[tokio::test]
async fn what_cannot_be_numbered_is_refused() {
    let fixture = Fixture::new().await;
    let last = (1_i64 << 43) - 2;
    fixture.raw().execute("UPDATE log_heads SET head = ?1 - 1, floor = ?1", [last]).unwrap();
    let refused = fixture.append(vec![fixture.event("x"), fixture.event("y")]).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(new_seq(&fixture.append(vec![fixture.event("x")]).await.unwrap()[0]), last.cast_unsigned());
    let refused = fixture.append(vec![fixture.event("x")]).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(fixture.head().await, last.cast_unsigned());
    assert_eq!(fixture.page_after(last.cast_unsigned() - 1).await.unwrap().events.len(), 1);
}

#[tokio::test]
async fn another_programs_lock_is_waited_for_and_then_answered_as_passing() {
    let options = StoreOptions { busy_timeout: Duration::from_millis(50), ..StoreOptions::default() };
    let fixture = Fixture::with(options).await;
    let raw = fixture.raw();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(fixture.append(vec![fixture.event("x")]).await, Err(StoreError::Transient));
    raw.execute_batch("ROLLBACK").unwrap();
    assert_eq!(new_seq(&fixture.append(vec![fixture.event("x")]).await.unwrap()[0]), 1);
}
