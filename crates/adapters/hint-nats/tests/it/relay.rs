//! What nodes tell each other over NATS, also after the server was away.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use domain::{ConsumerName, NodeId, PrincipalId, Seq, TenantId};
use hint_nats::{NatsOptions, NatsRelay};
use sync::{Hint, HintBus, HintExchange, HintListener, HintSettings};
use testkit::nats::NatsServer;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Ear(Mutex<Vec<Hint>>);

impl HintListener for Ear {
    fn heard(&self, hint: &Hint) {
        self.0.lock().unwrap().push(hint.clone());
    }
}

struct Node {
    exchange: Arc<HintExchange>,
    ear: Arc<Ear>,
    tracker: TaskTracker,
    cancel: CancellationToken,
}

impl Node {
    fn start(number: u128, url: &str, prefix: &str) -> Self {
        let exchange = HintExchange::new(NodeId::new(Uuid::from_u128(number)), HintSettings::default());
        let ear = Arc::<Ear>::default();
        let listener: Arc<dyn HintListener> = ear.clone();
        exchange.listen(Arc::downgrade(&listener));
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        let options = NatsOptions {
            url: url.to_owned(),
            subject_prefix: prefix.to_owned(),
            node: number.to_string(),
            reconnect_backoff_cap: Duration::from_millis(200),
        };
        NatsRelay::start(&options, exchange.clone(), &tracker, cancel.clone()).unwrap();
        Self { exchange, ear, tracker, cancel }
    }

    async fn listening(&self, is: bool) {
        eventually("listening", || self.exchange.metrics().listening.get() == u64::from(is)).await;
    }

    fn heard(&self) -> Vec<Hint> {
        self.ear.0.lock().unwrap().clone()
    }

    async fn hears(&self, hint: &Hint) {
        eventually("the hint is heard", || self.heard().contains(hint)).await;
    }

    async fn stop(self) {
        self.cancel.cancel();
        self.tracker.close();
        tokio::time::timeout(PATIENCE, self.tracker.wait()).await.expect("the relay ends when it is told to");
    }
}

async fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn head(seq: u64) -> Hint {
    Hint::Head { tenant: TenantId::parse("acme").unwrap(), seq: Seq::new(seq).unwrap() }
}

fn taken() -> Hint {
    Hint::Taken { tenant: TenantId::parse("acme").unwrap(), agent: PrincipalId::parse("alpha").unwrap(), consumer: ConsumerName::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_tells_the_others_hear_and_other_installations_do_not() {
    let server = NatsServer::start();
    let url = server.url();
    let (one, two, other) = (Node::start(1, &url, "doorstep"), Node::start(2, &url, "doorstep"), Node::start(3, &url, "elsewhere"));
    for node in [&one, &two, &other] {
        node.listening(true).await;
    }
    // The server handles a subscription after it said that it is connected: it is told until it is heard.
    let began = Instant::now();
    while !two.heard().contains(&head(7)) {
        assert!(began.elapsed() < PATIENCE);
        one.exchange.tell(head(7));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    one.exchange.tell(taken());
    two.hears(&taken()).await;
    two.exchange.tell(head(8));
    one.hears(&head(8)).await;
    assert!(!one.heard().contains(&head(7)), "nobody hears itself");
    assert_eq!(other.heard(), []);
    for node in [one, two, other] {
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_starts_without_the_server_and_goes_on_after_it_was_away() {
    let server = NatsServer::start();
    let url = server.url();
    let port = server.kill();
    let (one, two) = (Node::start(1, &url, "doorstep"), Node::start(2, &url, "doorstep"));
    one.listening(false).await;
    // What is told meanwhile is merged and waits.
    (1..=50).for_each(|seq| one.exchange.tell(head(seq)));
    assert_eq!((one.exchange.metrics().told.get(), one.exchange.metrics().merged.get()), (1, 49));
    let server = NatsServer::again(port);
    one.listening(true).await;
    two.listening(true).await;
    let began = Instant::now();
    while !two.heard().contains(&head(60)) {
        assert!(began.elapsed() < PATIENCE);
        one.exchange.tell(head(60));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let port = server.kill();
    one.listening(false).await;
    two.listening(false).await;
    let _server = NatsServer::again(port);
    one.listening(true).await;
    two.listening(true).await;
    let began = Instant::now();
    while !one.heard().contains(&head(70)) {
        assert!(began.elapsed() < PATIENCE);
        two.exchange.tell(head(70));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(one.exchange.metrics().reconnects.get() >= 1);
    one.stop().await;
    two.stop().await;
}
