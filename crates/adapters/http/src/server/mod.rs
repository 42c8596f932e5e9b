//! Accepting and serving connections, with every bound that one needs: in number, time and bytes.
//!
//! Over hyper directly: axum's own server sets none of them.

mod accept;
mod stream;
mod watch;

pub use accept::{Listening, serve};
pub(crate) use accept::{Open, RemoteAddress};
pub(crate) use stream::WatchedStream;
