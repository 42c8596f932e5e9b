//! The REST operations, one method each.

mod access;
mod audit;
mod consumers;
mod events;
mod hooks;
mod inbox;
mod items;
mod list;
mod operation;
mod principals;
mod publish;
mod tenants;

pub use audit::AuditFilter;
pub use inbox::TaggedHead;
pub use items::ItemFilter;
pub use list::PageRequest;
pub use operation::Health;
pub use publish::{fresh_deduplication_key, fresh_idempotency_key};

pub(crate) use consumers::{ack_consumer, poll_consumer};
pub(crate) use events::event_page;
pub(crate) use inbox::seconds;
