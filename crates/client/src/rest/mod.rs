//! The REST operations, one method each.

mod access;
mod audit;
mod consumers;
mod events;
mod list;
mod operation;
mod principals;
mod publish;
mod tenants;

pub use audit::AuditFilter;
pub use list::PageRequest;
pub use operation::Health;
pub use publish::fresh_deduplication_key;

pub(crate) use consumers::{ack_consumer, poll_consumer};
pub(crate) use events::event_page;
