//! Claims: who gets what, in which order, and what a repeat gets.

use std::collections::HashSet;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use domain::{EventId, Priority, QueueName};
use futures_util::future::join_all;
use inbox::{
    AckResult, AckState, Acknowledge, Backlog, Claim, ClaimKey, ClaimNext, Concurrency, InboxError, ItemOutcome, Policy, Report, Subscribe,
};
use tokio::time::advance;

use crate::memory::{New, recipient};
use crate::world::{SECOND, World, ack, agent, claim, next, session, word};

fn key(text: &str, request: u8) -> ClaimKey {
    ClaimKey { key: text.to_owned(), request_hash: [request; 32] }
}

fn words<T>(outcomes: &[ItemOutcome<T>]) -> Vec<&'static str> {
    outcomes.iter().map(word).collect()
}

#[tokio::test(start_paused = true)]
async fn many_claimers_get_distinct_items_and_nobody_two() {
    let world = World::new().await;
    let events: HashSet<EventId> = world.publish_many(50).await.into_iter().collect();
    let answers = join_all((0..60).map(|_| world.inbox.claim_next(&world.alpha, next(1)))).await;
    let claims: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().claims).collect();
    assert!(claims.iter().all(|claims| claims.len() <= 1));
    let claimed: Vec<EventId> = claims.iter().flatten().map(|claimed| claimed.item.facts.event_id).collect();
    assert_eq!(claimed.len(), 50);
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>(), events);
    assert_eq!(world.inbox.metrics().claims.get(), 50);
}

