//! Everything of a store arrives in another one, however often that is interrupted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use authz::PrincipalKind;
use domain::{Clock, StoreError};
use doorstep_store_postgres::{OpenError, PostgresOptions, PostgresStore};
use testkit::ManualClock;
use testkit::conformance::everything;
use testkit::conformance::support::{Fixture, START};
use testkit::postgres::TestDatabase;
use transfer::{Bound, Dump, DumpPage, Load, Row, Stage, Started, Table, TransferError, transfer};

use crate::conformance::Opened;

/// A load that comes before the last tables: there are more than so many, and something in each.
const LATE: usize = 20;

const BOUND: Bound = Bound { rows: 3, bytes: 4096 };

fn run(case: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(case);
}

/// A store with something of everything in it.
async fn source(clock: &Arc<ManualClock>) -> (Fixture, Arc<PostgresStore>) {
    let opened = Opened::in_new_database(clock.clone()).await;
    let store = Arc::clone(&opened.store);
    let fixture = Fixture::over(Box::new(opened), clock.clone());
    everything::fill(&fixture).await;
    (fixture, store)
}

async fn target(database: &TestDatabase, clock: &Arc<ManualClock>) -> Arc<PostgresStore> {
    let clock: Arc<dyn Clock> = clock.clone();
    let options = PostgresOptions { auto_migrate: true, ..PostgresOptions::new(&database.url) };
    PostgresStore::connect_to_fill(options, clock).await.unwrap()
}

async fn empty(clock: &Arc<ManualClock>) -> (Arc<TestDatabase>, Arc<PostgresStore>) {
    let opened = Opened::in_new_database(clock.clone()).await;
    opened.store.close().await;
    let filled = target(&opened.database, clock).await;
    (Arc::clone(&opened.database), filled)
}

/// Fails in the place of the load with this number, before or after it.
struct Failing<'a> {
    inner: &'a PostgresStore,
    left: AtomicUsize,
    after: bool,
}

#[async_trait]
impl Dump for Failing<'_> {
    async fn rows(&self, table: Table, after: Option<&str>, bound: Bound) -> Result<DumpPage, StoreError> {
        self.inner.rows(table, after, bound).await
    }
}

#[async_trait]
impl Load for Failing<'_> {
    async fn begin(&self, source: &str) -> Result<Started, StoreError> {
        self.inner.begin(source).await
    }

    async fn loaded(&self, table: Table) -> Result<Option<String>, StoreError> {
        self.inner.loaded(table).await
    }

    async fn load(&self, table: Table, from: Option<&str>, rows: &[Row], end: &str) -> Result<(), StoreError> {
        let fails = self.left.fetch_sub(1, Ordering::SeqCst) == 1;
        if fails && !self.after {
            return Err(StoreError::Unavailable);
        }
        self.inner.load(table, from, rows, end).await?;
        if fails { Err(StoreError::InDoubt) } else { Ok(()) }
    }

    async fn finish(&self, source: &str) -> Result<(), StoreError> {
        self.inner.finish(source).await
    }
}

#[test]
pub(crate) fn everything_arrives_and_is_served_on() {
    run(async {
        let clock = Arc::new(ManualClock::new(START));
        let (fixture, store) = source(&clock).await;
        let (database, filling) = empty(&clock).await;
        let mut stages = Vec::new();
        let report = transfer(&*store, &*filling, BOUND, &mut |stage| stages.push(stage)).await.unwrap();
        assert_eq!(stages[0], Stage::Begun);
        assert!(report.tables.iter().all(|verified| verified.tally.rows > 0), "{report:?}");
        let again = transfer(&*store, &*filling, BOUND, &mut |_| {}).await;
        assert!(matches!(again, Err(TransferError::Finished)), "{again:?}");
        filling.close().await;

        let arrived = Fixture::over(Box::new(Opened::over(database, clock.clone()).await), clock.clone());
        assert_eq!(everything::told(&arrived).await, everything::told(&fixture).await);
        // Both go on alike, and no number is given out twice.
        for fixture in [&fixture, &arrived] {
            fixture.create_tenant("later").await;
            fixture.create_principal("gamma", PrincipalKind::Agent).await;
            fixture.fill(2).await;
            fixture.opened("gamma").await;
        }
        let numbers = "SELECT count(*) FROM (SELECT recipient_number FROM inbox_recipients GROUP BY 1 HAVING count(*) > 1) AS n";
        assert_eq!(arrived.count(&format!("({numbers}) AS c WHERE count > 0")).await, 0);
        assert_eq!(arrived.head().await, fixture.head().await);
    });
}

