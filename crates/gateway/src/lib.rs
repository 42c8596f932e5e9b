//! Delivery: the window, the runner, sessions and their handshake, the REST feed, people's readers.
//!
//! Architecture invariant: one engine for every transport. Knows no HTTP, no SQL, no WebSocket library: a peer is a [`Connection`].

mod connection;

pub use connection::{Connection, Incoming, PeerGone};
