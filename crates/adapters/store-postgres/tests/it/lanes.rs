//! Units of work that share the transaction of a lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use domain::{Clock, EventId, StoreError, Timestamp, Transactions, Unit};
use doorstep_store_postgres::{PostgresOptions, PostgresStore};
use inbox::{AckResult, InboxTx, Item, Recipient, Report, Rules};
use testkit::ManualClock;
use testkit::conformance::support::{Fixture, START};
use testkit::postgres::Cluster;

use crate::conformance::Opened;
use crate::proxy::{Proxy, Trap};

const MINUTE: Duration = Duration::from_mins(1);
const PATIENCE: Duration = Duration::from_secs(20);

/// A clock that panics the next time that somebody looks at it, when it is told to.
#[derive(Debug)]
struct Tripping {
    clock: Arc<ManualClock>,
    is_armed: AtomicBool,
}

impl Clock for Tripping {
    fn now(&self) -> Timestamp {
        assert!(!self.is_armed.swap(false, Ordering::SeqCst), "the test has asked for it");
        self.clock.now()
    }
}

/// A store behind a proxy, with an item of `alpha` that is claimed.
struct World {
    fixture: Fixture,
    store: Arc<PostgresStore>,
    proxy: Proxy,
    clock: Arc<Tripping>,
    item: Item,
}

impl World {
    async fn new() -> Self {
        let manual = Arc::new(ManualClock::new(START));
        let clock = Arc::new(Tripping { clock: manual.clone(), is_armed: AtomicBool::new(false) });
        let first = Opened::in_new_database(manual.clone()).await;
        let database = Arc::clone(&first.database);
        first.store.close().await;
        let proxy = Proxy::before(Cluster::shared().port()).await;
        let url = database.url.replace(&format!(":{}/", Cluster::shared().port()), &format!(":{}/", proxy.port));
        assert_ne!(url, database.url);
        let options = PostgresOptions { connections: 8, append_connections: 2, ..PostgresOptions::new(url) };
        let opened = Opened::set_up(database, options, clock.clone()).await;
        let store = Arc::clone(&opened.store);
        let fixture = Fixture::over(Box::new(opened), manual);
        fixture.create_tenant("acme").await;
        fixture.create_principal("alpha", authz::PrincipalKind::Agent).await;
        let (event, _) = fixture.publish_job(&["alpha"]).await;
        let item = fixture.claim("alpha", event, MINUTE).await;
        Self { fixture, store, proxy, clock, item }
    }

    async fn run(&self, unit: Unit<dyn InboxTx>) -> Result<(), StoreError> {
        Transactions::<dyn InboxTx>::run(&*self.store, "tested", unit).await
    }

    /// A unit that ends the item, unless somebody has; `run` is told how often it has run before, and what it found.
    fn ends(&self, run: impl Fn(usize, bool) -> Result<(), StoreError> + Send + Sync + 'static) -> Unit<dyn InboxTx> {
        let (recipient, event, run) = (self.fixture.recipient("alpha"), self.item.facts.event_id, Arc::new(run));
        let runs = Arc::new(AtomicUsize::new(0));
        Box::new(move |tx| {
            let (recipient, run, runs) = (recipient.clone(), Arc::clone(&run), runs.fetch_add(1, Ordering::SeqCst));
            Box::pin(async move { end(tx, &recipient, event, |is_ended| run(runs, is_ended)).await })
        })
    }
}

async fn end(
    tx: &mut dyn InboxTx,
    recipient: &Recipient,
    event: EventId,
    judge: impl Fn(bool) -> Result<(), StoreError> + Send,
) -> Result<(), StoreError> {
    let row = tx.share_recipient(recipient).await?.unwrap();
    let mut item = tx.find(row.number, &[event]).await?.remove(0).unwrap();
    judge(item.state.is_ended())?;
    let now = tx.now();
    item.acknowledge(now, AckResult::Completed, Report::default(), &Rules::default()).unwrap();
    tx.put(&[item]).await
}

