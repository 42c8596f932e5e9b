//! Units of work: atomic each, many in one commit, none of them able to harm the store.

use std::sync::Arc;
use std::task::Poll;

use domain::StoreError;

use crate::support::{Fixture, Gate, Recorder, seq};

/// Appends one event and answers `error`.
async fn append_then_fail(fixture: &Fixture, error: StoreError) -> Result<(), StoreError> {
    let (tenant, event) = (fixture.tenant.clone(), fixture.event("undone"));
    fixture
        .publish_tx(move |tx| {
            let (tenant, event, error) = (tenant.clone(), event.clone(), error.clone());
            Box::pin(async move {
                tx.append(&tenant, &[event]).await?;
                Err(error)
            })
        })
        .await
}

#[tokio::test]
async fn a_failing_unit_leaves_the_others_of_its_batch_alone() {
    let fixture = Arc::new(Fixture::new().await);
    let recorder = Recorder::listen(&fixture);
    let gate = Gate::close(&fixture).await;
    let mut waiting = tokio::task::JoinSet::new();
    for turn in 0..6 {
        let of_batch = Arc::clone(&fixture);
        waiting.spawn(async move {
            if turn % 3 == 1 {
                append_then_fail(&of_batch, StoreError::Conflict("on purpose")).await.map(|()| Vec::new())
            } else {
                of_batch.append(vec![of_batch.event(&turn.to_string())]).await
            }
        });
        fixture.wait_for(|metrics| metrics.queued == turn + 1).await;
    }
    let before = fixture.store.metrics().snapshot();
    gate.open().await;
    let outcomes = waiting.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Err(StoreError::Conflict("on purpose"))).count(), 2);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 4);
    let page = fixture.page_after(0).await.unwrap();
    assert_eq!((page.events.len(), page.head.seq), (4, seq(4)));
    assert!(page.events.iter().all(|event| !event.body.windows(6).any(|part| part == b"undone")));
    assert_eq!(recorder.seqs("acme"), [1, 2, 3, 4], "the listener hears only of what was kept");
    // The gate's own commit, and one for the six.
    assert_eq!(fixture.store.metrics().snapshot().commits - before.commits, 2);
}

#[tokio::test]
async fn a_panicking_unit_is_undone_and_the_store_lives() {
    let fixture = Fixture::new().await;
    let (tenant, event) = (fixture.tenant.clone(), fixture.event("x"));
    let outcome: Result<(), StoreError> = fixture
        .publish_tx(move |tx| {
            let (tenant, event) = (tenant.clone(), event.clone());
            Box::pin(async move {
                tx.append(&tenant, &[event]).await?;
                panic!("on purpose")
            })
        })
        .await;
    assert_eq!(outcome, Err(StoreError::Unavailable));
    fixture.fill(1).await;
    assert_eq!(fixture.head().await, 1);
}

#[tokio::test]
async fn a_unit_that_waits_for_something_else_is_undone() {
    let fixture = Fixture::new().await;
    let (tenant, event) = (fixture.tenant.clone(), fixture.event("x"));
    let outcome: Result<(), StoreError> = fixture
        .publish_tx(move |tx| {
            let (tenant, event) = (tenant.clone(), event.clone());
            Box::pin(async move {
                tx.append(&tenant, &[event]).await?;
                std::future::pending::<()>().await;
                Ok(())
            })
        })
        .await;
    assert_eq!(outcome, Err(StoreError::Unavailable));
    assert_eq!(fixture.head().await, 0);
}

#[tokio::test]
async fn a_closed_store_answers_unavailable_after_doing_what_waited() {
    let fixture = Arc::new(Fixture::new().await);
    let gate = Gate::close(&fixture).await;
    let waiting = tokio::task::JoinSet::from_iter([{
        let fixture = Arc::clone(&fixture);
        async move { fixture.append(vec![fixture.event("x")]).await }
    }]);
    fixture.wait_for(|metrics| metrics.queued == 1).await;
    let mut closing = Box::pin(fixture.store.close());
    let waits = std::future::poll_fn(|context| Poll::Ready(closing.as_mut().poll(context).is_pending())).await;
    assert!(waits, "what waits is done first");
    assert_eq!(fixture.append(vec![fixture.event("late")]).await, Err(StoreError::Unavailable));
    gate.open().await;
    assert!(waiting.join_all().await.iter().all(Result::is_ok));
    closing.await;
    assert_eq!(sync::LogStore::head(&*fixture.store, &fixture.tenant).await, Err(StoreError::Unavailable));
}
