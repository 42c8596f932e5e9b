//! The appender: requests of one log that share transactions, whatever becomes of one of them, of its caller, of the connection, of the server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::{Appended, EventId, Publication, StoreError};
use doorstep_store_postgres::{PostgresOptions, PostgresStore};
use futures_util::future::join_all;
use sqlx_postgres::PgConnection;
use sync::LogStore;
use testkit::ManualClock;
use testkit::conformance::support::{Fixture, START, new_seq, range};
use testkit::postgres::{Cluster, ClusterOptions, Durability, TestDatabase};
use tokio::task::JoinSet;

use crate::conformance::Opened;
use crate::proxy::{Proxy, Trap};

const PATIENCE: Duration = Duration::from_secs(20);

/// A store with the tenant `acme`, as a test has set it up, and a database to look at beside it.
struct World {
    fixture: Arc<Fixture>,
    store: Arc<PostgresStore>,
    database: Arc<TestDatabase>,
}

impl World {
    async fn new(change: impl FnOnce(PostgresOptions) -> PostgresOptions) -> Self {
        Self::on(Cluster::shared(), change).await
    }

    async fn on(cluster: &Cluster, change: impl FnOnce(PostgresOptions) -> PostgresOptions) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let first = Opened::in_database_of(cluster, clock.clone()).await;
        let database = Arc::clone(&first.database);
        first.store.close().await;
        let options = PostgresOptions { connections: 8, append_connections: 2, ..PostgresOptions::new(&database.url) };
        let opened = Opened::set_up(Arc::clone(&database), change(options), clock.clone()).await;
        let store = Arc::clone(&opened.store);
        let fixture = Fixture::over(Box::new(opened), clock);
        fixture.create_tenant("acme").await;
        fixture.fill(1).await;
        Self { fixture: Arc::new(fixture), store, database }
    }

    /// Publishes one event in a task of its own.
    fn publish(&self, publications: Vec<Publication>) -> tokio::task::JoinHandle<Result<Vec<Appended>, StoreError>> {
        let fixture = Arc::clone(&self.fixture);
        #[expect(clippy::disallowed_methods, reason = "a caller who may be made to go away")]
        tokio::spawn(async move { fixture.append(publications).await })
    }

    /// Locks the head row beside the store, and waits until an append waits for it.
    async fn block(&self) -> PgConnection {
        let mut blocker = self.database.connection().await;
        let lock = "BEGIN; SELECT 1 FROM log_heads FOR UPDATE";
        sqlx_core::executor::Executor::execute(&mut blocker, sqlx_core::raw_sql::raw_sql(lock)).await.unwrap();
        blocker
    }

    async fn waits_for_a_lock(&self) {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        self.database.wait_for(waiting, 1).await;
    }

    async fn queued(&self, wanted: u64) {
        let began = Instant::now();
        while self.store.metrics().snapshot().queued != wanted {
            assert!(began.elapsed() < PATIENCE, "{}", self.store.metrics().snapshot().queued);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Every event of the log, in order.
    async fn log(&self) -> Vec<EventId> {
        let mut ids = Vec::new();
        loop {
            let page = self.store.page(&self.fixture.tenant, range(ids.len() as u64)).await.unwrap();
            if page.events.is_empty() {
                return ids;
            }
            for event in &page.events {
                assert_eq!(event.seq.get(), ids.len() as u64 + 1, "numbers have no gap");
                ids.push(event.id);
            }
        }
    }

    /// Holds that the log has these events, in any order, once each, behind the first.
    async fn has_exactly(&self, expected: impl IntoIterator<Item = EventId>) {
        let (mut found, mut expected): (Vec<_>, Vec<_>) = (self.log().await[1..].to_vec(), expected.into_iter().collect());
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}

async fn let_go(blocker: PgConnection) {
    sqlx_core::connection::Connection::close(blocker).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_at_once_and_counts_it() {
    let world = World::new(|options| PostgresOptions { queue_max: 3, queue_max_bytes: 4_000, ..options }).await;
    let blocker = world.block().await;
    let mut events = vec![world.fixture.event("x")];
    let mut waiting = vec![world.publish(events.clone())];
    world.waits_for_a_lock().await;
    for number in 1..=3 {
        let event = world.fixture.event("x");
        events.push(event.clone());
        waiting.push(world.publish(vec![event]));
        world.queued(number).await;
    }
    let began = Instant::now();
    assert_eq!(world.fixture.append(vec![world.fixture.event("x")]).await, Err(StoreError::Overloaded));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(world.store.metrics().snapshot().overloaded, 1);
    let_go(blocker).await;
    for answer in join_all(waiting).await {
        new_seq(&answer.unwrap().unwrap()[0]);
    }
    world.has_exactly(events.iter().map(|event| event.id)).await;
    assert_eq!(world.store.metrics().snapshot().queued, 0);

    // Bytes are bounded too; one request above them is taken when nothing else waits.
    let blocker = world.block().await;
    let heavy = || world.fixture.event(&"x".repeat(5_000));
    let first = world.publish(vec![world.fixture.event("x")]);
    world.waits_for_a_lock().await;
    let second = world.publish(vec![heavy()]);
    world.queued(1).await;
    assert_eq!(world.fixture.append(vec![world.fixture.event("x")]).await, Err(StoreError::Overloaded));
    assert_eq!(world.store.metrics().snapshot().overloaded, 2);
    let_go(blocker).await;
    assert!(first.await.unwrap().is_ok() && second.await.unwrap().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_shares_a_commit_and_one_request_at_fault_fails_alone() {
    let world = World::new(|options| options).await;
    let blocker = world.block().await;
    let before = world.store.metrics().snapshot();
    let first = world.publish(vec![world.fixture.event("first")]);
    world.waits_for_a_lock().await;
    let mut events = Vec::new();
    let mut waiting = Vec::new();
    for number in 0..20 {
        let mut event = world.fixture.event("x");
        if number == 13 {
            event.body = Bytes::from_static(b"\xff");
        }
        events.push(event.clone());
        waiting.push(world.publish(vec![event]));
        world.queued(number + 1).await;
    }
    let_go(blocker).await;
    let first = first.await.unwrap().unwrap();
    let mut ids = vec![world.log().await[1]];
    assert_eq!(new_seq(&first[0]), 2);
    for (number, answer) in join_all(waiting).await.into_iter().enumerate() {
        match answer.unwrap() {
            Ok(appended) if number != 13 => {
                new_seq(&appended[0]);
                ids.push(events[number].id);
            }
            Err(StoreError::Conflict(_)) if number == 13 => {}
            other => panic!("{number}: {other:?}"),
        }
    }
    world.has_exactly(ids).await;
    let after = world.store.metrics().snapshot();
    assert_eq!(after.units - before.units, 20, "every request is counted");
    assert!(after.commits - before.commits <= 11, "halves, not one by one: {}", after.commits - before.commits);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_goes_away_cuts_nothing_in_half_and_harms_nobody() {
    let world = World::new(|options| options).await;
    let blocker = world.block().await;
    let events: Vec<Publication> = (0..3).map(|_| world.fixture.event("x")).collect();
    let leaving = world.publish(vec![events[0].clone()]);
    world.waits_for_a_lock().await;
    let (also_leaving, staying) = (world.publish(vec![events[1].clone()]), world.publish(vec![events[2].clone()]));
    world.queued(2).await;
    for caller in [leaving, also_leaving] {
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
    }
    let_go(blocker).await;
    new_seq(&staying.await.unwrap().unwrap()[0]);
    world.has_exactly(events.iter().map(|event| event.id)).await;
    world.fixture.fill(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_finishes_what_waits_and_refuses_what_comes() {
    let world = World::new(|options| PostgresOptions { batch_max: 2, ..options }).await;
    let blocker = world.block().await;
    let events: Vec<Publication> = (0..6).map(|_| world.fixture.event("x")).collect();
    let mut waiting = vec![world.publish(vec![events[0].clone()])];
    world.waits_for_a_lock().await;
    waiting.extend(events[1..].iter().map(|event| world.publish(vec![event.clone()])));
    world.queued(5).await;
    let closing = async {
        world.store.close().await;
    };
    let opening = async {
        assert_eq!(world.fixture.append(vec![world.fixture.event("late")]).await, Err(StoreError::Unavailable));
        let_go(blocker).await;
    };
    // The closing is polled first: what is published by the other comes later.
    tokio::join!(biased; closing, opening);
    for answer in join_all(waiting).await {
        new_seq(&answer.unwrap().unwrap()[0]);
    }
    assert_eq!(world.fixture.append(vec![world.fixture.event("x")]).await, Err(StoreError::Unavailable));
    assert_eq!(world.database.number("SELECT count(*) FROM event_log").await, 7);
}

/// A world whose store reaches the server through a proxy.
async fn behind_a_proxy() -> (World, Proxy) {
    let proxy = Proxy::before(Cluster::shared().port()).await;
    let port = proxy.port;
    let through = |options: PostgresOptions| {
        let url = options.url.replace(&format!(":{}/", Cluster::shared().port()), &format!(":{port}/"));
        assert_ne!(url, options.url);
        PostgresOptions { url, ..options }
    };
    (World::new(through).await, proxy)
}

#[tokio::test(flavor = "multi_thread")]
pub(crate) async fn a_commit_whose_connection_is_cut_is_answered_truthfully() {
    let (world, proxy) = behind_a_proxy().await;
    let mut ids = Vec::new();
    for trap in [Trap::Before, Trap::After, Trap::AfterWithAll, Trap::After, Trap::Before, Trap::AfterWithAll] {
        proxy.set(trap);
        let events = [world.fixture.event("x"), world.fixture.keyed(&format!("k{}", ids.len()), "x")];
        let answers = join_all(events.iter().map(|event| world.fixture.append(vec![event.clone()]))).await;
        assert!(proxy.has_sprung(), "{trap:?}");
        for answer in answers {
            new_seq(&answer.unwrap_or_else(|error| panic!("{trap:?}: {error}"))[0]);
        }
        ids.extend(events.iter().map(|event| event.id));
        world.has_exactly(ids.clone()).await;
    }
    let counted = world.store.metrics().snapshot();
    assert_eq!((counted.resolved, counted.in_doubt), (6, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_ended_at_its_commit_has_published_nothing_and_is_repeated() {
    let (world, proxy) = behind_a_proxy().await;
    proxy.set(Trap::Held);
    let event = world.fixture.event("x");
    let publishing = world.publish(vec![event.clone()]);
    tokio::time::timeout(PATIENCE, proxy.holds()).await.unwrap();
    let in_a_transaction = "datname = current_database() AND state = 'idle in transaction'";
    let end = format!("SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE {in_a_transaction}");
    assert_eq!(world.database.number(&end).await, 1);
    proxy.let_go();
    new_seq(&publishing.await.unwrap().unwrap()[0]);
    world.has_exactly([event.id]).await;
    assert_eq!(world.store.metrics().snapshot().retries.get("append"), Some(&1));
}

/// What publishers were told: of each key, the event that it stands for.
type Acknowledged = Arc<Mutex<BTreeMap<String, EventId>>>;

/// Publishes one keyed event after the other, each until it is acknowledged.
async fn publish_on(fixture: Arc<Fixture>, publisher: usize, stop: Arc<AtomicBool>, acknowledged: Acknowledged) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let key = format!("p{publisher}-{number}");
        let began = Instant::now();
        let id = loop {
            // The same text under the same key: whoever repeats does not know what became of the first attempt.
            match fixture.append(vec![fixture.keyed(&key, "x")]).await.as_deref() {
                Ok([Appended::New { id, .. } | Appended::Duplicate { id, .. }]) => break *id,
                Err(StoreError::Unavailable | StoreError::InDoubt | StoreError::Overloaded | StoreError::Transient) => {}
                other => panic!("{other:?}"),
            }
            assert!(began.elapsed() < PATIENCE, "it does not recover");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        acknowledged.lock().unwrap().insert(key, id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_crashed_and_restarted_under_load_loses_nothing_and_is_found_again() {
    let cluster = Cluster::start(&ClusterOptions::new(Durability::None));
    let world = World::on(&cluster, |options| options).await;
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Acknowledged::default());
    let mut publishers = JoinSet::new();
    for publisher in 0..8 {
        let (fixture, stop, acknowledged) = (Arc::clone(&world.fixture), Arc::clone(&stop), Arc::clone(&acknowledged));
        publishers.spawn(publish_on(fixture, publisher, stop, acknowledged));
    }
    let count = || acknowledged.lock().unwrap().len();
    let rises = async |by: usize| {
        let (began, least) = (Instant::now(), count() + by);
        while count() < least {
            assert!(began.elapsed() < Duration::from_secs(8), "publishing does not go on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    rises(50).await;
    for crashes in [true, false, true] {
        tokio::task::block_in_place(|| if crashes { cluster.crash() } else { cluster.stop() });
        tokio::time::sleep(Duration::from_millis(200)).await;
        tokio::task::block_in_place(|| cluster.start_again());
        rises(50).await;
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = publishers.join_next().await {
        ended.unwrap();
    }
    let acknowledged: Vec<EventId> = acknowledged.lock().unwrap().values().copied().collect();
    world.has_exactly(acknowledged).await;
    let head = world.store.head(&world.fixture.tenant).await.unwrap().unwrap();
    assert_eq!(head.seq.get(), world.log().await.len() as u64);
    world.store.close().await;
}
