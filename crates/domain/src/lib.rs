//! The words that every crate shares: identifiers, sequence numbers, time, events and publications, and the one store error.
//!
//! Architecture invariant: this crate knows nobody. No transport, no storage, no policy.

mod clock;
mod envelope;
mod event;
mod ids;
mod json;
mod measure;
mod publication;
mod seq;
mod store_error;
mod timestamp;
mod transaction;
mod work;

pub use clock::{Clock, IdGenerator, SystemClock, SystemIds};
pub use envelope::{EnvelopeParts, PayloadRef, Priority, encode_body, restamp_body};
pub use event::{Actor, ActorKind, Audience, DeliveryFields, Event, EventOrigin};
pub use ids::{
    AgentSessionId, ChannelId, ChannelRef, ConsumerName, DeduplicationKey, EventId, EventType, GrantId, InvalidId, NodeId, PrincipalId,
    QueueName, SessionId, SpaceId, SyncEpoch, TenantId, TokenId,
};
pub use json::{JsonTextError, check_json_text};
pub use measure::{Counter, Gauge, Latency};
pub use publication::{Appended, BodyHash, Deduplication, Publication};
pub use seq::Seq;
pub use store_error::StoreError;
pub use timestamp::Timestamp;
pub use transaction::{BoxFuture, Transactions, Unit, UnitError, run_tx};
pub use work::{Work, WorkFor};
