//! Claim, acknowledge, heartbeat, release and sweep meet in every pair: what happens is what happens when one comes after the other.

use std::sync::atomic::Ordering;
use std::time::Duration;

use inbox::{AckResult, AckState, Claimed};
use tokio::time::advance;

use crate::world::{World, claim, word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Claim,
    Ack,
    Heartbeat,
    Release,
    Sweep,
}

const ACTS: [Act; 5] = [Act::Claim, Act::Ack, Act::Heartbeat, Act::Release, Act::Sweep];

impl Act {
    async fn run(self, world: &World, claimed: &Claimed) -> String {
        match self {
            Self::Claim => {
                let answer = world.inbox.claim(&world.alpha, claim(&[claimed.item.facts.event_id])).await.unwrap();
                format!("claim {}", word(&answer[0].1))
            }
            Self::Ack => format!("ack {}", word(&world.ack(claimed, AckResult::Completed).await)),
            Self::Heartbeat => format!("heartbeat {}", word(&world.beat(claimed, None).await)),
            Self::Release => match world.release(claimed, "busy", None).await {
                Ok(_) => "release ok".to_owned(),
                Err(error) => format!("release {error}"),
            },
            Self::Sweep => {
                world.sweep().await;
                "sweep".to_owned()
            }
        }
    }
}

/// A world with one item whose lease ended long ago, if it `lapsed`.
async fn scene(lapsed: bool) -> (World, Claimed) {
    let world = World::new().await;
    world.publish().await;
    let claimed = world.take_one().await;
    if lapsed {
        advance(Duration::from_mins(30)).await;
    }
    (world, claimed)
}

/// Begins when the others had their turn so often.
async fn after<T>(turns: usize, act: impl Future<Output = T>) -> T {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
    act.await
}

/// What can be seen afterwards.
fn seen(world: &World, claimed: &Claimed, mut said: Vec<String>) -> (Vec<String>, AckState, u32, u32, u64, usize) {
    said.sort();
    let item = world.item(claimed.item.facts.event_id);
    let held = world.memory.state().items.values().filter(|item| item.state == AckState::Claimed).count();
    assert!(held <= 1);
    (said, item.state, item.delivery_attempts, item.counted_attempts, item.generation.get(), item.history.len())
}

#[tokio::test(start_paused = true)]
async fn every_pair_ends_as_if_one_had_come_after_the_other() {
    for lapsed in [false, true] {
        for one in ACTS {
            for two in ACTS {
                let mut orders = Vec::new();
                for (first, second) in [(one, two), (two, one)] {
                    let (world, claimed) = scene(lapsed).await;
                    let said = vec![first.run(&world, &claimed).await, second.run(&world, &claimed).await];
                    orders.push(seen(&world, &claimed, said));
                }
                // Each look and each unit lets the other go on; who begins how much later makes the interleavings.
                for (wait_one, wait_two) in [(0, 0), (0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (3, 0)] {
                    let (world, claimed) = scene(lapsed).await;
                    world.memory.is_slow.store(true, Ordering::SeqCst);
                    let (said_one, said_two) =
                        tokio::join!(biased; after(wait_one, one.run(&world, &claimed)), after(wait_two, two.run(&world, &claimed)));
                    let together = seen(&world, &claimed, vec![said_one, said_two]);
                    assert!(orders.contains(&together), "{one:?} with {two:?}, lapsed {lapsed}: {together:?} is none of {orders:?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_acknowledged_one_wins_and_the_stale_one_is_lost() {
    for (first, then, lapsed, wanted) in [
        (Act::Ack, Act::Sweep, true, AckState::Acked),
        (Act::Ack, Act::Release, false, AckState::Acked),
        (Act::Ack, Act::Heartbeat, false, AckState::Acked),
        (Act::Sweep, Act::Ack, true, AckState::Available),
        (Act::Claim, Act::Ack, true, AckState::Claimed),
        (Act::Claim, Act::Heartbeat, true, AckState::Claimed),
        (Act::Claim, Act::Release, true, AckState::Claimed),
        (Act::Claim, Act::Sweep, true, AckState::Claimed),
        (Act::Heartbeat, Act::Sweep, true, AckState::Claimed),
        (Act::Heartbeat, Act::Claim, true, AckState::Claimed),
    ] {
        let (world, claimed) = scene(lapsed).await;
        first.run(&world, &claimed).await;
        let said = then.run(&world, &claimed).await;
        let state = world.state_of(claimed.item.facts.event_id);
        assert_eq!(state, wanted, "{first:?} then {then:?} said {said:?}");
        let is_stale = matches!(then, Act::Ack | Act::Heartbeat | Act::Release);
        assert!(!is_stale || said.contains("lost"), "{first:?} then {then:?} said {said:?}");
    }
}
