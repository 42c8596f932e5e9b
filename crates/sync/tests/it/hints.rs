//! What nodes tell each other: coalesced, never echoed, never needed.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use domain::{ConsumerName, NodeId, PrincipalId};
use sync::{Announcer, CommitListener, Hint, HintBus, HintExchange, HintListener, HintSettings, InOneProcess};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::fakes::{Setup, epoch, reach, seq, settings, tenant};

const INTERVAL: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Ear(Mutex<Vec<(Hint, Instant)>>);

impl HintListener for Ear {
    fn heard(&self, hint: &Hint) {
        self.0.lock().unwrap().push((hint.clone(), Instant::now()));
    }
}

impl Ear {
    fn heard_so_far(&self) -> Vec<Hint> {
        self.0.lock().unwrap().iter().map(|(hint, _)| hint.clone()).collect()
    }
}

fn head(name: &str, number: u64) -> Hint {
    Hint::Head { tenant: tenant(name), seq: seq(number) }
}

fn taken(agent: &str) -> Hint {
    Hint::Taken { tenant: tenant("t"), agent: PrincipalId::parse(agent).unwrap(), consumer: ConsumerName::default() }
}

/// Nodes in one process, each with an ear.
struct Nodes {
    exchanges: Vec<Arc<HintExchange>>,
    ears: Vec<Arc<Ear>>,
    tracker: TaskTracker,
    cancel: CancellationToken,
}

fn exchange(number: u64) -> Arc<HintExchange> {
    let node: NodeId = format!("00000000-0000-0000-0000-{number:012}").parse().unwrap();
    HintExchange::new(node, HintSettings { interval: INTERVAL, queue_max: 100 })
}

impl Nodes {
    fn new(count: u64) -> Self {
        let (tracker, cancel, process) = (TaskTracker::new(), CancellationToken::new(), InOneProcess::default());
        let exchanges: Vec<_> = (0..count).map(exchange).collect();
        let ears: Vec<Arc<Ear>> = exchanges.iter().map(|_| Arc::default()).collect();
        for (exchange, ear) in exchanges.iter().zip(&ears) {
            let listener: Arc<dyn HintListener> = ear.clone();
            exchange.listen(Arc::downgrade(&listener));
            process.join(Arc::clone(exchange), &tracker, cancel.clone());
        }
        Self { exchanges, ears, tracker, cancel }
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_node_tells_all_others_hear_and_it_does_not() {
    let nodes = Nodes::new(3);
    nodes.exchanges[0].tell(head("t", 5));
    nodes.exchanges[0].tell(taken("a"));
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(nodes.ears[0].heard_so_far(), []);
    for ear in &nodes.ears[1..] {
        assert_eq!(ear.heard_so_far(), [head("t", 5), taken("a")], "the first hint after a quiet time goes at once");
    }
    nodes.cancel.cancel();
    nodes.tracker.close();
    nodes.tracker.wait().await;
}

#[tokio::test(start_paused = true)]
async fn within_the_interval_there_is_one_send_that_says_the_latest() {
    let nodes = Nodes::new(2);
    for number in 1..=200 {
        nodes.exchanges[0].tell(head("t", number));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(INTERVAL).await;
    let sends = nodes.exchanges[0].metrics().sends.get();
    assert!((2..=11).contains(&sends), "200 commits in 200 ms, one send each 20 ms at most: {sends}");
    assert_eq!(nodes.ears[1].heard_so_far().last(), Some(&head("t", 200)), "nothing that was told last is left untold");
    let heard = nodes.ears[1].0.lock().unwrap();
    assert!(heard.windows(2).all(|pair| pair[1].1 - pair[0].1 >= INTERVAL), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn what_waits_while_nobody_carries_is_merged_and_bounded() {
    let lonely = exchange(1);
    for number in 1..=1_000 {
        lonely.tell(head("t", number));
        lonely.tell(taken(&format!("a{number}")));
    }
    let metrics = lonely.metrics();
    assert_eq!((metrics.told.get(), metrics.merged.get(), metrics.dropped.get()), (100, 999, 901));
    let texts = lonely.next(7_999).await;
    assert!(texts.iter().all(|text| text.len() <= 7_999) && !texts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_carrier_that_is_cut_off_loses_nothing_that_waits() {
    let node = exchange(1);
    node.tell(head("t", 1));
    node.next(8_000).await;
    node.tell(head("t", 2));
    // Cut off in the pause between two sends.
    assert!(tokio::time::timeout(INTERVAL / 2, node.next(8_000)).await.is_err());
    let texts = tokio::time::timeout(INTERVAL, node.next(8_000)).await.expect("what waited still waits");
    assert!(texts[0].ends_with("\nh t 2"), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn texts_that_are_not_understood_are_counted_and_do_no_harm() {
    let node = exchange(1);
    node.received("2 something newer");
    node.received("");
    assert_eq!(node.metrics().unknown.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_hinted_head_makes_the_tail_look_at_once() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    setup.store.commit("t", 12);
    let began = Instant::now();
    setup.logs.heard(&head("t", 12));
    reach(&log, |position| position.seq == seq(12)).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(setup.recorder.observed("t"), (1..=12).collect::<Vec<_>>());
    assert_eq!(setup.logs.metrics().hinted.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_is_old_or_wrong_costs_at_most_a_look() {
    let setup = Setup::new(&["t"]);
    let log = setup.open("t").await;
    setup.publish("t", 3);
    reach(&log, |position| position.seq == seq(3)).await;
    let pages = setup.store.calls().pages;
    setup.logs.heard(&head("t", 3));
    setup.logs.heard(&head("nobody", 7));
    setup.logs.heard(&taken("a"));
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(setup.store.calls().pages, pages, "what was seen is not looked for");
    setup.logs.heard(&head("t", 1_000));
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(log.position(), seq(3));
    setup.publish("t", 2);
    reach(&log, |position| position.seq == seq(5)).await;
    assert_eq!(setup.recorder.observed("t"), [1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_reaches_the_other_node_through_the_hint() {
    let nodes = Nodes::new(2);
    let own = Setup::with(&["t"], settings());
    let listener: Arc<dyn CommitListener> = own.logs.clone();
    let announcer = Announcer::new(listener, nodes.exchanges[0].clone());
    let log = own.open("t").await;
    let batch = own.store.commit("t", 4);
    announcer.committed(&tenant("t"), epoch(1), &batch);
    announcer.committed(&tenant("t"), epoch(1), &[]);
    reach(&log, |position| position.seq == seq(4)).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(nodes.ears[1].heard_so_far(), [head("t", 4)]);
}

#[test]
fn a_listener_that_is_gone_is_told_nothing() {
    let node = exchange(1);
    let gone: Weak<Ear> = Weak::new();
    node.listen(gone);
    node.received("1 00000000-0000-0000-0000-000000000009\nh t 1");
    assert_eq!(node.metrics().heard.get(), 1);
}
