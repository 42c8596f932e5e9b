//! Leases on work: held by one node at a time, shared among those that are there, lost in time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::{Cluster, ClusterParts, ClusterStore, HeldLease, Node, NodeState, Settings, SoleNode, Tenure, WorkName};
use domain::{Clock, NodeId};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::memory::Memory;

const SECOND: Duration = Duration::from_secs(1);
const WORKS: [&str; 5] = ["hooks", "inbox.sweeper", "intake.mover", "intake.promoter", "sync.retention"];

fn settings() -> Settings {
    Settings { lease_duration: 10 * SECOND, node_timeout: 15 * SECOND, ..Settings::default() }
}

fn id(number: u128) -> NodeId {
    NodeId::new(Uuid::from_u128(number))
}

fn work(name: &str) -> WorkName {
    WorkName::parse(name).unwrap()
}

/// What happens to work: when it began and when it ended, on which node, seen from outside.
#[derive(Default)]
struct Diary(Mutex<Vec<Entry>>);

#[derive(Clone, Debug)]
struct Entry {
    work: String,
    node: u128,
    began: Instant,
    ended: Option<Instant>,
}

impl Diary {
    fn begin(&self, work: &str, node: u128) -> usize {
        let mut entries = self.0.lock().unwrap();
        entries.push(Entry { work: work.to_owned(), node, began: Instant::now(), ended: None });
        entries.len() - 1
    }

    fn end(&self, number: usize) {
        self.0.lock().unwrap().get_mut(number).unwrap().ended = Some(Instant::now());
    }

    fn entries(&self) -> Vec<Entry> {
        self.0.lock().unwrap().clone()
    }

    /// Who does what now.
    fn doing(&self, node: u128) -> Vec<String> {
        let mut works: Vec<String> =
            self.entries().into_iter().filter(|entry| entry.node == node && entry.ended.is_none()).map(|entry| entry.work).collect();
        works.sort();
        works
    }

    /// Nobody ever did what somebody else was doing.
    fn assert_alone(&self) {
        let entries = self.entries();
        for (number, one) in entries.iter().enumerate() {
            for two in entries.iter().skip(number + 1).filter(|two| two.work == one.work) {
                let is_apart = one.ended.is_some_and(|ended| ended <= two.began) || two.ended.is_some_and(|ended| ended <= one.began);
                assert!(is_apart, "{one:?} and {two:?}");
            }
        }
    }
}

/// Notes the end when it is dropped, as work that is cut off is.
struct Doing(Arc<Diary>, usize);

impl Drop for Doing {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}

