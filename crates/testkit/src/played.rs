//! An HTTP server that a test plays by hand: one request after the other, on as many connections as come.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::Deadline;

/// The place where requests arrive.
#[derive(Debug)]
pub struct PlayedServer {
    requests: mpsc::UnboundedReceiver<PlayedRequest>,
    /// Where it listens.
    pub address: SocketAddr,
    _tasks: TaskTracker,
}

/// A request that waits for its answer. Dropping it drops the connection.
#[derive(Debug)]
pub struct PlayedRequest {
    /// Method and target.
    pub line: String,
    /// The whole head.
    pub head: String,
    /// The body; null when there is none.
    pub body: Value,
    /// The same as it came.
    pub raw: String,
    stream: TcpStream,
    back: mpsc::UnboundedSender<PlayedRequest>,
    tasks: Arc<TaskTracker>,
}

/// An answer that goes on until it is dropped.
#[derive(Debug)]
pub struct PlayedStream(TcpStream);

impl PlayedServer {
    /// Listens on a free port of the loopback address.
    pub async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
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
    pub async fn request(&mut self) -> PlayedRequest {
        within(self.requests.recv()).await.expect("the listener lives")
    }

    /// The next request, whose line has to contain `part`.
    pub async fn expect(&mut self, part: &str) -> PlayedRequest {
        let request = self.request().await;
        assert!(request.line.contains(part), "{} is not {part}", request.line);
        request
    }

    /// Whether no request waits.
    pub fn is_quiet(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }
}

fn serve(stream: TcpStream, sender: mpsc::UnboundedSender<PlayedRequest>, tasks: Arc<TaskTracker>) {
    let connections = Arc::clone(&tasks);
    tasks.spawn(async move {
        if let Some(request) = read(stream, sender.clone(), connections).await {
            let _ = sender.send(request);
        }
    });
}

async fn read(mut stream: TcpStream, back: mpsc::UnboundedSender<PlayedRequest>, tasks: Arc<TaskTracker>) -> Option<PlayedRequest> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("a head is text");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |text| text.parse().expect("a length"))];
    stream.read_exact(&mut body).await.ok()?;
    let raw = String::from_utf8(body).expect("a body is text");
    let body = if raw.is_empty() { Value::Null } else { serde_json::from_str(&raw).expect("a body is JSON") };
    let line = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    Some(PlayedRequest { line, head, body, raw, stream, back, tasks })
}

impl PlayedRequest {
    /// The value of a query parameter.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.line.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}="))).map(str::to_owned)
    }

    /// The value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Answers 200 with this.
    pub async fn answer(self, body: Value) {
        self.respond(200, "application/json", &[], &body.to_string()).await;
    }

    /// Answers with a problem, whose usual members are added.
    pub async fn problem(self, status: u16, mut problem: Value) {
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

    /// Answers with this, and serves the connection's next request.
    pub async fn respond(mut self, status: u16, media: &str, headers: &[(&str, &str)], body: &str) {
        let headers: String = headers.iter().flat_map(|(name, value)| [*name, ": ", *value, "\r\n"]).collect();
        let length = body.len();
        let text = format!("HTTP/1.1 {status} X\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
        if within(self.stream.write_all(text.as_bytes())).await.is_ok() {
            serve(self.stream, self.back, self.tasks);
        }
    }

    /// Begins an answer whose body goes on until it is dropped.
    pub async fn begin(mut self, media: &str) -> PlayedStream {
        let text = format!("HTTP/1.1 200 X\r\ncontent-type: {media}\r\nconnection: close\r\n\r\n");
        within(self.stream.write_all(text.as_bytes())).await.expect("somebody listens");
        PlayedStream(self.stream)
    }

    /// Writes this and nothing more, then hangs up.
    pub async fn write_and_hang_up(mut self, text: &str) {
        within(self.stream.write_all(text.as_bytes())).await.expect("somebody listens");
    }

    /// Returns when whoever asked has hung up.
    pub async fn hung_up(mut self) {
        let mut byte = [0];
        let read = within(self.stream.read(&mut byte)).await;
        assert!(matches!(read, Ok(0) | Err(_)), "the connection carries something else");
    }
}

impl PlayedStream {
    /// Writes a piece of the body.
    pub async fn say(&mut self, text: &str) {
        within(self.0.write_all(text.as_bytes())).await.expect("somebody listens");
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Deadline::usual().left(), future).await.expect("it has to happen in time")
}
