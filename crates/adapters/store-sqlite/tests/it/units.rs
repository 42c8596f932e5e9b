//! Units of work: atomic each, many in one commit, none of them able to harm the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use authz::TenantState;
use domain::{StoreError, UnitError, run_tx};
use intake::PublishTx;

use crate::support::{Fixture, Gate, Recorder, seq, tenant};

/// A use case's own refusal.
#[derive(Debug, PartialEq)]
enum Refusal {
    NotToday,
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl UnitError for Refusal {
    fn store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::NotToday => None,
        }
    }
}

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
async fn a_refusal_of_the_use_case_undoes_the_unit_and_reaches_the_caller() {
    let fixture = Fixture::new().await;
    let (tenant, event) = (fixture.tenant.clone(), fixture.event("x"));
    let refused: Result<(), Refusal> = run_tx(&*fixture.store, "refused", move |tx: &mut (dyn PublishTx + 'static)| {
        let (tenant, event) = (tenant.clone(), event.clone());
        Box::pin(async move {
            tx.append(&tenant, &[event]).await?;
            assert_eq!(tx.log_head(&tenant).await?.seq, seq(1), "a unit sees what it wrote");
            Err(Refusal::NotToday)
        })
    })
    .await;
    assert_eq!(refused, Err(Refusal::NotToday));
    assert_eq!(fixture.head().await, 0);
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
async fn what_a_failed_unit_knew_of_a_log_is_forgotten_with_it() {
    let fixture = Fixture::new().await;
    let created = fixture.create_tenant("seen").await;
    let failed: Result<(), StoreError> = fixture
        .admin(move |tx| {
            let mut made = created.clone();
            made.id = tenant("made");
            let acme = tenant("acme");
            Box::pin(async move {
                tx.create_tenant(&made).await?;
                assert_eq!(tx.head(&made.id).await?, seq(0));
                tx.set_tenant_state(&acme, TenantState::Suspended).await?;
                Err(StoreError::Conflict("on purpose"))
            })
        })
        .await;
    assert_eq!(failed, Err(StoreError::Conflict("on purpose")));
    fixture.fill(1).await;
    let absent = sync::Append::append(&*fixture.store, &tenant("made"), vec![fixture.event("x")]).await;
    assert_eq!(absent.unwrap_err(), StoreError::TenantInactive);
    fixture.create_tenant("made").await;
}

/// Fails with [`StoreError::Transient`] so many times.
async fn transient(fixture: &Fixture, times: usize) -> (Result<(), StoreError>, usize) {
    let runs = Arc::new(AtomicUsize::new(0));
    let (tenant, event, counted) = (fixture.tenant.clone(), fixture.event("x"), Arc::clone(&runs));
    let outcome = fixture
        .publish_tx(move |tx| {
            let (tenant, event, run) = (tenant.clone(), event.clone(), counted.fetch_add(1, Ordering::SeqCst));
            Box::pin(async move {
                tx.append(&tenant, &[event]).await?;
                if run < times { Err(StoreError::Transient) } else { Ok(()) }
            })
        })
        .await;
    (outcome, runs.load(Ordering::SeqCst))
}

#[tokio::test]
async fn what_fails_for_a_passing_reason_is_repeated_on_a_fresh_transaction() {
    let fixture = Fixture::new().await;
    assert_eq!(transient(&fixture, 2).await, (Ok(()), 3));
    assert_eq!(fixture.head().await, 1, "only the last run was kept");
    assert_eq!(fixture.store.metrics().snapshot().retries.get("test_publish"), Some(&1));
}

#[tokio::test]
async fn what_fails_again_and_again_is_answered_as_transient() {
    let fixture = Fixture::new().await;
    let (outcome, runs) = transient(&fixture, usize::MAX).await;
    assert_eq!(outcome, Err(StoreError::Transient));
    assert!((2..20).contains(&runs), "{runs}");
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
