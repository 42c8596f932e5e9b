//! How a consumer connects, resumes, and connects again.

use std::time::Duration;

use doorstep_client::{ConsumerError, ConsumerOptions, Link};
use protocol::CloseCode;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::Message;

use crate::gateway::{Gateway, LONG, ready, with};
use crate::support::{client_of, client_with, delivery, error, quick, within};

#[tokio::test]
async fn the_first_connection_identifies_the_consumer_and_names_no_cursor() {
    let gateway = Gateway::bind().await;
    let _consumer = client_of(gateway.address).consumer(quick()).connect();
    let (peer, greeting) = gateway.greeted().await;
    assert_eq!(greeting, json!({"op": "identify", "protocol": 1, "consumer": "work"}));
    assert_eq!(peer.path, "/v1/gateway");
}

#[tokio::test]
async fn a_lost_connection_is_resumed_first_and_identified_when_the_session_is_unknown() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let peer = gateway.session(0).await;
    drop(peer);
    let (peer, greeting) = gateway.greeted().await;
    assert_eq!(greeting, json!({"op": "resume", "gateway_session_id": "0197f0ab-5a01-7c55-9d2e-6b0f4a7d2c11"}));
    peer.close(CloseCode::UnknownSession.number()).await;
    let (mut peer, greeting) = gateway.greeted().await;
    assert_eq!(greeting["op"], "identify");
    peer.say(ready(0)).await;
    peer.dispatch([1]).await;
    assert_eq!(delivery(&mut consumer).await.seq().get(), 1);
}

#[tokio::test]
async fn a_resumed_session_goes_on_without_identifying() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    drop(gateway.session(0).await);
    let (mut peer, _) = gateway.greeted().await;
    peer.say(json!({"op": "resumed", "head_seq": 9, "acked_seq": 0})).await;
    peer.dispatch([1]).await;
    assert_eq!(delivery(&mut consumer).await.seq().get(), 1);
    drop(peer);
    let (_, greeting) = gateway.greeted().await;
    assert_eq!(greeting["op"], "resume");
}

#[tokio::test]
async fn after_the_resume_window_the_consumer_identifies() {
    let gateway = Gateway::bind().await;
    let _consumer = client_of(gateway.address).consumer(quick()).connect();
    let (mut peer, _) = gateway.greeted().await;
    peer.say(with(ready(0), "resume_window_ms", 0)).await;
    drop(peer);
    let (_, greeting) = gateway.greeted().await;
    assert_eq!(greeting["op"], "identify");
}

#[tokio::test]
async fn a_stopping_server_is_left_and_its_successor_is_identified_to() {
    let gateway = Gateway::bind().await;
    let _consumer = client_of(gateway.address).consumer(quick()).connect();
    gateway.session(0).await.close(CloseCode::ShuttingDown.number()).await;
    let (_, greeting) = gateway.greeted().await;
    assert_eq!(greeting["op"], "identify");
}

#[tokio::test]
async fn a_replaced_consumer_ends_and_never_connects_again() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    gateway.session(0).await.close(CloseCode::ConsumerReplaced.number()).await;
    assert!(matches!(error(&mut consumer).await, ConsumerError::Replaced));
    assert!(within(consumer.next()).await.is_none());
    let mut link = consumer.link();
    within(link.wait_for(|link| *link == Link::Ended)).await.unwrap();
    assert!(gateway.is_quiet());
}

#[tokio::test]
async fn every_close_that_no_new_connection_changes_is_terminal() {
    for &code in CloseCode::ALL.iter().filter(|code| code.client_may_reconnect() == protocol::Reconnect::Never) {
        let gateway = Gateway::bind().await;
        let mut consumer = client_of(gateway.address).consumer(quick()).connect();
        gateway.session(0).await.close(code.number()).await;
        let error = error(&mut consumer).await;
        assert!(error.is_terminal(), "{code}: {error}");
        assert!(within(consumer.next()).await.is_none(), "{code}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_with_its_token_is_made_anew_with_the_one_that_replaced_it() {
    let gateway = Gateway::bind().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let client = client_with(gateway.address, |options| options.token_file = Some(file.path().to_owned()));
    let _consumer = client.consumer(quick()).connect();
    let peer = gateway.session(0).await;
    std::fs::write(file.path(), "dsp_agent_newnewnew").unwrap();
    peer.close(CloseCode::Unauthenticated.number()).await;
    let mut stream = gateway.tcp().await;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within(stream.read_u8()).await.unwrap());
    }
    assert!(String::from_utf8(head).unwrap().contains("Bearer dsp_agent_newnewnew"));
}

#[tokio::test]
async fn a_token_that_is_not_an_agents_ends_the_stream() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let (mut peer, _) = gateway.greeted().await;
    let mut frame = with(ready(0), "principal", json!({"kind": "app", "id": "producer"}));
    frame.as_object_mut().unwrap().remove("consumer");
    peer.say(frame).await;
    assert!(peer.hear_or_end().await.is_none());
    let error = error(&mut consumer).await;
    assert!(error.is_terminal() && error.to_string().contains("app producer"), "{error}");
    assert!(within(consumer.next()).await.is_none());
}

