//! What happens beside the calls: partitions come and go, floors rise, copies that were overlooked go, histories begin anew.

use std::sync::Arc;
use std::time::{Duration, Instant};

use authz::PrincipalKind;
use domain::{Clock, Publication, SystemClock};
use doorstep_store_postgres::{DatabaseClock, OpenError, PostgresOptions, PostgresStore, new_epoch};
use inbox::{AckResult, LeaseHash, QueueFilter, Report, Rules};
use sync::LogStore;
use testkit::ManualClock;
use testkit::conformance::support::{Fixture, START, seq};
use testkit::postgres::TestDatabase;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::conformance::Opened;

const DAY: Duration = Duration::from_hours(24);
const MINUTE: Duration = Duration::from_mins(1);

/// A store with the tenant `acme`.
async fn world(change: impl FnOnce(PostgresOptions) -> PostgresOptions) -> (Fixture, Arc<PostgresStore>, Arc<TestDatabase>) {
    let clock = Arc::new(ManualClock::new(START));
    let first = Opened::in_new_database(clock.clone()).await;
    let database = Arc::clone(&first.database);
    first.store.close().await;
    let options = PostgresOptions { connections: 8, append_connections: 2, ..PostgresOptions::new(&database.url) };
    let opened = Opened::set_up(Arc::clone(&database), change(options), clock.clone()).await;
    let store = Arc::clone(&opened.store);
    let fixture = Fixture::over(Box::new(opened), clock);
    fixture.create_tenant("acme").await;
    (fixture, store, database)
}

