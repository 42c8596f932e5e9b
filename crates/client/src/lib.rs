//! The Rust SDK: REST, and a reconnecting consumer as an async stream.
//!
//! Architecture invariant: this crate knows the wire (`protocol`) and the words (`domain`), never the server's inside. It logs no token and
//! puts none into an address.
//!
//! ```no_run
//! use doorstep_client::{Client, ClientOptions, ConsumerOptions};
//! use protocol::Secret;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let options = ClientOptions::new("http://127.0.0.1:8080").with_token(Secret::new("dsp_agent_…".to_owned()));
//! let mut consumer = Client::new(options)?.consumer(ConsumerOptions::default()).connect();
//! while let Some(delivery) = consumer.next().await {
//!     let delivery = delivery?;
//!     println!("{} {}", delivery.seq(), delivery.event.event_type);
//!     delivery.ack();
//! }
//! # Ok(())
//! # }
//! ```

mod address;
mod backoff;
mod consumer;
mod credential;
mod error;
mod inbox;
mod options;
mod reader;
mod rest;
mod sse;
mod transport;
mod webhook;

use std::sync::Arc;

pub use address::InvalidAddress;
pub use backoff::{Backoff, BackoffOptions};
pub use consumer::{Connected, Consumer, ConsumerBuilder, ConsumerError, ConsumerOptions, Delivery, Link, NotHandedOut, ReaderOptions};
pub use domain::{
    ChannelId, ChannelRef, Clock, ConsumerName, DeduplicationKey, EventId, EventType, GrantId, InvalidId, PrincipalId, QueueName, Seq,
    SpaceId, SyncEpoch, SystemClock, TenantId, Timestamp, TokenId,
};
pub use error::{ClientError, InvalidOptions, Retry, told};
pub use inbox::{
    Assignment, InboxWorker, KeptLease, LeaseKeeper, LeaseKeeperOptions, LeaseLoss, LeaseTime, Ring, SNOOZE, Settled, SignalOptions,
    Signals, Verdict, WorkReport, WorkerNews, WorkerOptions, WorkerStop,
};
pub use options::ClientOptions;
pub use reader::EventReader;
pub use rest::{AuditFilter, Health, ItemFilter, PageRequest, TaggedHead, fresh_deduplication_key, fresh_idempotency_key};
pub use webhook::{
    Arrival, InvalidWebhookKey, NoWebhookKeys, SeenDeliveries, ServerPublicKey, VerifiedDelivery, WebhookChallenge, WebhookHeaders,
    WebhookKey, WebhookMessage, WebhookProver, WebhookRejection, WebhookSecret, WebhookVerifier,
};

/// A client of one server. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Arc<transport::Transport>,
    idempotency_key: Option<Arc<str>>,
}

impl Client {
    /// Prepares a client. Nothing is connected yet.
    ///
    /// # Errors
    /// [`InvalidOptions`].
    pub fn new(options: ClientOptions) -> Result<Self, InvalidOptions> {
        Ok(Self { transport: Arc::new(transport::Transport::new(options)?), idempotency_key: None })
    }

    /// The same client, whose creating calls (of principals, tokens, spaces, channels, grants and tenants) carry this `Idempotency-Key`:
    /// the server answers a repeat with the first answer, without one-time secrets. Use a key for one call and its repeats.
    #[must_use]
    pub fn with_idempotency_key(&self, key: &str) -> Self {
        Self { transport: Arc::clone(&self.transport), idempotency_key: Some(Arc::from(key)) }
    }

    fn creating(&self, path: &[&str]) -> transport::Call {
        self.transport.call(reqwest::Method::POST, path).idempotent(self.idempotency_key.as_deref())
    }

    /// A named consumer of the agent that the token belongs to.
    pub fn consumer(&self, options: ConsumerOptions) -> ConsumerBuilder {
        ConsumerBuilder::new(Arc::clone(&self.transport), options)
    }

    /// The log from a cursor, for people and apps. Needs a tokio runtime.
    pub fn reader(&self, options: ReaderOptions) -> EventReader {
        let cursor = options.cursor;
        EventReader::new(Consumer::reader(Arc::clone(&self.transport), options), cursor)
    }

    /// The server's address, for messages.
    pub fn address(&self) -> String {
        self.transport.address().to_string()
    }

    /// Whether a token would travel unencrypted to another machine.
    pub fn is_exposed(&self) -> bool {
        let address = self.transport.address();
        !address.is_encrypted() && !address.is_loopback()
    }
}
