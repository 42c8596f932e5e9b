//! A gateway that a test plays by hand: it accepts connections, and says and expects one frame after the other.

use std::net::SocketAddr;

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};

use crate::support::{EPOCH, TOKEN, within};

/// The place where clients arrive.
pub(crate) struct Gateway {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

/// One connection of a client.
pub(crate) struct Peer {
    socket: WebSocketStream<TcpStream>,
    pub(crate) path: String,
}

/// Intervals that play no part unless a test says so.
pub(crate) const LONG: u64 = 60_000;

impl Gateway {
    pub(crate) async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address }
    }

    /// The next connection, before anything is said on it.
    pub(crate) async fn tcp(&self) -> TcpStream {
        within(self.listener.accept()).await.unwrap().0
    }

    /// The next connection, upgraded. The token has to be in its header, and nowhere else.
    pub(crate) async fn accept(&self) -> Peer {
        let mut path = String::new();
        #[expect(clippy::result_large_err, reason = "the signature is the library's")]
        let look = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
            path = request.uri().to_string();
            let authorization = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(authorization, Some(format!("Bearer {TOKEN}")));
            Ok(response)
        };
        let stream = self.tcp().await;
        let socket = within(tokio_tungstenite::accept_hdr_async(stream, look)).await.unwrap();
        assert!(!path.contains(TOKEN), "{path}");
        Peer { socket, path }
    }

    /// The next connection after `hello` and the client's greeting.
    pub(crate) async fn greeted(&self) -> (Peer, Value) {
        self.greeted_every(LONG).await
    }

    pub(crate) async fn greeted_every(&self, heartbeat_interval_ms: u64) -> (Peer, Value) {
        let mut peer = self.accept().await;
        peer.say(json!({"op": "hello", "heartbeat_interval_ms": heartbeat_interval_ms, "protocol": 1})).await;
        let greeting = peer.hear().await;
        (peer, greeting)
    }

    /// The next connection with its session begun at `acked_seq`.
    pub(crate) async fn session(&self, acked_seq: u64) -> Peer {
        let (mut peer, greeting) = self.greeted().await;
        assert_eq!(greeting["op"], "identify", "{greeting}");
        peer.say(ready(acked_seq)).await;
        peer
    }

    /// Whether nobody waits to be accepted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.listener.accept().now_or_never().is_none()
    }
}

/// The usual `ready`.
pub(crate) fn ready(acked_seq: u64) -> Value {
    json!({
        "op": "ready", "gateway_session_id": "0197f0ab-5a01-7c55-9d2e-6b0f4a7d2c11", "principal": {"kind": "agent", "id": "agent_alpha"},
        "head_seq": 1_000, "sync_epoch": EPOCH, "consumer": "work", "acked_seq": acked_seq, "max_inflight_events": 1_000,
        "ack_timeout_ms": LONG, "resume_window_ms": LONG
    })
}

/// `value` with another member.
pub(crate) fn with(mut value: Value, member: &str, content: impl Into<Value>) -> Value {
    value[member] = content.into();
    value
}

/// A dispatch of this event.
pub(crate) fn dispatch(event: Value) -> Value {
    json!({"op": "dispatch", "event": event})
}

impl Peer {
    pub(crate) async fn say(&mut self, frame: Value) {
        self.text(frame.to_string()).await;
    }

    pub(crate) async fn text(&mut self, text: String) {
        self.message(Message::text(text)).await;
    }

    pub(crate) async fn message(&mut self, message: Message) {
        within(self.socket.send(message)).await.unwrap();
    }

    /// Sends without a deadline, for tests that send more than anybody reads.
    pub(crate) async fn push(&mut self, frame: Value) {
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// Dispatches the events of these positions.
    pub(crate) async fn dispatch(&mut self, seqs: impl IntoIterator<Item = u64>) {
        for seq in seqs {
            self.say(dispatch(crate::support::event(seq))).await;
        }
    }

    /// The next frame of the client.
    pub(crate) async fn hear(&mut self) -> Value {
        self.hear_or_end().await.expect("the client is still there")
    }

    /// The next frame of the client, or `None` when it has closed.
    pub(crate) async fn hear_or_end(&mut self) -> Option<Value> {
        loop {
            match within(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// The next message of any kind.
    pub(crate) async fn message_heard(&mut self) -> Message {
        within(self.socket.next()).await.unwrap().unwrap()
    }

    /// The next acknowledgement; heartbeats on the way are answered.
    pub(crate) async fn ack(&mut self) -> u64 {
        loop {
            let frame = self.hear().await;
            match frame["op"].as_str() {
                Some("ack") => return frame["seq"].as_u64().unwrap(),
                Some("heartbeat") => self.say(json!({"op": "heartbeat_ack"})).await,
                _ => panic!("unexpected {frame}"),
            }
        }
    }

    /// Reads acknowledgements until one of `seq`; how many there were.
    pub(crate) async fn acks_until(&mut self, seq: u64) -> usize {
        let mut count = 1;
        while self.ack().await != seq {
            count += 1;
        }
        count
    }

    pub(crate) async fn close(mut self, code: u16) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: "".into() };
        within(self.socket.close(Some(frame))).await.unwrap();
        while let Some(Ok(_)) = within(self.socket.next()).await {}
    }
}
