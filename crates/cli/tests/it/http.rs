//! The server that tests play, and what it answers about consumers.

pub(crate) use testkit::PlayedServer as Http;

use serde_json::{Value, json};

use crate::support::EPOCH;

/// A page of these events.
pub(crate) fn page(events: &[u64], next_cursor: u64) -> Value {
    let events: Vec<_> = events.iter().map(|seq| crate::support::event(*seq)).collect();
    json!({"events": events, "next_cursor": next_cursor, "head_seq": 1_000, "sync_epoch": EPOCH})
}

/// An answer to an acknowledgement.
pub(crate) fn state(acked: u64) -> Value {
    json!({"consumer": "work", "acked_seq": acked, "head_seq": 1_000, "lag": 1_000 - acked, "in_flight": 0})
}