#[tokio::test(start_paused = true)]
async fn what_is_claimed_is_handed_out_with_its_envelope_and_a_token_of_its_own() {
    let world = World::new().await;
    world.publish_many(2).await;
    let claims = world.take(2).await;
    assert_ne!(claims[0].token, claims[1].token);
    for claimed in &claims {
        assert_eq!(claimed.envelope.as_ref().unwrap().len(), 40);
        assert_eq!(claimed.expires_in, world.inbox.settings().rules.lease_default);
        assert_eq!(claimed.item.state, AckState::Claimed);
        assert!(world.item(claimed.item.facts.event_id).holds(&claimed.token.hash()));
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_handed_out_is_given_back_uncounted() {
    let world = World::new().await;
    let event = world.publish().await;
    world.memory.envelopes_fail.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(matches!(world.inbox.claim_next(&world.alpha, next(1)).await, Err(InboxError::Store(_))));
    let item = world.item(event);
    assert_eq!((item.state, item.counted_attempts), (AckState::Available, 0));
}

#[tokio::test(start_paused = true)]
async fn each_item_of_a_batch_is_answered_for_itself() {
    let world = World::new().await;
    let expiring = world.memory.publish("alpha", New { expires_in: Some(SECOND), ..New::default() }).await;
    let (held, resting, free, beta) =
        (world.publish().await, world.publish().await, world.publish().await, world.memory.publish("beta", New::default()).await);
    world.claim(&[held]).await;
    let claimed = world.claim(&[resting]).await.remove(0);
    let ItemOutcome::Ok(claimed) = claimed else { panic!("it is free") };
    world.release(&claimed, "later", Some(SECOND * 60)).await.unwrap();
    advance(SECOND * 2).await;
    let outcomes = world.claim(&[expiring, held, resting, free, beta, free]).await;
    assert_eq!(words(&outcomes), ["expired", "already_claimed", "not_available", "ok", "not_found", "already_claimed"]);
    assert_eq!(world.state_of(expiring), AckState::Expired);
    assert_eq!(world.inbox.metrics().duplicate_claims.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn empty_and_oversized_batches_are_refused_with_a_pointer() {
    let world = World::new().await;
    let event = world.publish().await;
    for events in [vec![], vec![event; 101]] {
        let refused = world.inbox.claim(&world.alpha, claim(&events)).await.unwrap_err();
        assert!(matches!(refused, InboxError::Invalid { pointer, .. } if pointer == "/event_ids"));
    }
    let refused = world.inbox.claim_next(&world.alpha, next(0)).await.unwrap_err();
    assert!(matches!(refused, InboxError::Invalid { pointer, .. } if pointer == "/limit"));
    let refused = world.inbox.acknowledge(&world.alpha, None, Vec::new()).await.unwrap_err();
    assert!(matches!(refused, InboxError::Invalid { pointer, .. } if pointer == "/acks"));
    let refused = world.inbox.heartbeat(&world.alpha, None, Vec::new()).await.unwrap_err();
    assert!(matches!(refused, InboxError::Invalid { pointer, .. } if pointer == "/leases"));
    let queues = Some(Vec::new());
    let refused = world.inbox.claim_next(&world.alpha, ClaimNext { queues, ..next(1) }).await.unwrap_err();
    assert!(matches!(refused, InboxError::Invalid { pointer, .. } if pointer == "/queues"));
}

#[tokio::test(start_paused = true)]
async fn only_an_agent_claims_and_only_for_itself() {
    let world = World::new().await;
    world.publish().await;
    for name in ["alex", "sam"] {
        let caller = world.caller(name).await;
        assert!(matches!(world.inbox.claim_next(&caller, next(1)).await, Err(InboxError::Denied(_))));
    }
    let beta = world.caller("beta").await;
    assert!(world.inbox.claim_next(&beta, next(1)).await.unwrap().claims.is_empty());
}

#[tokio::test(start_paused = true)]
async fn expiry_wins_over_a_claim() {
    let world = World::new().await;
    let event = world.memory.publish("alpha", New { expires_in: Some(SECOND * 5), ..New::default() }).await;
    let kept = world.publish().await;
    advance(SECOND * 5).await;
    let claims = world.take(2).await;
    assert_eq!(claims.iter().map(|claimed| claimed.item.facts.event_id).collect::<Vec<_>>(), [kept]);
    assert_eq!(world.state_of(event), AckState::Expired);
}

#[tokio::test(start_paused = true)]
async fn more_expired_items_than_a_batch_hide_no_other() {
    let world = World::with(|settings| settings.sweep_batch = 2).await;
    for _ in 0..7 {
        world.memory.publish("alpha", New { expires_in: Some(SECOND), ..New::default() }).await;
    }
    let kept = world.publish().await;
    advance(SECOND * 2).await;
    let claims = world.take(2).await;
    assert_eq!(claims.iter().map(|claimed| claimed.item.facts.event_id).collect::<Vec<_>>(), [kept]);
}

#[tokio::test(start_paused = true)]
async fn many_long_leases_do_not_hide_one_that_lapsed() {
    let world = World::new().await;
    world.publish_many(200).await;
    let lease = Some(Duration::from_hours(1));
    for _ in 0..2 {
        world.inbox.claim_next(&world.alpha, ClaimNext { lease, ..next(100) }).await.unwrap();
    }
    let late = world.publish().await;
    world.inbox.claim_next(&world.alpha, ClaimNext { lease: Some(SECOND), ..next(1) }).await.unwrap();
    // The lease and the longest backoff after it.
    advance(SECOND * 40).await;
    assert_eq!(world.take_one().await.item.facts.event_id, late);
}

#[tokio::test(start_paused = true)]
async fn priority_comes_first_and_aging_ends_starvation() {
    let world = World::new().await;
    let low = world.memory.publish("alpha", New { priority: Priority::Low, ..New::default() }).await;
    let mut rounds = 0;
    // Something urgent comes every minute, and one item is worked on every minute.
    loop {
        world.memory.publish("alpha", New { priority: Priority::Urgent, ..New::default() }).await;
        let claimed = world.take_one().await;
        world.ack(&claimed, AckResult::Completed).await;
        if claimed.item.facts.event_id == low {
            break;
        }
        rounds += 1;
        assert!(rounds < 60, "the low one starves");
        advance(SECOND * 60).await;
    }
    // Three steps of five minutes.
    assert!((15..=17).contains(&rounds), "{rounds}");
}

#[tokio::test(start_paused = true)]
async fn a_claim_takes_a_due_retry_in_its_place_and_leaves_no_row() {
    let world = World::new().await;
    let first = world.publish().await;
    let claimed = world.take_one().await;
    world.release(&claimed, "snooze", Some(SECOND * 10)).await.unwrap();
    advance(SECOND * 20).await;
    let second = world.publish().await;
    let (before, ring) = (world.log_head(), world.item(first).ring_seq);
    let claims = world.take(2).await;
    assert_eq!(claims.iter().map(|claimed| claimed.item.facts.event_id).collect::<Vec<_>>(), [first, second]);
    assert_eq!(world.log_head(), before, "it passed through available in one step");
    assert_eq!(world.item(first).ring_seq, ring);
}

#[tokio::test(start_paused = true)]
async fn two_backoffs_of_different_length_both_come_back_on_time() {
    let world = World::new().await;
    let (long, short) = (world.publish().await, world.publish().await);
    let claims = world.take(2).await;
    world.release(&claims[0], "later", Some(SECOND * 60)).await.unwrap();
    world.release(&claims[1], "sooner", Some(SECOND * 10)).await.unwrap();
    assert!(world.take(2).await.is_empty());
    advance(SECOND * 10).await;
    assert_eq!(world.take_one().await.item.facts.event_id, short);
    advance(SECOND * 49).await;
    assert!(world.take(2).await.is_empty());
    advance(SECOND).await;
    assert_eq!(world.take_one().await.item.facts.event_id, long);
}

#[tokio::test(start_paused = true)]
async fn queues_are_claimed_apart_and_a_paused_one_is_held_back() {
    let world = World::new().await;
    let one = world.memory.publish("alpha", New { queue: "one", ..New::default() }).await;
    let two = world.memory.publish("alpha", New { queue: "two", ..New::default() }).await;
    let queue = |name: &str| QueueName::parse(name).unwrap();
    world.inbox.pause(&world.alex, &agent("alpha"), Some(queue("one"))).await.unwrap();
    assert_eq!(words(&world.claim(&[one]).await), ["not_available"]);
    let only_one = ClaimNext { queues: Some(vec![queue("one")]), ..next(5) };
    assert!(world.inbox.claim_next(&world.alpha, only_one.clone()).await.unwrap().claims.is_empty());
    assert_eq!(world.take(5).await[0].item.facts.event_id, two);
    world.inbox.resume(&world.alex, &agent("alpha"), Some(queue("one"))).await.unwrap();
    assert_eq!(world.inbox.claim_next(&world.alpha, only_one).await.unwrap().claims.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_paused_inbox_gives_nothing_and_loses_nothing() {
    let world = World::new().await;
    let event = world.publish().await;
    world.inbox.pause(&world.alex, &agent("alpha"), None).await.unwrap();
    let answer = world.inbox.claim_next(&world.alpha, next(5)).await.unwrap();
    assert!(answer.claims.is_empty());
    assert_eq!(answer.backlog, Backlog::default(), "what is held back is not told as claimable");
    assert_eq!(world.inbox.state(&world.alex, Some(&agent("alpha"))).await.unwrap().backlog.available, 1, "the inbox as a whole tells it");
    assert_eq!(words(&world.claim(&[event]).await), ["not_available"]);
    world.inbox.resume(&world.alex, &agent("alpha"), None).await.unwrap();
    assert_eq!(world.take(5).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn concurrent_claims_never_hold_more_than_max_in_flight() {
    let world = World::new().await;
    let events = world.publish_many(30).await;
    let policy = Policy { max_in_flight: Some(7), ..Policy::default() };
    world.inbox.set_policy(&world.alex, &agent("alpha"), policy).await.unwrap();
    let answers = join_all((0..10).map(|_| world.inbox.claim_next(&world.alpha, next(3)))).await;
    let claims: Vec<_> = answers.into_iter().flat_map(|answer| answer.unwrap().claims).collect();
    assert_eq!(claims.len(), 7);
    let free = events.into_iter().find(|event| world.state_of(*event) == AckState::Available).unwrap();
    assert_eq!(words(&world.claim(&[free]).await), ["limit_reached"]);
    world.ack(&claims[0], AckResult::Completed).await;
    assert_eq!(world.take(9).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_the_session_that_subscribed_last_claims_where_one_may() {
    let world = World::new().await;
    world.publish_many(2).await;
    let policy = Policy { concurrency: Concurrency::SingleActiveSession, ..Policy::default() };
    world.inbox.set_policy(&world.alex, &agent("alpha"), policy).await.unwrap();
    let wants = Subscribe { wants_claims: true, ..Subscribe::default() };
    let first = world.inbox.subscribe(&world.alpha, wants.clone()).await.unwrap().session;
    let second = world.inbox.subscribe(&world.alpha, wants).await.unwrap().session;
    let looks_on = world.inbox.subscribe(&world.alpha, Subscribe::default()).await.unwrap().session;
    for other in [None, Some(first), Some(looks_on), Some(session("unknown"))] {
        let refused = world.inbox.claim_next(&world.alpha, ClaimNext { session: other.clone(), ..next(1) }).await;
        assert_eq!(refused.unwrap_err(), InboxError::SessionNotActive);
        let named = Claim { session: other, ..claim(&[EventId::new(uuid::Uuid::nil())]) };
        assert_eq!(world.inbox.claim(&world.alpha, named).await.unwrap_err(), InboxError::SessionNotActive);
    }
    let answer = world.inbox.claim_next(&world.alpha, ClaimNext { session: Some(second.clone()), ..next(1) }).await.unwrap();
    assert_eq!(answer.claims[0].item.lease.as_ref().unwrap().session, Some(second));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_bounded_in_bytes_and_never_empty_because_of_it() {
    let world = World::with(|settings| settings.claim_max_bytes = 1_000).await;
    let huge = world.memory.publish("alpha", New { bytes: 5_000, ..New::default() }).await;
    for _ in 0..3 {
        world.memory.publish("alpha", New { bytes: 400, ..New::default() }).await;
    }
    assert_eq!(world.take(9).await.iter().map(|claimed| claimed.item.facts.event_id).collect::<Vec<_>>(), [huge]);
    assert_eq!(world.take(9).await.len(), 2);
    assert_eq!(world.take(9).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn histories_count_in_what_one_claim_hands_out() {
    let world = World::with(|settings| settings.claim_max_bytes = 1_500).await;
    world.publish_many(3).await;
    for claimed in world.take(3).await {
        let report = Report { summary: None, result: Some(format!("\"{}\"", "x".repeat(1_000))) };
        let failed = Acknowledge { report, ..ack(&claimed, AckResult::Failed) };
        world.inbox.acknowledge(&world.alpha, None, vec![failed]).await.unwrap();
    }
    advance(Duration::from_mins(20)).await;
    for _ in 0..3 {
        assert_eq!(world.take(9).await.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_finds_what_can_be_claimed_behind_all_that_has_expired() {
    let world = World::with(|settings| settings.sweep_batch = 5).await;
    for _ in 0..100 {
        world.memory.publish("alpha", New { expires_in: Some(SECOND), priority: Priority::Urgent, ..New::default() }).await;
    }
    let event = world.publish().await;
    advance(SECOND * 2).await;
    assert_eq!(world.take_one().await.item.facts.event_id, event);
}

#[tokio::test(start_paused = true)]
async fn a_claim_finds_a_due_retry_behind_those_of_other_queues() {
    let world = World::with(|settings| settings.sweep_batch = 2).await;
    let mut events = Vec::new();
    for queue in ["other", "other", "other", "other", "other", "mine"] {
        events.push(world.memory.publish("alpha", New { queue, ..New::default() }).await);
        let claimed = world.take_one().await;
        world.release(&claimed, "later", Some(SECOND * 10)).await.unwrap();
        advance(SECOND).await;
    }
    advance(SECOND * 10).await;
    let request = ClaimNext { queues: Some(vec![QueueName::parse("mine").unwrap()]), ..next(1) };
    let claims = world.inbox.claim_next(&world.alpha, request).await.unwrap().claims;
    assert_eq!(claims.iter().map(|claimed| claimed.item.facts.event_id).collect::<Vec<_>>(), events[5..]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_answered_again_is_not_given_back() {
    let world = World::new().await;
    let event = world.publish().await;
    let request = ClaimNext { key: Some(key("k", 1)), ..next(1) };
    let leases = |claims: &[inbox::Claimed]| -> Vec<_> { claims.iter().map(|claimed| (event, claimed.token.clone())).collect() };
    let first = world.inbox.claim_next(&world.alpha, request.clone()).await.unwrap().claims;
    let again = world.inbox.claim_next(&world.alpha, request).await.unwrap().claims;
    // The first answer was on its way to a connection that was gone; the second may have arrived.
    world.inbox.give_back_unread(&world.alpha, leases(&first)).await.unwrap();
    world.inbox.give_back_unread(&world.alpha, leases(&again)).await.unwrap();
    assert_eq!((world.state_of(event), world.inbox.metrics().given_back_unread.get()), (AckState::Claimed, 0));
    assert_eq!(word(&world.ack(&again[0], AckResult::Completed).await), "ok");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_claim_gets_what_is_still_held_and_nothing_else() {
    let world = World::new().await;
    world.publish_many(4).await;
    let request = ClaimNext { key: Some(key("k", 1)), ..next(3) };
    let first = world.inbox.claim_next(&world.alpha, request.clone()).await.unwrap().claims;
    let again = world.inbox.claim_next(&world.alpha, request.clone()).await.unwrap().claims;
    let tokens = |claims: &[inbox::Claimed]| claims.iter().map(|claimed| claimed.token.clone()).collect::<Vec<_>>();
    assert_eq!(tokens(&first), tokens(&again), "the lost answer is given again");
    world.ack(&first[0], AckResult::Completed).await;
    let rest = world.inbox.claim_next(&world.alpha, request.clone()).await.unwrap().claims;
    assert_eq!(tokens(&rest), tokens(&first[1..]));
    world.ack(&first[1], AckResult::Completed).await;
    world.ack(&first[2], AckResult::Completed).await;
    let fresh = world.inbox.claim_next(&world.alpha, request.clone()).await.unwrap().claims;
    assert_eq!(fresh.len(), 1, "nothing is left of it: it claims afresh");
    assert!(!tokens(&first).contains(&fresh[0].token));
    assert_eq!(world.inbox.metrics().claims.get(), 4);
    let other = ClaimNext { key: Some(key("k", 2)), ..next(3) };
    assert_eq!(world.inbox.claim_next(&world.alpha, other).await.unwrap_err(), InboxError::IdempotencyConflict);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_claim_by_name_omits_what_is_not_held_any_more() {
    let world = World::new().await;
    let events = world.publish_many(2).await;
    let request = Claim { key: Some(key("k", 1)), ..claim(&events) };
    let first = world.inbox.claim(&world.alpha, request.clone()).await.unwrap();
    let ItemOutcome::Ok(held) = &first[0].1 else { panic!("it was free") };
    world.ack(held, AckResult::Completed).await;
    let again = world.inbox.claim(&world.alpha, request).await.unwrap();
    assert_eq!(again.iter().map(|(event, outcome)| (*event, word(outcome))).collect::<Vec<_>>(), [(events[1], "ok")]);
}

#[tokio::test(start_paused = true)]
async fn a_replay_hands_out_no_lease_that_lapsed() {
    let world = World::new().await;
    let event = world.publish().await;
    let request = ClaimNext { key: Some(key("k", 1)), lease: Some(SECOND), ..next(1) };
    let first = world.inbox.claim_next(&world.alpha, request.clone()).await.unwrap().claims;
    advance(SECOND * 60).await;
    let again = world.inbox.claim_next(&world.alpha, request).await.unwrap().claims;
    assert_eq!(again[0].item.facts.event_id, event);
    assert_ne!(again[0].token, first[0].token);
    assert_eq!(world.item(event).counted_attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn the_sweeper_is_told_of_every_lease() {
    let world = World::new().await;
    world.publish().await;
    let claimed = world.take_one().await;
    let row = world.memory.state().rows[&recipient("alpha")].clone();
    assert!(row.next_due.unwrap() <= claimed.item.lease.unwrap().until);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_before_its_answer_leaves_nothing_claimed() {
    // However far the call had come.
    for polls in 1..40 {
        let world = World::new().await;
        let event = world.publish().await;
        let mut call = Box::pin(world.inbox.claim_next(&world.alpha, next(1)));
        let mut is_answered = false;
        for _ in 0..polls {
            is_answered = poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await;
            if is_answered {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(call);
        world.inbox.finish().await;
        let item = world.item(event);
        if is_answered {
            assert_eq!(item.state, AckState::Claimed);
            return;
        }
        assert_eq!((item.state, item.counted_attempts), (AckState::Available, 0), "after {polls} polls");
    }
    panic!("the call is answered at last");
}
