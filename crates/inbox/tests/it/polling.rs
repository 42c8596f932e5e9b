//! Polls and listings: cursors, epochs, pages, and that looking changes nothing.

use std::time::Duration;

use domain::{QueueName, Seq, SyncEpoch};
use inbox::{AckResult, AckState, InboxError, ItemFilter, Poll};
use tokio::time::advance;
use uuid::Uuid;

use crate::memory::{New, epoch};
use crate::world::{SECOND, World, agent, next, poll, seq};

#[tokio::test(start_paused = true)]
async fn a_poll_pages_by_ring_seq_from_the_oldest() {
    let world = World::new().await;
    let events = world.publish_many(5).await;
    let mut after = Seq::ZERO;
    let mut seen = Vec::new();
    loop {
        let page = world.inbox.poll(&world.alpha, Poll { limit: 2, ..poll(after) }).await.unwrap();
        assert_eq!((page.head, page.epoch), (seq(5), epoch()));
        seen.extend(page.items.iter().map(|(item, _)| item.facts.event_id));
        after = page.next;
        if !page.more {
            break;
        }
    }
    assert_eq!((seen, after), (events, seq(5)));
    let none = world.inbox.poll(&world.alpha, poll(after)).await.unwrap();
    assert_eq!((none.items.len(), none.next, none.more), (0, after, false));
}

#[tokio::test(start_paused = true)]
async fn a_cursor_sees_every_item_again_that_became_claimable_again() {
    let world = World::new().await;
    let event = world.publish().await;
    let claimed = world.take_one().await;
    world.release(&claimed, "busy", None).await.unwrap();
    let page = world.inbox.poll(&world.alpha, poll(seq(1))).await.unwrap();
    assert_eq!(page.items[0].0.facts.event_id, event);
    assert_eq!(page.next, page.head);
}

#[tokio::test(start_paused = true)]
async fn a_poll_below_the_floor_and_all_that_is_current_or_above_the_head_starts_again() {
    let world = World::new().await;
    world.publish_many(6).await;
    world.memory.edit(|state| state.floor = seq(5));
    let first = world.take_one().await;
    world.ack(&first, AckResult::Completed).await;
    for after in [seq(1), seq(7)] {
        let refused = world.inbox.poll(&world.alpha, poll(after)).await.unwrap_err();
        assert_eq!(refused, InboxError::CursorReset { oldest: seq(2), head: seq(6), epoch: epoch() }, "{after}");
    }
    for after in [Seq::ZERO, seq(2), seq(3), seq(4), seq(6)] {
        assert!(world.inbox.poll(&world.alpha, poll(after)).await.is_ok(), "{after}");
    }
    assert_eq!(world.inbox.metrics().cursor_resets.get(), 2);
    for claimed in world.take(9).await {
        world.ack(&claimed, AckResult::Completed).await;
    }
    let refused = world.inbox.poll(&world.alpha, poll(seq(1))).await.unwrap_err();
    assert_eq!(refused, InboxError::CursorReset { oldest: seq(6), head: seq(6), epoch: epoch() }, "nothing is current: the head");
}

#[tokio::test(start_paused = true)]
async fn an_inbox_wholly_below_the_floor_is_paged_through_and_polled_at_its_head() {
    let world = World::new().await;
    let events = world.publish_many(5).await;
    for _ in 0..20 {
        world.memory.publish("beta", New::default()).await;
    }
    world.memory.edit(|state| state.floor = seq(15));
    let (mut after, mut seen) = (Seq::ZERO, Vec::new());
    loop {
        let page = world.inbox.poll(&world.alpha, Poll { limit: 2, ..poll(after) }).await.unwrap();
        seen.extend(page.items.iter().map(|(item, _)| item.facts.event_id));
        after = page.next;
        if !page.more {
            break;
        }
    }
    assert_eq!((seen, after), (events, seq(5)));
    for claimed in world.take(9).await {
        world.ack(&claimed, AckResult::Completed).await;
    }
    let at_head = world.inbox.poll(&world.alpha, poll(after)).await.unwrap();
    assert_eq!((at_head.items.len(), at_head.next, at_head.head), (0, seq(5), seq(5)));
    let refused = world.inbox.poll(&world.alpha, poll(seq(4))).await.unwrap_err();
    assert_eq!(refused, InboxError::CursorReset { oldest: seq(5), head: seq(5), epoch: epoch() });
}

