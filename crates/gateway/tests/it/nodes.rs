//! Several nodes over one store (design/stream.md, "Several nodes"): hints make losers leave at once, and without hints they leave too.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents::{Holder, PollRequest};
use domain::{Clock, ConsumerName, Timestamp};
use protocol::CloseCode;
use serde_json::json;
use sync::{Hint, HintBus, HintListener};

use crate::support::{World, WorldSettings, agent, key, person, seq, tenant};

const HOUR: Duration = Duration::from_hours(1);
const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(10);

/// Carries hints to one other node at once, or loses them all.
#[derive(Default)]
struct Wire {
    told: Mutex<Vec<Hint>>,
    other: Mutex<Option<Arc<dyn HintListener>>>,
}

impl HintBus for Wire {
    fn tell(&self, hint: Hint) {
        if let Some(other) = &*self.other.lock().unwrap() {
            other.heard(&hint);
        }
        self.told.lock().unwrap().push(hint);
    }
}

impl Wire {
    fn told(&self) -> usize {
        self.told.lock().unwrap().len()
    }
}

struct Pair {
    one: World,
    two: World,
    to_one: Arc<Wire>,
    to_two: Arc<Wire>,
}

fn settings(interval: Duration, wire: &Arc<Wire>) -> WorldSettings {
    let agents = agents::Settings { ack_persist_interval: interval, ..agents::Settings::default() };
    WorldSettings { agents, nodes: Some(wire.clone()), ..WorldSettings::default() }
}

/// Two nodes that do not hear each other.
fn deaf(interval: Duration) -> Pair {
    let (to_one, to_two) = (Arc::<Wire>::default(), Arc::<Wire>::default());
    let one = World::with(settings(interval, &to_two));
    let two = World::beside(&one, settings(interval, &to_one));
    Pair { one, two, to_one, to_two }
}

/// Two nodes that hear each other, and save so seldom that nothing but a hint can be the cause.
fn hearing() -> Pair {
    let pair = deaf(HOUR);
    *pair.to_one.other.lock().unwrap() = Some(pair.one.gateway.clone());
    *pair.to_two.other.lock().unwrap() = Some(pair.two.gateway.clone());
    pair
}

fn waiting(wait: Duration) -> PollRequest {
    PollRequest { name: ConsumerName::default(), limit: 100, wait, after: None, epoch: None }
}

fn taken() -> Hint {
    Hint::Taken { tenant: tenant(), agent: agent(), consumer: ConsumerName::default() }
}

async fn at_once<T>(clock: &dyn Clock, act: impl Future<Output = T>) -> T {
    let began: Timestamp = clock.now();
    let done = act.await;
    assert!(clock.now().since(began) <= MOMENT, "{:?}", clock.now().since(began));
    done
}

