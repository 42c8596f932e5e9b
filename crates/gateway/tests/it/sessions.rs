//! Sessions: takeover, resume, limits (seed 004, design note 4; design/stream.md, "Peace treaty").

use std::time::Duration;

use agents::Holder;
use doorstep_gateway::Settings;
use protocol::CloseCode;
use serde_json::{Value, json};

use crate::support::{Call, World, WorldSettings, key};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

fn holder(ready: &Value) -> Holder {
    Holder::Gateway(ready["gateway_session_id"].as_str().unwrap().parse().unwrap())
}

/// A world whose ticker does not come by.
fn without_ticks() -> World {
    let agents = agents::Settings { ack_persist_interval: HOUR, ..agents::Settings::default() };
    World::with(WorldSettings { agents, ..WorldSettings::default() })
}

#[tokio::test(start_paused = true)]
async fn a_second_identify_takes_the_consumer_over_and_closes_the_first_with_4015() {
    let world = without_ticks();
    let (mut first, first_ready) = world.consume().await;
    let (mut other, _) = world.identify(&world.agent_token, json!({"consumer": "other"})).await;
    other.expect("catchup.complete").await;
    world.publish_many(3);
    first.dispatches(3).await;
    first.ack(2);
    world.settle().await;
    let (mut second, ready) = world.identify(&world.agent_token, json!({})).await;
    assert_eq!(first.closed().await, CloseCode::ConsumerReplaced);
    assert_eq!(ready["acked_seq"], 2, "what the first acknowledged was stored before the takeover");
    assert_eq!(world.memory.holder(&key("default")), Some(holder(&ready)));
    assert_eq!(second.dispatches(1).await, [(3, false)]);
    world.publish();
    second.expect("catchup.complete").await;
    assert_eq!(second.dispatches(1).await, [(4, false)]);
    assert_eq!(other.dispatches(4).await.len(), 4, "another consumer of the agent stays open");
    let mut resumed = world.resume(&world.agent_token, &first_ready["gateway_session_id"]).await;
    assert_eq!(resumed.closed().await, CloseCode::UnknownSession);
}

#[tokio::test(start_paused = true)]
async fn a_takeover_flushes_then_takes_then_tells_the_old_connection() {
    let world = without_ticks();
    let (mut first, ready) = world.consume().await;
    world.publish();
    first.dispatches(1).await;
    first.ack(1);
    world.settle().await;
    world.memory.take_calls();
    let held = world.memory.gate.acquire_many(1_000_000).await.unwrap();
    let rest = world.memory.gate.available_permits();
    world.memory.gate.forget_permits(rest);
    let mut second = world.dial();
    second.expect("hello").await;
    second.send(&json!({"op": "identify", "token": world.agent_token}));
    first.silence(5 * SECOND).await;
    assert_eq!(world.memory.take_calls(), []);
    drop(held);
    let second_ready = second.expect("ready").await;
    assert_eq!(first.closed().await, CloseCode::ConsumerReplaced);
    assert_eq!(world.memory.take_calls(), [Call::Save(holder(&ready), Some(1)), Call::Take(holder(&second_ready))]);
}

