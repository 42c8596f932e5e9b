//! Attempts: retries, what is read again before each, health.

use std::time::Duration;

use domain::EventId;
use hooks::{AttemptClass, Created, DisabledCause, HookKind, HookPatch, HookState, OutboundError};
use inbox::{AckState, Presence};

use crate::memory::{SECOND, queue, recipient};
use crate::receivers::{Does, until};
use crate::world::{World, url};

/// A world in which the first attempt of a ring has failed and the second is to come.
async fn between_attempts() -> (World, Created, EventId) {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::Answer(500), Does::Answer(204)]);
    world.start();
    let event = world.memory.publish("alpha", "inbox").await;
    until(2 * SECOND, "the first attempt is written", || world.rings(made.hook.id).iter().any(|ring| ring.attempts == 1)).await;
    (world, made, event)
}

#[tokio::test(start_paused = true)]
async fn a_ring_is_tried_again_with_the_same_id_and_a_fresh_timestamp() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::Answer(500), Does::Fail(OutboundError::Dns), Does::Answer(204)]);
    world.start();
    world.memory.publish("alpha", "inbox").await;
    until(20 * SECOND, "it was delivered", || world.receivers.got().len() == 3).await;
    let got = world.receivers.got();
    assert!(got.iter().all(|each| each.id() == got[0].id() && each.body == got[0].body && each.is_signed_by(made.secret.bytes())));
    let pauses = [got[1].at.since(got[0].at), got[2].at.since(got[1].at)];
    assert!((Duration::from_millis(800)..=Duration::from_millis(1_300)).contains(&pauses[0]), "{pauses:?}");
    assert!((4 * SECOND..=Duration::from_millis(6_100)).contains(&pauses[1]), "{pauses:?}");
    assert_ne!(got[0].header("webhook-timestamp"), got[2].header("webhook-timestamp"));
    until(SECOND, "it is written", || world.rings(made.hook.id).is_empty()).await;
    let alpha = world.caller("alpha").await;
    let log = world.hooks.deliveries(&alpha, HookKind::Notify, made.hook.id).await.unwrap();
    let classes: Vec<_> = log.iter().map(|attempt| (attempt.attempt, attempt.class)).collect();
    assert_eq!(classes, [(3, AttemptClass::Delivered), (2, AttemptClass::Dns), (1, AttemptClass::ServerError)]);
    assert_eq!(world.stored(made.hook.id).health.exhausted_in_row, 0);
}

