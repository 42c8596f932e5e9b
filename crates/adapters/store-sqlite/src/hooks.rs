//! Stored hooks: registrations, keys, rings on their way, and how far logs were looked at. Whom to ring and when is not decided here.

mod attempts;
mod deliveries;
mod dispatch;
mod due;
mod keys;
mod readable;
mod registrations;
mod rows;
mod server_keys;
mod store;
mod write;

pub(crate) use readable::Table;
pub(crate) use rows::{attempt, delivery, hook, key, position, server_key};
