//! Rings on their way, and what is kept of the attempts.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{EventId, QueueName, Seq, TenantId, Timestamp};
use ring::digest::{Context, SHA256};

use crate::HookId;
use crate::hook::words;

/// Why a hook is rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// An item was published.
    Created,
    /// An item came back.
    Requeued,
    /// Something waits in a queue; without a queue: find out where, and ring for each.
    Backlog,
    /// The inbox's head moved (callbacks).
    Signal,
    /// The receiver is to prove that it holds the key.
    Challenge,
    /// Its owner tries it.
    Test,
}
words!(Reason {
    Created => "created",
    Requeued => "requeued",
    Backlog => "backlog",
    Signal => "signal",
    Challenge => "challenge",
    Test => "test",
});

/// Identifies a ring over all its attempts and over crashes: derived from what it is about, so that whoever derives it again gets the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookId(String);

/// Characters of the digest that an id carries.
const DIGEST_CHARS: usize = 27;

impl WebhookId {
    /// The ring of one item's transition.
    pub fn of_item(hook: HookId, ring_seq: Seq, event: EventId) -> Self {
        Self::derive(hook, b"item", &[&ring_seq.get().to_be_bytes(), event.uuid().as_bytes()])
    }

    /// The backlog ring of a queue; without one, what is told apart into queues when it is sent. The instant tells apart what no row of the log
    /// caused: a hook that is enabled twice rings twice.
    pub fn of_backlog(hook: HookId, queue: Option<&QueueName>, cause: Seq, at: Timestamp) -> Self {
        let queue = queue.map_or("", QueueName::as_str).as_bytes();
        Self::derive(hook, b"backlog", &[&cause.get().to_be_bytes(), &at.as_micros().to_be_bytes(), queue])
    }

    /// The signal for a head that moved.
    pub fn of_signal(hook: HookId, cause: Seq, at: Timestamp) -> Self {
        Self::derive(hook, b"signal", &[&cause.get().to_be_bytes(), &at.as_micros().to_be_bytes()])
    }

    /// A ring that is about no row of the log: a challenge or a test.
    pub fn fresh(hook: HookId, uuid: uuid::Uuid) -> Self {
        Self::derive(hook, b"fresh", &[uuid.as_bytes()])
    }

    fn derive(hook: HookId, purpose: &[u8], parts: &[&[u8]]) -> Self {
        let mut digest = Context::new(&SHA256);
        digest.update(hook.uuid().as_bytes());
        digest.update(purpose);
        // Only the last part varies in length.
        for part in parts {
            digest.update(part);
        }
        let text = URL_SAFE_NO_PAD.encode(digest.finish());
        Self(format!("msg_{}", text.get(..DIGEST_CHARS).unwrap_or(&text)))
    }

    /// Reads what a store kept.
    pub fn parse(text: &str) -> Option<Self> {
        let digest = text.strip_prefix("msg_")?;
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        (digest.len() == DIGEST_CHARS && digest.bytes().all(is_plain)).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A row of `hook_deliveries`: an outstanding ring. Its key is (hook, id).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The tenant.
    pub tenant: TenantId,
    /// Which hook.
    pub hook: HookId,
    /// Which ring: constant over attempts.
    pub id: WebhookId,
    /// Why.
    pub reason: Reason,
    /// The row of the log that caused it; of a signal the latest one. Zero when none did.
    pub cause: Seq,
    /// The item that it is about.
    pub event: Option<EventId>,
    /// The queue that it is about.
    pub queue: Option<QueueName>,
    /// Attempts that were made.
    pub attempts: u32,
    /// From when the next may be made.
    pub next_at: Timestamp,
    /// When its cause was accepted.
    pub created_at: Timestamp,
}

/// What an attempt brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttemptClass {
    /// 2xx.
    Delivered,
    /// No answer in time.
    Timeout,
    /// The name could not be resolved.
    Dns,
    /// No connection.
    Connect,
    /// No secure connection.
    Tls,
    /// The answer was no HTTP, or broke off.
    Protocol,
    /// The URL may not be called.
    Refused,
    /// 3xx; never followed.
    Redirect,
    /// 408.
    RequestTimeout,
    /// 410.
    Gone,
    /// 429.
    RateLimited,
    /// Other 4xx.
    ClientError,
    /// 5xx.
    ServerError,
    /// A challenge was answered, but not rightly.
    Unproven,
}
words!(AttemptClass {
    Delivered => "delivered",
    Timeout => "timeout",
    Dns => "dns",
    Connect => "connect",
    Tls => "tls",
    Protocol => "protocol",
    Refused => "refused",
    Redirect => "redirect",
    RequestTimeout => "request_timeout",
    Gone => "gone",
    RateLimited => "rate_limited",
    ClientError => "client_error",
    ServerError => "server_error",
    Unproven => "unproven",
});

impl AttemptClass {
    /// Every class.
    pub const ALL: [Self; 14] = [
        Self::Delivered,
        Self::Timeout,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Protocol,
        Self::Refused,
        Self::Redirect,
        Self::RequestTimeout,
        Self::Gone,
        Self::RateLimited,
        Self::ClientError,
        Self::ServerError,
        Self::Unproven,
    ];
}

/// A row of `hook_attempts`: the delivery log of a hook. Nothing of the receiver's answer but its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Which ring.
    pub id: WebhookId,
    /// Why it was rung.
    pub reason: Reason,
    /// The item, where it was about one.
    pub event: Option<EventId>,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub latency: Duration,
    /// The status, where there was one.
    pub status: Option<u16>,
    /// What it brought.
    pub class: AttemptClass,
}
