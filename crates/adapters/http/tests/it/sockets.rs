//! The gateway's WebSocket from the outside.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use protocol::CloseCode;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::support::{Options, PATIENCE, World, eventually};

struct Peer(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Peer {
    async fn open(world: &World, token: Option<&str>) -> Self {
        let mut request = format!("ws://{}/v1/gateway", world.address).into_client_request().unwrap();
        if let Some(token) = token {
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        let (socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        let mut peer = Self(socket);
        assert_eq!(peer.json().await["op"], "hello");
        peer
    }

    async fn consumer(world: &World) -> Self {
        let mut peer = Self::open(world, Some(&world.agent)).await;
        peer.send(&json!({"op": "identify"})).await;
        assert_eq!(peer.json_of("ready").await["principal"]["id"], "alpha");
        peer
    }

    async fn send(&mut self, frame: &Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    async fn message(&mut self) -> Option<Message> {
        timeout(PATIENCE, self.0.next()).await.expect("a message in time").and_then(Result::ok)
    }

    async fn json(&mut self) -> Value {
        loop {
            match self.message().await {
                Some(Message::Text(text)) => return serde_json::from_str(&text).unwrap(),
                Some(Message::Ping(_) | Message::Pong(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn json_of(&mut self, op: &str) -> Value {
        loop {
            let frame = self.json().await;
            if frame["op"] == op {
                return frame;
            }
        }
    }

    async fn closed(&mut self) -> (u16, String) {
        loop {
            match self.message().await {
                Some(Message::Close(Some(close))) => return (close.code.into(), close.reason.to_string()),
                Some(Message::Close(None)) | None => return (1006, String::new()),
                Some(_) => {}
            }
        }
    }
}

#[tokio::test]
async fn a_request_that_asks_for_no_websocket_is_told_how() {
    let world = World::new().await;
    let answer = world.get(&world.agent, "/v1/gateway").await;
    answer.expect_problem(426, "upgrade_required", None);
    assert_eq!((answer.header("upgrade"), answer.header("sec-websocket-version")), (Some("websocket"), Some("13")));
    let headers =
        [("connection", "upgrade"), ("upgrade", "h2c"), ("sec-websocket-version", "13"), ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")];
    world.call("GET", "/v1/gateway", &headers, b"").await.expect_problem(426, "upgrade_required", None);
}

#[tokio::test]
async fn a_consumer_is_delivered_what_is_published_in_order() {
    let world = World::new().await;
    let mut peer = Peer::consumer(&world).await;
    for n in 1..=500 {
        world.memory.publish(&json!({"n": n}).to_string());
        if n % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    for n in 1..=500 {
        let event = peer.json_of("dispatch").await;
        assert_eq!(event["event"]["payload"]["n"], n);
        peer.send(&json!({"op": "ack", "seq": event["event"]["seq"]})).await;
    }
}

#[tokio::test]
async fn a_token_in_the_first_frame_is_as_good_as_one_in_the_header() {
    let world = World::new().await;
    let mut peer = Peer::open(&world, None).await;
    peer.send(&json!({"op": "identify", "token": world.agent})).await;
    assert_eq!(peer.json_of("ready").await["consumer"], "default");
}

#[tokio::test]
async fn an_event_of_any_size_arrives_whole() {
    let world = World::new().await;
    let mut peer = Peer::consumer(&world).await;
    for size in [1, 15_000, 16_384, 16_385, 70_000, 1_000_000] {
        world.memory.publish(&json!({"text": "ä".repeat(size / 2)}).to_string());
        let event = peer.json_of("dispatch").await;
        assert_eq!(event["event"]["payload"]["text"].as_str().unwrap().chars().count(), size / 2);
    }
}

#[tokio::test]
async fn a_frame_above_its_limit_closes_with_its_code() {
    let world = World::new().await;
    for fragmented in [false, true] {
        let mut peer = Peer::consumer(&world).await;
        let text = format!(r#"{{"op":"heartbeat","x":"{}"}}"#, "x".repeat(70_000));
        if fragmented {
            use tokio_tungstenite::tungstenite::protocol::frame::Frame;
            use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
            let bytes = bytes::Bytes::from(text);
            peer.0.feed(Message::Frame(Frame::message(bytes.slice(..40_000), OpCode::Data(Data::Text), false))).await.unwrap();
            peer.0.feed(Message::Frame(Frame::message(bytes.slice(40_000..), OpCode::Data(Data::Continue), true))).await.unwrap();
        } else {
            peer.0.feed(Message::text(text)).await.unwrap();
        }
        let _ = peer.0.flush().await;
        assert_eq!(peer.closed().await, (4011, "frame_too_large".to_owned()), "fragmented: {fragmented}");
    }
}

#[tokio::test]
async fn what_is_not_spoken_closes_with_its_code() {
    let world = World::new().await;
    let mut peer = Peer::consumer(&world).await;
    peer.0.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    assert_eq!(peer.closed().await, (4002, "invalid_frame".to_owned()));
    let mut peer = Peer::consumer(&world).await;
    peer.send(&json!({"op": "dance"})).await;
    assert_eq!(peer.closed().await, (4001, "unknown_op".to_owned()));
    let mut peer = Peer::open(&world, Some("nonsense")).await;
    peer.send(&json!({"op": "identify"})).await;
    assert_eq!(peer.closed().await, (4012, "unauthenticated".to_owned()));
}

#[tokio::test]
async fn text_that_is_not_utf_8_closes_with_its_code() {
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    let world = World::new().await;
    let mut peer = Peer::consumer(&world).await;
    peer.0.send(Message::Frame(Frame::message(vec![0xC3, 0x28], OpCode::Data(Data::Text), true))).await.unwrap();
    assert_eq!(peer.closed().await, (4002, "invalid_frame".to_owned()));
}

#[tokio::test]
async fn pings_are_answered() {
    let world = World::new().await;
    let mut peer = Peer::consumer(&world).await;
    peer.0.send(Message::Ping("x".into())).await.unwrap();
    loop {
        match peer.message().await {
            Some(Message::Pong(payload)) => return assert_eq!(payload, "x"),
            Some(_) => {}
            None => panic!("closed"),
        }
    }
}

#[tokio::test]
async fn a_peer_that_closes_is_answered_and_gone() {
    let world = World::new().await;
    let mut peer = Peer::consumer(&world).await;
    eventually("connected", || world.gateway.metrics().agent_connections.get() == 1).await;
    peer.0.close(None).await.unwrap();
    while peer.message().await.is_some() {}
    eventually("gone", || world.gateway.metrics().agent_connections.get() == 0).await;
}

#[tokio::test]
async fn closing_all_reaches_every_peer_and_the_tasks_end() {
    let world = World::new().await;
    let mut peers = Vec::new();
    for name in ["a", "b", "c"] {
        let mut peer = Peer::open(&world, Some(&world.agent)).await;
        peer.send(&json!({"op": "identify", "consumer": name})).await;
        peer.json_of("ready").await;
        peers.push(peer);
    }
    let (closing, ()) = tokio::join!(world.gateway.close_all(CloseCode::ShuttingDown, PATIENCE), async {
        for peer in &mut peers {
            assert_eq!(peer.closed().await, (4013, "shutting_down".to_owned()));
        }
    });
    assert!(closing);
    world.shutdown.cancel();
    world.tasks.close();
    drop(peers);
    timeout(PATIENCE, world.tasks.wait()).await.expect("no task is left");
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_closed() {
    let gateway = gateway::Settings { write_timeout: Duration::from_millis(200), ..gateway::Settings::default() };
    let agents = agents::Settings { max_inflight_events: 10_000, ..agents::Settings::default() };
    let world = World::with(Options { gateway, agents, ..Options::default() }).await;
    let peer = Peer::consumer(&world).await;
    let payload = json!({"text": "x".repeat(200_000)}).to_string();
    for _ in 0..100 {
        world.memory.publish(&payload);
    }
    eventually("closed as a slow consumer", || world.gateway.metrics().agent_connections.get() == 0).await;
    let slow = world.gateway.metrics().closes().find(|(code, _)| *code == CloseCode::SlowConsumer).unwrap().1;
    assert_eq!(slow, 1);
    drop(peer);
}
