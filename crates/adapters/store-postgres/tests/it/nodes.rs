//! Nodes and their leases on work, over a real database and a clock that is turned by hand.

use std::sync::Arc;
use std::time::Duration;

use cluster::{ClusterStore, HeldLease, Node, NodeState, WorkName};
use domain::{Clock, NodeId};
use doorstep_store_postgres::{PostgresOptions, PostgresStore};
use testkit::ManualClock;
use testkit::postgres::{Cluster, TestDatabase};
use uuid::Uuid;

const SECOND: Duration = Duration::from_secs(1);

/// Two nodes over one database.
#[expect(clippy::struct_field_names, reason = "they are one and two")]
pub(crate) struct Two {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) one: Arc<PostgresStore>,
    pub(crate) two: Arc<PostgresStore>,
    pub(crate) database: TestDatabase,
}

impl Two {
    pub(crate) async fn open() -> Self {
        let database = Cluster::shared().empty_database().await;
        let clock = Arc::new(ManualClock::default());
        let connect = async |node: &str| {
            let options = PostgresOptions {
                node: node.to_owned(),
                connections: 4,
                append_connections: 1,
                auto_migrate: true,
                ..PostgresOptions::new(&database.url)
            };
            PostgresStore::connect(options, clock.clone()).await.unwrap()
        };
        let one = connect("one").await;
        let two = connect("two").await;
        Self { clock, one, two, database }
    }
}

fn id(number: u128) -> NodeId {
    NodeId::new(Uuid::from_u128(number))
}

fn works(names: &[&str]) -> Vec<WorkName> {
    names.iter().map(|name| WorkName::parse(name).unwrap()).collect()
}

fn names(held: &[HeldLease]) -> Vec<&str> {
    let mut names: Vec<&str> = held.iter().map(|lease| lease.work.as_str()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
pub(crate) async fn work_is_one_nodes_until_its_lease_expires_and_its_generation_rises() {
    let Two { clock, one, two, database: _database } = Two::open().await;
    let all = works(&["a", "b", "c"]);
    let mut first = one.take(id(1), &all, 2, 10 * SECOND).await.unwrap();
    first.sort_by(|left, right| left.work.cmp(&right.work));
    assert_eq!(names(&first), ["a", "b"], "at most as many as asked for");
    let rest = two.take(id(2), &all, 9, 10 * SECOND).await.unwrap();
    assert_eq!(names(&rest), ["c"]);
    assert_eq!(two.take(id(2), &all, 9, 10 * SECOND).await.unwrap(), [], "not even its own twice");
    clock.advance(9 * SECOND);
    let mut renewed = one.renew(id(1), &first, 10 * SECOND).await.unwrap();
    renewed.sort_by(|left, right| left.work.cmp(&right.work));
    assert_eq!(renewed, first);
    clock.advance(9 * SECOND);
    assert_eq!(two.renew(id(2), &rest, 10 * SECOND).await.unwrap(), [], "it has expired, although nobody took it");
    let taken = one.take(id(1), &all, 9, 10 * SECOND).await.unwrap();
    assert_eq!(names(&taken), ["c"]);
    assert!(taken[0].generation > rest[0].generation);
    assert_eq!(two.renew(id(2), &rest, 10 * SECOND).await.unwrap(), []);
    two.give_back(id(2), &rest).await.unwrap();
    let held = two.leases().await.unwrap();
    assert_eq!(held.iter().map(|lease| (lease.work.as_str(), lease.node)).collect::<Vec<_>>(), [("a", id(1)), ("b", id(1)), ("c", id(1))]);
    one.give_back(id(1), &taken).await.unwrap();
    assert_eq!(names(&two.take(id(2), &all, 9, 10 * SECOND).await.unwrap()), ["c"], "what is given back is free at once");
    clock.advance(10 * SECOND);
    assert_eq!(one.leases().await.unwrap(), [], "an expired lease is nobody's");
}

#[tokio::test]
async fn work_asked_for_by_many_at_once_is_given_once() {
    let Two { one, two, database: _database, .. } = Two::open().await;
    let all: Vec<WorkName> = (0..20).map(|number| WorkName::parse(&format!("w{number}")).unwrap()).collect();
    let asking: Vec<_> = (0..16_u128)
        .map(|number| {
            let (store, all) = (if number % 2 == 0 { one.clone() } else { two.clone() }, all.clone());
            async move { store.take(id(number), &all, 20, 10 * SECOND).await.unwrap() }
        })
        .collect();
    let mut taken: Vec<HeldLease> = futures_util::future::join_all(asking).await.concat();
    taken.sort_by(|left, right| left.work.cmp(&right.work));
    let count = taken.len();
    taken.dedup_by(|left, right| left.work == right.work);
    assert_eq!(count, taken.len(), "nothing twice");
    // What was passed over because somebody else was looking at it is taken in the next round.
    let rest = one.take(id(99), &all, 20, 10 * SECOND).await.unwrap();
    assert_eq!(taken.len() + rest.len(), 20);
}

#[tokio::test]
pub(crate) async fn nodes_show_themselves_and_are_forgotten() {
    let Two { clock, one, two, database: _database } = Two::open().await;
    let node = |number: u128, state: NodeState| Node {
        id: id(number),
        name: format!("node {number}"),
        address: "127.0.0.1:7420".to_owned(),
        version: "1.2.3".to_owned(),
        started_at: clock.now(),
        state,
    };
    let (first, forget) = (node(1, NodeState::Serving), 60 * SECOND);
    one.beat(&first, forget).await.unwrap();
    clock.advance(SECOND);
    let second = node(2, NodeState::Serving);
    two.beat(&second, forget).await.unwrap();
    let seen = one.nodes().await.unwrap();
    assert_eq!(seen.iter().map(|seen| seen.node.clone()).collect::<Vec<_>>(), [first.clone(), second.clone()]);
    clock.advance(50 * SECOND);
    let draining = Node { state: NodeState::Draining, ..first };
    one.beat(&draining, forget).await.unwrap();
    let seen = two.nodes().await.unwrap();
    assert_eq!((&seen[0].node, seen[0].seen_at), (&draining, clock.now()));
    clock.advance(20 * SECOND);
    one.beat(&draining, forget).await.unwrap();
    assert_eq!(two.nodes().await.unwrap().len(), 1, "the other one was not heard of for too long");
    let held = one.take(id(1), &works(&["a"]), 1, 60 * SECOND).await.unwrap();
    one.leave(id(1)).await.unwrap();
    assert_eq!((one.nodes().await.unwrap().len(), one.leases().await.unwrap()), (0, vec![]));
    let again = two.take(id(2), &works(&["a"]), 1, SECOND).await.unwrap();
    assert!(again[0].generation > held[0].generation, "generations are not forgotten");
}