#[test]
fn a_transfer_that_is_interrupted_anywhere_goes_on_and_ends_the_same() {
    run(async {
        let clock = Arc::new(ManualClock::new(START));
        let (fixture, store) = source(&clock).await;
        let (database, filling) = empty(&clock).await;
        filling.close().await;
        let mut runs = 0;
        let report = loop {
            // Another process each time.
            let filling = target(&database, &clock).await;
            let failing = Failing { inner: &filling, left: AtomicUsize::new(2 + runs % 5), after: runs % 2 == 0 };
            let mut first = None;
            let outcome = transfer(&*store, &failing, BOUND, &mut |stage| _ = first.get_or_insert(stage)).await;
            assert_eq!(first, Some(if runs == 0 { Stage::Begun } else { Stage::Resumed }));
            filling.close().await;
            match outcome {
                Ok(report) => break report,
                Err(TransferError::Target(StoreError::Unavailable | StoreError::InDoubt)) => runs += 1,
                Err(error) => panic!("{error}"),
            }
            let options = PostgresOptions::new(&database.url);
            let served = PostgresStore::connect(options, clock.clone()).await;
            assert!(matches!(served, Err(OpenError::Unfinished { .. })), "half a store is not served");
            assert!(runs < 1000, "it does not end");
        };
        assert!(runs > 5, "it was not interrupted: {runs}");
        assert!(report.tables.iter().all(|verified| verified.tally.rows > 0));
        let arrived = Fixture::over(Box::new(Opened::over(database, clock.clone()).await), clock);
        assert_eq!(everything::told(&arrived).await, everything::told(&fixture).await);
    });
}

#[test]
fn a_store_that_holds_something_else_is_not_touched() {
    run(async {
        let clock = Arc::new(ManualClock::new(START));
        let (fixture, store) = source(&clock).await;
        let used = Opened::in_new_database(clock.clone()).await;
        let (database, other) = (Arc::clone(&used.database), Fixture::over(Box::new(used), clock.clone()));
        other.create_tenant("acme").await;
        let filling = target(&database, &clock).await;
        let refused = transfer(&*store, &*filling, BOUND, &mut |_| {}).await;
        assert!(matches!(refused, Err(TransferError::Foreign)), "{refused:?}");
        assert_eq!((other.count("tenants").await, other.count("store_meta").await), (1, 0));

        // Half of a transfer, and a source that went on meanwhile.
        let (_database, filling) = empty(&clock).await;
        let failing = Failing { inner: &filling, left: AtomicUsize::new(12), after: false };
        assert!(transfer(&*store, &failing, BOUND, &mut |_| {}).await.is_err());
        fixture.fill(1).await;
        let refused = transfer(&*store, &*filling, BOUND, &mut |_| {}).await;
        assert!(matches!(refused, Err(TransferError::Foreign)), "{refused:?}");
    });
}

#[test]
fn what_differs_at_the_end_is_found_and_the_store_is_not_served() {
    run(async {
        let clock = Arc::new(ManualClock::new(START));
        let (fixture, store) = source(&clock).await;
        let (_database, filling) = empty(&clock).await;
        // By then what is changed has long arrived.
        let failing = Failing { inner: &filling, left: AtomicUsize::new(LATE), after: false };
        assert!(transfer(&*store, &failing, BOUND, &mut |_| {}).await.is_err());
        assert!(fixture.execute("UPDATE principals SET display_name = 'changed' WHERE principal_id = 'sam'").await > 0);
        let found = transfer(&*store, &*filling, BOUND, &mut |_| {}).await;
        assert!(matches!(found, Err(TransferError::Differs { table: Table::Principals, .. })), "{found:?}");
    });
}

#[test]
fn of_two_who_fill_one_store_the_second_is_told() {
    run(async {
        let clock = Arc::new(ManualClock::new(START));
        let (_fixture, store) = source(&clock).await;
        let (_database, filling) = empty(&clock).await;
        assert_eq!(filling.begin("s").await, Ok(Started::Empty));
        assert_eq!(filling.begin("s").await, Ok(Started::Resumed));
        assert_eq!(filling.begin("t").await, Ok(Started::Foreign));
        let page = store.rows(Table::Tenants, None, BOUND).await.unwrap();
        let end = page.end.unwrap();
        assert_eq!(filling.load(Table::Tenants, None, &page.rows, &end).await, Ok(()));
        let second = filling.load(Table::Tenants, None, &page.rows, &end).await;
        assert!(matches!(second, Err(StoreError::Conflict(_))), "{second:?}");
        let behind = filling.load(Table::Tenants, Some("[]"), &page.rows, &end).await;
        assert!(matches!(behind, Err(StoreError::Conflict(_))), "{behind:?}");
        assert_eq!(filling.loaded(Table::Tenants).await, Ok(Some(end)));
    });
}