#[tokio::test(start_paused = true)]
async fn a_session_taken_over_on_another_node_closes_4015_at_once() {
    let Pair { one, two, .. } = hearing();
    let (mut old, _) = one.consume().await;
    let (mut new, ready) = two.consume().await;
    assert_eq!(at_once(&*one.clock, old.closed()).await, CloseCode::ConsumerReplaced);
    let holder = one.memory.holder(&key("default")).unwrap();
    assert_eq!(format!("{holder:?}"), format!("Gateway(SessionId({}))", ready["gateway_session_id"].as_str().unwrap()));
    new.silence(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_on_another_node_takes_the_consumer_from_a_session_at_once() {
    let Pair { one, two, .. } = hearing();
    let (mut old, _) = one.consume().await;
    two.poll(waiting(Duration::ZERO)).await.unwrap();
    assert_eq!(at_once(&*one.clock, old.closed()).await, CloseCode::ConsumerReplaced);
    assert_eq!(one.memory.holder(&key("default")), Some(Holder::Rest));
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_waits_on_another_node_ends_at_once_when_a_session_takes_its_consumer() {
    let Pair { one, two, .. } = hearing();
    let polling = one.poll(waiting(20 * SECOND));
    let taking = async {
        one.settle().await;
        two.consume().await
    };
    let (page, _peer) = at_once(&*one.clock, async { tokio::join!(polling, taking) }).await;
    assert!(page.unwrap().events.is_empty());
}

#[tokio::test(start_paused = true)]
async fn polls_of_one_consumer_on_many_nodes_are_no_takeovers() {
    let Pair { one, two, to_one, to_two } = hearing();
    for _ in 0..3 {
        one.poll(waiting(Duration::ZERO)).await.unwrap();
        two.poll(waiting(Duration::ZERO)).await.unwrap();
    }
    assert_eq!((to_one.told(), to_two.told()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_this_node_displaces_itself_it_tells_nobody() {
    let Pair { one, to_two, .. } = hearing();
    let (mut old, _) = one.consume().await;
    let _new = one.consume().await;
    assert_eq!(old.closed().await, CloseCode::ConsumerReplaced);
    assert_eq!(to_two.told(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_is_not_true_closes_nothing() {
    let Pair { one, .. } = hearing();
    let (mut peer, _) = one.consume().await;
    one.gateway.heard(&taken());
    one.gateway.heard(&Hint::Taken { tenant: tenant(), agent: person(), consumer: ConsumerName::default() });
    one.gateway.heard(&Hint::Head { tenant: tenant(), seq: seq(99) });
    peer.silence(SECOND).await;
    one.publish();
    assert_eq!(peer.dispatches(1).await, [(1, false)]);
}

#[tokio::test(start_paused = true)]
async fn without_hints_a_quiet_session_learns_of_a_take_within_the_interval() {
    let Pair { one, two, .. } = deaf(SECOND);
    let (mut old, _) = one.consume().await;
    let _new = two.consume().await;
    let began = one.clock.now();
    assert_eq!(old.closed().await, CloseCode::ConsumerReplaced);
    assert!(one.clock.now().since(began) <= SECOND + MOMENT);
}

#[tokio::test(start_paused = true)]
async fn without_hints_a_waiting_poll_ends_within_the_interval() {
    let Pair { one, two, .. } = deaf(SECOND);
    let polling = one.poll(waiting(20 * SECOND));
    let taking = async {
        one.settle().await;
        two.consume().await
    };
    let began = one.clock.now();
    let (page, _peer) = tokio::join!(polling, taking);
    assert!(page.unwrap().events.is_empty());
    assert!(one.clock.now().since(began) <= SECOND + 2 * MOMENT);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_waits_to_be_resumed_ends_when_its_consumer_is_taken_elsewhere() {
    let Pair { one, two, .. } = hearing();
    let (old, ready) = one.consume().await;
    old.vanish();
    one.settle().await;
    let _new = two.consume().await;
    one.settle().await;
    let mut resumed = one.resume(&one.agent_token, &ready["gateway_session_id"]).await;
    assert_eq!(resumed.closed().await, CloseCode::UnknownSession);
}

#[tokio::test(start_paused = true)]
async fn connections_leave_one_after_another_and_new_ones_are_turned_away_meanwhile() {
    let world = World::new();
    let mut peers = Vec::new();
    for number in 0..10 {
        peers.push(world.identify(&world.agent_token, json!({"consumer": format!("c{number}")})).await.0);
    }
    for peer in &mut peers {
        peer.expect("catchup.complete").await;
    }
    let began = world.clock.now();
    let leaving = world.gateway.disperse(10 * SECOND);
    let watching = async {
        let mut ends = Vec::new();
        for mut peer in peers {
            assert_eq!(peer.closed().await, CloseCode::ShuttingDown);
            ends.push(world.clock.now().since(began));
        }
        // In the order of the registry, not of the peers: only the latest matters here.
        ends.into_iter().max()
    };
    let others = async {
        tokio::time::sleep(3 * SECOND).await;
        let remaining = world.gateway.metrics().connections.get();
        assert!((5..=8).contains(&remaining), "after 3 of 10 seconds: {remaining}");
        let mut late = world.dial();
        assert_eq!(late.closed().await, CloseCode::ShuttingDown);
        let page = world.poll(PollRequest { name: ConsumerName::parse("rest").unwrap(), ..waiting(Duration::ZERO) }).await;
        assert!(page.is_ok(), "polls are served until the end");
    };
    let ((), last, ()) = tokio::join!(leaving, watching, others);
    assert!(last.is_some_and(|last| (8 * SECOND..=10 * SECOND).contains(&last)), "{last:?}");
    assert!(world.gateway.close_all(CloseCode::ShuttingDown, SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn nobody_to_leave_takes_no_time() {
    let world = World::new();
    at_once(&*world.clock, world.gateway.disperse(10 * SECOND)).await;
}
