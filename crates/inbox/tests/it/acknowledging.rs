//! Ends of attempts: acknowledge, release, heartbeat, and what a stale token is worth.

use std::time::Duration;

use inbox::{AckResult, AckState, AttemptOutcome, DeadLetterState, GiveBack, Heartbeat, InboxError, ItemOutcome, Report};
use tokio::time::advance;

use crate::memory::New;
use crate::world::{SECOND, World, ack, word};

#[tokio::test(start_paused = true)]
async fn a_result_ends_the_item_and_says_nothing_in_the_log() {
    let world = World::new().await;
    for (result, state) in [(AckResult::Completed, AckState::Acked), (AckResult::Discarded, AckState::Discarded)] {
        let event = world.publish().await;
        let (claimed, head) = (world.take_one().await, world.log_head());
        let ItemOutcome::Ok(item) = world.ack(&claimed, result).await else { panic!("the lease is good") };
        assert_eq!((item.state, item), (state, world.item(event)));
        assert_eq!(world.log_head(), head);
    }
    assert_eq!((world.inbox.metrics().acks.get(), world.inbox.metrics().discarded.get()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_same_token_and_result_again_is_a_success_and_anything_else_is_lost() {
    let world = World::new().await;
    for result in [AckResult::Completed, AckResult::Failed, AckResult::Discarded] {
        world.publish().await;
        let claimed = world.take_one().await;
        assert_eq!(word(&world.ack(&claimed, result).await), "ok");
        let after = world.memory.state();
        for again in [AckResult::Completed, AckResult::Failed, AckResult::Discarded] {
            let wanted = if again == result { "ok" } else { "lease_lost" };
            assert_eq!(word(&world.ack(&claimed, again).await), wanted, "{result:?} then {again:?}");
        }
        assert_eq!(world.release(&claimed, "x", None).await.unwrap_err(), InboxError::LeaseLost);
        assert_eq!(word(&world.beat(&claimed, None).await), "lease_lost");
        assert_eq!(format!("{:?}", world.memory.state().items), format!("{:?}", after.items), "a repeat changes nothing");
    }
    assert_eq!(world.inbox.metrics().acks.get(), 1, "a repeat is not counted");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_release_is_a_success_and_happens_once() {
    let world = World::new().await;
    let event = world.publish().await;
    let claimed = world.take_one().await;
    let first = world.release(&claimed, "busy", None).await.unwrap();
    let head = world.log_head();
    assert_eq!(world.release(&claimed, "busy", None).await.unwrap(), first);
    assert_eq!((world.item(event).counted_attempts, world.log_head()), (1, head));
    assert_eq!(world.release(&claimed, "snooze", None).await.unwrap_err(), InboxError::LeaseLost);
}

#[tokio::test(start_paused = true)]
async fn duplicates_in_one_batch_are_one_acknowledge() {
    let world = World::new().await;
    world.publish().await;
    let claimed = world.take_one().await;
    let batch = vec![ack(&claimed, AckResult::Completed), ack(&claimed, AckResult::Completed), ack(&claimed, AckResult::Failed)];
    let outcomes = world.inbox.acknowledge(&world.alpha, batch).await.unwrap();
    assert_eq!(outcomes.iter().map(word).collect::<Vec<_>>(), ["ok", "ok", "lease_lost"]);
    assert_eq!(world.inbox.metrics().acks.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_acknowledge_is_taken_until_somebody_noticed() {
    let world = World::new().await;
    world.publish_many(2).await;
    let (first, second) = (world.take_one().await, world.take_one().await);
    advance(Duration::from_hours(1)).await;
    assert_eq!(word(&world.ack(&first, AckResult::Completed).await), "ok");
    world.sweep().await;
    assert_eq!(word(&world.ack(&second, AckResult::Completed).await), "lease_lost");
    assert_eq!(world.inbox.metrics().lease_expiries.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_acknowledge_with_an_old_token_after_a_new_claim_is_lost() {
    let world = World::new().await;
    let event = world.publish().await;
    let old = world.take_one().await;
    advance(Duration::from_hours(1)).await;
    let new = world.take_one().await;
    assert_eq!(new.item.facts.event_id, event);
    assert_eq!(word(&world.ack(&old, AckResult::Completed).await), "lease_lost");
    assert_eq!(word(&world.beat(&old, None).await), "lease_lost");
    assert_eq!(world.release(&old, "x", None).await.unwrap_err(), InboxError::LeaseLost);
    assert_eq!(world.state_of(event), AckState::Claimed);
    assert_eq!(word(&world.ack(&new, AckResult::Completed).await), "ok");
}

#[tokio::test(start_paused = true)]
async fn a_failed_item_rests_and_is_a_dead_letter_when_its_attempts_are_used_up() {
    let world = World::new().await;
    let event = world.memory.publish("alpha", New { max_attempts: 3, ..New::default() }).await;
    let head = world.log_head();
    for attempt in 1..=3 {
        let claimed = world.take_one().await;
        let mut request = ack(&claimed, AckResult::Failed);
        request.report = Report { summary: Some(format!("attempt {attempt}")), result: Some("{}".to_owned()) };
        world.inbox.acknowledge(&world.alpha, vec![request]).await.unwrap();
        advance(Duration::from_mins(15)).await;
    }
    let item = world.item(event);
    assert_eq!((item.state, item.dead_letter), (AckState::DeadLetter, DeadLetterState::DeadLettered));
    let history: Vec<_> = item.history.iter().map(|attempt| (attempt.number, attempt.summary.clone().unwrap())).collect();
    assert_eq!(history, [(1, "attempt 1".to_owned()), (2, "attempt 2".to_owned()), (3, "attempt 3".to_owned())]);
    assert_eq!(world.announced(head), [("inbox.dead_lettered".to_owned(), None)]);
    assert!(world.take(1).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_snooze_burns_no_attempt_and_an_ordinary_release_does() {
    let world = World::new().await;
    let event = world.memory.publish("alpha", New { max_attempts: 2, ..New::default() }).await;
    for _ in 0..10 {
        let claimed = world.take_one().await;
        world.release(&claimed, "snooze", None).await.unwrap();
    }
    assert_eq!((world.item(event).counted_attempts, world.item(event).delivery_attempts), (0, 10));
    let claimed = world.take_one().await;
    world.release(&claimed, "busy", None).await.unwrap();
    assert_eq!(world.item(event).counted_attempts, 1);
    let claimed = world.take_one().await;
    assert_eq!(world.release(&claimed, "busy", None).await.unwrap().state, AckState::DeadLetter);
}

#[tokio::test(start_paused = true)]
async fn a_release_rings_again_at_once_and_one_with_a_rest_when_it_is_due() {
    let world = World::new().await;
    let event = world.publish().await;
    let claimed = world.take_one().await;
    let head = world.log_head();
    let item = world.release(&claimed, "busy", None).await.unwrap();
    assert_eq!(world.announced(head), [("inbox.requeued".to_owned(), Some("released".to_owned()))]);
    assert_eq!((item.ring_seq, item.ring_seq), (world.log_head(), world.item(event).ring_seq));
    assert_eq!(world.inbox.head(&world.alpha).await.unwrap().0, world.log_head());
    let (claimed, head) = (world.take_one().await, world.log_head());
    world.release(&claimed, "busy", Some(SECOND * 10)).await.unwrap();
    assert_eq!(world.announced(head), []);
    advance(SECOND * 10).await;
    world.sweep().await;
    assert_eq!(world.announced(head), [("inbox.requeued".to_owned(), Some("retry_due".to_owned()))]);
}

#[tokio::test(start_paused = true)]
async fn a_rest_is_at_most_the_cap() {
    let world = World::new().await;
    world.publish().await;
    let claimed = world.take_one().await;
    let refused = world.release(&claimed, "busy", Some(Duration::from_mins(15) + SECOND)).await.unwrap_err();
    assert!(matches!(refused, InboxError::Invalid { pointer, .. } if pointer == "/retry_after_seconds"));
    assert!(world.release(&claimed, "busy", Some(Duration::from_mins(15))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_hands_in_is_bounded() {
    let world = World::new().await;
    world.publish().await;
    let claimed = world.take_one().await;
    let settings = world.inbox.settings();
    let text = |length: usize| Some("x".repeat(length));
    for (summary, result, pointer) in
        [(text(settings.summary_max + 1), None, "/acks/0/summary"), (None, text(settings.result_max + 1), "/acks/0/output")]
    {
        let mut request = ack(&claimed, AckResult::Completed);
        request.report = Report { summary, result };
        let refused = world.inbox.acknowledge(&world.alpha, vec![request]).await.unwrap_err();
        assert!(matches!(refused, InboxError::Invalid { pointer: at, .. } if at == pointer));
    }
    let mut request = ack(&claimed, AckResult::Completed);
    request.report = Report { summary: text(settings.summary_max), result: text(settings.result_max) };
    assert_eq!(word(&world.inbox.acknowledge(&world.alpha, vec![request]).await.unwrap()[0]), "ok");
}

#[tokio::test(start_paused = true)]
async fn heartbeats_at_a_third_of_the_lease_lose_none_when_one_is_lost() {
    let world = World::new().await;
    world.publish().await;
    let claimed = world.take_one().await;
    let third = world.inbox.settings().rules.lease_default / 3;
    for beat in 0..20 {
        advance(third).await;
        world.sweep().await;
        if beat % 2 == 0 {
            assert_eq!(word(&world.beat(&claimed, None).await), "ok");
        }
    }
    assert_eq!(word(&world.ack(&claimed, AckResult::Completed).await), "ok");
    assert_eq!(world.inbox.metrics().lease_expiries.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hung_worker_that_only_heartbeats_loses_the_item_at_the_hard_deadline() {
    let world = World::new().await;
    let event = world.publish().await;
    let claimed = world.take_one().await;
    let rules = world.inbox.settings().rules;
    let mut held = Duration::ZERO;
    while held < rules.attempt_deadline {
        let ItemOutcome::Ok(extended) = world.beat(&claimed, Some(rules.lease_max)).await else { panic!("lost after {held:?}") };
        assert!(extended.until <= extended.attempt_deadline);
        assert!(extended.expires_in <= rules.lease_max);
        advance(Duration::from_mins(45)).await;
        held += Duration::from_mins(45);
    }
    assert_eq!(word(&world.beat(&claimed, None).await), "lease_lost");
    world.sweep().await;
    let item = world.item(event);
    assert_ne!(item.state, AckState::Claimed);
    assert_eq!(item.history.last().unwrap().outcome, AttemptOutcome::LeaseExpired);
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_heartbeats_is_answered_one_by_one() {
    let world = World::new().await;
    world.publish_many(2).await;
    let claims = world.take(2).await;
    world.ack(&claims[1], AckResult::Completed).await;
    let beat = |number: usize| Heartbeat {
        event: claims[number].item.facts.event_id,
        token: claims[number].token.reveal().to_owned(),
        extend: Some(SECOND * 600),
    };
    let strange = Heartbeat { event: domain::EventId::new(uuid::Uuid::nil()), ..beat(0) };
    let outcomes = world.inbox.heartbeat(&world.alpha, vec![beat(0), beat(1), strange, beat(0)]).await.unwrap();
    assert_eq!(outcomes.iter().map(word).collect::<Vec<_>>(), ["ok", "lease_lost", "not_found", "ok"]);
    let lease = world.item(claims[0].item.facts.event_id).lease.unwrap();
    assert_eq!(lease.until, claims[0].item.lease.as_ref().unwrap().claimed_at.plus(SECOND * 600));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_read_is_given_back_uncounted_and_rings() {
    let world = World::new().await;
    let event = world.publish().await;
    let (claimed, head) = (world.take_one().await, world.log_head());
    let claims = vec![(event, claimed.token.clone())];
    world.inbox.give_back_unread(&world.alpha, claims.clone()).await.unwrap();
    world.inbox.give_back_unread(&world.alpha, claims).await.unwrap();
    assert_eq!(world.announced(head), [("inbox.requeued".to_owned(), Some("interrupted".to_owned()))]);
    assert_eq!((world.state_of(event), world.item(event).counted_attempts), (AckState::Available, 0));
    assert_eq!(world.inbox.metrics().given_back_unread.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_item_of_nobody_is_not_found() {
    let world = World::new().await;
    let beta = world.caller("beta").await;
    world.publish().await;
    let claimed = world.take_one().await;
    let outcomes = world.inbox.acknowledge(&beta, vec![ack(&claimed, AckResult::Completed)]).await.unwrap();
    assert_eq!(word(&outcomes[0]), "not_found");
    let request =
        GiveBack { event: claimed.item.facts.event_id, token: claimed.token.reveal().to_owned(), reason: String::new(), rest: None };
    assert_eq!(world.inbox.release(&beta, request).await.unwrap_err(), InboxError::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_server_burns_no_attempt() {
    let world = World::new().await;
    let event = world.publish().await;
    let claimed = world.take_one().await;
    // Nobody could heartbeat for an hour.
    advance(Duration::from_hours(1)).await;
    let world = world.restart().await;
    world.sweep().await;
    assert!(world.take(1).await.is_empty(), "the worker still has it");
    let lease = world.inbox.settings().rules.lease_default;
    advance(lease.saturating_sub(SECOND)).await;
    world.sweep().await;
    assert_eq!(word(&world.beat(&claimed, None).await), "ok");
    assert_eq!((world.item(event).counted_attempts, world.inbox.metrics().lease_expiries.get()), (0, 0));
    advance(lease).await;
    world.sweep().await;
    assert_eq!((world.item(event).counted_attempts, world.inbox.metrics().lease_expiries.get()), (1, 1), "once: then it is the worker's");
    assert_eq!(word(&world.ack(&claimed, AckResult::Completed).await), "lease_lost");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_died_with_the_server_loses_the_item_after_one_more_lease() {
    let world = World::new().await;
    let event = world.publish().await;
    world.take_one().await;
    advance(Duration::from_mins(1)).await;
    let world = world.restart().await;
    advance(Duration::from_mins(2)).await;
    world.sweep().await;
    assert_ne!(world.state_of(event), AckState::Claimed);
}

#[tokio::test(start_paused = true)]
async fn each_restart_is_forgiven_once_however_often_it_is_looked_at() {
    let world = World::new().await;
    let event = world.publish().await;
    world.take_one().await;
    let lease = world.inbox.settings().rules.lease_default;
    let mut world = world.restart().await;
    for _ in 0..3 {
        // Each restart in the middle of a lease that was extended by the last one.
        advance(lease / 2).await;
        world = world.restart().await;
        world.sweep().await;
    }
    let mut held = Duration::ZERO;
    while world.state_of(event) == AckState::Claimed {
        assert!(held <= lease + SECOND, "still held after {held:?}");
        advance(SECOND).await;
        held += SECOND;
        world.sweep().await;
    }
    assert!(held + SECOND >= lease, "lost after {held:?}");
}
