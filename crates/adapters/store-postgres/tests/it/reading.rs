//! Connections that are read on: what becomes of one that goes silent, and of a read that its caller gives up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use authz::IdentityStore as _;
use cluster::{ClusterStore as _, Node, NodeState, WorkName};
use domain::{NodeId, PrincipalId, StoreError, TenantId};
use doorstep_store_postgres::{PostgresOptions, PostgresStore};
use futures_util::future::join_all;
use inbox::{InboxStore as _, ItemFilter, ItemRange};
use sync::LogStore as _;
use testkit::ManualClock;
use testkit::conformance::support::{Fixture, START, range};
use testkit::postgres::{Cluster, TestDatabase};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::conformance::Opened;
use crate::proxy::Proxy;
use crate::upkeep::retire;

const PATIENCE: Duration = Duration::from_secs(20);
/// Connections of the store.
const PLACES: usize = 3;

/// A store with two tenants, each with an agent of its own, and one event.
struct World {
    fixture: Fixture,
    store: Arc<PostgresStore>,
    database: Arc<TestDatabase>,
}

impl World {
    /// A world whose store reaches the server through a proxy.
    async fn behind_a_proxy(change: impl FnOnce(PostgresOptions) -> PostgresOptions) -> (Self, Proxy) {
        let proxy = Proxy::before(Cluster::shared().port()).await;
        let port = proxy.port;
        let through = |options: PostgresOptions| {
            let url = options.url.replace(&format!(":{}/", Cluster::shared().port()), &format!(":{port}/"));
            assert_ne!(url, options.url);
            change(PostgresOptions { url, ..options })
        };
        (Self::new(through).await, proxy)
    }

