//! Stored inboxes: recipients, items and what is kept around them. What becomes of an item is not decided here.

mod backlog;
mod claims;
mod deliver;
mod floors;
mod held;
mod lanes;
mod list;
mod payloads;
mod prune;
mod put;
mod recipients;
mod rows;
mod select;
mod sessions;
mod store;
mod write;

pub(crate) use deliver::deliveries;
pub(crate) use floors::note as note_taken;
pub(crate) use held::Held;
pub(crate) use payloads::{checksum as payload_checksum, keep_envelopes};
pub(crate) use recipients::close;

use std::collections::HashMap;
use std::sync::Mutex;

use inbox::RecipientNumber;

/// What the transactions of this process share.
#[derive(Default)]
pub(crate) struct Inboxes {
    /// How far the removal of old rows has come.
    walk: Mutex<prune::Walk>,
    /// Items taken from inboxes since their floors were raised.
    taken: Mutex<HashMap<i64, u64>>,
    /// The inboxes that are worked on.
    lanes: lanes::Lanes,
}

/// The tenant of an inbox, as its number says.
const fn tenant_number(recipient: RecipientNumber) -> i64 {
    recipient.get() >> 32
}
