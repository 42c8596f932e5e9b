//! From the log to rings.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::{Audience, Clock, Event, EventId, EventOrigin, EventType, Seq, SyncEpoch};
use hooks::{Created, DisabledCause, HookKind, HookState, Reason};
use inbox::AckState;
use uuid::Uuid;

use crate::memory::{SECOND, agent, tenant};
use crate::receivers::{Does, until};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn an_item_rings_each_hook_of_its_agent_once_and_nobody_elses() {
    let world = World::new();
    let (first, second) = (world.hook("alpha", "a.example").await, world.hook("alpha", "b.example").await);
    let (beta, omega) = (world.hook("beta", "c.example").await, world.hook("other-omega", "d.example").await);
    world.start();
    let event = world.memory.publish("alpha", "inbox").await;
    until(2 * SECOND, "both rang", || world.receivers.got().len() == 2).await;
    world.pass(5 * SECOND).await;
    let got = world.receivers.got();
    assert_eq!(got.len(), 2, "exactly one POST each");
    for (made, host) in [(&first, "a.example"), (&second, "b.example")] {
        let got = world.receivers.got_by(host).remove(0);
        assert!(got.is_signed_by(made.secret.bytes()));
        assert_eq!(
            (got.json()["todo_id"].as_str().unwrap(), got.json()["reason"].as_str().unwrap()),
            (event.to_string().as_str(), "created")
        );
    }
    assert_ne!(got[0].id(), got[1].id());
    for made in [first, second, beta, omega] {
        assert!(world.rings(made.hook.id).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_rung_for_its_queues_only() {
    let world = World::new();
    let made = world.hook_for("alpha", "a.example", &["review"]).await;
    world.memory.publish("alpha", "inbox").await;
    world.memory.publish("alpha", "review").await;
    world.dispatch().await;
    let rings = world.rings(made.hook.id);
    assert_eq!(rings.len(), 1);
    assert_eq!(rings[0].queue.as_ref().unwrap().as_str(), "review");
}

#[tokio::test(start_paused = true)]
async fn what_was_there_before_the_hook_is_none_of_its_business() {
    let world = World::new();
    world.memory.publish("alpha", "inbox").await;
    let made = world.hook("alpha", "a.example").await;
    world.dispatch().await;
    assert!(world.rings(made.hook.id).is_empty());
    world.memory.publish("alpha", "inbox").await;
    // Another hook, made before the dispatcher looked, does not hide it from the first.
    let later = world.hook("alpha", "b.example").await;
    world.dispatch().await;
    assert_eq!((world.rings(made.hook.id).len(), world.rings(later.hook.id).len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_item_that_comes_back_rings_with_another_id() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.start();
    let event = world.memory.publish("alpha", "inbox").await;
    until(2 * SECOND, "it rang", || world.receivers.got().len() == 1).await;
    world.set_state("alpha", event, AckState::Claimed);
    world.memory.requeue("alpha", event).await;
    until(2 * SECOND, "it rang again", || world.receivers.got().len() == 2).await;
    let got = world.receivers.got();
    assert_eq!((got[1].json()["reason"].as_str(), got[1].json()["attempt"].as_u64()), (Some("requeued"), Some(2)));
    assert_ne!(got[0].id(), got[1].id());
    assert!(world.rings(made.hook.id).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_resumed_inbox_rings_once_per_queue_with_counts_only() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    for queue in ["inbox", "inbox", "review"] {
        world.memory.publish("alpha", queue).await;
    }
    world.memory.edit(|state| state.deliveries.clear());
    world.dispatch().await;
    world.memory.edit(|state| state.deliveries.clear());
    world.memory.resume("alpha", None).await;
    world.start();
    until(2 * SECOND, "both queues", || world.receivers.got().len() == 2).await;
    world.pass(3 * SECOND).await;
    let mut told: Vec<_> = world.receivers.got().iter().map(|got| got.json()["summary"].as_str().unwrap().to_owned()).collect();
    told.sort();
    assert_eq!(told, ["1 item is claimable", "2 items are claimable"]);
    world.receivers.got().iter().for_each(|got| assert!(got.json().get("todo_id").is_none() && got.json().get("attempt").is_none()));
    world.memory.resume("alpha", Some("review")).await;
    until(2 * SECOND, "one queue", || world.receivers.got().len() == 3).await;
    assert_eq!(world.receivers.got()[2].json()["queue"], "review");
    assert!(world.rings(made.hook.id).is_empty());
}

#[tokio::test(start_paused = true)]
async fn looking_again_from_the_stored_position_derives_the_same_ids() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    let before = world.memory.state();
    let event = world.memory.publish("alpha", "inbox").await;
    world.memory.publish("alpha", "review").await;
    world.memory.requeue("alpha", event).await;
    world.memory.resume("alpha", Some("inbox")).await;
    world.dispatch().await;
    let ids: Vec<_> = world.rings(made.hook.id).into_iter().map(|ring| ring.id).collect();
    assert_eq!(ids.len(), 3, "the first transition of the item is over");
    // As a crash before the commit leaves it.
    world.memory.edit(|state| {
        state.positions = before.positions.clone();
        state.deliveries.clear();
    });
    let world = world.restart();
    world.dispatch().await;
    assert_eq!(world.rings(made.hook.id).into_iter().map(|ring| ring.id).collect::<Vec<_>>(), ids);
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_commit_and_ring_rings_after_the_restart_with_the_same_id() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.memory.publish("alpha", "inbox").await;
    world.dispatch().await;
    let id = world.rings(made.hook.id)[0].id.clone();
    let world = world.restart();
    world.start();
    until(2 * SECOND, "it rang", || !world.receivers.got().is_empty()).await;
    assert_eq!(world.receivers.got()[0].id(), id.as_str());
}

#[tokio::test(start_paused = true)]
async fn a_bell_before_the_commit_rings_nothing_and_the_commit_rings_once() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.start();
    world.pass(SECOND).await;
    // Told again and again of an event whose transaction takes its time.
    let (seq, id, at) = (Seq::new(1).unwrap(), EventId::new(Uuid::from_u128(1)), world.memory.clock.now());
    let (event_type, audience) = (EventType::parse("task.created").unwrap(), Audience::new(&[agent("alpha")]));
    let early = Event::new(seq, id, event_type, None, audience, EventOrigin::Work, at, Bytes::from_static(b"\"payload\":{}}"));
    let early = [Arc::new(early)];
    for _ in 0..50 {
        world.hooks.bell().observe(&tenant(), &early);
        world.pass(Duration::from_millis(100)).await;
    }
    assert!(world.receivers.got().is_empty() && world.rings(made.hook.id).is_empty(), "nothing is committed");
    let event = world.memory.publish("alpha", "inbox").await;
    until(2 * SECOND, "the commit rings", || !world.receivers.got().is_empty()).await;
    world.pass(5 * SECOND).await;
    let got = world.receivers.got();
    assert_eq!((got.len(), got[0].json()["todo_id"].as_str()), (1, Some(event.to_string().as_str())));
}

#[tokio::test(start_paused = true)]
async fn rings_and_position_are_stored_together_or_not_at_all() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.dispatch().await;
    let position = world.memory.state().positions.get(&tenant()).copied();
    world.memory.publish("alpha", "inbox").await;
    *world.memory.failing.lock().unwrap() = Some("store_rings");
    assert!(world.dispatcher.look_at_all().await.is_err());
    assert!(world.rings(made.hook.id).is_empty());
    assert_eq!(world.memory.state().positions.get(&tenant()).copied(), position);
    *world.memory.failing.lock().unwrap() = None;
    world.dispatch().await;
    assert_eq!(world.rings(made.hook.id).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_fenced_off_stores_nothing() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.memory.publish("alpha", "inbox").await;
    world.dispatch().await;
    world.memory.edit(|state| {
        state.generation += 1;
        state.deliveries.clear();
    });
    world.memory.publish("alpha", "inbox").await;
    assert!(world.dispatcher.look_at_all().await.is_err());
    assert!(world.rings(made.hook.id).is_empty());
    // The group is taken again, and nothing was missed.
    world.dispatch().await;
    assert_eq!(world.rings(made.hook.id).len(), 1);
}

async fn lost(lose: impl FnOnce(&mut crate::memory::Log)) {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.memory.chatter().await;
    world.dispatch().await;
    world.memory.publish("alpha", "inbox").await;
    world.memory.publish("alpha", "review").await;
    world.memory.edit(|state| lose(state.log(&tenant())));
    world.start();
    until(3 * SECOND, "what waits is rung for", || world.receivers.got().len() == 2).await;
    world.pass(3 * SECOND).await;
    let got = world.receivers.got();
    assert!(got.len() == 2 && got.iter().all(|got| got.json()["reason"] == "backlog"), "one per queue");
    assert_eq!(world.hooks.metrics().positions_lost.get(), 1);
    let state = world.memory.state();
    assert_eq!(
        (state.positions[&tenant()].seq, state.positions[&tenant()].epoch),
        (state.logs[&tenant()].head().seq, state.logs[&tenant()].epoch)
    );
    world.memory.publish("alpha", "inbox").await;
    until(3 * SECOND, "what comes then rings as usual", || world.receivers.got().len() == 3).await;
    assert_eq!(world.receivers.got()[2].json()["reason"], "created");
    assert!(world.rings(made.hook.id).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_position_below_the_floor_becomes_the_head_with_backlog_rings() {
    lost(|log| log.floor = Seq::new(4).unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn a_position_of_another_history_becomes_the_head_with_backlog_rings() {
    lost(|log| log.epoch = SyncEpoch::new(Uuid::from_u128(78))).await;
}

#[tokio::test(start_paused = true)]
async fn too_many_outstanding_rings_collapse_into_one_per_queue() {
    let world = World::with(|settings| settings.outstanding_max = 10);
    let made = world.hook("alpha", "a.example").await;
    for _ in 0..8 {
        world.memory.publish("alpha", "inbox").await;
    }
    world.dispatch().await;
    assert_eq!(world.rings(made.hook.id).len(), 8);
    for _ in 0..8 {
        world.memory.publish("alpha", "review").await;
    }
    world.dispatch().await;
    let rings = world.rings(made.hook.id);
    assert_eq!((rings.len(), rings[0].reason), (1, Reason::Backlog));
    assert_eq!(world.hooks.metrics().collapsed.get(), 16);
    world.start_sender();
    until(2 * SECOND, "one per queue", || world.receivers.got().len() == 2).await;
    world.pass(SECOND).await;
    assert!(world.receivers.got().iter().all(|got| got.json()["summary"] == "8 items are claimable"));
}

/// A hook whose rings have collapsed, with 20 items in its queue.
async fn behind() -> (World, Created) {
    let world = World::with(|settings| settings.outstanding_max = 10);
    let made = world.hook("alpha", "a.example").await;
    for _ in 0..20 {
        world.memory.publish("alpha", "inbox").await;
    }
    world.dispatch().await;
    assert_eq!(world.rings(made.hook.id).len(), 1);
    (world, made)
}

#[tokio::test(start_paused = true)]
async fn the_news_of_a_hook_that_is_behind_is_one_ring_until_it_has_caught_up() {
    let (world, made) = behind().await;
    for number in 1..=50 {
        world.memory.publish("alpha", "inbox").await;
        world.dispatch().await;
        let rings = world.rings(made.hook.id);
        assert_eq!((rings.len(), rings[0].reason, rings[0].cause.get()), (1, Reason::Backlog, 20 + number));
    }
    assert_eq!(world.hooks.metrics().collapsed.get(), 20 + 50);
    world.start_sender();
    until(2 * SECOND, "one ring for all of it", || world.receivers.got().len() == 1 && world.rings(made.hook.id).is_empty()).await;
    assert_eq!(world.receivers.got()[0].json()["summary"], "70 items are claimable");
    // Nobody had noticed yet that it has caught up; from then on each item is rung for.
    for (reason, rung) in [("backlog", 2), ("created", 3), ("created", 4)] {
        world.memory.publish("alpha", "inbox").await;
        world.dispatch().await;
        until(2 * SECOND, "it rang", || world.receivers.got().len() == rung && world.rings(made.hook.id).is_empty()).await;
        assert_eq!(world.receivers.got()[rung - 1].json()["reason"], reason);
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_a_catch_up_is_told_apart_is_rung_for_too() {
    let world = World::with(|settings| settings.outstanding_max = 10);
    let made = world.hook("alpha", "a.example").await;
    world.start_sender();
    world.pass(SECOND).await;
    for _ in 0..20 {
        world.memory.publish("alpha", "inbox").await;
    }
    world.dispatch().await;
    let held = world.memory.hold().await;
    // By then the sender has looked where something waits, and cannot write it down.
    world.pass(Duration::from_millis(100)).await;
    world.memory.edit(|state| state.deliveries.values_mut().for_each(|ring| ring.cause = Seq::new(21).unwrap()));
    assert_eq!(world.rings(made.hook.id).len(), 1);
    drop(held);
    until(5 * SECOND, "both rang", || world.receivers.got().len() == 2 && world.rings(made.hook.id).is_empty()).await;
    let got = world.receivers.got();
    assert!(got.iter().all(|got| got.json()["reason"] == "backlog"));
    assert_ne!(got[0].id(), got[1].id(), "a receiver that knows the first must not take the second for it");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_is_given_up_however_much_comes_meanwhile() {
    let world = World::with(|settings| settings.outstanding_max = 10);
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::Hang]);
    world.start();
    for _ in 0..300 {
        if world.stored(made.hook.id).state != HookState::Active {
            break;
        }
        for _ in 0..11 {
            world.memory.publish("alpha", "inbox").await;
        }
        world.pass(SECOND).await;
        assert!(world.rings(made.hook.id).len() <= 11);
    }
    assert_eq!(world.stored(made.hook.id).state, HookState::Disabled(DisabledCause::Exhausted));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_is_behind_is_rung_for_every_queue_however_many() {
    for outstanding_max in [1, 10, 200] {
        let world = World::with(|settings| (settings.outstanding_max, settings.max_queues) = (outstanding_max, 12));
        let made = world.hook("alpha", "a.example").await;
        for number in 0..if outstanding_max == 200 { 201 } else { 12 } {
            world.memory.publish("alpha", &format!("q{:02}", number % 80)).await;
        }
        world.dispatch().await;
        assert_eq!(world.rings(made.hook.id).len(), 1, "it is behind");
        world.start();
        let queues = if outstanding_max == 200 { 80 } else { 12 };
        let told = || world.receivers.got().iter().map(|got| got.json()["queue"].to_string()).collect::<std::collections::BTreeSet<_>>();
        for _ in 0..30 {
            // News keeps coming for one of them.
            world.memory.publish("alpha", "q03").await;
            world.pass(SECOND).await;
        }
        assert_eq!(told().len(), queues, "{outstanding_max}");
        until(5 * SECOND, "nothing is left", || world.rings(made.hook.id).is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn news_of_a_ring_that_is_given_up_is_rung_for_by_itself() {
    let world = World::with(|settings| settings.outstanding_max = 10);
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::Answer(503), Does::Answer(503), Does::Answer(503), Does::Answer(204)]);
    for _ in 0..11 {
        world.memory.publish("alpha", "inbox").await;
    }
    world.dispatch().await;
    world.start();
    until(5 * SECOND, "the second attempt failed", || world.receivers.got().len() == 2).await;
    world.memory.publish("alpha", "inbox").await;
    until(30 * SECOND, "it is rung for anew", || world.receivers.got().len() == 4).await;
    let got = world.receivers.got();
    assert!(got[2].id() == got[0].id() && got[3].id() != got[0].id());
    until(5 * SECOND, "nothing is left", || world.rings(made.hook.id).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_in_other_queues_is_no_news_for_a_hook_that_is_behind() {
    let world = World::with(|settings| settings.outstanding_max = 10);
    let made = world.hook_for("alpha", "a.example", &["review"]).await;
    for _ in 0..11 {
        world.memory.publish("alpha", "review").await;
    }
    world.dispatch().await;
    for queue in ["inbox", "inbox", "review"] {
        let before = world.rings(made.hook.id)[0].cause;
        world.memory.publish("alpha", queue).await;
        world.dispatch().await;
        assert_eq!(world.rings(made.hook.id)[0].cause > before, queue == "review");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_falls_behind_sooner() {
    let world = World::with(|settings| settings.outstanding_failing_max = 3);
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::Answer(400)]);
    world.start();
    world.memory.publish("alpha", "inbox").await;
    until(2 * SECOND, "it is given up", || world.stored(made.hook.id).health.exhausted_in_row == 1).await;
    world.stop();
    for (published, outstanding) in [(3, 3), (1, 1), (5, 1)] {
        for _ in 0..published {
            world.memory.publish("alpha", "inbox").await;
        }
        world.dispatch().await;
        assert_eq!(world.rings(made.hook.id).len(), outstanding);
    }
}

#[tokio::test(start_paused = true)]
async fn what_concerns_no_hook_is_not_written_down_row_by_row() {
    let world = World::with(|settings| settings.page = 10);
    world.hook("alpha", "a.example").await;
    world.dispatch().await;
    let stored = world.memory.state().positions[&tenant()];
    for _ in 0..9 {
        world.memory.chatter().await;
        world.dispatch().await;
    }
    assert_eq!(world.memory.state().positions[&tenant()], stored);
    for _ in 0..3 {
        world.memory.chatter().await;
        world.dispatch().await;
    }
    assert!(world.memory.state().positions[&tenant()].seq > stored.seq);
}

#[tokio::test(start_paused = true)]
async fn a_long_log_is_looked_at_page_by_page_and_nothing_is_missed() {
    let world = World::with(|settings| settings.page = 3);
    let made = world.hook("alpha", "a.example").await;
    for _ in 0..20 {
        world.memory.chatter().await;
        world.memory.publish("alpha", "inbox").await;
    }
    world.dispatch().await;
    assert_eq!(world.rings(made.hook.id).len(), 20);
}

#[tokio::test(start_paused = true)]
async fn news_wake_the_dispatcher_long_before_the_poll() {
    let world = World::with(|settings| settings.poll_interval = Duration::from_hours(1));
    world.hook("alpha", "a.example").await;
    world.start();
    world.pass(SECOND).await;
    world.memory.publish("alpha", "inbox").await;
    until(Duration::from_millis(100), "it rang", || world.receivers.got().len() == 1).await;
    // And a hook that was made after the dispatcher looked is known at once.
    world.hook("beta", "b.example").await;
    world.memory.publish("beta", "inbox").await;
    until(Duration::from_millis(100), "it rang", || world.receivers.got_by("b.example").len() == 1).await;
    let alpha = world.caller("alpha").await;
    assert_eq!(world.hooks.list(&alpha, None, HookKind::Notify, None, 5).await.unwrap().len(), 1);
}