#[tokio::test(start_paused = true)]
async fn a_takeover_that_the_store_refuses_leaves_the_old_connection_alone() {
    let world = World::new();
    let (mut first, _) = world.consume().await;
    let foreign = world.principal(&domain::PrincipalId::parse("beta").unwrap(), authz::PrincipalKind::Agent);
    // Another agent has consumers of its own.
    let (mut foreign, _) = world.identify(&foreign, json!({})).await;
    foreign.expect("catchup.complete").await;
    world.publish();
    assert_eq!(first.dispatches(1).await.len(), 1);
    assert_eq!(foreign.dispatches(1).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_late_teardown_of_a_replaced_session_leaves_the_new_one_alone() {
    let world = World::new();
    // The first peer does not read: its connection ends long after the takeover.
    let mut first = world.dial_with(2, None);
    first.expect("hello").await;
    first.send(&json!({"op": "identify", "token": world.agent_token}));
    first.expect("ready").await;
    first.expect("catchup.complete").await;
    world.publish_many(50);
    world.settle().await;
    let (mut second, ready) = world.identify(&world.agent_token, json!({})).await;
    second.dispatches(50).await;
    assert_eq!(world.gateway.metrics().connections.get(), 2, "the first is still being closed");
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(world.gateway.metrics().connections.get(), 1);
    second.expect("catchup.complete").await;
    world.publish();
    assert_eq!(second.dispatches(1).await, [(51, false)]);
    second.ack(51);
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!((world.memory.acked(&key("default")), world.memory.holder(&key("default"))), (Some(51), Some(holder(&ready))));
    // And the process still knows whom to tell when the consumer is taken again.
    let (_third, _) = world.identify(&world.agent_token, json!({})).await;
    assert_eq!(second.closed().await, CloseCode::ConsumerReplaced);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_keeps_its_consumer_and_continues_from_what_it_holds_in_memory() {
    let world = without_ticks();
    let (mut peer, ready) = world.consume().await;
    world.publish_many(3);
    peer.dispatches(3).await;
    // The store is away when the connection breaks: what was acknowledged lives in memory only.
    world.memory.state().broken_saves = Some(domain::StoreError::Unavailable);
    peer.ack(2);
    world.settle().await;
    peer.vanish();
    world.settle().await;
    world.memory.state().broken_saves = None;
    assert_eq!(world.memory.acked(&key("default")), Some(0));
    world.publish();
    let mut peer = world.resume(&world.agent_token, &ready["gateway_session_id"]).await;
    let resumed = peer.expect("resumed").await;
    assert_eq!((&resumed["acked_seq"], &resumed["head_seq"]), (&json!(2), &json!(4)));
    assert_eq!(peer.dispatches(2).await, [(3, false), (4, false)], "a new connection is a fresh window");
    peer.expect("catchup.complete").await;
    assert_eq!((world.memory.acked(&key("default")), world.memory.holder(&key("default"))), (Some(2), Some(holder(&ready))));
    assert_eq!(world.gateway.metrics().resumes.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resume_closes_the_connection_that_the_session_still_has() {
    let world = World::new();
    let (mut old, ready) = world.consume().await;
    let mut new = world.resume(&world.agent_token, &ready["gateway_session_id"]).await;
    new.expect("resumed").await;
    assert_eq!(old.closed().await, CloseCode::ConsumerReplaced, "for an agent it is a consumer replaced");
    new.expect("catchup.complete").await;
    world.publish();
    assert_eq!(new.dispatches(1).await, [(1, false)]);

    let (mut old, ready) = world.identify(&world.person_token, json!({})).await;
    old.expect("catchup.complete").await;
    let mut new = world.resume(&world.person_token, &ready["gateway_session_id"]).await;
    new.expect("resumed").await;
    assert_eq!(old.closed().await, CloseCode::SessionReplaced, "for a person it is a session resumed elsewhere");
}

#[tokio::test(start_paused = true)]
async fn the_old_connection_of_a_resumed_session_takes_nothing_with_it() {
    let world = World::new();
    let (_, ready) = world.consume().await;
    for _ in 0..5 {
        let mut peer = world.resume(&world.agent_token, &ready["gateway_session_id"]).await;
        peer.expect("resumed").await;
        peer.expect("catchup.complete").await;
        world.settle().await;
        // The next one comes while this one is open, then this one goes.
        let mut next = world.resume(&world.agent_token, &ready["gateway_session_id"]).await;
        next.expect("resumed").await;
        assert_eq!(peer.closed().await, CloseCode::ConsumerReplaced);
        tokio::time::sleep(3 * SECOND).await;
        next.expect("catchup.complete").await;
        let number = world.publish();
        assert_eq!(next.dispatches(1).await, [(number, false)]);
        next.ack(number);
        world.settle().await;
    }
    assert_eq!(world.gateway.metrics().sessions.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_a_foreign_and_an_expired_session_cannot_be_resumed() {
    let world = World::new();
    let (peer, ready) = world.consume().await;
    let session = ready["gateway_session_id"].clone();
    world.settle().await;
    peer.vanish();
    let mut stranger = world.resume(&world.agent_token, &json!("00000000-0000-0000-0000-0000000000aa")).await;
    assert_eq!(stranger.closed().await, CloseCode::UnknownSession);
    let mut foreign = world.resume(&world.person_token, &session).await;
    assert_eq!(foreign.closed().await, CloseCode::UnknownSession);
    tokio::time::sleep(Duration::from_secs(61)).await;
    let mut late = world.resume(&world.agent_token, &session).await;
    assert_eq!(late.closed().await, CloseCode::SessionExpired);
    tokio::time::sleep(Duration::from_mins(5)).await;
    let mut later = world.resume(&world.agent_token, &session).await;
    assert_eq!(later.closed().await, CloseCode::UnknownSession);
    assert_eq!(world.gateway.metrics().sessions.get(), 0, "what has expired is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_consumer_was_taken_by_another_process_cannot_be_resumed() {
    let world = World::new();
    let (peer, ready) = world.consume().await;
    world.settle().await;
    peer.vanish();
    world.settle().await;
    world.memory.steal(&key("default"));
    let mut peer = world.resume(&world.agent_token, &ready["gateway_session_id"]).await;
    assert_eq!(peer.closed().await, CloseCode::UnknownSession);
}

#[tokio::test(start_paused = true)]
async fn a_takeover_storm_is_damped_and_the_present_holder_goes_on() {
    let agents = agents::Settings { takeover_burst: 3, ..agents::Settings::default() };
    let world = World::with(WorldSettings { agents, ..WorldSettings::default() });
    let (mut holding, _) = world.consume().await;
    for _ in 0..3 {
        let (mut next, _) = world.consume().await;
        assert_eq!(holding.closed().await, CloseCode::ConsumerReplaced);
        std::mem::swap(&mut holding, &mut next);
    }
    let mut refused = world.dial();
    refused.expect("hello").await;
    refused.send(&json!({"op": "identify", "token": world.agent_token}));
    assert_eq!(refused.closed().await, CloseCode::RateLimited);
    assert_eq!(world.gateway.metrics().takeovers_refused.get(), 1);
    world.publish();
    assert_eq!(holding.dispatches(1).await, [(1, false)]);
    holding.ack(1);
    holding.silence(Duration::from_secs(61)).await;
    let (_next, _) = world.identify(&world.agent_token, json!({})).await;
    assert_eq!(holding.closed_at_last().await, CloseCode::ConsumerReplaced);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_comes_and_goes_makes_no_storm() {
    let agents = agents::Settings { takeover_burst: 1, ..agents::Settings::default() };
    let world = World::with(WorldSettings { agents, ..WorldSettings::default() });
    for _ in 0..20 {
        let (peer, _) = world.consume().await;
        peer.vanish();
        world.settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn connections_of_a_principal_and_of_the_process_are_bounded() {
    let gateway = Settings { max_connections_per_principal: 2, max_connections: 4, ..Settings::default() };
    let world = World::with(WorldSettings { gateway, ..WorldSettings::default() });
    let (_first, _) = world.identify(&world.person_token, json!({})).await;
    let (second, _) = world.identify(&world.person_token, json!({})).await;
    let mut third = world.dial();
    third.expect("hello").await;
    third.send(&json!({"op": "identify", "token": world.person_token}));
    assert_eq!(third.closed().await, CloseCode::RateLimited);
    // Somebody else is not concerned.
    let (_agent, _) = world.consume().await;
    let mut fourth = world.dial();
    fourth.expect("hello").await;
    world.settle().await;
    let mut fifth = world.dial();
    assert_eq!(fifth.closed().await, CloseCode::RateLimited, "the process has as many as it may");
    drop(fourth);
    second.vanish();
    world.settle().await;
    let (_again, _) = world.identify(&world.person_token, json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn sessions_that_wait_to_be_resumed_make_room_for_connections() {
    let gateway = Settings { max_connections_per_principal: 3, ..Settings::default() };
    let world = World::with(WorldSettings { gateway, ..WorldSettings::default() });
    let mut sessions = Vec::new();
    for _ in 0..6 {
        let (peer, ready) = world.identify(&world.person_token, json!({})).await;
        sessions.push(ready["gateway_session_id"].clone());
        peer.vanish();
        world.settle().await;
        assert!(world.gateway.metrics().sessions.get() <= 3);
    }
    let mut oldest = world.resume(&world.person_token, &sessions[0]).await;
    assert_eq!(oldest.closed().await, CloseCode::UnknownSession);
    let mut latest = world.resume(&world.person_token, &sessions[5]).await;
    latest.expect("resumed").await;
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_connection_is_small() {
    let world = World::new();
    let (connection, _peer) = crate::support::connect(1);
    let own = size_of_val(&connection);
    let serving = size_of_val(&world.gateway.serve(connection, None, None));
    assert!(serving <= 2 * own + 2_048, "{serving} bytes, of which {own} for the connection");
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_makes_no_room_for_others() {
    let gateway = Settings { max_connections_per_principal: 2, ..Settings::default() };
    let world = World::with(WorldSettings { gateway, ..WorldSettings::default() });
    let (peer, ready) = world.identify(&world.person_token, json!({})).await;
    let session = &ready["gateway_session_id"];
    world.settle().await;
    peer.vanish();
    world.settle().await;
    let mut peer = world.resume(&world.person_token, session).await;
    peer.expect("resumed").await;
    let (_other, _) = world.identify(&world.person_token, json!({})).await;
    peer.vanish();
    world.settle().await;
    let mut again = world.resume(&world.person_token, session).await;
    again.expect("resumed").await;
}