#[tokio::test(start_paused = true)]
async fn a_poll_looks_at_so_many_items_and_says_where_to_go_on() {
    let world = World::with(|settings| settings.scan_max = 3).await;
    world.publish_many(7).await;
    let rare = world.memory.publish("alpha", New { queue: "rare", ..New::default() }).await;
    let queues = Some(vec![QueueName::parse("rare").unwrap()]);
    let (mut after, mut pages) = (Seq::ZERO, Vec::new());
    loop {
        let wait = SECOND * 30;
        let page = world.inbox.poll(&world.alpha, Poll { queues: queues.clone(), wait, ..poll(after) }).await.unwrap();
        pages.push((page.items.iter().map(|(item, _)| item.facts.event_id).collect::<Vec<_>>(), page.next, page.more));
        after = page.next;
        if !page.more {
            break;
        }
    }
    assert_eq!(pages, [(vec![], seq(3), true), (vec![], seq(6), true), (vec![rare], seq(8), false)]);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_of_another_history_is_told_so_first() {
    let world = World::new().await;
    world.publish().await;
    let other = SyncEpoch::new(Uuid::from_u128(1));
    let refused = world.inbox.poll(&world.alpha, Poll { epoch: Some(other), ..poll(seq(900)) }).await.unwrap_err();
    assert_eq!(refused, InboxError::EpochChanged { head: seq(1), epoch: epoch(), floor: Seq::ZERO });
    assert!(world.inbox.poll(&world.alpha, Poll { epoch: Some(epoch()), ..poll(seq(1)) }).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn claimable_only_goes_by_the_state_and_a_pause_is_shown() {
    let world = World::new().await;
    let one = world.memory.publish("alpha", New { queue: "one", ..New::default() }).await;
    let two = world.memory.publish("alpha", New { queue: "two", ..New::default() }).await;
    let claimed = world.claim(&[two]).await;
    assert!(matches!(claimed[0], inbox::ItemOutcome::Ok(_)));
    world.inbox.pause(&world.alex, &agent("alpha"), Some(QueueName::parse("one").unwrap())).await.unwrap();
    let all = world.inbox.poll(&world.alpha, poll(Seq::ZERO)).await.unwrap().items;
    assert_eq!(all.iter().map(|(item, paused)| (item.facts.event_id, *paused)).collect::<Vec<_>>(), [(one, true), (two, false)]);
    let claimable = world.inbox.poll(&world.alpha, Poll { claimable_only: true, ..poll(Seq::ZERO) }).await.unwrap().items;
    assert_eq!(claimable.iter().map(|(item, _)| item.facts.event_id).collect::<Vec<_>>(), [one]);
    let queues = Some(vec![QueueName::parse("two").unwrap()]);
    let only = world.inbox.poll(&world.alpha, Poll { queues, ..poll(Seq::ZERO) }).await.unwrap().items;
    assert_eq!(only.iter().map(|(item, _)| item.facts.event_id).collect::<Vec<_>>(), [two]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_above_the_maximum_is_capped_and_below_one_refused() {
    let world = World::with(|settings| settings.poll_max_items = 3).await;
    world.publish_many(5).await;
    assert_eq!(world.inbox.poll(&world.alpha, poll(Seq::ZERO)).await.unwrap().items.len(), 3);
    let refused = world.inbox.poll(&world.alpha, Poll { limit: 0, ..poll(Seq::ZERO) }).await.unwrap_err();
    assert!(matches!(refused, InboxError::Invalid { pointer, .. } if pointer == "/limit"));
    let refused = world.inbox.items(&world.alpha, None, ItemFilter::default(), None, 0).await.unwrap_err();
    assert!(matches!(refused, InboxError::Invalid { pointer, .. } if pointer == "#query/limit"));
}

#[tokio::test(start_paused = true)]
async fn looking_never_changes_anything() {
    let world = World::new().await;
    let due = world.memory.publish("alpha", New { expires_in: Some(SECOND), ..New::default() }).await;
    world.publish_many(3).await;
    let claims = world.take(2).await;
    world.release(&claims[1], "later", Some(SECOND * 5)).await.unwrap();
    advance(Duration::from_hours(1)).await;
    let (before, units) = (format!("{:?}", world.memory.state()), world.units());
    for claimable_only in [false, true] {
        let wait = SECOND * 3;
        world.inbox.poll(&world.alpha, Poll { claimable_only, ..poll(Seq::ZERO) }).await.unwrap();
        let head = world.inbox.head(&world.alpha).await.unwrap().0;
        world.inbox.poll(&world.alpha, Poll { claimable_only, wait, ..poll(head) }).await.unwrap();
    }
    world.inbox.items(&world.alpha, None, ItemFilter::default(), None, 10).await.unwrap();
    world.inbox.items(&world.alex, Some(&agent("alpha")), ItemFilter::default(), None, 10).await.unwrap();
    world.inbox.item(&world.alpha, None, due).await.unwrap();
    world.inbox.state(&world.alpha, None).await.unwrap();
    assert_eq!(format!("{:?}", world.memory.state()), before);
    assert_eq!(world.units(), units, "nothing was even tried");
}

#[tokio::test(start_paused = true)]
async fn an_agent_sees_its_own_inbox_an_operator_any_and_nobody_else_one() {
    let world = World::new().await;
    let event = world.publish().await;
    let (alpha, filter) = (agent("alpha"), ItemFilter::default());
    for (name, whose, sees) in [
        ("alpha", None, true),
        ("alpha", Some(&alpha), true),
        ("alex", Some(&alpha), true),
        ("beta", Some(&alpha), false),
        ("sam", Some(&alpha), false),
        ("sam", None, false),
        ("alex", None, false),
    ] {
        let caller = world.caller(name).await;
        let seen = world.inbox.item(&caller, whose, event).await;
        assert_eq!(seen.is_ok(), sees, "{name} {whose:?}");
        assert_eq!(world.inbox.items(&caller, whose, filter.clone(), None, 5).await.is_ok(), sees, "{name} {whose:?}");
        assert_eq!(world.inbox.state(&caller, whose).await.is_ok(), sees, "{name} {whose:?}");
    }
    for nobody in ["nobody", "sam"] {
        let found = world.inbox.state(&world.alex, Some(&agent(nobody))).await;
        assert_eq!(found.unwrap_err(), InboxError::NotFound, "{nobody} has no inbox");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_has_every_state_and_pages_by_event() {
    let world = World::new().await;
    let events = world.publish_many(4).await;
    for (number, claimed) in world.take(4).await.iter().enumerate() {
        if number < 2 {
            world.ack(claimed, AckResult::Completed).await;
        }
    }
    let first = world.inbox.items(&world.alpha, None, ItemFilter::default(), None, 3).await.unwrap().items;
    let rest = world.inbox.items(&world.alpha, None, ItemFilter::default(), Some(first[2].facts.event_id), 3).await.unwrap().items;
    assert_eq!(first.iter().chain(&rest).map(|item| item.facts.event_id).collect::<Vec<_>>(), events);
    let acked = ItemFilter { states: vec![AckState::Acked], ..ItemFilter::default() };
    assert_eq!(world.inbox.items(&world.alpha, None, acked, None, 9).await.unwrap().items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_state_of_an_inbox_that_never_had_anything_is_empty() {
    let world = World::new().await;
    let state = world.inbox.state(&world.alpha, None).await.unwrap();
    assert_eq!((state.head, state.paused, state.backlog.unacked()), (Seq::ZERO, false, 0));
    assert!(world.inbox.claim_next(&world.alpha, next(1)).await.unwrap().claims.is_empty());
    assert!(world.inbox.poll(&world.alpha, poll(Seq::ZERO)).await.unwrap().items.is_empty());
    assert!(world.memory.state().rows.is_empty(), "nobody made a row for it");
}