#[tokio::test]
async fn a_refused_credential_ends_the_stream_with_the_problem() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let problem = json!({
        "type": "urn:doorstep:problem:unauthenticated", "title": "No valid credential", "status": 401, "code": "unauthenticated",
        "detail": "the token has expired", "request_id": "r-1"
    });
    answer(gateway.tcp().await, "401 Unauthorized", "application/problem+json", &problem.to_string()).await;
    let error = error(&mut consumer).await;
    assert_eq!(error.code(), Some(protocol::ProblemCode::Unauthenticated));
    assert!(error.is_terminal());
    assert!(within(consumer.next()).await.is_none());
}

#[tokio::test]
async fn a_refusal_that_passes_is_tried_again() {
    let gateway = Gateway::bind().await;
    let _consumer = client_of(gateway.address).consumer(quick()).connect();
    answer(gateway.tcp().await, "503 Service Unavailable", "text/plain", "starting").await;
    drop(gateway.tcp().await);
    gateway.session(0).await;
}

#[tokio::test]
async fn a_server_that_takes_the_connection_and_says_nothing_is_left() {
    let gateway = Gateway::bind().await;
    let client = client_with(gateway.address, |options| options.request_timeout = Duration::from_millis(100));
    let _consumer = client.consumer(quick()).connect();
    let mute = gateway.tcp().await;
    gateway.session(0).await;
    drop(mute);
}

#[tokio::test]
async fn a_half_open_connection_is_found_by_its_silence() {
    let gateway = Gateway::bind().await;
    let _consumer = client_of(gateway.address).consumer(quick()).connect();
    let (mut peer, _) = gateway.greeted_every(50).await;
    peer.say(ready(0)).await;
    // The peer stays open, reads nothing and says nothing.
    let (_, greeting) = gateway.greeted().await;
    assert_eq!(greeting["op"], "resume");
    drop(peer);
}

#[tokio::test]
async fn heartbeats_are_sent_and_pings_are_answered() {
    let gateway = Gateway::bind().await;
    let _consumer = client_of(gateway.address).consumer(quick()).connect();
    let (mut peer, _) = gateway.greeted_every(60).await;
    peer.say(ready(0)).await;
    for _ in 0..3 {
        assert_eq!(peer.hear().await, json!({"op": "heartbeat"}));
        peer.say(json!({"op": "heartbeat_ack"})).await;
    }
    peer.message(Message::Ping("x".into())).await;
    loop {
        if let Message::Pong(payload) = peer.message_heard().await {
            assert_eq!(&payload[..], b"x");
            return;
        }
    }
}

#[tokio::test]
async fn pings_alone_keep_a_connection() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let (mut peer, _) = gateway.greeted_every(40).await;
    peer.say(ready(0)).await;
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        peer.message(Message::Ping("x".into())).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(gateway.is_quiet());
    peer.dispatch([1]).await;
    assert_eq!(delivery(&mut consumer).await.seq().get(), 1);
}

#[tokio::test]
async fn the_link_tells_what_happens() {
    let gateway = Gateway::bind().await;
    let options = ConsumerOptions { close_timeout: Duration::from_millis(50), ..quick() };
    let consumer = client_of(gateway.address).consumer(options).connect();
    let mut link = consumer.link();
    let mut peer = gateway.session(7).await;
    peer.say(json!({"op": "catchup.complete", "head_seq": 1_000})).await;
    let connected = within(link.wait_for(|link| matches!(link, Link::Connected(connected) if connected.caught_up))).await.unwrap().clone();
    let Link::Connected(connected) = connected else { panic!("{connected:?}") };
    assert_eq!((connected.acked_seq.get(), connected.head_seq.get()), (7, 1_000));
    peer.close(CloseCode::Internal.number()).await;
    let (mut peer, _) = gateway.greeted().await;
    peer.say(with(ready(8), "resume_window_ms", LONG)).await;
    let again = |link: &Link| matches!(link, Link::Connected(connected) if connected.acked_seq.get() == 8);
    within(link.wait_for(again)).await.unwrap();
    drop(consumer);
    within(link.wait_for(|link| *link == Link::Ended)).await.unwrap();
}

#[tokio::test]
async fn a_dropped_consumer_lets_its_connection_go() {
    let gateway = Gateway::bind().await;
    let consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    drop(consumer);
    while let Some(frame) = peer.hear_or_end().await {
        if frame["op"] == "heartbeat" {
            peer.say(json!({"op": "heartbeat_ack"})).await;
        }
    }
}

/// Answers one HTTP request on a bare connection.
async fn answer(mut stream: tokio::net::TcpStream, status: &str, media: &str, body: &str) {
    crate::support::http_request(&mut stream).await;
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    within(stream.write_all(text.as_bytes())).await.unwrap();
}