struct NodeUnderTest {
    number: u128,
    cluster: Arc<Cluster>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl NodeUnderTest {
    /// A node whose work stops as soon as it is asked, or never.
    fn start(number: u128, memory: &Arc<Memory>, diary: &Arc<Diary>, obeys: bool) -> Self {
        Self::over(number, memory.clone(), memory.clock.clone(), diary, obeys)
    }

    fn over(number: u128, store: Arc<dyn ClusterStore>, clock: Arc<dyn Clock>, diary: &Arc<Diary>, obeys: bool) -> Self {
        let node = Node {
            id: id(number),
            name: format!("node{number}"),
            address: "127.0.0.1:1".to_owned(),
            version: "0".to_owned(),
            started_at: clock.now(),
            state: NodeState::Serving,
        };
        let cluster = Cluster::new(ClusterParts { store, clock, node, settings: settings() });
        for name in WORKS {
            let diary = Arc::clone(diary);
            cluster.share_work(work(name), move |tenure| {
                assert!(tenure.remaining() > 8 * SECOND, "a lease begins with nearly all of its time");
                let doing = Doing(Arc::clone(&diary), diary.begin(name, number));
                async move {
                    let _doing = doing;
                    if obeys { tenure.stop.cancelled().await } else { std::future::pending().await }
                }
            });
        }
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        tracker.spawn(Arc::clone(&cluster).run(tracker.clone(), stop.clone()));
        Self { number, cluster, stop, tracker }
    }

    async fn end(self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_node_alone_does_everything() {
    let (memory, diary) = (Memory::new(), Arc::<Diary>::default());
    let one = NodeUnderTest::start(1, &memory, &diary, true);
    sleep(60 * SECOND).await;
    assert_eq!(diary.doing(1), WORKS);
    assert_eq!(diary.entries().len(), WORKS.len(), "renewed, and never begun anew");
    assert_eq!((one.cluster.metrics().held.get(), one.cluster.metrics().lost.get()), (5, 0));
    one.end().await;
    assert_eq!(diary.doing(1).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn nodes_share_the_work_and_nothing_is_done_twice() {
    let (memory, diary) = (Memory::new(), Arc::<Diary>::default());
    let one = NodeUnderTest::start(1, &memory, &diary, true);
    sleep(10 * SECOND).await;
    let two = NodeUnderTest::start(2, &memory, &diary, true);
    sleep(10 * SECOND).await;
    assert_eq!((diary.doing(1).len(), diary.doing(2).len()), (3, 2));
    let three = NodeUnderTest::start(3, &memory, &diary, true);
    sleep(10 * SECOND).await;
    assert_eq!((diary.doing(1).len(), diary.doing(2).len(), diary.doing(3).len()), (2, 2, 1));
    let begun = diary.entries().len();
    sleep(100 * SECOND).await;
    assert_eq!(diary.entries().len(), begun, "what is shared is not moved about");
    diary.assert_alone();
    for node in [one, two, three] {
        node.end().await;
    }
    diary.assert_alone();
}

#[tokio::test(start_paused = true)]
async fn what_a_node_leaves_another_takes_over_within_a_round() {
    let (memory, diary) = (Memory::new(), Arc::<Diary>::default());
    let (one, two) = (NodeUnderTest::start(1, &memory, &diary, true), NodeUnderTest::start(2, &memory, &diary, true));
    sleep(20 * SECOND).await;
    one.end().await;
    sleep(3 * SECOND).await;
    assert_eq!(diary.doing(2), WORKS);
    diary.assert_alone();
    two.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_drains_gives_its_work_away_before_it_stops() {
    let (memory, diary) = (Memory::new(), Arc::<Diary>::default());
    let (one, two) = (NodeUnderTest::start(1, &memory, &diary, true), NodeUnderTest::start(2, &memory, &diary, true));
    sleep(20 * SECOND).await;
    one.cluster.drain();
    sleep(6 * SECOND).await;
    assert_eq!((diary.doing(1).len(), diary.doing(2).len()), (0, 5));
    assert_eq!(memory.state().nodes[&id(1)].node.state, NodeState::Draining);
    diary.assert_alone();
    one.end().await;
    two.end().await;
    assert!(memory.state().nodes.is_empty(), "who leaves is not listed");
}

#[tokio::test(start_paused = true)]
async fn who_cannot_renew_stops_before_another_begins() {
    for obeys in [true, false] {
        let (memory, diary) = (Memory::new(), Arc::<Diary>::default());
        let (one, two) = (NodeUnderTest::start(1, &memory, &diary, obeys), NodeUnderTest::start(2, &memory, &diary, true));
        sleep(20 * SECOND).await;
        assert!(!diary.doing(one.number).is_empty() && !diary.doing(two.number).is_empty());
        memory.state().cut_off.push(id(1));
        let began = Instant::now();
        while diary.doing(2) != WORKS {
            sleep(SECOND / 10).await;
            assert!(began.elapsed() < 30 * SECOND, "the work of a lost node is taken over");
        }
        diary.assert_alone();
        assert_eq!(diary.doing(1).len(), 0);
        assert_eq!(one.cluster.metrics().cut_off.get() > 0, !obeys, "only what does not obey is cut off");
        memory.state().cut_off.clear();
        sleep(30 * SECOND).await;
        assert!(!diary.doing(1).is_empty(), "who is back does its share again");
        diary.assert_alone();
        one.end().await;
        two.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_absence_of_the_store_stops_nothing() {
    let (memory, diary) = (Memory::new(), Arc::<Diary>::default());
    let one = NodeUnderTest::start(1, &memory, &diary, true);
    sleep(20 * SECOND).await;
    memory.state().cut_off.push(id(1));
    sleep(4 * SECOND).await;
    memory.state().cut_off.clear();
    sleep(20 * SECOND).await;
    assert_eq!(diary.entries().len(), WORKS.len());
    assert!(one.cluster.metrics().failures.get() > 0);
    one.end().await;
}

#[tokio::test(start_paused = true)]
async fn who_took_a_lease_later_has_the_higher_generation_and_the_earlier_holder_cannot_renew() {
    let memory = Memory::new();
    let works = [work("hooks")];
    let first = memory.take(id(1), &works, 1, SECOND).await.unwrap();
    assert_eq!(memory.take(id(2), &works, 1, SECOND).await.unwrap(), []);
    sleep(SECOND).await;
    assert_eq!(memory.renew(id(1), &first, SECOND).await.unwrap(), [], "also when nobody took it since");
    let second = memory.take(id(2), &works, 1, SECOND).await.unwrap();
    assert!(second[0].generation > first[0].generation);
    memory.give_back(id(1), &first).await.unwrap();
    assert_eq!(memory.renew(id(2), &second, SECOND).await.unwrap(), second, "who lost it gives nothing back");
    memory.give_back(id(2), &second).await.unwrap();
    let third: Vec<HeldLease> = memory.take(id(1), &works, 1, SECOND).await.unwrap();
    assert!(third[0].generation > second[0].generation, "generations are not forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_tenure_says_for_how_long_it_surely_lasts() {
    let memory = Memory::new();
    let diary = Arc::<Diary>::default();
    let seen = Arc::new(Mutex::new(None::<Tenure>));
    let one = NodeUnderTest::start(1, &memory, &diary, true);
    let taken = Arc::clone(&seen);
    one.cluster.share_work(work("watched"), move |tenure| {
        *taken.lock().unwrap() = Some(tenure.clone());
        async move { tenure.stop.cancelled().await }
    });
    sleep(60 * SECOND).await;
    let tenure = seen.lock().unwrap().clone().expect("it was taken");
    for _ in 0..100 {
        sleep(SECOND / 10).await;
        let remaining = tenure.remaining();
        assert!((6 * SECOND..10 * SECOND).contains(&remaining), "renewed again and again: {remaining:?}");
    }
    memory.state().cut_off.push(id(1));
    let before = tenure.remaining();
    sleep(5 * SECOND).await;
    assert_eq!(tenure.remaining(), before.saturating_sub(5 * SECOND));
    sleep(5 * SECOND).await;
    assert_eq!(tenure.remaining(), Duration::ZERO);
    memory.state().cut_off.clear();
    one.end().await;
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_by_itself_is_begun_again() {
    let memory = Memory::new();
    let node = Node {
        id: id(1),
        name: String::new(),
        address: String::new(),
        version: String::new(),
        started_at: memory.clock.now(),
        state: NodeState::Serving,
    };
    let cluster = Cluster::new(ClusterParts { store: memory.clone(), clock: memory.clock.clone(), node, settings: settings() });
    let begun = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&begun);
    cluster.share_work(work("hooks"), move |_tenure| {
        counting.fetch_add(1, Ordering::SeqCst);
        async {}
    });
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    tracker.spawn(Arc::clone(&cluster).run(tracker.clone(), stop.clone()));
    sleep(25 * SECOND).await;
    let count = begun.load(Ordering::SeqCst);
    assert!((5..=12).contains(&count), "once a round, and not in a hot loop: {count}");
    stop.cancel();
    tracker.close();
    tracker.wait().await;
}

#[tokio::test(start_paused = true)]
async fn the_only_node_holds_everything_always() {
    let memory = Memory::new();
    let diary = Arc::<Diary>::default();
    let sole: Arc<dyn ClusterStore> = Arc::new(SoleNode::new(memory.clock.clone()));
    let one = NodeUnderTest::over(1, sole.clone(), memory.clock.clone(), &diary, true);
    sleep(60 * SECOND).await;
    assert_eq!((diary.doing(1).len(), diary.entries().len()), (5, 5));
    assert_eq!(sole.leases().await.unwrap().len(), 5);
    assert_eq!(sole.nodes().await.unwrap().len(), 1);
    let begun = Instant::now();
    one.end().await;
    assert!(begun.elapsed() < SECOND);
    assert_eq!(diary.doing(1).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_silent_for_the_timeout_counts_as_lost_and_not_before() {
    let (memory, diary) = (Memory::new(), Arc::new(Diary::default()));
    let one = NodeUnderTest::start(1, &memory, &diary, true);
    let two = NodeUnderTest::start(2, &memory, &diary, true);
    sleep(30 * SECOND).await;
    assert_eq!(one.cluster.metrics().nodes.get(), 2);
    let share = diary.doing(1).len();
    assert!(share < WORKS.len());
    memory.state().cut_off.push(id(2));
    let seen_at = memory.state().nodes[&id(2)].seen_at;
    while memory.clock.now().since(seen_at) < settings().node_timeout {
        assert_eq!((one.cluster.metrics().nodes.get(), diary.doing(1).len()), (2, share), "it is slow, or busy");
        sleep(SECOND / 10).await;
    }
    // A round of the other one later.
    sleep(3 * SECOND).await;
    assert_eq!(one.cluster.metrics().nodes.get(), 1);
    assert_eq!(diary.doing(1), WORKS, "it does everything");
    memory.state().cut_off.clear();
    sleep(30 * SECOND).await;
    assert_eq!((one.cluster.metrics().nodes.get(), diary.doing(1).len()), (2, share), "and when the lost one is heard of it has its share");
    for node in [one, two] {
        node.end().await;
    }
    diary.assert_alone();
}
