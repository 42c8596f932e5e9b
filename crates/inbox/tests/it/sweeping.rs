//! The sweeper: what is due happens, for every inbox, whatever happens to its neighbours.

use std::time::Duration;

use inbox::{AckState, ClaimNext, Subscribe, Sweeper};
use tokio::time::{advance, sleep};
use tokio_util::sync::CancellationToken;

use crate::memory::{New, recipient};
use crate::world::{SECOND, World, ack, agent, next};

#[tokio::test(start_paused = true)]
async fn lapsed_leases_come_back_after_their_backoff_and_ring() {
    let world = World::new().await;
    let event = world.publish().await;
    let claimed = world.take_one().await;
    let lease = claimed.item.lease.unwrap();
    let head = world.log_head();
    advance(world.inbox.settings().rules.lease_default).await;
    world.sweep().await;
    assert_eq!(world.item(event).next_retry_at, Some(lease.until.plus(lease.backoff)));
    advance(lease.backoff).await;
    world.sweep().await;
    assert_eq!(world.state_of(event), AckState::Available);
    assert_eq!(world.announced(head), [("inbox.requeued".to_owned(), Some("retry_due".to_owned()))]);
    assert_eq!((world.inbox.metrics().lease_expiries.get(), world.inbox.metrics().requeued.get()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_sweeper_comes_at_the_due_time_and_not_a_second_later() {
    let world = World::new().await;
    world.sweep_in_background();
    let event = world.publish().await;
    let claimed = world.take_one().await;
    sleep(SECOND).await;
    world.release(&claimed, "later", Some(Duration::from_millis(1_300))).await.unwrap();
    sleep(Duration::from_millis(1_320)).await;
    assert_eq!(world.state_of(event), AckState::Available);
}

#[tokio::test(start_paused = true)]
async fn two_rests_of_different_length_both_end_on_time() {
    let world = World::new().await;
    world.sweep_in_background();
    world.publish_many(2).await;
    let claims = world.take(2).await;
    let events = [claims[0].item.facts.event_id, claims[1].item.facts.event_id];
    world.release(&claims[0], "later", Some(SECOND * 40)).await.unwrap();
    world.release(&claims[1], "sooner", Some(SECOND * 10)).await.unwrap();
    sleep(SECOND * 11).await;
    assert_eq!(events.map(|event| world.state_of(event)), [AckState::RetryScheduled, AckState::Available]);
    sleep(SECOND * 30).await;
    assert_eq!(events.map(|event| world.state_of(event)), [AckState::Available; 2]);
}

#[tokio::test(start_paused = true)]
async fn what_expires_ends_and_a_claimed_item_may_still_be_finished() {
    let world = World::new().await;
    let new = || New { expires_in: Some(SECOND * 10), ..New::default() };
    let held = world.memory.publish("alpha", new()).await;
    let claimed = world.take_one().await;
    let free = world.memory.publish("alpha", new()).await;
    advance(SECOND * 20).await;
    world.sweep().await;
    assert_eq!((world.state_of(held), world.state_of(free)), (AckState::Claimed, AckState::Expired));
    world.ack(&claimed, inbox::AckResult::Completed).await;
    assert_eq!(world.state_of(held), AckState::Acked);
    assert_eq!(world.inbox.metrics().expired.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn more_than_a_batch_is_swept_in_one_go_and_nothing_is_left_to_do() {
    let world = World::with(|settings| settings.sweep_batch = 7).await;
    let events = world.publish_many(50).await;
    let lease = Some(SECOND);
    assert_eq!(world.inbox.claim_next(&world.alpha, ClaimNext { lease, ..next(100) }).await.unwrap().claims.len(), 50);
    advance(Duration::from_mins(1)).await;
    world.sweep().await;
    assert!(events.iter().all(|event| world.state_of(*event) == AckState::Available));
    assert_eq!(world.memory.state().rows[&recipient("alpha")].next_due, None);
    let units = world.units();
    world.sweep().await;
    assert_eq!(world.units(), units, "an inbox that nothing is due in is not looked at");
}

#[tokio::test(start_paused = true)]
async fn an_inbox_that_fails_keeps_no_other_from_its_turn() {
    let world = World::with(|settings| settings.sweep_inboxes = 1).await;
    let event = world.memory.publish("alpha", New { expires_in: Some(SECOND * 2), ..New::default() }).await;
    world.memory.publish("beta", New { expires_in: Some(SECOND), ..New::default() }).await;
    *world.memory.failing.lock().unwrap() = Some(agent("beta"));
    advance(SECOND * 5).await;
    let sweeper = Sweeper::new(world.inbox.clone());
    for _ in 0..3 {
        sweeper.sweep().await.unwrap();
    }
    assert_eq!(world.state_of(event), AckState::Expired);
    assert_eq!(world.inbox.metrics().sweep_errors.get(), 1, "it is left alone for a while");
    *world.memory.failing.lock().unwrap() = None;
    advance(SECOND * 2).await;
    sweeper.sweep().await.unwrap();
    assert_eq!(world.inbox.metrics().expired.get(), 2, "and tried again");
}

#[tokio::test(start_paused = true)]
async fn old_ends_and_sessions_are_removed_in_the_background() {
    let world =
        World::with(|settings| (settings.sweep_interval, settings.prune_interval) = (Duration::from_hours(1), Duration::from_hours(1)))
            .await;
    world.sweep_in_background();
    world.publish().await;
    let claimed = world.take_one().await;
    world.ack(&claimed, inbox::AckResult::Completed).await;
    world.inbox.subscribe(&world.alpha, Subscribe::default()).await.unwrap();
    let kept = world.publish().await;
    sleep(Duration::from_hours(24 * 6)).await;
    assert_eq!((world.memory.state().items.len(), world.memory.state().sessions.len()), (2, 1));
    sleep(Duration::from_hours(24 * 2)).await;
    assert_eq!((world.memory.state().items.len(), world.memory.state().sessions.len()), (2, 0));
    sleep(Duration::from_hours(24 * 23)).await;
    assert_eq!(world.memory.state().items.keys().map(|(_, event)| *event).collect::<Vec<_>>(), [kept], "what is current stays");
}

/// Acknowledged items whose retention has passed.
async fn ended_long_ago(world: &World, count: usize) {
    for _ in 0..count {
        world.publish().await;
    }
    while let claims = world.take(100).await
        && !claims.is_empty()
    {
        let acks = claims.iter().map(|claimed| ack(claimed, inbox::AckResult::Completed)).collect();
        world.inbox.acknowledge(&world.alpha, None, acks).await.unwrap();
    }
    advance(Duration::from_hours(24 * 31)).await;
}

#[tokio::test(start_paused = true)]
async fn pruning_goes_on_until_there_is_no_more_and_lets_sweeps_between() {
    let hour = Duration::from_hours(1);
    let world = World::with(|settings| {
        (settings.sweep_interval, settings.prune_interval, settings.prune_batch) = (hour, hour, 1);
    })
    .await;
    ended_long_ago(&world, 300).await;
    let event = world.memory.publish("alpha", New { expires_in: Some(SECOND), ..New::default() }).await;
    world.sweep_in_background();
    sleep(SECOND + Duration::from_millis(50)).await;
    assert_eq!(world.state_of(event), AckState::Expired);
    assert!(world.memory.state().items.len() > 100, "it is still pruning");
    sleep(SECOND * 5).await;
    assert_eq!(world.memory.state().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_sweeper_with_much_to_prune_stops_at_once() {
    let world = World::with(|settings| settings.prune_batch = 1).await;
    ended_long_ago(&world, 50).await;
    let (sweeper, stop) = (Sweeper::new(world.inbox.clone()), CancellationToken::new());
    tokio::join!(sweeper.run(stop.clone()), async {
        sleep(Duration::from_millis(100)).await;
        stop.cancel();
    });
    let left = world.memory.state().items.len();
    assert!((30..50).contains(&left), "{left}");
}

#[tokio::test(start_paused = true)]
async fn an_inbox_that_failed_and_is_gone_is_forgotten() {
    let world = World::new().await;
    world.memory.publish("beta", New { expires_in: Some(SECOND), ..New::default() }).await;
    *world.memory.failing.lock().unwrap() = Some(agent("beta"));
    advance(SECOND * 5).await;
    let sweeper = Sweeper::new(world.inbox.clone());
    sweeper.sweep().await.unwrap();
    assert!(format!("{sweeper:?}").contains("beta"), "it is left alone for a while");
    world.memory.edit(|state| drop(state.rows.remove(&recipient("beta"))));
    advance(Duration::from_hours(1)).await;
    sweeper.sweep().await.unwrap();
    assert!(!format!("{sweeper:?}").contains("beta"));
}
