//! Nodes that share the work: who holds the group dispatches and sends, and nobody else.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hooks::{GroupLeases, GroupNumber};
use tokio::time::timeout;

use crate::memory::SECOND;
use crate::receivers::{Does, until};
use crate::world::World;

const GROUP: GroupNumber = GroupNumber(0);
const TIMEOUT: Duration = Duration::from_secs(5);

/// A lease that a test gives and takes.
#[derive(Debug, Default)]
struct Lease(Mutex<Duration>);

impl Lease {
    fn new(remaining: Duration) -> Arc<Self> {
        Arc::new(Self(Mutex::new(remaining)))
    }

    fn set(&self, remaining: Duration) {
        *self.0.lock().unwrap() = remaining;
    }
}

impl GroupLeases for Lease {
    fn held(&self) -> Vec<GroupNumber> {
        if self.remaining(GROUP).is_zero() { Vec::new() } else { vec![GROUP] }
    }

    fn remaining(&self, group: GroupNumber) -> Duration {
        if group == GROUP { *self.0.lock().unwrap() } else { Duration::ZERO }
    }
}

#[tokio::test(start_paused = true)]
async fn who_does_not_hold_the_group_neither_looks_nor_sends() {
    let world = World::new();
    let lease = Lease::new(Duration::ZERO);
    let node = world.beside(lease.clone());
    let made = world.hook("alpha", "a.example").await;
    node.start();
    world.memory.publish("alpha", "inbox").await;
    world.pass(5 * SECOND).await;
    assert!(world.rings(made.hook.id).is_empty(), "not looked at");
    world.dispatch().await;
    world.pass(5 * SECOND).await;
    assert_eq!((world.rings(made.hook.id).len(), world.receivers.got().len()), (1, 0), "stored by the holder, and not sent by the other");
    lease.set(Duration::MAX);
    until(3 * SECOND, "sent by whoever got the group", || world.receivers.got().len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_lost_the_group_stores_nothing_more() {
    let world = World::new();
    let lease = Lease::new(Duration::MAX);
    let node = world.beside(lease.clone());
    let made = world.hook("alpha", "a.example").await;
    world.dispatch().await;
    node.dispatch().await;
    world.memory.publish("alpha", "inbox").await;
    // The first node does not know yet that the group is another's.
    assert!(world.dispatcher.look_at_all().await.is_err());
    assert!(world.rings(made.hook.id).is_empty());
    node.dispatch().await;
    assert_eq!(world.rings(made.hook.id).len(), 1);
    // And who knows leaves the group alone.
    let generation = world.memory.read(|state| state.generation);
    lease.set(Duration::ZERO);
    node.dispatch().await;
    assert_eq!(world.memory.read(|state| state.generation), generation);
}

#[tokio::test(start_paused = true)]
async fn no_attempt_begins_that_might_outlast_the_lease() {
    let world = World::new();
    let lease = Lease::new(TIMEOUT);
    let node = world.beside(lease.clone());
    world.hook("alpha", "a.example").await;
    node.start();
    world.memory.publish("alpha", "inbox").await;
    world.pass(5 * SECOND).await;
    assert_eq!(world.receivers.got().len(), 0);
    lease.set(TIMEOUT + SECOND);
    until(3 * SECOND, "there is time for an attempt", || world.receivers.got().len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_group_is_quiet_when_what_became_of_its_rings_is_written() {
    let world = World::new();
    let lease = Lease::new(Duration::MAX);
    let node = world.beside(lease.clone());
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::AnswerLater(3 * SECOND, 204)]);
    timeout(SECOND, node.hooks.quiet(GROUP)).await.unwrap();
    node.start();
    world.memory.publish("alpha", "inbox").await;
    until(3 * SECOND, "the attempt begins", || world.receivers.got().len() == 1).await;
    lease.set(Duration::ZERO);
    assert!(timeout(SECOND, node.hooks.quiet(GROUP)).await.is_err(), "a ring is on its way");
    timeout(3 * SECOND, node.hooks.quiet(GROUP)).await.unwrap();
    assert!(world.rings(made.hook.id).is_empty(), "and when none is, none is left over");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_goes_from_node_to_node_has_each_transition_rung_once() {
    let world = World::new();
    let leases = [Lease::new(Duration::MAX), Lease::new(Duration::ZERO)];
    let nodes = [world.beside(leases[0].clone()), world.beside(leases[1].clone())];
    for host in ["a.example", "b.example"] {
        world.hook("alpha", host).await;
        world.receivers.does(host, [Does::AnswerLater(Duration::from_millis(30), 204)]);
    }
    nodes.iter().for_each(World::start);
    let mut holder = 0;
    for number in 0..60_usize {
        world.memory.publish("alpha", "inbox").await;
        world.pass(Duration::from_millis(100)).await;
        if number % 7 == 6 {
            // Given up in order: nothing new begins, what is on its way ends, then the other takes over.
            leases[holder].set(Duration::ZERO);
            nodes[holder].hooks.quiet(GROUP).await;
            holder = 1 - holder;
            leases[holder].set(Duration::MAX);
        }
    }
    until(60 * SECOND, "all rang", || world.receivers.got().len() >= 120).await;
    world.pass(10 * SECOND).await;
    let mut ids: Vec<String> = world.receivers.got().iter().map(|got| got.id().to_owned()).collect();
    assert_eq!(ids.len(), 120);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 120, "each once");
}
