//! The gateway's protocol: handshake, heartbeat, close codes, slow and vanished peers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{CloseFrame, Frame, Message, Peer, eventually};

use crate::support::World;

async fn closed_after(world: &World, message: Message) -> (u16, String) {
    let mut peer = Peer::open(world.url(), Some(world.cast.alpha.token())).await;
    peer.send_raw(message).await;
    peer.closed().await
}

#[tokio::test]
async fn every_malformed_frame_closes_with_its_code() {
    let world = World::with(&[("gateway.max_frame_bytes", "4KiB")]).await;
    let text = |text: &str| Message::text(text.to_owned());
    let cases = [
        (text("not json"), 4002),
        (text("[]"), 4002),
        (text("\"identify\""), 4002),
        (text("{}"), 4002),
        (text(r#"{"op":7}"#), 4002),
        (text(r#"{"op":"dance"}"#), 4001),
        (text(r#"{"op":"identify","nonsense":1}"#), 4002),
        (text(r#"{"op":"identify","op":"identify"}"#), 4002),
        (text(r#"{"op":"identify","cursor":-1}"#), 4002),
        (text(r#"{"op":"identify","cursor":9007199254740992}"#), 4002),
        (text(r#"{"op":"identify","cursor":1e300}"#), 4002),
        (text(r#"{"op":"identify","consumer":null}"#), 4002),
        (text(&format!(r#"{{"op":"identify","a":{}}}"#, "[".repeat(2000))), 4002),
        (text(r#"{"op":"identify","protocol":99}"#), 4010),
        (text(r#"{"op":"ack","seq":1}"#), 4003),
        (text(r#"{"op":"identify","token":"dsp_agent_wrong"}"#), 4012),
        (Message::binary(vec![1, 2, 3]), 4002),
        (text(&format!(r#"{{"op":"identify","token":"{}"}}"#, "x".repeat(5000))), 4011),
    ];
    for (message, code) in cases {
        let shown = format!("{message:.80?}");
        assert_eq!(closed_after(&world, message).await.0, code, "{shown}");
    }
}

#[tokio::test]
async fn an_op_after_identify_is_checked_too() {
    let world = World::new().await;
    let mut twice = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    twice.send(&json!({"op": "identify"})).await;
    assert_eq!(twice.closed().await, (4005, "already_identified".to_owned()));
    let mut broken = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    broken.send(&json!({"op": "ack", "seq": "1"})).await;
    assert_eq!(broken.closed().await.0, 4002);
    let mut unknown = Peer::open(world.url(), Some(world.cast.alpha.token())).await;
    unknown.send(&json!({"op": "resume", "gateway_session_id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70"})).await;
    assert_eq!(unknown.closed().await, (4006, "unknown_session".to_owned()));
}

#[tokio::test]
async fn a_slow_handshake_is_closed_with_4003() {
    let world = World::with(&[("gateway.identify_timeout", "300ms")]).await;
    let mut peer = Peer::open(world.url(), Some(world.cast.alpha.token())).await;
    assert_eq!(peer.closed().await, (4003, "not_identified".to_owned()));
}

#[tokio::test]
async fn the_token_may_come_in_the_identify_frame_and_never_in_the_url() {
    let world = World::new().await;
    let token = world.cast.alpha.token();
    let mut peer = Peer::open(world.url(), None).await;
    peer.send(&json!({"op": "identify", "token": token})).await;
    assert_eq!(peer.json().await["op"], "ready");
    let mut nobody = Peer::open(world.url(), None).await;
    nobody.send(&json!({"op": "identify"})).await;
    assert_eq!(nobody.closed().await.0, 4012);
    for path in ["/v1/gateway", "/v1/me", "/v1/events"] {
        for name in ["token", "access_token"] {
            let answer = world.cast.alpha.get(&format!("{path}?{name}={token}")).await;
            answer.expect_problem(400, "validation_failed");
            assert!(!String::from_utf8_lossy(&answer.body).contains(token), "the token is repeated");
        }
    }
    assert!(!world.server.log().contains(token), "the token is in the log");
}

#[tokio::test]
async fn a_heartbeat_is_answered_and_a_silent_peer_is_closed_within_two_intervals() {
    let world = World::with(&[("gateway.heartbeat_interval", "300ms")]).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    peer.send(&json!({"op": "heartbeat"})).await;
    peer.json_of("heartbeat_ack").await;
    // This client answers pings, so it lives although it says nothing.
    assert_eq!(peer.try_next(Duration::from_millis(1500)).await.map(|frame| matches!(frame, Frame::Closed(..))), None);
    // A peer that is connected and never says anything again, not even a pong: black-holed.
    let mut raw = raw_consumer(&world, "holed");
    let since = Instant::now();
    let mut rest = Vec::new();
    raw.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    tokio::task::spawn_blocking(move || raw.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(since.elapsed() < Duration::from_secs(3), "it took {:?}", since.elapsed());
}

/// A consumer on a bare TCP socket, which does only what a test makes it do.
fn raw_consumer(world: &World, consumer: &str) -> TcpStream {
    let address = world.url().trim_start_matches("http://").to_owned();
    let mut socket = TcpStream::connect(&address).unwrap();
    let upgrade = format!(
        "GET /v1/gateway HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer {}\r\n\r\n",
        world.cast.alpha.token()
    );
    socket.write_all(upgrade.as_bytes()).unwrap();
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101");
    let identify = json!({"op": "identify", "consumer": consumer}).to_string();
    // A masked text frame with a mask of zeros.
    let mut frame = vec![0x81, 0x80 | u8::try_from(identify.len()).unwrap(), 0, 0, 0, 0];
    frame.extend_from_slice(identify.as_bytes());
    socket.write_all(&frame).unwrap();
    socket
}

#[tokio::test]
async fn a_stalled_reader_is_closed_costs_bounded_memory_and_disturbs_nobody() {
    let world =
        World::with(&[("gateway.write_timeout", "1s"), ("agent.max_inflight_events", "100000"), ("sync.ring_max_bytes", "1MiB")]).await;
    let mut lively = Peer::consumer(world.url(), world.cast.alpha.token(), "lively").await;
    let stalled: Vec<TcpStream> = (0..20).map(|n| raw_consumer(&world, &format!("stalled-{n}"))).collect();
    let before = world.server.resident_bytes();
    let payload = "x".repeat(16 * 1024);
    let mut last = 0;
    for _ in 0..60 {
        // The lively one keeps reading; 1,200 events are 20 MiB.
        let events: Vec<_> = (0..20).map(|_| json!({"type": "big", "channel": "support/general", "payload": {"text": payload}})).collect();
        let answer = world.cast.producer.post("/v1/events", &json!({"events": events})).await.expect(201);
        last = answer["head_seq"].as_u64().unwrap();
        while lively.json_of("dispatch").await["event"]["seq"] != last {}
    }
    assert!(last > 1200);
    let grown = world.server.resident_bytes().saturating_sub(before);
    // 20 readers times 20 MiB of events are on the way; what the server holds of them is its buffers.
    assert!(grown < 120 * 1024 * 1024, "memory grew by {} MiB", grown >> 20);
    eventually("the stalled readers are closed", async || {
        let metrics = String::from_utf8(world.cast.owner.get("/metrics").await.body.to_vec()).unwrap();
        let slow = metrics.lines().find(|line| line.contains("4014") || line.contains("slow_consumer"));
        slow.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).filter(|count| *count >= 20.0)
    })
    .await;
    drop(stalled);
}

#[tokio::test]
async fn hello_and_ready_say_what_a_client_needs() {
    let world = World::new().await;
    let peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    let members = [
        "gateway_session_id",
        "principal",
        "head_seq",
        "sync_epoch",
        "consumer",
        "acked_seq",
        "max_inflight_events",
        "ack_timeout_ms",
        "resume_window_ms",
    ];
    for member in members {
        assert!(peer.ready.get(member).is_some(), "ready lacks {member}: {}", peer.ready);
    }
    let with_hints = json!({"op": "identify", "consumer": "hints", "inbox_hints": true});
    Peer::identify(world.url(), world.cast.alpha.token(), with_hints).await;
}

#[tokio::test]
async fn too_many_frames_are_closed_with_4008() {
    let world = World::with(&[("gateway.max_frames_per_second", "20")]).await;
    let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "default").await;
    for _ in 0..500 {
        if peer.try_send(&json!({"op": "heartbeat"})).await.is_none() {
            break;
        }
    }
    assert_eq!(peer.closed().await.0, 4008);
}

#[tokio::test]
async fn a_peers_close_is_answered_with_its_own_code() {
    let world = World::new().await;
    let close = |code: u16| Message::Close(Some(CloseFrame { code: code.into(), reason: "done".into() }));
    for code in [1000, 1001] {
        let mut peer = Peer::consumer(world.url(), world.cast.alpha.token(), "polite").await;
        peer.send_raw(close(code)).await;
        assert_eq!(peer.closed().await.0, code);
        let mut stranger = Peer::open(world.url(), None).await;
        stranger.send_raw(close(code)).await;
        assert_eq!(stranger.closed().await.0, code, "also before identify");
    }
}
