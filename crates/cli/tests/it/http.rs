//! An HTTP server that a test plays by hand: one request after the other, on as many connections as come.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::support::{EPOCH, within};

/// The place where requests arrive.
pub(crate) struct Http {
    requests: mpsc::UnboundedReceiver<Request>,
    pub(crate) address: SocketAddr,
    _tasks: TaskTracker,
}

/// A request that waits for its answer. Dropping it drops the connection.
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) body: Value,
    stream: TcpStream,
    back: mpsc::UnboundedSender<Request>,
    tasks: Arc<TaskTracker>,
}

impl Http {
    pub(crate) async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let tasks = TaskTracker::new();
        let connections = Arc::new(tasks.clone());
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, sender.clone(), Arc::clone(&connections));
            }
        });
        Self { requests, address, _tasks: tasks }
    }

    /// The next request.
    pub(crate) async fn request(&mut self) -> Request {
        within(self.requests.recv()).await.unwrap()
    }

    /// Whether no request waits.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }
}

fn serve(stream: TcpStream, sender: mpsc::UnboundedSender<Request>, tasks: Arc<TaskTracker>) {
    let connections = Arc::clone(&tasks);
    tasks.spawn(async move {
        if let Some(request) = read(stream, sender.clone(), connections).await {
            let _ = sender.send(request);
        }
    });
}

async fn read(mut stream: TcpStream, back: mpsc::UnboundedSender<Request>, tasks: Arc<TaskTracker>) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    Some(Request { line, body, stream, back, tasks })
}

impl Request {
    pub(crate) async fn answer(self, body: Value) {
        self.respond(200, "application/json", &[], &body.to_string()).await;
    }

    pub(crate) async fn problem(self, status: u16, mut problem: Value) {
        for (member, value) in [
            ("type", json!("urn:x")),
            ("title", json!("x")),
            ("status", json!(status)),
            ("detail", json!("told")),
            ("request_id", json!("r-1")),
        ] {
            if problem.get(member).is_none() {
                problem[member] = value;
            }
        }
        self.respond(status, "application/problem+json", &[], &problem.to_string()).await;
    }

    pub(crate) async fn respond(mut self, status: u16, media: &str, headers: &[(&str, &str)], body: &str) {
        let headers: String = headers.iter().flat_map(|(name, value)| [*name, ": ", *value, "\r\n"]).collect();
        let length = body.len();
        let text = format!("HTTP/1.1 {status} X\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
        if within(self.stream.write_all(text.as_bytes())).await.is_ok() {
            serve(self.stream, self.back, self.tasks);
        }
    }
}

/// A page of these events.
pub(crate) fn page(events: &[u64], next_cursor: u64) -> Value {
    let events: Vec<_> = events.iter().map(|seq| crate::support::event(*seq)).collect();
    json!({"events": events, "next_cursor": next_cursor, "head_seq": 1_000, "sync_epoch": EPOCH})
}

/// An answer to an acknowledgement.
pub(crate) fn state(acked: u64) -> Value {
    json!({"consumer": "work", "acked_seq": acked, "head_seq": 1_000, "lag": 1_000 - acked, "in_flight": 0})
}
