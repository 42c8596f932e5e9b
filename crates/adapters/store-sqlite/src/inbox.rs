//! Stored inboxes: recipients, items and what is kept around them. What becomes of an item is not decided here.

mod backlog;
mod claims;
mod deliver;
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

pub(crate) use deliver::deliver;
pub(crate) use payloads::{keep_envelopes, payload_is_sound, work_is_current};
pub(crate) use prune::Walk;
pub(crate) use recipients::close;
pub(crate) use rows::{ended_item, hot_item};
