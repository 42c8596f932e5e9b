//! Stored hooks: registrations, keys, rings on their way, and how far logs were looked at. Whom to ring and when is not decided here.
//!
//! Whoever reads or changes the rings or attempts of a hook in a transaction first locks the hook's row, and several in the order of their ids:
//! what the transaction finds stays as it is until it ends, on every node.

mod attempts;
mod deliveries;
mod dispatch;
mod due;
mod keys;
mod locks;
mod readable;
mod registrations;
mod rows;
mod server_keys;
mod store;
mod write;
