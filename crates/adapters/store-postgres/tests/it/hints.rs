//! Hints over LISTEN and NOTIFY of a real server, also when connections break.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::{ConsumerName, NodeId, PrincipalId, Seq, TenantId};
use doorstep_store_postgres::{HintOptions, PostgresStore};
use sync::{Hint, HintBus, HintExchange, HintListener, HintSettings};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::nodes::Two;

const PATIENCE: Duration = Duration::from_secs(20);

/// The sessions that carry hints.
const HINTS: &str = "(application_name LIKE '% listen' OR application_name LIKE '% notify')";

#[derive(Default)]
struct Ear(Mutex<Vec<Hint>>);

impl HintListener for Ear {
    fn heard(&self, hint: &Hint) {
        self.0.lock().unwrap().push(hint.clone());
    }
}

struct Carrier {
    exchange: Arc<HintExchange>,
    ear: Arc<Ear>,
    tracker: TaskTracker,
    cancel: CancellationToken,
}

impl Carrier {
    fn start(number: u128, store: &PostgresStore, options: &HintOptions) -> Self {
        let exchange = HintExchange::new(NodeId::new(Uuid::from_u128(number)), HintSettings::default());
        let ear = Arc::<Ear>::default();
        let listener: Arc<dyn HintListener> = ear.clone();
        exchange.listen(Arc::downgrade(&listener));
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        store.carry_hints(&exchange, options, &tracker, &cancel).unwrap();
        Self { exchange, ear, tracker, cancel }
    }

    async fn is_listening(&self) {
        eventually("listening", || self.exchange.metrics().listening.get() == 1).await;
    }

    async fn hears(&self, hint: &Hint) {
        eventually("the hint is heard", || self.ear.0.lock().unwrap().contains(hint)).await;
    }

    fn heard(&self) -> usize {
        self.ear.0.lock().unwrap().len()
    }

    async fn stop(self) {
        self.cancel.cancel();
        self.tracker.close();
        tokio::time::timeout(PATIENCE, self.tracker.wait()).await.expect("it ends when it is told to");
    }
}

fn options() -> HintOptions {
    HintOptions { listen_url: None, reconnect_backoff_cap: Duration::from_millis(200) }
}

async fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn head(tenant: &str, seq: u64) -> Hint {
    Hint::Head { tenant: TenantId::parse(tenant).unwrap(), seq: Seq::new(seq).unwrap() }
}

fn taken(agent: &str) -> Hint {
    Hint::Taken { tenant: TenantId::parse("acme").unwrap(), agent: PrincipalId::parse(agent).unwrap(), consumer: ConsumerName::default() }
}

#[tokio::test]
pub(crate) async fn what_one_node_tells_the_other_hears_however_much_it_is() {
    let Two { one, two, database, .. } = Two::open().await;
    let (teller, hearer) = (Carrier::start(1, &one, &options()), Carrier::start(2, &two, &options()));
    teller.is_listening().await;
    hearer.is_listening().await;
    teller.exchange.tell(head("acme", 7));
    hearer.hears(&head("acme", 7)).await;
    let began = Instant::now();
    teller.exchange.tell(taken("alpha"));
    hearer.hears(&taken("alpha")).await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    // More than one payload holds: 8000 bytes are the most that the server takes.
    let long = "x".repeat(60);
    for number in 0..1_000 {
        teller.exchange.tell(taken(&format!("{long}{number}")));
    }
    eventually("all are heard", || hearer.heard() == 1_002).await;
    assert_eq!(teller.heard(), 0, "nobody hears itself");
    assert_eq!((teller.exchange.metrics().send_failures.get(), hearer.exchange.metrics().unknown.get()), (0, 0));
    // What anybody else says on the channel does no harm.
    database.run("NOTIFY doorstep_hints, 'hello'").await;
    eventually("it is counted", || hearer.exchange.metrics().unknown.get() == 1).await;
    teller.stop().await;
    hearer.stop().await;
}

#[tokio::test]
async fn connections_that_are_killed_come_back_by_themselves() {
    let Two { one, two, database, .. } = Two::open().await;
    let (teller, hearer) = (Carrier::start(1, &one, &options()), Carrier::start(2, &two, &options()));
    teller.is_listening().await;
    hearer.is_listening().await;
    for round in 1..=3_u64 {
        database.wait_for(&format!("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {HINTS}"), 4).await;
        let all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()";
        let killed = database.number(&format!("{all} AND {HINTS}")).await;
        assert_eq!(killed, 4, "two of each node");
        let reconnected = || hearer.exchange.metrics().reconnects.get() >= round && hearer.exchange.metrics().listening.get() == 1;
        eventually("it listens again", reconnected).await;
        // Who tells finds out by its next hint, which is lost.
        let began = Instant::now();
        let mut seq = round * 1_000;
        while !hearer.ear.0.lock().unwrap().contains(&head("acme", seq)) {
            assert!(began.elapsed() < PATIENCE);
            seq += 1;
            teller.exchange.tell(head("acme", seq));
            hearer.exchange.tell(head("acme", seq));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    teller.stop().await;
    hearer.stop().await;
}

#[tokio::test]
async fn a_way_that_leads_nowhere_is_tried_again_and_stops_when_told_to() {
    let Two { one, database: _database, .. } = Two::open().await;
    let nowhere = HintOptions { listen_url: Some("postgres://postgres@127.0.0.1:1/nowhere".to_owned()), ..options() };
    let carrier = Carrier::start(1, &one, &nowhere);
    for seq in 1..=100 {
        carrier.exchange.tell(head("acme", seq));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((carrier.exchange.metrics().listening.get(), carrier.exchange.metrics().merged.get()), (0, 99), "hints wait and are merged");
    carrier.stop().await;
    let wrong = HintOptions { listen_url: Some("not a url with secret".to_owned()), ..options() };
    let exchange = HintExchange::new(NodeId::new(Uuid::from_u128(1)), HintSettings::default());
    let refused = one.carry_hints(&exchange, &wrong, &TaskTracker::new(), &CancellationToken::new()).unwrap_err();
    assert!(!refused.to_string().contains("secret"));
}
