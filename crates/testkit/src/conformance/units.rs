//! Units of work: atomic each, many in one commit, none of them able to harm the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use authz::TenantState;
use domain::{StoreError, UnitError, run_tx};
use intake::PublishTx;

use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, seq, tenant};

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

pub(crate) async fn a_refusal_of_the_use_case_undoes_the_unit_and_reaches_the_caller(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (tenant, event) = (fixture.tenant.clone(), fixture.event("x"));
    let refused: Result<(), Refusal> = run_tx::<dyn PublishTx, _, _, _>(&*fixture.store, "refused", move |tx| {
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

pub(crate) async fn what_a_failed_unit_knew_of_a_log_is_forgotten_with_it(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
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

pub(crate) async fn what_fails_for_a_passing_reason_is_repeated_on_a_fresh_transaction(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    assert_eq!(transient(&fixture, 2).await, (Ok(()), 3));
    assert_eq!(fixture.head().await, 1, "only the last run was kept");
}

pub(crate) async fn what_fails_again_and_again_is_answered_as_transient(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (outcome, runs) = transient(&fixture, usize::MAX).await;
    assert_eq!(outcome, Err(StoreError::Transient));
    assert!((2..20).contains(&runs), "{runs}");
    assert_eq!(fixture.head().await, 0);
}
