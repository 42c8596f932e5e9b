//! A peer in memory: what the gateway writes arrives in a queue of a given length, and a peer that does not read stalls it.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use doorstep_gateway::{Connection, Incoming, PeerGone};
use protocol::CloseCode;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Longer than anything here takes in virtual time.
const PATIENCE: Duration = Duration::from_hours(1);

/// What a peer gets.
#[derive(Debug)]
pub(crate) enum Written {
    Text(Bytes),
    Ping,
    Close(CloseCode),
}

/// The gateway's end.
#[derive(Debug)]
pub(crate) struct PeerConnection {
    inbox: mpsc::UnboundedReceiver<Incoming>,
    outbox: mpsc::Sender<Written>,
    buffer: VecDeque<Written>,
    limit: usize,
}

/// The peer's end.
#[derive(Debug)]
pub(crate) struct Peer {
    to_gateway: Option<mpsc::UnboundedSender<Incoming>>,
    from_gateway: mpsc::Receiver<Written>,
    /// Whether pings are answered, as every WebSocket library does.
    pub(crate) answers_pings: bool,
    pub(crate) pings: usize,
}

/// Joins a peer and the gateway; `queue` frames can be on their way to a peer that does not read.
pub(crate) fn connect(queue: usize) -> (PeerConnection, Peer) {
    let (to_gateway, inbox) = mpsc::unbounded_channel();
    let (outbox, from_gateway) = mpsc::channel(queue);
    let connection = PeerConnection { inbox, outbox, buffer: VecDeque::new(), limit: queue };
    (connection, Peer { to_gateway: Some(to_gateway), from_gateway, answers_pings: true, pings: 0 })
}

impl PeerConnection {
    async fn put(&mut self, written: Written) -> Result<(), PeerGone> {
        self.buffer.push_back(written);
        if self.buffer.len() > self.limit { self.drain().await } else { Ok(()) }
    }

    async fn drain(&mut self) -> Result<(), PeerGone> {
        while !self.buffer.is_empty() {
            let permit = self.outbox.reserve().await.map_err(|_| PeerGone)?;
            permit.send(self.buffer.pop_front().unwrap());
        }
        Ok(())
    }
}

impl Connection for PeerConnection {
    async fn receive(&mut self) -> Incoming {
        self.inbox.recv().await.unwrap_or(Incoming::Gone)
    }

    async fn feed(&mut self, frame: Bytes) -> Result<(), PeerGone> {
        self.put(Written::Text(frame)).await
    }

    async fn ping(&mut self) -> Result<(), PeerGone> {
        self.put(Written::Ping).await
    }

    async fn flush(&mut self) -> Result<(), PeerGone> {
        self.drain().await
    }

    async fn close(mut self, code: CloseCode) {
        self.buffer.push_back(Written::Close(code));
        let _ = timeout(Duration::from_secs(1), self.drain()).await;
    }
}

impl Peer {
    pub(crate) fn send(&self, frame: &Value) {
        self.send_raw(Incoming::Text(frame.to_string().into()));
    }

    pub(crate) fn send_raw(&self, incoming: Incoming) {
        // A gateway that has gone hears nothing, as over a real socket.
        let _ = self.to_gateway.as_ref().unwrap().send(incoming);
    }

    pub(crate) fn ack(&self, seq: u64) {
        self.send(&json!({"op": "ack", "seq": seq}));
    }

    /// The connection breaks.
    pub(crate) fn vanish(mut self) {
        self.to_gateway = None;
    }

    /// The next thing written, pings aside; `None` when nothing comes within `patience`.
    pub(crate) async fn within(&mut self, patience: Duration) -> Option<Written> {
        let next = async {
            loop {
                match self.from_gateway.recv().await {
                    Some(Written::Ping) => {
                        self.pings += 1;
                        if self.answers_pings {
                            let _ = self.to_gateway.as_ref().unwrap().send(Incoming::Alive);
                        }
                    }
                    written => return written,
                }
            }
        };
        timeout(patience, next).await.ok().flatten()
    }

    pub(crate) async fn frame(&mut self) -> Value {
        match self.within(PATIENCE).await {
            Some(Written::Text(text)) => serde_json::from_slice(&text).unwrap(),
            other => panic!("no frame but {other:?}"),
        }
    }

    /// The next frame, which has this op.
    pub(crate) async fn expect(&mut self, op: &str) -> Value {
        let frame = self.frame().await;
        assert_eq!(frame["op"], op, "{frame}");
        frame
    }

    /// The next frames, which are dispatches: their numbers and flags.
    pub(crate) async fn dispatches(&mut self, count: usize) -> Vec<(u64, bool)> {
        let mut seen = Vec::new();
        for _ in 0..count {
            let frame = self.expect("dispatch").await;
            let redelivered = match frame["event"].get("redelivered") {
                None => false,
                Some(flag) => flag.as_bool().filter(|flag| *flag).expect("the flag is true or absent"),
            };
            seen.push((frame["event"]["seq"].as_u64().unwrap(), redelivered));
        }
        seen
    }

    /// With which code the gateway closes; nothing else comes before.
    pub(crate) async fn closed(&mut self) -> CloseCode {
        match self.within(PATIENCE).await {
            Some(Written::Close(code)) => code,
            other => panic!("not closed but {other:?}"),
        }
    }

    /// With which code the gateway closes, whatever else comes before.
    pub(crate) async fn closed_at_last(&mut self) -> CloseCode {
        loop {
            match self.within(PATIENCE).await {
                Some(Written::Close(code)) => return code,
                Some(_) => {}
                None => panic!("never closed"),
            }
        }
    }

    /// Nothing is written for so long.
    pub(crate) async fn silence(&mut self, during: Duration) {
        let written = self.within(during).await;
        assert!(written.is_none(), "{written:?}");
    }
}
