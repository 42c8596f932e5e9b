//! A raw gateway peer: sends and receives frames as they are, so that a test sees everything that a client would hide.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::Deadline;

/// What arrived.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// A text frame, as JSON.
    Json(Value),
    /// A close frame's code and reason; 1006 when the connection ended without one.
    Closed(u16, String),
}

/// One end of a gateway connection.
#[derive(Debug)]
pub struct Peer {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// What `ready` or `resumed` said.
    pub ready: Value,
}

impl Peer {
    /// Opens the socket and reads `hello`; the token goes in the header when given.
    ///
    /// # Panics
    /// When the server does not accept or says something else.
    pub async fn open(url: &str, token: Option<&str>) -> Self {
        let mut request = format!("{}/v1/gateway", url.replacen("http", "ws", 1)).into_client_request().expect("a request");
        if let Some(token) = token {
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse().expect("a header"));
        }
        let (socket, _) = tokio_tungstenite::connect_async(request).await.expect("an upgrade");
        let mut peer = Self { socket, ready: Value::Null };
        let hello = peer.json().await;
        assert_eq!(hello["op"], "hello", "{hello}");
        peer
    }

    /// Opens and identifies as a consumer.
    ///
    /// # Panics
    /// When the server does not answer `ready`.
    pub async fn consumer(url: &str, token: &str, consumer: &str) -> Self {
        Self::identify(url, token, json!({"op": "identify", "consumer": consumer})).await
    }

    /// Opens and identifies as a consumer, unless the server goes away meanwhile.
    pub async fn try_consumer(url: &str, token: &str, consumer: &str) -> Option<Self> {
        let mut request = format!("{}/v1/gateway", url.replacen("http", "ws", 1)).into_client_request().ok()?;
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().ok()?);
        let (socket, _) = tokio_tungstenite::connect_async(request).await.ok()?;
        let mut peer = Self { socket, ready: Value::Null };
        peer.try_send(&json!({"op": "identify", "consumer": consumer})).await?;
        for op in ["hello", "ready"] {
            match peer.try_next(crate::deadline::PATIENCE).await? {
                Frame::Json(frame) if frame["op"] == op => peer.ready = frame,
                Frame::Json(frame) => panic!("the server said {frame}"),
                Frame::Closed(..) => return None,
            }
        }
        Some(peer)
    }

    /// Opens and identifies with this frame.
    ///
    /// # Panics
    /// When the server does not answer `ready`.
    pub async fn identify(url: &str, token: &str, identify: Value) -> Self {
        let mut peer = Self::open(url, Some(token)).await;
        peer.send(&identify).await;
        peer.ready = peer.json().await;
        assert_eq!(peer.ready["op"], "ready", "{}", peer.ready);
        peer
    }

    /// The gateway session.
    ///
    /// # Panics
    /// Before `ready`.
    pub fn session(&self) -> String {
        self.ready["gateway_session_id"].as_str().expect("a session").to_owned()
    }

    /// Sends JSON.
    ///
    /// # Panics
    /// When the connection is gone.
    pub async fn send(&mut self, frame: &Value) {
        self.send_raw(Message::text(frame.to_string())).await;
    }

    /// Sends any message.
    ///
    /// # Panics
    /// When the connection is gone.
    pub async fn send_raw(&mut self, message: Message) {
        self.socket.send(message).await.expect("an open connection");
    }

    /// Sends JSON unless the connection is gone.
    pub async fn try_send(&mut self, frame: &Value) -> Option<()> {
        self.socket.send(Message::text(frame.to_string())).await.ok()
    }

    /// Acknowledges.
    pub async fn ack(&mut self, seq: u64) {
        self.send(&json!({"op": "ack", "seq": seq})).await;
    }

    /// The next frame within `patience`, pings and pongs aside.
    pub async fn try_next(&mut self, patience: Duration) -> Option<Frame> {
        let deadline = Deadline::after(patience);
        loop {
            let message = tokio::time::timeout(deadline.left(), self.socket.next()).await.ok()?;
            match message {
                Some(Ok(Message::Text(text))) => return Some(Frame::Json(serde_json::from_str(&text).expect("JSON from the server"))),
                Some(Ok(Message::Close(Some(close)))) => return Some(Frame::Closed(close.code.into(), close.reason.to_string())),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(other)) => panic!("the server sent {other:?}"),
                Some(Err(_)) | None => return Some(Frame::Closed(1006, String::new())),
            }
        }
    }

    /// The next frame.
    ///
    /// # Panics
    /// When none comes within the usual patience.
    pub async fn next(&mut self) -> Frame {
        self.try_next(crate::deadline::PATIENCE).await.expect("a frame in time")
    }

    /// The next frame, which must be JSON.
    ///
    /// # Panics
    /// When the connection closes instead.
    pub async fn json(&mut self) -> Value {
        match self.next().await {
            Frame::Json(value) => value,
            Frame::Closed(code, reason) => panic!("closed with {code} {reason}"),
        }
    }

    /// The next frame with this `op`, passing over others.
    ///
    /// # Panics
    /// When the connection closes instead.
    pub async fn json_of(&mut self, op: &str) -> Value {
        loop {
            let frame = self.json().await;
            if frame["op"] == op {
                return frame;
            }
        }
    }

    /// The next `count` dispatched events, passing over other frames.
    ///
    /// # Panics
    /// When the connection closes before.
    pub async fn dispatched(&mut self, count: usize) -> Vec<Value> {
        let mut events = Vec::with_capacity(count);
        while events.len() < count {
            events.push(self.json_of("dispatch").await["event"].take());
        }
        events
    }

    /// Checks that nothing is dispatched for this long.
    ///
    /// # Panics
    /// When something is.
    pub async fn expect_no_dispatch(&mut self, quiet: Duration) {
        let deadline = Deadline::after(quiet);
        while let Some(frame) = self.try_next(deadline.left()).await {
            match frame {
                Frame::Json(value) if value["op"] != "dispatch" => {}
                other => panic!("nothing was to be dispatched, but there came {other:?}"),
            }
        }
    }

    /// Reads until the connection closes and answers the code and the reason.
    pub async fn closed(&mut self) -> (u16, String) {
        loop {
            if let Frame::Closed(code, reason) = self.next().await {
                return (code, reason);
            }
        }
    }

    /// Closes in the polite way.
    pub async fn close(mut self) {
        let _ = self.socket.close(None).await;
        while let Some(Ok(_)) = self.socket.next().await {}
    }
}
