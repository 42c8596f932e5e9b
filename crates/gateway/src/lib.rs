//! Delivery: the window, the runner, sessions and their handshake, the REST feed, people's readers.
//!
//! Architecture invariant: one engine for every transport. Knows no HTTP, no SQL, no WebSocket library: a peer is a [`Connection`].

mod connection;
mod feed;
mod gateway;
mod handshake;
mod hints;
mod hook;
mod metrics;
mod nodes;
mod phase;
mod progress;
mod rate;
mod reader;
mod registry;
mod resync;
mod runner;
mod saver;
mod session;
mod settings;
mod takeover;
mod waiters;
mod window;

pub use connection::{Connection, Incoming, PeerGone};
pub use feed::Feed;
pub use gateway::{Gateway, Parts};
pub use hints::{Hints, InboxHints, NoHints};
pub use hook::{DeliveryHook, PassDelivery, Preparation, Verdict};
pub use metrics::{Backlog, Metrics};
pub use reader::{EventReader, EventStream, PageRequest, ReadError, StreamItem, StreamStart};
pub use resync::Resync;
pub use settings::Settings;
pub use window::{DeliveryWindow, WindowLimits};
