//! Frames of the gateway: JSON texts with the member `op`.

mod client;
mod messages;
mod server;

pub use client::{Ack, ClientFrame, ClientOp, FrameFault, Heartbeat, Identify, Resume};
pub use messages::{FrameMessage, FrameMessages, frame_messages};
pub use server::{
    CatchupComplete, Cursor, Dispatch, GatewayError, HeartbeatAck, Hello, InboxUpdated, QueueDigest, Ready, ReadyPrincipal, Resumed,
    ResyncRequired, ServerFrame, ServerOp,
};

/// The version of the gateway protocol that is spoken.
pub const PROTOCOL: u64 = 1;