    async fn new(change: impl FnOnce(PostgresOptions) -> PostgresOptions) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let first = Opened::in_new_database(clock.clone()).await;
        let database = Arc::clone(&first.database);
        first.store.close().await;
        let options = PostgresOptions { connections: PLACES, append_connections: 1, ..PostgresOptions::new(&database.url) };
        let opened = Opened::set_up(Arc::clone(&database), change(options), clock.clone()).await;
        let store = Arc::clone(&opened.store);
        let fixture = Fixture::over(Box::new(opened), clock);
        fixture.create_tenant("acme").await;
        fixture.create_principal("alpha", authz::PrincipalKind::Agent).await;
        fixture.create_principal("beta", authz::PrincipalKind::Agent).await;
        fixture.fill(1).await;
        Self { fixture, store, database }
    }

    fn tenant(&self) -> TenantId {
        self.fixture.tenant.clone()
    }

    /// Reads on every place of the pool at the same time, and holds that each answers what was asked.
    async fn every_place_answers(&self) {
        let names = ["alpha", "beta"].map(|name| PrincipalId::parse(name).unwrap());
        let tenant = self.tenant();
        let reads = (0..2 * PLACES).map(|place| {
            let (name, tenant) = (&names[place % 2], &tenant);
            async move { (name, self.store.principal(tenant, name).await) }
        });
        for (name, answer) in timeout(PATIENCE, join_all(reads)).await.unwrap() {
            assert_eq!(&answer.unwrap().unwrap().id, name);
        }
    }

    /// Waits until no connection is lent.
    async fn nothing_is_lent(&self) {
        let began = Instant::now();
        while self.store.metrics().snapshot().connections > 0 {
            assert!(began.elapsed() < PATIENCE, "places were lost");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The store's sessions at the server that are not there for something special.
    async fn sessions(&self) -> i64 {
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'doorstep/%'";
        self.database.number(sessions).await
    }
}

/// What a statement may take at the server; a reader waits for twice as long.
const STATEMENT: Duration = Duration::from_millis(400);

#[tokio::test(flavor = "multi_thread")]
async fn a_read_whose_connection_goes_silent_fails_in_time_and_the_next_one_has_another_connection() {
    let patient = |options| PostgresOptions { statement_timeout: STATEMENT, acquire_timeout: Duration::from_secs(10), ..options };
    let (world, proxy) = World::behind_a_proxy(patient).await;
    let (store, tenant) = (&world.store, world.tenant());
    let alpha = PrincipalId::parse("alpha").unwrap();
    for round in 0..3 {
        world.every_place_answers().await;
        store.nodes().await.unwrap();
        proxy.silence();
        let began = Instant::now();
        // One statement, one page, a snapshot of several, and one of the node's own connections.
        let (head, page, rights, nodes) = timeout(PATIENCE, async {
            tokio::join!(store.head(&tenant), store.page(&tenant, range(0)), store.rights(&tenant, &alpha), store.nodes())
        })
        .await
        .expect("readers that wait for as long as the system does");
        let took = began.elapsed();
        assert_eq!(head.unwrap_err(), StoreError::Unavailable, "round {round}");
        assert_eq!(page.unwrap_err(), StoreError::Unavailable);
        assert_eq!(rights.unwrap_err(), StoreError::Unavailable);
        assert_eq!(nodes.unwrap_err(), StoreError::Unavailable);
        assert!((STATEMENT..4 * STATEMENT).contains(&took), "{took:?}");
        assert_eq!(store.head(&tenant).await.unwrap().unwrap().seq.get(), 1, "the next read");
        store.nodes().await.unwrap();
    }
    world.every_place_answers().await;
    world.nothing_is_lent().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_of_a_read_that_was_given_up_meets_nobody() {
    let world = World::new(|options| PostgresOptions { lock_timeout: Duration::from_millis(80), ..options }).await;
    let tenant = world.tenant();
    world.every_place_answers().await;
    let before = world.sessions().await;
    for round in 0..12 {
        let mut blocker = world.database.connection().await;
        let lock = "BEGIN; LOCK TABLE doorstep.log_heads IN ACCESS EXCLUSIVE MODE";
        sqlx_core::executor::Executor::execute(&mut blocker, sqlx_core::raw_sql::raw_sql(lock)).await.unwrap();
        let mut readers = JoinSet::new();
        for place in 0..PLACES {
            let (store, tenant) = (Arc::clone(&world.store), tenant.clone());
            let recipient = world.fixture.recipient("alpha");
            readers.spawn(async move {
                let range = ItemRange { after: None, limit: 1, scan_max: 1, bytes_max: 1 };
                if place == 0 {
                    store.items(&recipient, &ItemFilter::default(), range).await.map(drop)
                } else {
                    store.head(&tenant).await.map(drop)
                }
            });
        }
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        world.database.wait_for(waiting, i64::try_from(PLACES).unwrap()).await;
        readers.shutdown().await;
        if round % 2 == 0 {
            // The rest of an answer comes late.
            sqlx_core::connection::Connection::close(blocker).await.unwrap();
            world.every_place_answers().await;
        } else {
            // An error comes late: the lock was waited for too long.
            world.every_place_answers().await;
            sqlx_core::connection::Connection::close(blocker).await.unwrap();
        }
    }
    world.nothing_is_lent().await;
    world.every_place_answers().await;
    assert!(world.sessions().await <= before, "no session of a read that was given up is left");
}

/// On one thread, whose time can be put forward.
#[tokio::test]
async fn a_connection_that_nobody_used_for_long_is_looked_at_before_somebody_relies_on_it() {
    let (world, proxy) = World::behind_a_proxy(|options| PostgresOptions { acquire_timeout: Duration::from_mins(1), ..options }).await;
    world.every_place_answers().await;
    proxy.silence();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    for _ in 0..PLACES {
        assert_eq!(world.store.head(&world.tenant()).await.unwrap().unwrap().seq.get(), 1, "not even the first who comes notices");
    }
    world.every_place_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_shows_itself_and_keeps_its_leases_while_every_connection_for_requests_is_taken() {
    let world = World::new(|options| PostgresOptions { acquire_timeout: Duration::from_millis(300), ..options }).await;
    let (store, tenant) = (&world.store, world.tenant());
    let (node, works) = (node(), [WorkName::parse("a").unwrap()]);
    let held = store.take(node.id, &works, 1, Duration::from_mins(1)).await.unwrap();
    let mut blocker = world.database.connection().await;
    let lock = "BEGIN; LOCK TABLE doorstep.log_heads IN ACCESS EXCLUSIVE MODE";
    sqlx_core::executor::Executor::execute(&mut blocker, sqlx_core::raw_sql::raw_sql(lock)).await.unwrap();
    let mut readers = JoinSet::new();
    for _ in 0..PLACES {
        let (store, tenant) = (Arc::clone(store), tenant.clone());
        readers.spawn(async move { store.head(&tenant).await.map(drop) });
    }
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    world.database.wait_for(waiting, i64::try_from(PLACES).unwrap()).await;
    assert_eq!(store.principal(&tenant, &PrincipalId::parse("alpha").unwrap()).await.unwrap_err(), StoreError::Overloaded);
    let began = Instant::now();
    store.beat(&node, Duration::from_mins(1)).await.unwrap();
    assert_eq!(store.renew(node.id, &held, Duration::from_mins(1)).await.unwrap(), held);
    assert_eq!((store.nodes().await.unwrap().len(), store.leases().await.unwrap().len()), (1, 1));
    assert!(began.elapsed() < Duration::from_millis(250), "{:?}", began.elapsed());
    sqlx_core::connection::Connection::close(blocker).await.unwrap();
    for read in readers.join_all().await {
        read.unwrap();
    }
}

/// Whoever needs a new partition waits for whoever drops old ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_is_dropped_over_a_connection_that_goes_silent_keeps_no_new_one_from_being_made() {
    let day = Duration::from_hours(24);
    let patient = |options| PostgresOptions { statement_timeout: STATEMENT, acquire_timeout: Duration::from_secs(10), ..options };
    let (world, proxy) = World::behind_a_proxy(patient).await;
    world.fixture.clock.advance(3 * day);
    world.fixture.fill(1).await;
    // Somebody reads for long, so that dropping has to wait.
    let mut reader = world.database.connection().await;
    let read = "BEGIN; SELECT count(*) FROM event_log";
    sqlx_core::executor::Executor::execute(&mut reader, sqlx_core::raw_sql::raw_sql(read)).await.unwrap();
    let silence = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%DETACH%' AND wait_event_type = 'Lock'";
        world.database.wait_for(waiting, 1).await;
        proxy.silence();
    };
    timeout(PATIENCE, async { tokio::join!(retire(&world.fixture), silence) }).await.expect("an answer that never comes");
    sqlx_core::connection::Connection::close(reader).await.unwrap();
    world.fixture.clock.advance(3 * day);
    timeout(PATIENCE, world.fixture.fill(1)).await.unwrap();
}

fn node() -> Node {
    Node {
        id: NodeId::new(uuid::Uuid::from_u128(1)),
        name: "one".to_owned(),
        address: "127.0.0.1:7420".to_owned(),
        version: "1.2.3".to_owned(),
        started_at: START,
        state: NodeState::Serving,
    }
}
