//! The transport as the gateway sees it; the HTTP adapter implements it over a WebSocket.

use bytes::Bytes;
use protocol::CloseCode;

/// What a peer sent, or what became of it.
#[derive(Debug)]
pub enum Incoming {
    /// A text frame, valid UTF-8.
    Text(Bytes),
    /// A binary frame: not spoken here.
    Binary,
    /// A protocol-level ping or pong: a sign of life.
    Alive,
    /// A frame or message above `gateway.max_frame_bytes`.
    TooLarge,
    /// The peer broke the transport's own protocol (reserved bits, bad UTF-8, …).
    Invalid,
    /// The peer closed or is gone.
    Gone,
}

/// The peer is gone: nothing more can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer is gone")]
pub struct PeerGone;

/// One peer. A single task owns it: reading and writing are never split (design/architecture.md, "Sockets").
pub trait Connection: Send {
    /// The next thing from the peer. Cancel safe.
    fn receive(&mut self) -> impl Future<Output = Incoming> + Send;

    /// Puts a text frame into the bounded write buffer; waits when it is full.
    ///
    /// # Errors
    /// [`PeerGone`].
    fn feed(&mut self, frame: Bytes) -> impl Future<Output = Result<(), PeerGone>> + Send;

    /// Puts a protocol-level ping into the write buffer.
    ///
    /// # Errors
    /// [`PeerGone`].
    fn ping(&mut self) -> impl Future<Output = Result<(), PeerGone>> + Send;

    /// Writes out what was fed.
    ///
    /// # Errors
    /// [`PeerGone`].
    fn flush(&mut self) -> impl Future<Output = Result<(), PeerGone>> + Send;

    /// Sends a close frame and ends the connection, waiting for the peer at most a moment.
    fn close(self, code: CloseCode) -> impl Future<Output = ()> + Send;
}
