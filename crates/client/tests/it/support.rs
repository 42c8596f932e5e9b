//! What every test needs: a deadline, and events.

use std::time::Duration;

use doorstep_client::{BackoffOptions, Client, ClientOptions, Consumer, ConsumerError, ConsumerName, ConsumerOptions, Delivery};
use protocol::Secret;
use serde_json::{Value, json};

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