const GONE: StoreError = StoreError::Conflict("somebody has ended it");
const GAVE_UP: StoreError = StoreError::Conflict("not again");

/// On one thread, so that both units have joined the lane before its leader looks.
#[tokio::test]
async fn who_failed_on_what_another_one_wrote_is_answered_after_the_commit_and_runs_again_when_it_fails() {
    let world = World::new().await;
    let seen = Arc::new(AtomicUsize::new(0));
    let found_ended = Arc::clone(&seen);
    let first = world.ends(|runs, _| if runs == 0 { Ok(()) } else { Err(GAVE_UP) });
    let second = world.ends(move |_, is_ended| {
        found_ended.fetch_add(usize::from(is_ended), Ordering::SeqCst);
        if is_ended { Err(GONE) } else { Ok(()) }
    });
    world.proxy.set(Trap::Before);
    let (first, second) = tokio::time::timeout(PATIENCE, async { tokio::join!(world.run(first), world.run(second)) }).await.unwrap();
    assert!(world.proxy.has_sprung());
    assert_eq!(seen.load(Ordering::SeqCst), 1, "they shared a transaction, and the second saw what the first wrote");
    assert_eq!(first, Err(GAVE_UP), "what it wrote was rolled back");
    assert_eq!(second, Ok(()), "nobody had ended it");
    assert!(world.fixture.item("alpha", world.item.facts.event_id).await.unwrap().state.is_ended());
}

#[tokio::test]
async fn who_failed_on_what_is_committed_then_is_answered_what_it_found() {
    let world = World::new().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let first = world.ends(|_, _| Ok(()));
    let second = world.ends(move |_, is_ended| {
        counted.fetch_add(1, Ordering::SeqCst);
        if is_ended { Err(GONE) } else { Ok(()) }
    });
    world.proxy.set(Trap::Held);
    let answers = async { tokio::join!(world.run(first), world.run(second)) };
    let held = async {
        world.proxy.holds().await;
        world.proxy.let_go();
    };
    let ((first, second), ()) = tokio::time::timeout(PATIENCE, async { tokio::join!(answers, held) }).await.unwrap();
    assert_eq!((first, second), (Ok(()), Err(GONE)));
    assert_eq!(runs.load(Ordering::SeqCst), 1, "it shared the transaction");
}

#[tokio::test]
async fn a_lane_whose_leaders_panicked_gets_another() {
    let world = World::new().await;
    let events = |fixture: &Fixture| fixture.event("from a unit of work");
    // More often than a lane has leaders.
    for round in 0..4 {
        let (recipient, event, clock) = (world.fixture.recipient("alpha"), events(&world.fixture), Arc::clone(&world.clock));
        let (tenant, runs) = (world.fixture.tenant.clone(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&runs);
        let unit: Unit<dyn InboxTx> = Box::new(move |tx| {
            let (recipient, event, clock, tenant) = (recipient.clone(), event.clone(), Arc::clone(&clock), tenant.clone());
            let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
            Box::pin(async move {
                tx.share_recipient(&recipient).await?;
                // What comes next is done by the leader, and looks at the clock.
                clock.is_armed.store(is_first, Ordering::SeqCst);
                tx.append_inbox(&tenant, &[event]).await.map(drop)
            })
        });
        let answer = tokio::time::timeout(PATIENCE, world.run(unit)).await;
        assert_eq!(answer, Ok(Ok(())), "round {round}");
        assert_eq!(runs.load(Ordering::SeqCst), 2, "it ran again, alone");
        assert!(!world.clock.is_armed.load(Ordering::SeqCst));
    }
    let last = world.ends(|runs, _| if runs == 0 { Ok(()) } else { Err(GAVE_UP) });
    let answer = tokio::time::timeout(PATIENCE, world.run(last)).await;
    assert_eq!(answer, Ok(Ok(())), "in a lane, at once");
    assert_eq!(world.store.metrics().snapshot().connections, 0, "and nobody keeps a connection");
}
