//! What an agent's consumer gets over the gateway (seed 004).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::{Event, PrincipalId, StoreError};
use doorstep_gateway::{DeliveryHook, Preparation, Settings, Verdict};
use protocol::CloseCode;
use serde_json::json;

use crate::support::{Call, HIDDEN, Peer, World, WorldSettings, agent, key, seq};

const SECOND: Duration = Duration::from_secs(1);
/// `agent.ack_timeout` of these tests, the product's default.
const ACK_TIMEOUT: Duration = Duration::from_secs(30);

fn fresh(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, bool)> {
    numbers.into_iter().map(|number| (number, false)).collect()
}

fn flagged(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, bool)> {
    numbers.into_iter().map(|number| (number, true)).collect()
}

fn with_window(max_inflight_events: usize) -> World {
    let agents = agents::Settings { max_inflight_events, ..agents::Settings::default() };
    World::with(WorldSettings { agents, ..WorldSettings::default() })
}

#[tokio::test(start_paused = true)]
async fn the_first_connection_starts_at_the_head() {
    let world = World::new();
    world.publish();
    world.publish();
    let (mut peer, ready) = world.identify(&world.agent_token, json!({})).await;
    assert_eq!((&ready["head_seq"], &ready["acked_seq"], &ready["consumer"]), (&json!(2), &json!(2), &json!("default")));
    assert_eq!(peer.expect("catchup.complete").await["head_seq"], 2);
    world.publish();
    assert_eq!(peer.dispatches(1).await, fresh([3]));
    assert_eq!(world.memory.acked(&key("default")), Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_later_connection_continues_after_what_is_acknowledged_without_the_flag() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.publish_many(4);
    assert_eq!(peer.dispatches(4).await, fresh(1..=4));
    peer.ack(2);
    world.settle().await;
    peer.vanish();
    world.publish();
    let (mut peer, ready) = world.identify(&world.agent_token, json!({})).await;
    assert_eq!((&ready["acked_seq"], &ready["head_seq"]), (&json!(2), &json!(5)));
    assert_eq!(peer.dispatches(3).await, fresh(3..=5));
    assert_eq!(peer.expect("catchup.complete").await["head_seq"], 5);
}

#[tokio::test(start_paused = true)]
async fn the_cursor_of_an_agents_identify_is_ignored() {
    let world = World::new();
    let (peer, _) = world.consume().await;
    world.publish_many(3);
    world.settle().await;
    peer.ack(1);
    world.settle().await;
    peer.vanish();
    let stranger = "00000000-0000-0000-0000-0000000000ff";
    let (mut peer, ready) = world.identify(&world.agent_token, json!({"cursor": 3, "sync_epoch": stranger})).await;
    assert_eq!(ready["acked_seq"], 1);
    assert_eq!(peer.dispatches(2).await, fresh([2, 3]));
}

#[tokio::test(start_paused = true)]
async fn at_most_max_inflight_events_are_on_the_way_and_an_acknowledgement_releases_exactly_as_many() {
    let world = with_window(3);
    let (mut peer, ready) = world.consume().await;
    assert_eq!(ready["max_inflight_events"], 3);
    world.publish_many(10);
    assert_eq!(peer.dispatches(3).await, fresh(1..=3));
    peer.silence(10 * SECOND).await;
    peer.ack(2);
    assert_eq!(peer.dispatches(2).await, fresh(4..=5));
    peer.silence(10 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_acknowledged_in_time_comes_again_with_the_flag_and_nothing_else_does() {
    let world = with_window(3);
    let (mut peer, _) = world.consume().await;
    world.publish_many(5);
    assert_eq!(peer.dispatches(3).await, fresh(1..=3));
    peer.ack(1);
    assert_eq!(peer.dispatches(1).await, fresh([4]));
    peer.silence(ACK_TIMEOUT.saturating_sub(SECOND)).await;
    assert_eq!(peer.dispatches(3).await, flagged(2..=4));
    peer.ack(4);
    assert_eq!(peer.dispatches(1).await, fresh([5]));
    peer.ack(5);
    peer.silence(4 * ACK_TIMEOUT).await;
    let state = world.memory.state();
    assert!(state.events.iter().all(|event| !String::from_utf8_lossy(&event.body).contains("redelivered")));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_runs_from_the_oldest_unacknowledged_dispatch() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.publish();
    peer.dispatches(1).await;
    tokio::time::sleep(20 * SECOND).await;
    world.publish();
    peer.dispatches(1).await;
    peer.ack(1);
    // The first deadline was the first event's; now it is the second's.
    peer.silence(ACK_TIMEOUT.saturating_sub(SECOND)).await;
    assert_eq!(peer.dispatches(1).await, flagged([2]));
}

#[tokio::test(start_paused = true)]
async fn events_beyond_the_hub_position_wait_for_it() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.settle().await;
    world.publish_unannounced();
    world.publish_unannounced();
    peer.silence(SECOND / 2).await;
    // The tail finds them by itself within `sync.tail_poll_interval`.
    assert_eq!(peer.dispatches(2).await, fresh([1, 2]));
}

#[tokio::test(start_paused = true)]
async fn only_what_the_agent_may_see_is_delivered_and_filtering_is_not_audited() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.publish_to(HIDDEN);
    world.publish();
    world.report("agent.updated", &[agent()], &json!({}));
    world.publish_to(HIDDEN);
    assert_eq!(peer.dispatches(2).await, fresh([2, 3]));
    peer.silence(10 * SECOND).await;
    assert_eq!(world.memory.state().denials.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn rights_are_those_of_the_moment_of_the_delivery_and_of_the_redelivery() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.publish();
    world.report("agent.updated", &[agent()], &json!({}));
    assert_eq!(peer.dispatches(2).await, fresh([1, 2]));
    let report = world.revoke_grant(&agent());
    world.publish();
    assert_eq!(peer.dispatches(1).await, fresh([report]));
    // The unacknowledged event of the channel does not come again; what is addressed to the agent does.
    assert_eq!(peer.dispatches(2).await, flagged([2, report]));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_admitted_only_when_others_come_again_carries_no_flag() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.publish();
    world.publish_to(HIDDEN);
    world.publish();
    assert_eq!(peer.dispatches(2).await, fresh([1, 3]));
    let report = world.grant(&agent(), HIDDEN);
    assert_eq!(peer.dispatches(1).await, fresh([report]));
    assert_eq!(peer.dispatches(4).await, [(1, true), (2, false), (3, true), (report, true)]);
}

#[tokio::test(start_paused = true)]
async fn in_the_backlog_a_cursor_covers_what_was_skipped() {
    let gateway = Settings { catchup_page_size: 4, ..Settings::default() };
    let world = World::with(WorldSettings { gateway, ..WorldSettings::default() });
    let (peer, _) = world.consume().await;
    world.settle().await;
    peer.vanish();
    world.publish();
    for _ in 0..6 {
        world.publish_to(HIDDEN);
    }
    let (mut peer, _) = world.identify(&world.agent_token, json!({})).await;
    assert_eq!(peer.dispatches(1).await, fresh([1]));
    assert_eq!(peer.expect("cursor").await["seq"], 4);
    assert_eq!(peer.expect("cursor").await["seq"], 7);
    assert_eq!(peer.expect("catchup.complete").await["head_seq"], 7);
    // What was skipped can be acknowledged.
    peer.ack(7);
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(world.memory.acked(&key("default")), Some(7));
}

#[tokio::test(start_paused = true)]
async fn live_a_cursor_comes_after_so_many_skipped_numbers() {
    let gateway = Settings { cursor_advance_every: 5, ..Settings::default() };
    let world = World::with(WorldSettings { gateway, ..WorldSettings::default() });
    let (mut peer, _) = world.consume().await;
    for _ in 0..4 {
        world.publish_to(HIDDEN);
        world.settle().await;
    }
    peer.silence(SECOND).await;
    world.publish_to(HIDDEN);
    assert_eq!(peer.expect("cursor").await["seq"], 5);
}

#[tokio::test(start_paused = true)]
async fn a_publish_storm_during_the_catching_up_arrives_in_order_once() {
    let world = with_window(50);
    let (peer, _) = world.consume().await;
    world.settle().await;
    peer.vanish();
    world.publish_many(1_000);
    let (mut peer, _) = world.identify(&world.agent_token, json!({})).await;
    let (mut seen, mut completed) = (Vec::new(), None);
    while seen.len() < 1_500 {
        let frame = peer.frame().await;
        if frame["op"] == "catchup.complete" {
            assert_eq!((frame["head_seq"].as_u64(), completed.replace(seen.len())), (Some(1_000), None));
            continue;
        }
        seen.push(frame["event"]["seq"].as_u64().unwrap());
        if seen.len().is_multiple_of(10) {
            peer.ack(*seen.last().unwrap());
        }
        if seen.len().is_multiple_of(100) && seen.len() <= 500 {
            world.publish_many(100);
        }
    }
    assert_eq!(seen, (1..=1_500).collect::<Vec<_>>());
    assert_eq!(completed, Some(1_000), "catchup.complete stands exactly behind the head of ready");
}

#[tokio::test(start_paused = true)]
async fn a_refused_acknowledgement_keeps_the_connection_and_a_lower_one_changes_nothing() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.publish_many(3);
    peer.dispatches(3).await;
    peer.ack(4);
    let error = peer.expect("error").await;
    assert_eq!((&error["refused_op"], &error["code"], &error["pointer"]), (&json!("ack"), &json!("validation_failed"), &json!("/seq")));
    peer.send(&json!({"op": "ack", "seq": -1}));
    assert_eq!(peer.expect("error").await["code"], "validation_failed");
    peer.ack(2);
    peer.ack(1);
    peer.ack(0);
    world.publish();
    assert_eq!(peer.dispatches(1).await, fresh([4]));
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(world.memory.acked(&key("default")), Some(2));
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_may_reach_the_committed_head_and_skips_what_was_not_dispatched() {
    let world = with_window(2);
    let (mut peer, _) = world.consume().await;
    world.publish_many(6);
    assert_eq!(peer.dispatches(2).await, fresh([1, 2]));
    // Not even the hub position of this process has to know it.
    world.settle().await;
    let unseen = world.publish_unannounced();
    peer.ack(unseen);
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(world.memory.acked(&key("default")), Some(unseen));
    world.publish();
    assert_eq!(peer.dispatches(1).await, fresh([unseen + 1]));
}

#[tokio::test(start_paused = true)]
async fn retention_moves_the_consumer_to_the_head_and_it_goes_on_live() {
    let world = World::new();
    let (peer, _) = world.consume().await;
    world.settle().await;
    peer.vanish();
    world.publish_many(9);
    world.retire(6);
    let (mut peer, ready) = world.identify(&world.agent_token, json!({})).await;
    assert_eq!(ready["acked_seq"], 0);
    let resync = peer.expect("resync_required").await;
    assert_eq!((&resync["reason"], &resync["head_seq"], &resync["floor_seq"]), (&json!("retention"), &json!(9), &json!(7)));
    assert_eq!(resync["sync_epoch"], ready["sync_epoch"]);
    assert_eq!(world.memory.acked(&key("default")), Some(9));
    world.publish();
    assert_eq!(peer.dispatches(1).await, fresh([10]), "and no catchup.complete");
}

#[tokio::test(start_paused = true)]
async fn a_cursor_above_the_head_is_moved_to_the_head() {
    let world = World::new();
    let (peer, _) = world.consume().await;
    world.settle().await;
    peer.vanish();
    world.settle().await;
    world.memory.state().rows.get_mut(&key("default")).unwrap().acked = seq(70);
    world.publish_many(3);
    let (mut peer, _) = world.identify(&world.agent_token, json!({})).await;
    let resync = peer.expect("resync_required").await;
    assert_eq!((&resync["reason"], &resync["head_seq"]), (&json!("cursor_ahead"), &json!(3)));
    assert_eq!(world.memory.acked(&key("default")), Some(3));
    world.publish();
    assert_eq!(peer.dispatches(1).await, fresh([4]));
}

#[tokio::test(start_paused = true)]
async fn rows_that_vanish_before_a_redelivery_are_not_skipped_silently() {
    let world = World::with(WorldSettings {
        gateway: Settings::default(),
        agents: agents::Settings { max_inflight_events: 2, ..agents::Settings::default() },
        ..WorldSettings::default()
    });
    let (mut peer, _) = world.consume().await;
    // More than the hot ring holds.
    world.publish_many(9_000);
    peer.dispatches(2).await;
    world.retire(5);
    let resync = peer.expect("resync_required").await;
    assert_eq!((&resync["reason"], &resync["head_seq"]), (&json!("retention"), &json!(9_000)));
    assert_eq!(world.memory.acked(&key("default")), Some(9_000));
}

#[tokio::test(start_paused = true)]
async fn a_failing_read_is_tried_again_while_the_connection_is_open() {
    let world = World::new();
    let (peer, _) = world.consume().await;
    world.settle().await;
    peer.vanish();
    // A backlog that only the store has: the tail has gone meanwhile.
    tokio::time::sleep(Duration::from_mins(2)).await;
    world.publish_many(3);
    world.memory.state().broken_pages = Some(StoreError::Unavailable);
    let (mut peer, _) = world.identify(&world.agent_token, json!({})).await;
    let before = world.memory.state().pages_read;
    tokio::time::sleep(20 * SECOND).await;
    let tried = world.memory.state().pages_read - before;
    assert!((3..40).contains(&tried), "{tried}");
    world.memory.state().broken_pages = None;
    assert_eq!(peer.dispatches(3).await, fresh(1..=3));
}

#[tokio::test(start_paused = true)]
async fn a_corrupt_log_closes_4000_and_is_never_served_shorter() {
    let world = World::new();
    let (peer, _) = world.consume().await;
    world.settle().await;
    peer.vanish();
    tokio::time::sleep(Duration::from_mins(2)).await;
    world.publish_many(3);
    world.memory.state().broken_pages = Some(StoreError::Corrupt("row 2".to_owned()));
    let (mut peer, _) = world.identify(&world.agent_token, json!({})).await;
    assert_eq!(peer.closed().await, CloseCode::Internal);
}

#[tokio::test(start_paused = true)]
async fn acknowledgements_are_heard_while_a_burst_goes_out() {
    let world = with_window(10_000);
    let mut peer = world.dial_with(64, None);
    peer.expect("hello").await;
    peer.send(&json!({"op": "identify", "token": world.agent_token}));
    peer.expect("ready").await;
    peer.expect("catchup.complete").await;
    world.publish_many(1_000);
    peer.dispatches(100).await;
    peer.ack(100);
    peer.dispatches(100).await;
    // Nobody reads any further: the burst is stuck, and still the acknowledgement was heard and is saved.
    tokio::time::sleep(3 * SECOND).await;
    assert_eq!(world.memory.acked(&key("default")), Some(100));
    assert_eq!(peer.dispatches(800).await, fresh(201..=1_000));
}

/// Withholds even numbers, decides about every third only after a while, and fails once at nine.
#[derive(Default)]
struct Picky {
    has_failed: Arc<AtomicBool>,
}

impl DeliveryHook for Picky {
    fn prepare(&self, agent_id: &PrincipalId, event: &Event) -> Preparation {
        assert_eq!(*agent_id, agent());
        let number = event.seq.get();
        let verdict = if number.is_multiple_of(2) { Verdict::Withhold } else { Verdict::Deliver };
        if !number.is_multiple_of(3) {
            return Preparation::Ready(verdict);
        }
        let has_failed = self.has_failed.clone();
        Preparation::Later(Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            if number == 9 && !has_failed.swap(true, Ordering::SeqCst) {
                return Err(StoreError::Unavailable);
            }
            Ok(verdict)
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn the_delivery_hook_can_withhold_and_take_its_time_and_what_it_withholds_counts_as_checked() {
    let hook = Picky::default();
    let has_failed = hook.has_failed.clone();
    let world = World::with(WorldSettings { hook: Arc::new(hook), ..WorldSettings::default() });
    let (peer, _) = world.consume().await;
    world.settle().await;
    peer.vanish();
    world.publish_many(12);
    let (mut peer, _) = world.identify(&world.agent_token, json!({})).await;
    assert_eq!(peer.dispatches(6).await, fresh([1, 3, 5, 7, 9, 11]));
    assert_eq!(peer.expect("cursor").await["seq"], 12);
    assert_eq!(peer.expect("catchup.complete").await["head_seq"], 12);
    assert!(has_failed.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_that_overtakes_a_held_event_skips_it() {
    let world = World::with(WorldSettings { hook: Arc::new(Picky::default()), ..WorldSettings::default() });
    let (mut peer, _) = world.consume().await;
    world.publish_many(7);
    assert_eq!(peer.dispatches(1).await, fresh([1]));
    peer.ack(3);
    assert_eq!(peer.dispatches(2).await, fresh([5, 7]));
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_is_behind_the_ring_reads_the_store_in_pages_of_what_it_has_budget_for() {
    let world = with_window(10);
    let (peer, _) = world.consume().await;
    world.settle().await;
    peer.vanish();
    world.publish_many(9_000);
    let (mut peer, _) = world.identify(&world.agent_token, json!({})).await;
    let mut last = 0;
    for _ in 0..30 {
        for (number, _) in peer.dispatches(10).await {
            assert_eq!(number, last + 1);
            last = number;
        }
        peer.ack(last);
    }
    let _ = drain_to(&mut peer, last + 10).await;
}

async fn drain_to(peer: &mut Peer, last: u64) -> u64 {
    loop {
        if let [(number, _)] = peer.dispatches(1).await[..]
            && number >= last
        {
            return number;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_consumers_of_one_agent_never_affect_each_other() {
    let world = World::new();
    let (mut first, _) = world.consume().await;
    let (mut second, ready) = world.identify(&world.agent_token, json!({"consumer": "second"})).await;
    assert_eq!(ready["consumer"], "second");
    second.expect("catchup.complete").await;
    world.publish_many(2);
    assert_eq!(first.dispatches(2).await, fresh([1, 2]));
    assert_eq!(second.dispatches(2).await, fresh([1, 2]));
    first.ack(2);
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!((world.memory.acked(&key("default")), world.memory.acked(&key("second"))), (Some(2), Some(0)));
    assert_eq!(second.dispatches(2).await, flagged([1, 2]));
    first.silence(ACK_TIMEOUT).await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_consumer_costs_the_store_nothing() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.publish();
    peer.dispatches(1).await;
    peer.ack(1);
    tokio::time::sleep(5 * SECOND).await;
    world.memory.take_calls();
    let pages = world.memory.state().pages_read;
    peer.silence(Duration::from_mins(10)).await;
    assert_eq!(world.memory.take_calls(), Vec::<Call>::new());
    assert_eq!(world.memory.state().pages_read, pages);
}

#[tokio::test(start_paused = true)]
async fn what_was_skipped_in_front_of_an_event_without_budget_is_checked_again() {
    let world = with_window(1);
    let (mut peer, _) = world.consume().await;
    world.publish();
    world.publish_to(HIDDEN);
    world.publish();
    assert_eq!(peer.dispatches(1).await, fresh([1]));
    world.grant(&agent(), HIDDEN);
    peer.silence(SECOND).await;
    peer.ack(1);
    assert_eq!(peer.dispatches(1).await, fresh([2]));
    peer.ack(2);
    assert_eq!(peer.dispatches(1).await, fresh([3]));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_waits_for_budget_is_not_read_again_for_each_acknowledgement() {
    let world = with_window(10);
    let (peer, _) = world.consume().await;
    world.settle().await;
    peer.vanish();
    // Far more than the ring holds, so that all of this comes from the store.
    world.publish_many(9_000);
    let (mut peer, _) = world.identify(&world.agent_token, json!({})).await;
    let before = world.memory.state().pages_read;
    peer.dispatches(10).await;
    for number in 1..=500 {
        peer.ack(number);
        assert_eq!(peer.dispatches(1).await, fresh([number + 10]));
    }
    assert!(world.memory.state().pages_read - before <= 3);
    // And a consumer that does nothing does not hold it for long.
    peer.silence(SECOND).await;
    let before = world.memory.state().pages_read;
    peer.ack(501);
    peer.dispatches(1).await;
    assert_eq!(world.memory.state().pages_read, before + 1);
}
