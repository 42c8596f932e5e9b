//! The gateway protocol: handshake, frames, heartbeats, close codes (design/stream.md, "Gateway protocol").

use std::time::Duration;

use authz::{PrincipalKind, Scope};
use doorstep_gateway::{Incoming, Settings};
use protocol::CloseCode;
use serde_json::{Value, json};

use crate::support::{World, WorldSettings, agent, key};

const SECOND: Duration = Duration::from_secs(1);

/// How a connection ends whose first frame is this.
async fn first_frame(world: &World, incoming: Incoming) -> CloseCode {
    let mut peer = world.dial();
    peer.expect("hello").await;
    peer.send_raw(incoming);
    peer.closed().await
}

/// How an identified connection ends that sends this.
async fn later_frame(world: &World, incoming: Incoming) -> CloseCode {
    let (mut peer, _) = world.consume().await;
    peer.send_raw(incoming);
    peer.closed().await
}

fn text(frame: &Value) -> Incoming {
    Incoming::Text(frame.to_string().into())
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_greeted_and_then_has_so_long_to_identify() {
    let world = World::new();
    let mut peer = world.dial();
    let hello = peer.expect("hello").await;
    assert_eq!((&hello["heartbeat_interval_ms"], &hello["protocol"]), (&json!(30_000), &json!(1)));
    peer.silence(Settings::default().identify_timeout.saturating_sub(SECOND)).await;
    assert_eq!(peer.closed().await, CloseCode::NotIdentified);
}

#[tokio::test(start_paused = true)]
async fn an_op_before_identify_closes_4003() {
    let world = World::new();
    for frame in [json!({"op": "ack", "seq": 1}), json!({"op": "ack", "seq": -1}), json!({"op": "heartbeat"})] {
        assert_eq!(first_frame(&world, text(&frame)).await, CloseCode::NotIdentified, "{frame}");
    }
}

#[tokio::test(start_paused = true)]
async fn frames_that_are_not_understood_close_with_their_code_before_and_after_identify() {
    let world = World::new();
    let cases = || {
        [
            (text(&json!({"op": "sing"})), CloseCode::UnknownOp),
            (text(&json!({"no": "op"})), CloseCode::InvalidFrame),
            (text(&json!({"op": "heartbeat", "extra": 1})), CloseCode::InvalidFrame),
            (text(&json!({"op": "ack", "seq": "1"})), CloseCode::InvalidFrame),
            (text(&json!({"op": "ack", "seq": 1.5})), CloseCode::InvalidFrame),
            (Incoming::Text("{not json".into()), CloseCode::InvalidFrame),
            (Incoming::Text("".into()), CloseCode::InvalidFrame),
            (Incoming::Binary, CloseCode::InvalidFrame),
            (Incoming::Invalid, CloseCode::InvalidFrame),
            (Incoming::TooLarge, CloseCode::FrameTooLarge),
        ]
    };
    for (incoming, code) in cases() {
        let label = format!("{incoming:?}");
        let seen = first_frame(&world, incoming).await;
        // Before identify a well-formed op with a wrong value is an op before identify.
        assert!(seen == code, "first {label}: {seen}");
    }
    for (incoming, code) in cases() {
        let label = format!("{incoming:?}");
        assert_eq!(later_frame(&world, incoming).await, code, "later {label}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_consumer_name_closes_4002_and_takes_nothing() {
    let world = World::new();
    for name in [json!("-a"), json!("A"), json!(""), json!("a/b"), json!("x".repeat(65)), json!(7), json!(null)] {
        let frame = json!({"op": "identify", "token": world.agent_token, "consumer": name});
        assert_eq!(first_frame(&world, text(&frame)).await, CloseCode::InvalidFrame, "{name}");
    }
    assert!(world.memory.state().rows.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_second_identify_or_resume_on_one_connection_closes_4005() {
    let world = World::new();
    let again = [
        json!({"op": "identify", "token": world.agent_token}),
        json!({"op": "resume", "token": world.agent_token, "gateway_session_id": "00000000-0000-0000-0000-000000000001"}),
    ];
    for frame in again {
        assert_eq!(later_frame(&world, text(&frame)).await, CloseCode::AlreadyIdentified, "{frame}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_not_spoken_closes_4010_and_the_spoken_one_does_not() {
    let world = World::new();
    let frame = json!({"op": "identify", "token": world.agent_token, "protocol": 2});
    assert_eq!(first_frame(&world, text(&frame)).await, CloseCode::UnsupportedProtocol);
    world.identify(&world.agent_token, json!({"protocol": 1})).await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_or_wrong_credential_closes_4012() {
    let world = World::new();
    assert_eq!(first_frame(&world, text(&json!({"op": "identify"}))).await, CloseCode::Unauthenticated);
    for token in ["nonsense", "dsp_agent_", authz::TokenSecret::generate(PrincipalKind::Agent).unwrap().reveal()] {
        let frame = json!({"op": "identify", "token": token});
        assert_eq!(first_frame(&world, text(&frame)).await, CloseCode::Unauthenticated);
    }
    world.disable(&agent());
    let frame = json!({"op": "identify", "token": world.agent_token});
    assert_eq!(first_frame(&world, text(&frame)).await, CloseCode::Unauthenticated);
}

#[tokio::test(start_paused = true)]
async fn the_credential_of_the_upgrade_is_taken_and_a_token_in_the_frame_wins_over_it() {
    let world = World::new();
    let mut peer = world.dial_with(100, Some(&world.agent_token));
    peer.expect("hello").await;
    peer.send(&json!({"op": "identify"}));
    let ready = peer.expect("ready").await;
    assert_eq!(ready["principal"], json!({"kind": "agent", "id": "alpha"}));
    let mut peer = world.dial_with(100, Some("dsp_agent_wrong"));
    peer.expect("hello").await;
    peer.send(&json!({"op": "identify", "token": world.person_token}));
    assert_eq!(peer.expect("ready").await["principal"], json!({"kind": "person", "id": "sam"}));
}

#[tokio::test(start_paused = true)]
async fn a_token_without_the_scope_closes_4018_and_takes_nothing() {
    let world = World::new();
    let session = {
        let (peer, ready) = world.consume().await;
        world.settle().await;
        peer.vanish();
        world.settle().await;
        ready["gateway_session_id"].clone()
    };
    let narrow = world.token(&agent(), PrincipalKind::Agent, None);
    let scopes = [Scope::Publish].into_iter().collect();
    world.memory.state().tokens.last_mut().unwrap().scopes = scopes;
    world.memory.take_calls();
    let frame = json!({"op": "identify", "token": narrow, "consumer": "narrow"});
    assert_eq!(first_frame(&world, text(&frame)).await, CloseCode::Forbidden);
    let frame = json!({"op": "resume", "token": narrow, "gateway_session_id": session});
    assert_eq!(first_frame(&world, text(&frame)).await, CloseCode::Forbidden);
    assert_eq!((world.memory.acked(&key("narrow")), world.memory.take_calls()), (None, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_is_answered() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    peer.send(&json!({"op": "heartbeat"}));
    assert_eq!(peer.expect("heartbeat_ack").await, json!({"op": "heartbeat_ack"}));
}

#[tokio::test(start_paused = true)]
async fn peers_are_pinged_and_a_pong_is_a_sign_of_life() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    peer.silence(Duration::from_mins(10)).await;
    assert!((19..=21).contains(&peer.pings), "{}", peer.pings);
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_freed_within_two_heartbeat_intervals() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    peer.answers_pings = false;
    let silent = 2 * Settings::default().heartbeat_interval;
    peer.silence(silent.saturating_sub(SECOND)).await;
    assert_eq!(peer.closed().await, CloseCode::HeartbeatTimeout);
    world.settle().await;
    assert_eq!(world.gateway.metrics().connections.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_black_holed_peer_is_freed_within_two_heartbeat_intervals_also_while_events_flow() {
    let world = World::new();
    let (mut peer, _) = world.consume().await;
    peer.answers_pings = false;
    for _ in 0..61 {
        world.publish();
        tokio::time::sleep(SECOND).await;
    }
    assert_eq!(world.gateway.metrics().connections.get(), 0);
    assert_eq!(peer.closed_at_last().await, CloseCode::HeartbeatTimeout);
}

#[tokio::test(start_paused = true)]
async fn too_many_frames_close_4008() {
    let gateway = Settings { max_frames_per_second: 50, ..Settings::default() };
    let world = World::with(WorldSettings { gateway, ..WorldSettings::default() });
    let (mut peer, _) = world.consume().await;
    for _ in 0..20 {
        for _ in 0..40 {
            peer.ack(0);
        }
        tokio::time::sleep(SECOND).await;
    }
    peer.silence(SECOND).await;
    for _ in 0..60 {
        peer.ack(0);
    }
    assert_eq!(peer.closed().await, CloseCode::RateLimited);
    let (mut peer, _) = world.consume().await;
    for _ in 0..60 {
        peer.send_raw(Incoming::Alive);
    }
    assert_eq!(peer.closed().await, CloseCode::RateLimited, "pings cost something too");
}

#[tokio::test(start_paused = true)]
async fn a_takeover_does_not_wait_for_a_peer_that_does_not_read() {
    let world = World::new();
    let mut stuck = world.dial_with(2, None);
    stuck.expect("hello").await;
    stuck.send(&json!({"op": "identify", "token": world.agent_token}));
    stuck.expect("ready").await;
    stuck.expect("catchup.complete").await;
    world.publish_many(100);
    world.settle().await;
    let before = tokio::time::Instant::now();
    let (_peer, _) = world.identify(&world.agent_token, json!({})).await;
    assert!(before.elapsed() < SECOND);
    assert_eq!(stuck.closed_at_last().await, CloseCode::ConsumerReplaced);
}

#[tokio::test(start_paused = true)]
async fn no_frame_has_a_null() {
    fn has_null(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(items) => items.iter().any(has_null),
            Value::Object(members) => members.values().any(has_null),
            _ => false,
        }
    }
    let world = World::new();
    let (mut peer, ready) = world.consume().await;
    world.publish();
    let event = peer.frame().await;
    peer.ack(9);
    let error = peer.frame().await;
    let (_person, person) = world.identify(&world.person_token, json!({"cursor": 9})).await;
    for frame in [ready, event, error, person] {
        assert!(!has_null(&frame), "{frame}");
    }
}
