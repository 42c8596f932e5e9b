//! One peer over WebSocket, as the gateway sees it.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, SinkExt, StreamExt};
use gateway::{Connection, Incoming, PeerGone};
use protocol::CloseCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Utf8Bytes};

use super::outbox::{CAPACITY, Outbox};

/// What an idle connection keeps for reading: some thirty acknowledgements at once.
const READ_BUFFER: usize = 1024;
/// A larger frame leaves in pieces of this size, or the library's buffer would stay as large as the largest event ever sent.
const PIECE: usize = 16 * 1024;
/// What the library may hold beside the outbox: two pieces and the answers to pings.
const LIBRARY_BUFFER: usize = 2 * PIECE + 4 * 1024;
/// How long a peer has to take the close frame and answer it.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

/// A WebSocket to one gateway peer.
#[derive(Debug)]
pub(crate) struct WebSocket {
    socket: WebSocketStream<Outbox<TcpStream>>,
}

impl WebSocket {
    /// Speaks over an upgraded connection; `received` is what came behind the handshake. Frames above `max_frame_bytes` are refused.
    pub(crate) async fn new(stream: TcpStream, received: Bytes, max_frame_bytes: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0)
            .max_write_buffer_size(LIBRARY_BUFFER)
            .max_message_size(Some(max_frame_bytes))
            .max_frame_size(Some(max_frame_bytes));
        let outbox = Outbox::new(stream);
        let socket = if received.is_empty() {
            WebSocketStream::from_raw_socket(outbox, Role::Server, Some(config)).await
        } else {
            WebSocketStream::from_partially_read(outbox, received.into(), Role::Server, Some(config)).await
        };
        Self { socket }
    }

    async fn put(&mut self, frame: Message) -> Result<(), PeerGone> {
        poll_fn(|cx| Pin::new(&mut self.socket).poll_ready(cx)).await.map_err(|_| PeerGone)?;
        Pin::new(&mut self.socket).start_send(frame).map_err(|_| PeerGone)
    }

    /// Says goodbye, then reads until the peer has gone: a connection that is closed with unread bytes is reset, and the peer would lose the
    /// close frame.
    async fn say_goodbye(&mut self, code: CloseCode) -> Option<()> {
        let frame = CloseFrame { code: code.number().into(), reason: Utf8Bytes::from_static(code.name()) };
        self.socket.send(Message::Close(Some(frame))).await.ok()?;
        while let Some(Ok(_)) = self.socket.next().await {}
        let stream = self.socket.get_mut();
        stream.shutdown().await.ok()?;
        let mut unread = vec![0; 1024];
        while stream.read(&mut unread).await.ok()? > 0 {}
        Some(())
    }

    /// The answer to the peer's close is ready; it only has to leave. The library calls the connection closed as soon as it has handed the answer to
    /// the outbox, which still holds it then.
    async fn answer_goodbye(&mut self) {
        let _ = SinkExt::<Message>::flush(&mut self.socket).await;
        let stream = self.socket.get_mut();
        let _ = stream.flush().await;
        let _ = stream.shutdown().await;
    }
}

impl Connection for WebSocket {
    async fn receive(&mut self) -> Incoming {
        match self.socket.next().await {
            Some(Ok(Message::Text(text))) => Incoming::Text(text.into()),
            Some(Ok(Message::Binary(_))) => Incoming::Binary,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Incoming::Alive,
            Some(Ok(Message::Close(_))) => {
                // Boxed, like every state that an idle connection has not.
                let _ = Box::pin(timeout(CLOSE_PATIENCE, self.answer_goodbye())).await;
                Incoming::Gone
            }
            Some(Ok(Message::Frame(_))) => Incoming::Invalid,
            Some(Err(error)) => fault(&error),
            None => Incoming::Gone,
        }
    }

    async fn feed(&mut self, frame: Bytes) -> Result<(), PeerGone> {
        let mut rest = frame;
        let mut kind = Data::Text;
        while rest.len() > PIECE {
            let piece = rest.split_to(PIECE);
            self.put(Message::Frame(Frame::message(piece, OpCode::Data(kind), false))).await?;
            kind = Data::Continue;
        }
        self.put(Message::Frame(Frame::message(rest, OpCode::Data(kind), true))).await
    }

    async fn ping(&mut self) -> Result<(), PeerGone> {
        self.put(Message::Ping(Bytes::new())).await
    }

    async fn flush(&mut self) -> Result<(), PeerGone> {
        SinkExt::<Message>::flush(&mut self.socket).await.map_err(|_| PeerGone)
    }

    fn close(mut self, code: CloseCode) -> impl Future<Output = ()> + Send {
        Box::pin(async move {
            let _ = timeout(CLOSE_PATIENCE, self.say_goodbye(code)).await;
        })
    }
}

fn fault(error: &Error) -> Incoming {
    match error {
        Error::Capacity(_) => Incoming::TooLarge,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Incoming::Gone,
        Error::Protocol(_) | Error::Utf8(_) | Error::AttackAttempt => Incoming::Invalid,
        _ => Incoming::Gone,
    }
}

// The library's buffer and the outbox together are what a stalled peer costs.
const _: () = assert!(CAPACITY + LIBRARY_BUFFER <= 128 * 1024);
