//! Waits: nothing is missed, everything ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use authz::Denied;
use domain::Seq;
use inbox::{AckResult, ClaimNext, InboxError, Policy, Poll};
use tokio::time::{Instant, advance, sleep, timeout};

use crate::memory::New;
use crate::world::{SECOND, World, agent, next, poll, waiting};

/// Runs a wait while `then` happens two seconds later; answers when the wait ended.
async fn during<T>(wait: impl Future<Output = T>, then: impl Future<Output = ()>) -> (T, Duration) {
    let start = Instant::now();
    let both = async {
        let (answer, ()) = tokio::join!(async { (wait.await, start.elapsed()) }, async {
            sleep(SECOND * 2).await;
            then.await;
        });
        answer
    };
    timeout(Duration::from_mins(5), both).await.expect("a wait ends")
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waits_gets_what_is_published_meanwhile() {
    let world = World::new().await;
    let (answer, waited) = during(world.inbox.claim_next(&world.alpha, waiting(30)), async {
        world.publish().await;
    })
    .await;
    assert_eq!((answer.unwrap().claims.len(), waited), (1, SECOND * 2));
    assert_eq!(world.memory.tails.load(Ordering::SeqCst), 0, "the tail is let go");
    assert_eq!((world.inbox.metrics().waiters.get(), world.inbox.metrics().long_poll_timeouts.get()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_waits_gets_what_is_published_meanwhile() {
    let world = World::new().await;
    let request = Poll { wait: SECOND * 30, ..poll(Seq::ZERO) };
    let (answer, waited) = during(world.inbox.poll(&world.alpha, request), async {
        world.publish().await;
    })
    .await;
    assert_eq!((answer.unwrap().items.len(), waited), (1, SECOND * 2));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_its_time_and_is_capped() {
    let world = World::new().await;
    for (asked, waited) in [(3, 3), (900, 30)] {
        let start = Instant::now();
        assert!(world.inbox.claim_next(&world.alpha, waiting(asked)).await.unwrap().claims.is_empty());
        assert_eq!(start.elapsed(), SECOND * waited);
        let start = Instant::now();
        let request = Poll { wait: SECOND * u32::try_from(asked).unwrap(), ..poll(Seq::ZERO) };
        assert!(world.inbox.poll(&world.alpha, request).await.unwrap().items.is_empty());
        assert_eq!(start.elapsed(), SECOND * waited);
    }
    assert_eq!((world.inbox.metrics().long_polls.get(), world.inbox.metrics().long_poll_timeouts.get()), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn a_due_retry_wakes_a_claim_that_waits_without_the_sweeper() {
    let world = World::new().await;
    world.publish().await;
    let claimed = world.take_one().await;
    world.release(&claimed, "later", Some(SECOND * 7)).await.unwrap();
    let start = Instant::now();
    assert_eq!(world.inbox.claim_next(&world.alpha, waiting(30)).await.unwrap().claims.len(), 1);
    assert!(start.elapsed() >= SECOND * 7 && start.elapsed() < SECOND * 8, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_lapsed_lease_wakes_a_claim_that_waits_without_the_sweeper() {
    let world = World::new().await;
    let event = world.publish().await;
    let lease = Some(SECOND * 3);
    let held = world.inbox.claim_next(&world.alpha, ClaimNext { lease, ..next(1) }).await.unwrap().claims.remove(0);
    let due = SECOND * 3 + held.item.lease.unwrap().backoff;
    let mut start = Instant::now();
    let began = start;
    let again = loop {
        let answer = world.inbox.claim_next(&world.alpha, waiting(30)).await.unwrap();
        match answer.claims.into_iter().next() {
            Some(claimed) => break claimed,
            // The rest may end after this wait.
            None => assert!(start.elapsed() == SECOND * 30),
        }
        start = Instant::now();
    };
    assert_eq!(again.item.facts.event_id, event);
    assert!(began.elapsed() >= due && began.elapsed() < due + SECOND, "{:?} for {due:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn draining_ends_every_wait_at_once_and_lets_none_begin() {
    let world = World::new().await;
    let (answer, waited) = during(world.inbox.claim_next(&world.alpha, waiting(30)), async { world.inbox.drain() }).await;
    assert_eq!((answer.unwrap().claims.len(), waited), (0, SECOND * 2));
    let start = Instant::now();
    world.inbox.claim_next(&world.alpha, waiting(30)).await.unwrap();
    world.inbox.poll(&world.alpha, Poll { wait: SECOND * 30, ..poll(Seq::ZERO) }).await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_full_house_answers_at_once() {
    let world = World::with(|settings| settings.max_waiters_per_agent = 2).await;
    let wait = || world.inbox.claim_next(&world.alpha, waiting(10));
    let start = Instant::now();
    let timed = || async {
        wait().await.unwrap();
        start.elapsed()
    };
    let (one, two, three) = tokio::join!(timed(), timed(), timed());
    let mut waits = [one, two, three];
    waits.sort();
    assert_eq!(waits, [Duration::ZERO, SECOND * 10, SECOND * 10]);
    assert_eq!(world.inbox.metrics().waiters_refused.get(), 1);
    let crowded = World::with(|settings| settings.max_waiters = 0).await;
    let start = Instant::now();
    crowded.inbox.claim_next(&crowded.alpha, waiting(10)).await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn with_every_hint_dropped_the_item_still_arrives_within_the_poll_interval() {
    let world = World::new().await;
    world.memory.is_deaf.store(true, Ordering::SeqCst);
    let (answer, waited) = during(world.inbox.claim_next(&world.alpha, waiting(10)), async {
        world.publish().await;
    })
    .await;
    assert_eq!((answer.unwrap().claims.len(), waited), (1, SECOND * 10));
    let request = Poll { wait: SECOND * 10, ..poll(Seq::ZERO) };
    world.memory.edit(|state| state.items.clear());
    let (answer, waited) = during(world.inbox.poll(&world.alpha, request), async {
        world.publish().await;
    })
    .await;
    assert_eq!((answer.unwrap().items.len(), waited), (1, SECOND * 10));
}

#[tokio::test(start_paused = true)]
async fn an_acknowledge_makes_room_for_a_claim_that_waits_because_of_max_in_flight() {
    let world = World::new().await;
    world.publish_many(2).await;
    let policy = Policy { max_in_flight: Some(1), ..Policy::default() };
    world.inbox.set_policy(&world.alex, &agent("alpha"), policy).await.unwrap();
    let held = world.take_one().await;
    let units = world.units();
    let (answer, waited) = during(world.inbox.claim_next(&world.alpha, waiting(30)), async {
        world.ack(&held, AckResult::Completed).await;
    })
    .await;
    assert_eq!((answer.unwrap().claims.len(), waited), (1, SECOND * 2));
    assert!(world.units() - units < 6, "it does not spin: {} units", world.units() - units);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_pause_wakes_a_claim_that_waits() {
    let world = World::new().await;
    world.publish().await;
    world.inbox.pause(&world.alex, &agent("alpha"), None).await.unwrap();
    let units = world.units();
    let (answer, waited) = during(world.inbox.claim_next(&world.alpha, waiting(30)), async {
        world.inbox.resume(&world.alex, &agent("alpha"), None).await.unwrap();
    })
    .await;
    assert_eq!((answer.unwrap().claims.len(), waited), (1, SECOND * 2));
    assert!(world.units() - units < 6, "it does not spin: {} units", world.units() - units);
}

#[tokio::test(start_paused = true)]
async fn many_that_wait_share_what_comes_and_the_others_go_on_waiting() {
    let world = World::new().await;
    let waits = futures_util::future::join_all((0..10).map(|_| world.inbox.claim_next(&world.alpha, waiting(20))));
    let (answers, _) = during(waits, async {
        world.publish_many(3).await;
    })
    .await;
    let claimed = answers.into_iter().map(|answer| answer.unwrap().claims.len()).sum::<usize>();
    assert_eq!(claimed, 3);
}

#[tokio::test(start_paused = true)]
async fn news_for_another_wake_nobody() {
    let world = World::new().await;
    let units = world.units();
    let (_, waited) = during(world.inbox.claim_next(&world.alpha, waiting(5)), async {
        world.memory.publish("beta", New::default()).await;
    })
    .await;
    assert_eq!(waited, SECOND * 5);
    assert!(world.units() - units <= 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_ends_during_a_wait_ends_it_as_a_bad_credential() {
    let ended = InboxError::Denied(Denied::Unauthenticated);
    let world = World::new().await;
    let gamma = world.caller("gamma").await;
    advance(SECOND * 50).await;
    let start = Instant::now();
    let claim = async {
        let refused = world.inbox.claim_next(&gamma, waiting(30)).await.unwrap_err();
        (refused, start.elapsed())
    };
    let poll = async {
        let refused = world.inbox.poll(&gamma, Poll { wait: SECOND * 30, ..poll(Seq::ZERO) }).await.unwrap_err();
        (refused, start.elapsed())
    };
    let (claim, poll) = tokio::join!(claim, poll);
    for (refused, waited) in [claim, poll] {
        assert_eq!(refused, ended);
        assert!(waited >= SECOND * 10 && waited < SECOND * 11, "the wait ends with the token: {waited:?}");
    }
    world.memory.publish("gamma", New::default()).await;
    assert_eq!(world.inbox.claim_next(&gamma, next(1)).await.unwrap_err(), ended);
}
