//! Saving acknowledgements and verifying holders (seed 004, design note 9; design/stream.md, "Saving and verifying").

use std::time::Duration;

use authz::PrincipalKind;
use domain::{Clock, StoreError};
use doorstep_gateway::Settings;
use protocol::CloseCode;
use serde_json::json;

use crate::support::{World, WorldSettings, agent, key, seq};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

fn without_ticks() -> World {
    let agents = agents::Settings { ack_persist_interval: HOUR, ..agents::Settings::default() };
    World::with(WorldSettings { agents, ..WorldSettings::default() })
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_is_saved_within_the_interval() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.publish_many(2);
    peer.dispatches(2).await;
    peer.ack(2);
    tokio::time::sleep(agents::Settings::default().ack_persist_interval + Duration::from_millis(10)).await;
    assert_eq!(world.memory.acked(&key("default")), Some(2));
    assert_eq!(world.gateway.metrics().saves.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_save_is_made_up_for_by_a_later_tick() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.publish();
    peer.dispatches(1).await;
    world.memory.state().broken_saves = Some(StoreError::Unavailable);
    peer.ack(1);
    peer.silence(5 * SECOND).await;
    assert_eq!(world.memory.acked(&key("default")), Some(0));
    assert!(world.gateway.metrics().save_failures.get() >= 3);
    world.memory.state().broken_saves = None;
    peer.silence(2 * SECOND).await;
    assert_eq!(world.memory.acked(&key("default")), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_save_loses_to_a_newer_holder_and_closes_4015() {
    let world = World::new();
    let (mut peer, ready) = world.consume().await;
    world.publish_many(2);
    peer.dispatches(2).await;
    let thief = world.memory.steal(&key("default"));
    peer.ack(2);
    assert_eq!(peer.closed().await, CloseCode::ConsumerReplaced);
    assert_eq!((world.memory.acked(&key("default")), world.memory.holder(&key("default"))), (Some(0), Some(thief)));
    let mut resumed = world.resume(&world.agent_token, &ready["gateway_session_id"]).await;
    assert_eq!(resumed.closed().await, CloseCode::UnknownSession);
}

#[tokio::test(start_paused = true)]
async fn a_session_with_something_on_its_way_is_verified_at_every_tick() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    world.publish();
    peer.dispatches(1).await;
    peer.silence(5 * SECOND).await;
    world.memory.steal(&key("default"));
    let stolen_at = world.clock.now();
    assert_eq!(peer.closed().await, CloseCode::ConsumerReplaced);
    assert!(world.clock.now().since(stolen_at) <= SECOND + Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_is_verified_first() {
    let world = without_ticks();
    let (mut peer, _) = world.consume().await;
    world.publish();
    peer.dispatches(1).await;
    world.memory.steal(&key("default"));
    assert_eq!(peer.closed().await, CloseCode::ConsumerReplaced, "and not a second dispatch");
}

#[tokio::test(start_paused = true)]
async fn what_was_acknowledged_elsewhere_does_not_come_again() {
    let world = without_ticks();
    let (mut peer, _) = world.consume().await;
    world.publish_many(3);
    peer.dispatches(3).await;
    world.memory.state().rows.get_mut(&key("default")).unwrap().acked = seq(2);
    assert_eq!(peer.dispatches(1).await, [(3, true)]);
    world.memory.state().rows.get_mut(&key("default")).unwrap().acked = seq(3);
    peer.silence(Duration::from_mins(3)).await;
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_over_rest_releases_the_window_at_once() {
    use agents::{ConsumerFeed, CursorStore};
    let agents = agents::Settings { max_inflight_events: 2, ack_persist_interval: HOUR, ..agents::Settings::default() };
    let world = World::with(WorldSettings { agents, ..WorldSettings::default() });
    let (mut peer, _) = world.consume().await;
    world.publish_many(4);
    peer.dispatches(2).await;
    peer.silence(SECOND).await;
    world.memory.ack(&key("default"), seq(2)).await.unwrap();
    world.feed.acked(&key("default"), seq(2));
    assert_eq!(peer.dispatches(2).await, [(3, false), (4, false)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_saved_when_the_connection_breaks() {
    let world = without_ticks();
    let (mut peer, _) = world.consume().await;
    world.publish_many(2);
    peer.dispatches(2).await;
    peer.ack(1);
    world.settle().await;
    assert_eq!(world.memory.acked(&key("default")), Some(0));
    peer.vanish();
    world.settle().await;
    assert_eq!(world.memory.acked(&key("default")), Some(1));
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_saved_before_a_disabled_agent_is_closed_with_4012() {
    let world = without_ticks();
    let (mut peer, _) = world.consume().await;
    world.publish_many(2);
    peer.dispatches(2).await;
    peer.ack(1);
    world.settle().await;
    world.disable(&agent());
    assert_eq!(peer.closed().await, CloseCode::Unauthenticated);
    assert_eq!(world.memory.acked(&key("default")), Some(1));
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_saved_before_an_expired_token_is_closed_with_4012() {
    let world = without_ticks();
    let token = world.token(&agent(), PrincipalKind::Agent, Some(world.clock.now().plus(20 * SECOND)));
    let (mut peer, _) = world.identify(&token, json!({})).await;
    peer.expect("catchup.complete").await;
    world.publish();
    peer.dispatches(1).await;
    peer.ack(1);
    peer.silence(19 * SECOND).await;
    let before = world.clock.now();
    assert_eq!(peer.closed().await, CloseCode::Unauthenticated);
    assert!(world.clock.now().since(before) <= SECOND);
    assert_eq!(world.memory.acked(&key("default")), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_suspended_tenant_is_closed_with_4016() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    let (mut person, _) = world.identify(&world.person_token, json!({})).await;
    person.expect("catchup.complete").await;
    world.suspend_tenant();
    assert_eq!(peer.closed_at_last().await, CloseCode::TenantSuspended);
    assert_eq!(person.closed_at_last().await, CloseCode::TenantSuspended);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_is_closed_with_4014_after_what_it_acknowledged_was_saved() {
    let world = without_ticks();
    let mut peer = world.dial_with(4, None);
    peer.expect("hello").await;
    peer.send(&json!({"op": "identify", "token": world.agent_token}));
    peer.expect("ready").await;
    peer.expect("catchup.complete").await;
    world.publish_many(2);
    peer.dispatches(2).await;
    peer.ack(2);
    world.settle().await;
    world.publish_many(200);
    tokio::time::sleep(Settings::default().write_timeout + SECOND / 2).await;
    assert_eq!(world.memory.acked(&key("default")), Some(2));
    assert_eq!(peer.closed_at_last().await, CloseCode::SlowConsumer);
    let slow = world.gateway.metrics().closes().find(|(code, _)| *code == CloseCode::SlowConsumer).unwrap();
    assert_eq!(slow.1, 1);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_slowly_but_steadily_is_no_slow_consumer() {
    let agents = agents::Settings { max_inflight_events: 1_000, ack_timeout: HOUR, ..agents::Settings::default() };
    let world = World::with(WorldSettings { agents, ..WorldSettings::default() });
    let mut peer = world.dial_with(4, None);
    peer.expect("hello").await;
    peer.send(&json!({"op": "identify", "token": world.agent_token}));
    peer.expect("ready").await;
    peer.expect("catchup.complete").await;
    world.publish_many(400);
    for number in 1..=400 {
        assert_eq!(peer.dispatches(1).await, [(number, false)]);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn shutting_down_saves_before_it_closes_with_4013_and_turns_newcomers_away() {
    let world = without_ticks();
    let (mut peer, _) = world.consume().await;
    let (mut person, _) = world.identify(&world.person_token, json!({})).await;
    let mut unidentified = world.dial();
    unidentified.expect("hello").await;
    person.expect("catchup.complete").await;
    world.publish_many(2);
    peer.dispatches(2).await;
    peer.ack(2);
    world.settle().await;
    world.gateway.drain();
    assert_eq!(world.dial().closed().await, CloseCode::ShuttingDown);
    assert!(world.gateway.flush_all(SECOND).await);
    assert_eq!(world.memory.acked(&key("default")), Some(2));
    peer.silence(SECOND).await;
    assert!(world.gateway.close_all(CloseCode::ShuttingDown, 5 * SECOND).await);
    assert_eq!(peer.closed().await, CloseCode::ShuttingDown);
    assert_eq!(unidentified.closed().await, CloseCode::ShuttingDown);
    assert_eq!(person.closed_at_last().await, CloseCode::ShuttingDown);
}

#[tokio::test(start_paused = true)]
async fn flushing_says_when_the_store_does_not_answer_in_time() {
    let world = without_ticks();
    let (mut peer, _) = world.consume().await;
    world.publish();
    peer.dispatches(1).await;
    peer.ack(1);
    world.settle().await;
    let _held = world.memory.gate.acquire_many(u32::try_from(world.memory.gate.available_permits() / 4_294_967_296).unwrap_or(1)).await;
    world.memory.gate.forget_permits(world.memory.gate.available_permits());
    assert!(!world.gateway.flush_all(SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn a_replaced_history_closes_4013_and_nothing_of_the_old_one_is_saved() {
    let world = without_ticks();
    let (mut peer, ready) = world.consume().await;
    world.publish_many(3);
    peer.dispatches(3).await;
    peer.ack(3);
    world.settle().await;
    {
        let mut state = world.memory.state();
        state.head.epoch = domain::SyncEpoch::new(uuid::Uuid::from_u128(0xe2));
        state.head.seq = seq(1);
        state.events.truncate(1);
    }
    assert_eq!(peer.closed().await, CloseCode::ShuttingDown);
    assert_eq!(world.memory.acked(&key("default")), Some(0));
    let mut resumed = world.resume(&world.agent_token, &ready["gateway_session_id"]).await;
    assert_eq!(resumed.closed().await, CloseCode::UnknownSession);
    let (_peer, ready) = world.identify(&world.agent_token, json!({})).await;
    assert_eq!((&ready["head_seq"], &ready["sync_epoch"]), (&json!(1), &json!("00000000-0000-0000-0000-0000000000e2")));
}

#[tokio::test(start_paused = true)]
async fn the_cost_of_a_tick_follows_activity() {
    let world = World::new();
    let mut peers = Vec::new();
    for number in 0..20 {
        let (mut peer, _) = world.identify(&world.agent_token, json!({"consumer": format!("c{number}")})).await;
        peer.expect("catchup.complete").await;
        peers.push(peer);
    }
    tokio::time::sleep(3 * SECOND).await;
    world.memory.take_calls();
    world.publish();
    for peer in &mut peers {
        peer.dispatches(1).await;
        peer.ack(1);
    }
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(world.memory.take_calls().len(), 20, "each is saved once");
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(world.memory.take_calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_acknowledged_in_another_process_releases_the_window_at_the_next_tick() {
    let agents = agents::Settings { max_inflight_events: 2, ..agents::Settings::default() };
    let world = World::with(WorldSettings { agents, ..WorldSettings::default() });
    let (mut peer, _) = world.consume().await;
    world.publish_many(4);
    peer.dispatches(2).await;
    peer.silence(5 * SECOND).await;
    world.memory.state().rows.get_mut(&key("default")).unwrap().acked = seq(2);
    let before = tokio::time::Instant::now();
    assert_eq!(peer.dispatches(2).await, [(3, false), (4, false)]);
    assert!(before.elapsed() <= agents::Settings::default().ack_persist_interval);
}
