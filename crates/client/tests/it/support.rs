//! What every test needs: a deadline, and events.

use std::time::Duration;

use doorstep_client::{BackoffOptions, Client, ClientOptions, Consumer, ConsumerError, ConsumerName, ConsumerOptions, Delivery};
use protocol::Secret;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The longest that anything may take that has to happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
/// The token that every test uses.
pub(crate) const TOKEN: &str = "dsp_agent_secretsecret";
/// The epoch of every log.
pub(crate) const EPOCH: &str = "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10";
/// The epoch after a restore.
pub(crate) const OTHER_EPOCH: &str = "00000000-2a53-4a68-9a3e-5d8f0b7c9e10";

/// Fails the test when `future` takes too long.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("it has to happen within the deadline")
}

/// An event of this position; its id is derived from it.
pub(crate) fn event(seq: u64) -> Value {
    json!({
        "seq": seq, "id": id(seq), "type": "test.happened", "created_at": "2026-07-12T16:22:03.123Z",
        "actor": {"kind": "app", "id": "tester"}, "channel": "support/general", "payload": {"n": seq}
    })
}

/// The id of the event at a position.
pub(crate) fn id(seq: u64) -> String {
    format!("0197f0ab-44f7-7f1a-b0ef-{seq:012}")
}

/// A client of the server at `address`.
pub(crate) fn client_of(address: std::net::SocketAddr) -> Client {
    client_with(address, |_| {})
}

/// The same with other options.
pub(crate) fn client_with(address: std::net::SocketAddr, change: impl FnOnce(&mut ClientOptions)) -> Client {
    let mut options = ClientOptions::new(format!("http://{address}")).with_token(Secret::new(TOKEN.to_owned()));
    change(&mut options);
    Client::new(options).unwrap()
}

/// A consumer that reconnects at once.
pub(crate) fn quick() -> ConsumerOptions {
    let backoff = BackoffOptions { base: Duration::from_millis(5), cap: Duration::from_millis(20), stable_after: Duration::from_mins(1) };
    ConsumerOptions {
        backoff,
        restraint: Duration::from_millis(10),
        drain_spread: Duration::from_millis(10),
        ..ConsumerOptions::new(ConsumerName::parse("work").unwrap())
    }
}

/// The next delivery, which has to come.
pub(crate) async fn delivery(consumer: &mut Consumer) -> Delivery {
    within(consumer.next()).await.expect("the stream goes on").expect("it is an event")
}

/// The next error, which has to come.
pub(crate) async fn error(consumer: &mut Consumer) -> ConsumerError {
    within(consumer.next()).await.expect("the stream goes on").expect_err("it is an error")
}

/// Reads one HTTP request from a bare connection: its line and its body.
pub(crate) async fn http_request(stream: &mut tokio::net::TcpStream) -> (String, Value) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within(stream.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    within(stream.read_exact(&mut body)).await.unwrap();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    (head.lines().next().unwrap().to_owned(), body)
}

/// Answers it with JSON.
pub(crate) async fn http_answer(stream: &mut tokio::net::TcpStream, body: &Value) {
    let body = body.to_string();
    let text = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    within(stream.write_all(text.as_bytes())).await.unwrap();
}
