//! Commands that make one call, or a few of one kind.

pub(crate) mod access;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod consumers;
pub(crate) mod events;
pub(crate) mod hooks;
pub(crate) mod inbox;
pub(crate) mod nodes;
pub(crate) mod presence;
pub(crate) mod principals;
pub(crate) mod scheduled;
pub(crate) mod staged;
pub(crate) mod tenants;
pub(crate) mod who;

use client::Timestamp;

/// An optional value as a cell.
fn cell(value: Option<&impl ToString>) -> String {
    value.map_or_else(String::new, ToString::to_string)
}

/// Whether something is, as a cell.
fn yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

/// Words as a cell.
fn words<T: ToString>(words: &[T]) -> String {
    words.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// An instant as people read it: to the second.
fn when(instant: Timestamp) -> String {
    let text = instant.to_string();
    text.split_once('.').map_or_else(|| text.clone(), |(seconds, _)| format!("{seconds}Z").replace('T', " "))
}