#[tokio::test(start_paused = true)]
async fn three_attempts_are_all_there_are_and_the_item_stays_claimable() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::Fail(OutboundError::Tls)]);
    world.start();
    let event = world.memory.publish("alpha", "inbox").await;
    world.pass(Duration::from_mins(2)).await;
    assert_eq!(world.receivers.got().len(), 3);
    assert_eq!(world.stored(made.hook.id).health.exhausted_in_row, 1);
    assert_eq!(world.memory.state().items[&(recipient("alpha"), event)].state, AckState::Available);
    assert!(world.rings(made.hook.id).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_resolved_trusted_or_reached_is_classed_tried_again_and_counts() {
    for (error, class) in [
        (OutboundError::Dns, AttemptClass::Dns),
        (OutboundError::Tls, AttemptClass::Tls),
        (OutboundError::Connect, AttemptClass::Connect),
        (OutboundError::Protocol, AttemptClass::Protocol),
        (OutboundError::Timeout, AttemptClass::Timeout),
    ] {
        let world = World::new();
        let made = world.hook("alpha", "a.example").await;
        world.receivers.does("a.example", [Does::Fail(error)]);
        world.start();
        world.memory.publish("alpha", "inbox").await;
        until(Duration::from_mins(1), "it is exhausted", || world.stored(made.hook.id).health.exhausted_in_row == 1).await;
        let alpha = world.caller("alpha").await;
        let log = world.hooks.deliveries(&alpha, HookKind::Notify, made.hook.id).await.unwrap();
        assert!(log.len() == 3 && log.iter().all(|attempt| attempt.class == class && attempt.status.is_none()), "{error}: {log:?}");
        assert_eq!(world.hooks.metrics().attempts().find(|(each, _)| *each == class), Some((class, 3)));
    }
}

#[tokio::test(start_paused = true)]
async fn redirects_and_client_errors_are_final() {
    for status in [301, 302, 303, 307, 308, 400, 401, 404] {
        let world = World::new();
        let made = world.hook("alpha", "a.example").await;
        world.receivers.does("a.example", [Does::Answer(status)]);
        world.start();
        world.memory.publish("alpha", "inbox").await;
        world.pass(Duration::from_mins(1)).await;
        assert_eq!(world.receivers.got().len(), 1, "{status}");
        assert_eq!(world.stored(made.hook.id).health.exhausted_in_row, 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_within_its_bound() {
    for (asked, least, most) in [("30", 30, 32), ("86400", 60, 62), ("0", 0, 2)] {
        let world = World::new();
        world.hook("alpha", "a.example").await;
        world.receivers.does("a.example", [Does::AskToWait(429, asked), Does::Answer(204)]);
        world.start();
        world.memory.publish("alpha", "inbox").await;
        until(Duration::from_mins(2), "the second attempt", || world.receivers.got().len() == 2).await;
        let got = world.receivers.got();
        let pause = got[1].at.since(got[0].at).as_secs();
        assert!((least..=most).contains(&pause), "{asked}: {pause}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_after_five_seconds() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::Hang]);
    world.start();
    world.memory.publish("alpha", "inbox").await;
    until(6 * SECOND, "it was given up", || world.rings(made.hook.id).iter().any(|ring| ring.attempts == 1)).await;
    let alpha = world.caller("alpha").await;
    let log = world.hooks.deliveries(&alpha, HookKind::Notify, made.hook.id).await.unwrap();
    assert_eq!((log[0].class, log[0].latency), (AttemptClass::Timeout, 5 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn ten_exhausted_rings_disable_once_with_one_notice_and_only_an_owner_ends_that() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::Answer(404)]);
    world.start();
    for _ in 0..15 {
        world.memory.publish("alpha", "inbox").await;
    }
    world.pass(Duration::from_mins(1)).await;
    assert_eq!(world.receivers.got().len(), 10);
    assert_eq!(world.stored(made.hook.id).state, HookState::Disabled(DisabledCause::Exhausted));
    assert!(world.rings(made.hook.id).is_empty());
    let notices = world.notices();
    assert_eq!(notices.len(), 1);
    assert!(
        notices[0].contains("\"type\":\"hook.disabled\"")
            && notices[0].contains("\"cause\":\"exhausted\"")
            && !notices[0].contains("CANARY")
    );
    world.receivers.does("a.example", [Does::Answer(204)]);
    world.memory.publish("alpha", "inbox").await;
    world.pass(Duration::from_mins(1)).await;
    assert_eq!(world.receivers.got().len(), 10);
    let alpha = world.caller("alpha").await;
    world.hooks.rotate(&alpha, made.hook.id).await.unwrap();
    until(2 * SECOND, "the backlog rings", || world.receivers.got().len() == 11).await;
    assert_eq!(world.receivers.got()[10].json()["summary"], "16 items are claimable");
    assert_eq!(world.stored(made.hook.id).state, HookState::Active);
    assert_eq!(world.notices().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn gone_disables_at_once() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::Answer(410)]);
    world.start();
    world.memory.publish("alpha", "inbox").await;
    until(2 * SECOND, "it is disabled", || world.stored(made.hook.id).state == HookState::Disabled(DisabledCause::Gone)).await;
    assert_eq!(world.notices().len(), 1);
    assert_eq!(world.receivers.got().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_an_exhausted_ring_a_hook_is_rung_one_at_a_time_until_one_succeeds() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::Fail(OutboundError::Connect)]);
    world.start();
    world.memory.publish("alpha", "inbox").await;
    until(20 * SECOND, "it is exhausted", || world.stored(made.hook.id).health.exhausted_in_row == 1).await;
    let before = world.receivers.got().len();
    world.receivers.does("a.example", [Does::AnswerLater(SECOND, 204), Does::Answer(204)]);
    for _ in 0..5 {
        world.memory.publish("alpha", "inbox").await;
    }
    world.pass(Duration::from_millis(900)).await;
    assert_eq!(world.receivers.got().len() - before, 1);
    world.pass(SECOND).await;
    assert_eq!(world.receivers.got().len() - before, 5);
    assert_eq!(world.receivers.most_open.lock().unwrap()["a.example"], 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_attempted_for_a_hook_that_was_disabled_or_removed_meanwhile() {
    for remove in [false, true] {
        let (world, made, _) = between_attempts().await;
        let alpha = world.caller("alpha").await;
        if remove {
            world.hooks.delete(&alpha, HookKind::Notify, made.hook.id).await.unwrap();
        } else {
            world.hooks.disable(&alpha, HookKind::Notify, made.hook.id).await.unwrap();
        }
        world.pass(Duration::from_mins(1)).await;
        assert_eq!(world.receivers.got().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_goes_to_the_url_that_the_hook_has_by_then() {
    let (world, made, _) = between_attempts().await;
    let alpha = world.caller("alpha").await;
    world.hooks.update(&alpha, made.hook.id, HookPatch { url: Some(url("b.example")), ..HookPatch::default() }).await.unwrap();
    until(3 * SECOND, "the second attempt", || world.receivers.got().len() == 2).await;
    let got = world.receivers.got();
    assert_eq!((got[1].host.as_str(), got[1].id()), ("b.example", got[0].id()));
    assert!(got[1].url.starts_with("https://b.example/ring"));
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_is_signed_with_the_keys_that_the_hook_has_by_then() {
    let (world, made, _) = between_attempts().await;
    let alpha = world.caller("alpha").await;
    let rotated = world.hooks.rotate(&alpha, made.hook.id).await.unwrap();
    until(3 * SECOND, "the second attempt", || world.receivers.got().len() == 2).await;
    let got = world.receivers.got();
    assert_eq!((got[0].signatures(), got[1].signatures()), (1, 2));
    assert!(got[1].is_signed_by(rotated.secret.unwrap().bytes()) && got[1].is_signed_by(made.secret.bytes()));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_attempted_for_an_item_that_is_not_claimable_by_then() {
    for state in
        [AckState::Claimed, AckState::Acked, AckState::Quarantined, AckState::Expired, AckState::DeadLetter, AckState::RetryScheduled]
    {
        let (world, made, event) = between_attempts().await;
        world.set_state("alpha", event, state);
        world.pass(Duration::from_mins(1)).await;
        assert_eq!(world.receivers.got().len(), 1, "{state:?}");
        assert!(world.rings(made.hook.id).is_empty());
        assert_eq!(world.hooks.metrics().withdrawn.get(), 1);
        assert_eq!(world.stored(made.hook.id).health.exhausted_in_row, 0, "nobody is to blame");
    }
}

#[tokio::test(start_paused = true)]
async fn a_ring_of_a_transition_that_is_over_is_not_attempted() {
    let (world, made, event) = between_attempts().await;
    world.memory.requeue("alpha", event).await;
    until(5 * SECOND, "the later transition rings", || world.receivers.got().len() == 2).await;
    world.pass(Duration::from_mins(1)).await;
    let got = world.receivers.got();
    assert_eq!((got.len(), got[1].json()["reason"].as_str()), (2, Some("requeued")));
    assert_ne!(got[0].id(), got[1].id());
    assert!(world.rings(made.hook.id).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_clocked_out_agent_is_not_rung_unless_the_hook_ignores_presence() {
    for ignores in [false, true] {
        let (world, made, _) = between_attempts().await;
        let alpha = world.caller("alpha").await;
        world.hooks.update(&alpha, made.hook.id, HookPatch { ignore_presence: Some(ignores), ..HookPatch::default() }).await.unwrap();
        world.memory.edit(|state| state.open(&recipient("alpha")).presence = Presence::Out { until: None });
        world.pass(Duration::from_mins(1)).await;
        assert_eq!(world.receivers.got().len(), if ignores { 2 } else { 1 });
        world.memory.resume("alpha", None).await;
        until(3 * SECOND, "the backlog rings on return", || world.receivers.got().last().unwrap().json()["reason"] == "backlog").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_inbox_or_queue_is_not_rung_for() {
    for whole in [false, true] {
        let (world, _, _) = between_attempts().await;
        world.memory.edit(|state| {
            let row = state.open(&recipient("alpha"));
            if whole {
                row.paused = true;
            } else {
                row.paused_queues.insert(queue("inbox"));
            }
        });
        world.memory.publish("alpha", "inbox").await;
        world.pass(Duration::from_mins(1)).await;
        assert_eq!(world.receivers.got().len(), 1);
        world.memory.resume("alpha", (!whole).then_some("inbox")).await;
        until(3 * SECOND, "the backlog rings", || world.receivers.got().len() == 2).await;
        assert_eq!(world.receivers.got()[1].json()["summary"], "2 items are claimable");
    }
}

#[tokio::test(start_paused = true)]
async fn a_url_that_is_refused_by_then_is_not_dialled_and_counts() {
    let (world, made, _) = between_attempts().await;
    world.receivers.refused.lock().unwrap().insert("a.example".to_owned());
    world.pass(Duration::from_mins(1)).await;
    assert_eq!(world.receivers.got().len(), 1);
    assert_eq!(world.stored(made.hook.id).health.exhausted_in_row, 1);
    let alpha = world.caller("alpha").await;
    assert_eq!(world.hooks.deliveries(&alpha, HookKind::Notify, made.hook.id).await.unwrap()[0].class, AttemptClass::Refused);
}

#[tokio::test(start_paused = true)]
async fn a_ring_whose_outcome_could_not_be_written_is_sent_again_with_the_same_id() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    *world.memory.failing.lock().unwrap() = Some("settle_rings");
    world.start();
    world.memory.publish("alpha", "inbox").await;
    until(2 * SECOND, "it rang", || !world.receivers.got().is_empty()).await;
    *world.memory.failing.lock().unwrap() = None;
    until(5 * SECOND, "it is written", || world.rings(made.hook.id).is_empty()).await;
    let got = world.receivers.got();
    assert!(got.len() > 1 && got.iter().all(|each| each.id() == got[0].id()));
}

#[tokio::test(start_paused = true)]
async fn stopping_waits_for_the_attempt_in_flight_and_writes_it() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.receivers.does("a.example", [Does::AnswerLater(2 * SECOND, 204)]);
    world.start();
    world.memory.publish("alpha", "inbox").await;
    until(SECOND, "it is on its way", || !world.receivers.got().is_empty()).await;
    world.stop();
    until(3 * SECOND, "it is written", || world.rings(made.hook.id).is_empty()).await;
    world.memory.publish("alpha", "inbox").await;
    world.pass(10 * SECOND).await;
    assert_eq!(world.receivers.got().len(), 1);
}
