//! Slow applications, and servers that send what they should not.

use std::time::Duration;

use doorstep_client::{ConsumerError, ConsumerOptions};
use protocol::CloseCode;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::gateway::{Gateway, dispatch, ready, with};
use crate::support::{client_of, client_with, delivery, error, event, quick, within};

#[tokio::test]
async fn a_slow_application_stops_the_reading_and_not_the_heartbeats() {
    let gateway = Gateway::bind().await;
    let options = ConsumerOptions { max_buffered_events: 4, ..quick() };
    let mut consumer = client_of(gateway.address).consumer(options).connect();
    let (mut peer, _) = gateway.greeted_every(30).await;
    peer.say(ready(0)).await;
    let filling = "x".repeat(64 << 10);
    let big = |seq: u64| dispatch(with(event(seq), "payload", json!({"filling": filling})));
    // More than the buffers between the two can hold: the sending has to come to a halt.
    let mut sent = 0;
    while tokio::time::timeout(Duration::from_millis(500), peer.push(big(sent + 1))).await.is_ok() {
        sent += 1;
        assert!(sent < 1_000, "64 MiB were taken from a server although nobody asked for them");
    }
    // Many intervals have passed without a word from the server being read; the client still shows that it lives.
    for _ in 0..3 {
        assert_eq!(peer.hear().await["op"], "heartbeat");
    }
    assert!(gateway.is_quiet(), "a server that is not listened to is not silent");
    for expected in 1..=sent {
        assert_eq!(delivery(&mut consumer).await.seq().get(), expected);
    }
}

#[tokio::test]
async fn the_buffer_is_bounded_in_bytes_too_and_takes_a_single_larger_event() {
    let gateway = Gateway::bind().await;
    let options = ConsumerOptions { max_buffered_bytes: 1, ..quick() };
    let mut consumer = client_of(gateway.address).consumer(options).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch(1..=20).await;
    for expected in 1..=20 {
        assert_eq!(delivery(&mut consumer).await.seq().get(), expected);
    }
}

#[tokio::test]
async fn garbage_ends_the_connection_and_in_the_end_the_stream() {
    for garbage in ["", "nonsense", "[]", "{}", r#"{"op":7}"#, r#"{"op":"cursor"}"#, r#"{"op":"dispatch","event":{"seq":1}}"#] {
        let gateway = Gateway::bind().await;
        let mut consumer = client_of(gateway.address).consumer(quick()).connect();
        for attempt in 0..3 {
            let (mut peer, _) = gateway.greeted().await;
            peer.say(if attempt == 0 { ready(0) } else { json!({"op": "resumed", "head_seq": 9, "acked_seq": 0}) }).await;
            peer.text(garbage.to_owned()).await;
            assert!(peer.hear_or_end().await.is_none(), "{garbage}: the connection ends");
        }
        let end = error(&mut consumer).await;
        assert!(matches!(end, ConsumerError::Unreadable { .. }), "{garbage}: {end}");
        assert!(within(consumer.next()).await.is_none());
    }
}

#[tokio::test]
async fn a_single_fault_of_the_server_is_survived() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.message(Message::binary(vec![1, 2, 3])).await;
    assert!(peer.hear_or_end().await.is_none());
    let (mut peer, _) = gateway.greeted().await;
    peer.say(json!({"op": "resumed", "head_seq": 9, "acked_seq": 0})).await;
    peer.dispatch([1]).await;
    assert_eq!(delivery(&mut consumer).await.seq().get(), 1);
}

#[tokio::test]
async fn unknown_ops_members_and_words_are_ignored() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let (mut peer, _) = gateway.greeted().await;
    peer.say(with(ready(0), "novelty", json!({"a": 1}))).await;
    peer.say(json!({"op": "novelty", "seq": "x"})).await;
    peer.say(dispatch(with(with(event(1), "novelty", 1), "actor", json!({"kind": "robot", "id": "r", "novelty": 1})))).await;
    assert_eq!(delivery(&mut consumer).await.event.actor.kind.as_str(), "robot");
}

#[tokio::test]
async fn a_frame_above_the_bound_is_not_read_into_memory() {
    let gateway = Gateway::bind().await;
    let client = client_with(gateway.address, |options| options.max_frame_bytes = 4 << 10);
    let mut consumer = client.consumer(quick()).connect();
    for attempt in 0..3 {
        let (mut peer, _) = gateway.greeted().await;
        peer.say(if attempt == 0 { ready(0) } else { json!({"op": "resumed", "head_seq": 9, "acked_seq": 0}) }).await;
        peer.say(dispatch(with(event(1), "payload", json!({"filling": "x".repeat(8 << 10)})))).await;
        assert!(peer.hear_or_end().await.is_none());
    }
    let end = error(&mut consumer).await;
    assert!(end.to_string().contains("4096"), "{end}");
}

#[tokio::test]
async fn a_server_that_closes_at_once_is_not_hammered() {
    let gateway = Gateway::bind().await;
    let backoff = doorstep_client::BackoffOptions {
        base: Duration::from_millis(40),
        cap: Duration::from_hours(1),
        stable_after: Duration::from_hours(1),
    };
    let _consumer = client_of(gateway.address).consumer(ConsumerOptions { backoff, ..quick() }).connect();
    let mut connections = 0;
    let storm = async {
        loop {
            let (mut peer, greeting) = gateway.greeted().await;
            let begun = if greeting["op"] == "resume" { json!({"op": "resumed", "head_seq": 9, "acked_seq": 0}) } else { ready(0) };
            peer.say(begun).await;
            peer.close(CloseCode::Internal.number()).await;
            connections += 1;
        }
    };
    let _: Result<(), _> = tokio::time::timeout(Duration::from_secs(1), storm).await;
    // Ceilings of 40, 80, 160, 320, 640, 1280 ms: even short throws of the dice leave few.
    assert!((2..=20).contains(&connections), "{connections} connections in a second");
}
