//! The cursor use cases that delivery calls (seed 004, design notes 2, 4, 8 and 11).

use std::time::Duration;

use agents::{AckRefused, ConsumerError, Consumers, Holder, Save, SaveOutcome, Settings};
use authz::{Denied, DeniedReason};

use crate::world::{World, key, name, seq, session};

#[tokio::test]
async fn the_first_take_makes_the_row_at_the_committed_head_and_later_ones_keep_what_is_acknowledged() {
    let world = World::new();
    let alpha = world.caller("alpha").await;
    let first = world.service.take(&alpha, &name("default"), session(1)).await.unwrap();
    assert_eq!((first.created, first.row.acked, first.row.holder), (true, seq(40), Some(session(1))));

    world.cursors.state().head = seq(50);
    let second = world.service.take(&alpha, &name("default"), session(2)).await.unwrap();
    assert_eq!((second.created, second.row.acked, second.previous), (false, seq(40), Some(session(1))));
    assert_eq!(world.cursors.state().rows[&key("alpha", "default")].holder, Some(session(2)));
}

#[tokio::test]
async fn only_agents_consume_and_a_refusal_makes_no_row() {
    let world = World::new();
    for id in ["sam", "alex"] {
        let caller = world.caller(id).await;
        let refusals = [
            world.service.take(&caller, &name("default"), session(1)).await.map(|_| ()).unwrap_err(),
            world.service.accept_ack(&caller, seq(1), seq(40)).await.unwrap_err(),
            world.api.state(&caller, &name("default")).await.map(|_| ()).unwrap_err(),
            world.api.poll(&caller, agents::Poll::default()).await.map(|_| ()).unwrap_err(),
            world.api.ack(&caller, &name("default"), seq(1), None).await.map(|_| ()).unwrap_err(),
        ];
        for refusal in refusals {
            let denied = ConsumerError::Denied(Denied::Forbidden(DeniedReason::SubjectKindNotAllowed));
            assert_eq!(format!("{refusal:?}"), format!("{denied:?}"), "{id}");
        }
    }
    assert!(world.cursors.state().rows.is_empty() && world.cursors.state().takes == 0);
    assert!(world.feed.polls.lock().unwrap().is_empty() && world.feed.acked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_agent_has_at_most_so_many_consumers() {
    let world = World::with(Settings { max_consumers_per_agent: 2, ..Settings::default() });
    let (alpha, beta) = (world.caller("alpha").await, world.caller("beta").await);
    world.service.take(&alpha, &name("a"), session(1)).await.unwrap();
    world.service.take(&alpha, &name("b"), session(1)).await.unwrap();
    assert!(matches!(world.service.take(&alpha, &name("c"), session(1)).await, Err(ConsumerError::TooMany)));
    world.service.take(&alpha, &name("a"), session(2)).await.unwrap();
    world.service.take(&beta, &name("c"), session(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_takeover_storm_is_refused_for_a_while_before_anything_is_taken() {
    let world = World::with(Settings { takeover_burst: 3, ..Settings::default() });
    let alpha = world.caller("alpha").await;
    for number in 0..4 {
        world.service.take(&alpha, &name("default"), session(number)).await.unwrap();
    }
    let refused = world.service.take(&alpha, &name("default"), session(4)).await;
    assert!(matches!(refused, Err(ConsumerError::TooManyTakeovers(wait)) if wait == Duration::from_mins(1)), "{refused:?}");
    assert_eq!(world.cursors.state().rows[&key("alpha", "default")].holder, Some(session(3)), "the holder keeps it");
    world.service.take(&alpha, &name("default"), session(3)).await.unwrap();
    world.service.take(&alpha, &name("other"), session(4)).await.unwrap();
    tokio::time::advance(Duration::from_mins(1)).await;
    world.service.take(&alpha, &name("default"), session(4)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_its_holder_left_is_taken_as_often_as_one_likes() {
    let world = World::with(Settings { takeover_burst: 3, ..Settings::default() });
    let alpha = world.caller("alpha").await;
    for number in 0..20 {
        world.service.take(&alpha, &name("default"), session(number)).await.unwrap();
        world.service.detached(&key("alpha", "default"), session(number));
    }
}

#[tokio::test]
async fn only_an_acknowledgement_above_what_delivery_vouches_for_reads_the_committed_head() {
    let world = World::new();
    let alpha = world.caller("alpha").await;
    world.service.accept_ack(&alpha, seq(30), seq(30)).await.unwrap();
    assert_eq!(*world.identities.tenant_reads.lock().unwrap(), 0);
    world.service.accept_ack(&alpha, seq(40), seq(30)).await.unwrap();
    assert_eq!(*world.identities.tenant_reads.lock().unwrap(), 1);
    let refused = world.service.accept_ack(&alpha, seq(41), seq(30)).await;
    assert!(matches!(refused, Err(ConsumerError::Ack(AckRefused::AboveHead))), "{refused:?}");
}

#[tokio::test]
async fn a_save_of_a_holder_that_was_replaced_changes_nothing_and_says_so() {
    let world = World::new();
    let alpha = world.caller("alpha").await;
    world.service.take(&alpha, &name("default"), session(1)).await.unwrap();
    world.service.take(&alpha, &name("default"), Holder::Rest).await.unwrap();
    let save = |holder, acked| Save { key: key("alpha", "default"), holder, acked };
    let saves = [save(session(1), Some(seq(44))), save(Holder::Rest, None), save(Holder::Rest, Some(seq(42)))];
    let outcomes = world.service.save(&saves).await.unwrap();
    assert_eq!(outcomes, [SaveOutcome::Replaced, SaveOutcome::Held(seq(40)), SaveOutcome::Held(seq(42))]);
    assert_eq!(world.service.restart(&key("alpha", "default"), session(1), seq(9)).await.unwrap(), SaveOutcome::Replaced);
    assert_eq!(world.service.restart(&key("alpha", "default"), Holder::Rest, seq(9)).await.unwrap(), SaveOutcome::Held(seq(9)));
}
