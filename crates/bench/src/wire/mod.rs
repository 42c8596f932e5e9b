//! The cheap client: sockets, requests rendered once, and just enough of HTTP and WebSocket to count what comes back.

mod error;
mod frame;
mod gateway;
mod http;
mod websocket;

pub(crate) use error::WireError;
pub(crate) use gateway::{Follower, ack_frame, dispatched_seq};
pub(crate) use http::{HttpConnection, Request, open_stream};
pub(crate) use websocket::Socket;
