//! The gateway's transport: WebSocket (RFC 6455) over an upgraded HTTP connection.
//!
//! The protocol is tungstenite's. What is ours is the memory: frames leave together in one write from a buffer that exists only meanwhile, and
//! a large event leaves in pieces, so that one connection never holds more than [`outbox`] says.

mod connection;
mod handshake;
mod outbox;

pub(crate) use connection::WebSocket;
pub(crate) use handshake::{Handshake, upgrade_required};