/// Gives up whatever is older than an hour.
pub(crate) async fn retire(fixture: &Fixture) {
    let old = fixture.now().minus(MINUTE * 60);
    fixture.store.raise_floor(&fixture.tenant, old, 10_000).await.unwrap();
    fixture.store.sweep(&fixture.tenant, fixture.now(), 10_000).await.unwrap();
    fixture.store.sweep(&fixture.tenant, fixture.now().plus(MINUTE), 10_000).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
pub(crate) async fn partitions_go_when_their_day_is_given_up_and_hold_up_nobody() {
    let (fixture, store, database) = world(|options| PostgresOptions { lock_timeout: Duration::from_millis(300), ..options }).await;
    let first = fixture.now().as_micros().div_euclid(86_400_000_000);
    let tables =
        async |day: i64| database.number(&format!("SELECT count(*) FROM pg_class WHERE relname = 'event_log_{}'", first + day)).await;
    fixture.fill(3).await;
    assert_eq!(tables(0).await, 1);
    fixture.clock.advance(3 * DAY);
    fixture.fill(1).await;

    // Somebody reads for long: the partition cannot go yet, and nobody waits for that who appends.
    let mut reader = database.connection().await;
    let read = "BEGIN; SELECT count(*) FROM event_log";
    sqlx_core::executor::Executor::execute(&mut reader, sqlx_core::raw_sql::raw_sql(read)).await.unwrap();
    let appending = async {
        for _ in 0..20 {
            let began = Instant::now();
            fixture.fill(1).await;
            assert!(began.elapsed() < Duration::from_millis(250), "{:?}", began.elapsed());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::join!(retire(&fixture), appending);
    assert_eq!(tables(0).await, 1);
    assert_eq!(database.number("SELECT count(*) FROM pg_inherits WHERE inhdetachpending").await, 1, "it was begun");
    sqlx_core::connection::Connection::close(reader).await.unwrap();

    fixture.clock.advance(3 * DAY);
    fixture.fill(1).await;
    retire(&fixture).await;
    assert_eq!((tables(0).await, tables(3).await, tables(6).await), (0, 0, 1));
    let page = fixture.page_after(24).await.unwrap();
    assert_eq!(page.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [seq(25)]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
pub(crate) async fn a_new_history_keeps_the_numbers_and_is_refused_while_servers_run() {
    let (fixture, store, database) = world(|options| options).await;
    fixture.fill(2).await;
    let before = store.head(&fixture.tenant).await.unwrap().unwrap();
    let options = PostgresOptions::new(&database.url);
    let refused = new_epoch(&options, &SystemClock::new()).await;
    assert!(matches!(refused, Err(OpenError::InUse { sessions: 1.., .. })), "{refused:?}");
    store.close().await;
    database
        .wait_for("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'doorstep/%'", 0)
        .await;
    assert_eq!(new_epoch(&options, &SystemClock::new()).await.unwrap(), 1);
    let again = Opened::over(Arc::clone(&database), fixture.clock.clone()).await;
    let after = again.store.head(&fixture.tenant).await.unwrap().unwrap();
    assert_eq!(after.seq, before.seq);
    assert_ne!(after.epoch, before.epoch);
}

#[tokio::test(flavor = "multi_thread")]
pub(crate) async fn the_databases_clock_is_followed_and_never_runs_back() {
    let (_fixture, store, database) = world(|options| options).await;
    let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
    let clock = DatabaseClock::start(&PostgresOptions::new(&database.url), &tracker, cancel.clone()).await.unwrap();
    let mut last = clock.now();
    for _ in 0..1_000 {
        let now = clock.now();
        assert!(now >= last);
        last = now;
    }
    let before = clock.now().as_micros();
    let there = database.number("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").await;
    let after = clock.now().as_micros();
    assert!((before - 500_000..after + 500_000).contains(&there), "{before} {there} {after}");
    cancel.cancel();
    tracker.close();
    tokio::time::timeout(Duration::from_secs(5), tracker.wait()).await.unwrap();
    store.close().await;
}

/// Claims so many items of `alpha`, and acknowledges them if it is to end them; answers how many there were.
async fn work_off(fixture: &Fixture, count: usize, ends: bool) -> usize {
    let recipient = fixture.recipient("alpha");
    let unit = fixture.inbox(move |tx| {
        let recipient = recipient.clone();
        Box::pin(async move {
            let row = tx.recipient(&recipient).await?.unwrap();
            let mut items = tx.available(row.number, &QueueFilter::default(), count).await?;
            for item in &mut items {
                item.claim(tx.now(), MINUTE, LeaseHash::of("t"), None, &Rules::default()).unwrap();
            }
            tx.put(&items).await?;
            Ok(items)
        })
    });
    let mut items = unit.await.unwrap();
    let count = items.len();
    if ends {
        for item in &mut items {
            item.acknowledge(fixture.now(), AckResult::Completed, Report::default(), &Rules::default()).unwrap();
        }
        fixture.put(items).await.unwrap();
    }
    count
}

/// Entries of indexes of `inbox_items` that were read, those of rows that are gone included. They are counted when a session ends.
async fn entries_read(database: &TestDatabase) -> i64 {
    database.number("SELECT sum(idx_tup_read)::BIGINT FROM pg_stat_user_indexes WHERE relname = 'inbox_items'").await
}

#[tokio::test(flavor = "multi_thread")]
pub(crate) async fn a_transaction_that_is_held_open_leaves_what_a_claim_reads_bounded() {
    const WORKED_OFF: usize = 60;
    let (fixture, _store, database) = world(|options| options).await;
    let mut fixture = fixture;
    for _ in 0..70 {
        let jobs: Vec<Publication> = (0..50).map(|_| fixture.job(&["alpha"])).collect();
        fixture.append(jobs).await.unwrap();
        fixture.clock.advance(Duration::from_secs(1));
    }
    // Whoever holds this keeps every row that goes from now on.
    let mut reader = database.connection().await;
    let read = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM inbox_items";
    sqlx_core::executor::Executor::execute(&mut reader, sqlx_core::raw_sql::raw_sql(read)).await.unwrap();
    for _ in 0..WORKED_OFF {
        assert_eq!(work_off(&fixture, 50, true).await, 50);
        fixture.clock.advance(Duration::from_secs(1));
    }
    // It removes nothing that the reader could see, and tells the planner how much there is, as it does by itself in time.
    database.run("VACUUM (ANALYZE) inbox_items").await;
    let risen = "SELECT count(*) FROM inbox_queues WHERE claim_floor > (SELECT min(claim_key) FROM inbox_items) - 12 * 1000000";
    database.wait_for(risen, 1).await;
    fixture = fixture.reopen().await;
    let before = entries_read(&database).await;
    for _ in 0..4 {
        assert_eq!(work_off(&fixture, 50, true).await, 50);
    }
    fixture = fixture.reopen().await;
    let each = (entries_read(&database).await - before) / 4;
    // Between two raises 500 items are taken, and each leaves an entry or two; 3,000 are dead by now.
    let by_index = "SELECT coalesce(string_agg(indexrelname || ' ' || idx_tup_read, ', '), '') FROM pg_stat_user_indexes WHERE relname = 'inbox_items'";
    let by_index: String = sqlx_core::query_scalar::query_scalar(by_index).fetch_one(&mut database.connection().await).await.unwrap();
    assert!(each < 1_500, "{each} entries for a claim of 50: {by_index}");
    sqlx_core::connection::Connection::close(reader).await.unwrap();
    drop(fixture);
}

#[tokio::test(flavor = "multi_thread")]
pub(crate) async fn floors_rise_behind_what_was_taken_and_hide_nothing() {
    let (fixture, _store, database) = world(|options| options).await;
    let mut jobs: Vec<Publication> = Vec::new();
    for _ in 0..700 {
        jobs.push(fixture.job(&["alpha"]));
        fixture.clock.advance(Duration::from_secs(1));
    }
    fixture.append(jobs).await.unwrap();
    for _ in 0..6 {
        assert_eq!(work_off(&fixture, 100, false).await, 100);
    }
    // Every claim key below the floor is taken, and nothing that is available lies below.
    let risen = "SELECT count(*) FROM inbox_queues AS q WHERE claim_floor > (SELECT min(claim_key) FROM inbox_items WHERE state = 1)
        AND claim_floor <= (SELECT min(claim_key) FROM inbox_items WHERE state = 0)";
    database.wait_for(risen, 1).await;
    // What comes below it is found all the same.
    let mut work = fixture.work(&["alpha"]);
    work.claim_key = START.minus(MINUTE);
    let (urgent, _) = fixture.publish(fixture.job_of(work)).await;
    assert_eq!(fixture.available("alpha", QueueFilter::default(), 1).await[0].facts.event_id, urgent);
    assert_eq!(fixture.available("alpha", QueueFilter::default(), 999).await.len(), 101);
    let due = fixture.due_items("alpha", fixture.now().plus(MINUTE * 60), None, 999).await;
    assert_eq!(due.len(), 600, "leases that lapse are found above the floor");
}

#[tokio::test(flavor = "multi_thread")]
pub(crate) async fn a_copy_that_nobody_needs_and_nobody_removed_goes_with_the_pruning() {
    let (fixture, _store, database) = world(|options| options).await;
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    let (id, _) = fixture.publish_job(&["alpha"]).await;
    let (kept, _) = fixture.publish_job(&["alpha"]).await;
    fixture.retire_log().await;
    assert_eq!(fixture.count("inbox_payloads").await, 2);
    database.run(&format!("DELETE FROM inbox_items WHERE event_id = '{}'", id.uuid())).await;
    while fixture.prune(START, 10).await {}
    assert_eq!(fixture.count("inbox_payloads").await, 1);
    assert_eq!(fixture.count(&format!("inbox_payloads WHERE event_id = '{}'", kept.uuid())).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_is_gone_although_it_was_made_is_made_again() {
    let (fixture, store, database) = world(|options| options).await;
    let first = fixture.now().as_micros().div_euclid(86_400_000_000);
    fixture.fill(1).await;
    // Tomorrow's, which a failover has lost.
    database.run(&format!("DROP TABLE event_log_{}", first + 1)).await;
    fixture.clock.advance(DAY);
    fixture.fill(1).await;
    assert!(store.metrics().snapshot().retries.values().sum::<u64>() > 0, "it was missed");
    database.run(&format!("DROP TABLE event_log_{}", first + 2)).await;
    fixture.clock.advance(DAY);
    let (tenant, event) = (fixture.tenant.clone(), fixture.event("in a unit of work"));
    let appended = fixture.publish_tx(move |tx| {
        let (tenant, event) = (tenant.clone(), event.clone());
        Box::pin(async move { tx.append(&tenant, &[event]).await })
    });
    appended.await.unwrap();
    let page = fixture.page_after(0).await.unwrap();
    assert_eq!(page.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [seq(1), seq(2), seq(3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_with_nothing_in_it_is_forgotten_and_known_again_when_something_comes() {
    let (fixture, _store, database) = world(|options| options).await;
    let mut jobs: Vec<Publication> = Vec::new();
    for queue in 0..10 {
        jobs.push(fixture.job(&[&format!("alpha/q{queue}")]));
        fixture.clock.advance(Duration::from_secs(1));
    }
    for _ in 0..600 {
        jobs.push(fixture.job(&["alpha"]));
        fixture.clock.advance(Duration::from_secs(1));
    }
    fixture.append(jobs).await.unwrap();
    let queues = "SELECT count(*) FROM inbox_queues";
    assert_eq!(database.number(queues).await, 11);
    for _ in 0..5 {
        assert_eq!(work_off(&fixture, 100, true).await, 100);
    }
    database.wait_for(queues, 1).await;
    let (again, _) = fixture.publish_job(&["alpha/q3"]).await;
    assert_eq!(database.number(queues).await, 2);
    let found = fixture.available("alpha", QueueFilter::default(), 999).await;
    assert_eq!(found.len(), 111);
    assert!(found.iter().any(|item| item.facts.event_id == again));
}
