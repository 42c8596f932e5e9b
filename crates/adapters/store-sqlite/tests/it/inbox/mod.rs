//! Inboxes: what is this store's own.

mod deliver;
mod kept;
mod select;
pub(crate) mod upkeep;

use testkit::conformance::inbox::{MINUTE, events, part, poll_range};
