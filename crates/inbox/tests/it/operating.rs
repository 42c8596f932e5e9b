//! What operators do: redrive, discard, quarantine, pause, presence, policy. Each written down.

use std::time::Duration;

use domain::{EventId, QueueName, Seq};
use inbox::{AckResult, AckState, Bulk, BulkDone, Concurrency, DeadLetterState, InboxError, ItemFilter, Policy, Presence, PresenceChange};
use serde_json::Value;
use tokio::time::advance;

use crate::memory::New;
use crate::world::{SECOND, World, agent, word};

fn bulk(filter: ItemFilter, dry_run: bool) -> Bulk {
    Bulk { recipient: agent("alpha"), filter, dry_run }
}

async fn dead_letters(world: &World, count: usize) -> Vec<EventId> {
    let mut events = Vec::new();
    for _ in 0..count {
        events.push(world.memory.publish("alpha", New { max_attempts: 1, ..New::default() }).await);
    }
    for claimed in world.take(100).await {
        world.ack(&claimed, AckResult::Failed).await;
    }
    events
}

/// The audited operations, before and after.
fn audited(world: &World) -> Vec<(Option<String>, String, Value, Value)> {
    let json = |text: &Option<String>| serde_json::from_str(text.as_ref().unwrap()).unwrap();
    let entries = world.memory.state().audit;
    entries
        .iter()
        .map(|entry| (entry.actor.as_ref().map(ToString::to_string), entry.action.clone(), json(&entry.before), json(&entry.after)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_redriven_item_has_new_attempts_and_keeps_its_history() {
    let world = World::new().await;
    let event = dead_letters(&world, 1).await[0];
    let head = world.log_head();
    let done = world.inbox.redrive(&world.alex, bulk(ItemFilter::default(), false)).await.unwrap();
    assert_eq!(done, BulkDone { matched: 1, changed: 1, more: false });
    let item = world.item(event);
    assert_eq!((item.state, item.counted_attempts, item.dead_letter), (AckState::Available, 0, DeadLetterState::Redriven));
    assert_eq!((item.history.len(), item.delivery_attempts), (1, 1));
    assert_eq!(world.announced(head), [("inbox.requeued".to_owned(), Some("redriven".to_owned()))]);
    world.inbox.quarantine(&world.alex, &agent("alpha"), event).await.unwrap();
    assert_eq!(world.item(event).dead_letter, DeadLetterState::Quarantined);
    world.inbox.unquarantine(&world.alex, &agent("alpha"), event).await.unwrap();
    assert_eq!(world.item(event).dead_letter, DeadLetterState::Redriven, "that it was put aside meanwhile hides nothing");
    let claimed = world.take_one().await;
    assert_eq!(word(&world.ack(&claimed, AckResult::Completed).await), "ok");
    assert_eq!(world.item(event).history.len(), 2);
    let audit = audited(&world);
    assert_eq!((audit.len(), audit[0].0.as_deref(), audit[0].1.as_str()), (3, Some("alex"), "inbox.manage"));
    assert_eq!((&audit[0].2["items"][0]["ack_state"], &audit[0].3["items"][0]["ack_state"]), (&"dead_letter".into(), &"available".into()));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_counts_and_changes_nothing() {
    let world = World::new().await;
    dead_letters(&world, 3).await;
    let (before, units) = (format!("{:?}", world.memory.state()), world.units());
    let done = world.inbox.redrive(&world.alex, bulk(ItemFilter::default(), true)).await.unwrap();
    assert_eq!(done, BulkDone { matched: 3, changed: 0, more: false });
    assert_eq!((format!("{:?}", world.memory.state()), world.units()), (before, units));
}

#[tokio::test(start_paused = true)]
async fn one_call_changes_no_more_than_the_rate_cap_and_says_that_there_is_more() {
    let world = World::with(|settings| (settings.bulk_max, settings.sweep_batch) = (5, 2)).await;
    dead_letters(&world, 12).await;
    let dry = world.inbox.redrive(&world.alex, bulk(ItemFilter::default(), true)).await.unwrap();
    assert_eq!(dry, BulkDone { matched: 5, changed: 0, more: true });
    let mut changed = Vec::new();
    loop {
        let done = world.inbox.redrive(&world.alex, bulk(ItemFilter::default(), false)).await.unwrap();
        changed.push(done.changed);
        if !done.more {
            break;
        }
    }
    assert_eq!(changed, [5, 5, 2]);
    let ten = World::with(|settings| (settings.bulk_max, settings.sweep_batch) = (5, 5)).await;
    dead_letters(&ten, 5).await;
    let done = ten.inbox.redrive(&ten.alex, bulk(ItemFilter::default(), false)).await.unwrap();
    assert_eq!(done, BulkDone { matched: 5, changed: 5, more: false });
}

#[tokio::test(start_paused = true)]
async fn a_filter_narrows_a_redrive_and_other_states_are_left_alone() {
    let world = World::new().await;
    let dead = dead_letters(&world, 3).await;
    let free = world.publish().await;
    let one = ItemFilter { event_ids: vec![dead[1], free], ..ItemFilter::default() };
    let done = world.inbox.redrive(&world.alex, bulk(one, false)).await.unwrap();
    assert_eq!((done.matched, done.changed), (1, 1));
    assert_eq!(
        dead.iter().map(|event| world.state_of(*event)).collect::<Vec<_>>(),
        [AckState::DeadLetter, AckState::Available, AckState::DeadLetter]
    );
    let wrong = ItemFilter { states: vec![AckState::Available], ..ItemFilter::default() };
    assert_eq!(world.inbox.redrive(&world.alex, bulk(wrong, false)).await.unwrap(), BulkDone::default());
}

#[tokio::test(start_paused = true)]
async fn a_discard_takes_everything_that_has_not_ended_and_its_tokens_with_it() {
    let world = World::new().await;
    dead_letters(&world, 1).await;
    world.publish_many(3).await;
    let held = world.take_one().await;
    let resting = world.take_one().await;
    world.release(&resting, "later", Some(SECOND * 60)).await.unwrap();
    let done = world.inbox.discard(&world.alex, bulk(ItemFilter::default(), false)).await.unwrap();
    assert_eq!((done.matched, done.changed), (4, 4));
    assert!(world.memory.state().items.values().all(|item| item.state == AckState::Discarded));
    assert_eq!(word(&world.ack(&held, AckResult::Completed).await), "lease_lost");
    assert_eq!(world.inbox.discard(&world.alex, bulk(ItemFilter::default(), false)).await.unwrap(), BulkDone::default());
    assert_eq!(world.inbox.metrics().discarded.get(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_put_aside_is_nobodys_until_it_is_released() {
    let world = World::new().await;
    let (event, alpha) = (world.publish().await, agent("alpha"));
    let held = world.take_one().await;
    let head = world.log_head();
    let item = world.inbox.quarantine(&world.alex, &alpha, event).await.unwrap();
    assert_eq!((item.state, item.dead_letter), (AckState::Quarantined, DeadLetterState::Quarantined));
    assert_eq!(word(&world.ack(&held, AckResult::Completed).await), "lease_lost");
    assert!(world.take(1).await.is_empty());
    assert_eq!(world.inbox.quarantine(&world.alex, &alpha, event).await.unwrap_err(), InboxError::NotInThatState);
    let item = world.inbox.unquarantine(&world.alex, &alpha, event).await.unwrap();
    assert_eq!((item.state, item.ring_seq), (AckState::Available, world.log_head()));
    assert_eq!(world.inbox.unquarantine(&world.alex, &alpha, event).await.unwrap_err(), InboxError::NotInThatState);
    let announced = world.announced(head);
    assert_eq!(announced[0], ("inbox.quarantined".to_owned(), None));
    assert_eq!(announced[1], ("inbox.requeued".to_owned(), Some("unquarantined".to_owned())));
    let nobody = EventId::new(uuid::Uuid::nil());
    assert_eq!(world.inbox.quarantine(&world.alex, &alpha, nobody).await.unwrap_err(), InboxError::NotFound);
    assert_eq!(audited(&world).len(), 2, "what was refused is not written down as done");
}

#[tokio::test(start_paused = true)]
async fn only_operators_manage_inboxes() {
    let world = World::new().await;
    let (event, alpha) = (world.publish().await, agent("alpha"));
    for name in ["alpha", "beta", "sam"] {
        let caller = world.caller(name).await;
        let denied = |error: InboxError| assert!(matches!(error, InboxError::Denied(_)), "{name}: {error:?}");
        denied(world.inbox.redrive(&caller, bulk(ItemFilter::default(), true)).await.unwrap_err());
        denied(world.inbox.discard(&caller, bulk(ItemFilter::default(), false)).await.unwrap_err());
        denied(world.inbox.quarantine(&caller, &alpha, event).await.unwrap_err());
        denied(world.inbox.pause(&caller, &alpha, None).await.unwrap_err());
        denied(world.inbox.set_policy(&caller, &alpha, Policy::default()).await.unwrap_err());
        if name != "alpha" {
            denied(world.inbox.set_presence(&caller, &alpha, PresenceChange::In).await.unwrap_err());
        }
    }
    assert_eq!(world.inbox.pause(&world.alex, &agent("sam"), None).await.unwrap_err(), InboxError::NotFound);
    assert!(world.memory.state().audit.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pause_and_its_end_are_written_down_and_announced_once() {
    let world = World::new().await;
    let (alpha, queue) = (agent("alpha"), QueueName::parse("one").unwrap());
    for _ in 0..2 {
        assert!(world.inbox.pause(&world.alex, &alpha, None).await.unwrap().paused);
        let state = world.inbox.pause(&world.alex, &alpha, Some(queue.clone())).await.unwrap();
        assert_eq!(state.paused_queues, std::slice::from_ref(&queue));
    }
    for _ in 0..2 {
        world.inbox.resume(&world.alex, &alpha, Some(queue.clone())).await.unwrap();
        let state = world.inbox.resume(&world.alex, &alpha, None).await.unwrap();
        assert!(!state.paused && state.paused_queues.is_empty());
        assert_eq!(state.head, world.log_head());
    }
    let unpaused = ("inbox.resumed".to_owned(), Some("unpaused".to_owned()));
    assert_eq!(world.announced(Seq::ZERO), [unpaused.clone(), unpaused]);
    let audit = audited(&world);
    let paused: Vec<_> = audit.iter().map(|(_, _, before, after)| (before["paused"] == true, after["paused"] == true)).collect();
    assert_eq!(paused, [(false, true), (true, true), (true, true), (true, false)]);
}

#[tokio::test(start_paused = true)]
async fn paused_queues_are_bounded() {
    let world = World::with(|settings| settings.max_queues = 2).await;
    let pause = async |name: &str| world.inbox.pause(&world.alex, &agent("alpha"), Some(QueueName::parse(name).unwrap())).await;
    assert!(pause("a").await.is_ok() && pause("b").await.is_ok() && pause("a").await.is_ok());
    assert_eq!(pause("c").await.unwrap_err(), InboxError::LimitReached("inbox.max_queues"));
}

#[tokio::test(start_paused = true)]
async fn a_return_is_announced_once_however_it_came() {
    let world = World::new().await;
    let alpha = agent("alpha");
    let set = async |change| world.inbox.set_presence(&world.alpha, &alpha, change).await.unwrap().presence;
    assert_eq!(set(PresenceChange::In).await, Presence::In);
    assert_eq!(world.announced(Seq::ZERO).len(), 0, "it was never out");
    assert!(matches!(set(PresenceChange::Out { for_: Some(SECOND) }).await, Presence::Out { until: Some(_) }));
    advance(SECOND * 2).await;
    assert_eq!(set(PresenceChange::In).await, Presence::In);
    world.sweep().await;
    assert_eq!(world.announced(Seq::ZERO).len(), 1);
    assert!(world.memory.state().audit.is_empty(), "what an agent says about itself is no administration");
    world.inbox.set_presence(&world.alex, &alpha, PresenceChange::Out { for_: None }).await.unwrap();
    assert_eq!(audited(&world)[0].1, "presence.set");
    for length in [Duration::ZERO, Duration::from_hours(24 * 400)] {
        let refused = world.inbox.set_presence(&world.alpha, &alpha, PresenceChange::Out { for_: Some(length) }).await.unwrap_err();
        assert!(matches!(refused, InboxError::Invalid { pointer, .. } if pointer == "/for_seconds"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_written_down_and_shown() {
    let world = World::new().await;
    let alpha = agent("alpha");
    let policy = Policy { max_in_flight: Some(3), concurrency: Concurrency::SingleActiveSession };
    assert_eq!(world.inbox.set_policy(&world.alex, &alpha, policy).await.unwrap().policy, policy);
    assert_eq!(world.inbox.state(&world.alpha, None).await.unwrap().policy, policy);
    assert_eq!(audited(&world)[0].3["max_in_flight"], 3);
    let none = Policy { max_in_flight: Some(0), ..policy };
    assert!(matches!(world.inbox.set_policy(&world.alex, &alpha, none).await, Err(InboxError::Invalid { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_bulk_operation_goes_on_in_steps_past_what_does_not_match_and_says_when_it_gave_up() {
    let world = World::with(|settings| (settings.scan_max, settings.sweep_batch) = (2, 3)).await;
    world.publish_many(7).await;
    let rare = world.memory.publish("alpha", New { queue: "rare", ..New::default() }).await;
    let filter = ItemFilter { queue: Some(QueueName::parse("rare").unwrap()), ..ItemFilter::default() };
    let found = BulkDone { matched: 1, changed: 0, more: false };
    assert_eq!(world.inbox.discard(&world.alex, bulk(filter.clone(), true)).await.unwrap(), found);
    let done = world.inbox.discard(&world.alex, bulk(filter.clone(), false)).await.unwrap();
    assert_eq!((done, world.state_of(rare)), (BulkDone { changed: 1, ..found }, AckState::Discarded));
    world.publish_many(300).await;
    for dry_run in [true, false] {
        let done = world.inbox.discard(&world.alex, bulk(filter.clone(), dry_run)).await.unwrap();
        assert_eq!(done, BulkDone { matched: 0, changed: 0, more: true });
    }
}
