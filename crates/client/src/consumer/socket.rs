//! One WebSocket to the gateway: upgrade, frames out, frames in. Must not know what frames mean.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use protocol::{ClientFrame, ServerFrame};
use reqwest::Upgraded;
use reqwest::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode as WireCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};

use super::judge::End;
use crate::ClientError;
use crate::error::told;
use crate::transport::Transport;

/// How long a frame may take to leave. Frames of a client are small: a peer that takes none for so long is gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the farewell of a connection may take.
const FAREWELL: Duration = Duration::from_secs(1);
const READ_BUFFER: usize = 8 << 10;
const WRITE_BUFFER: usize = 1 << 10;
const MAX_WRITE_BUFFER: usize = 256 << 10;

/// A WebSocket to the gateway.
#[derive(Debug)]
pub(crate) struct Socket {
    inner: WebSocketStream<Upgraded>,
}

/// What came in.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A frame of the protocol.
    Frame(ServerFrame),
    /// A ping or pong: the peer lives. A ping is answered by the socket itself.
    Alive,
}

impl Socket {
    /// Makes a connection.
    pub(crate) async fn open(transport: &Transport) -> Result<Self, End> {
        let key = generate_key();
        let response = transport.upgrade(upgrade_headers(&key)?).await.map_err(End::Refused)?;
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
        if accepted != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
            let detail = "not a WebSocket handshake".to_owned();
            return Err(End::Refused(ClientError::Unexpected { status: response.status().as_u16(), detail }));
        }
        let stream = response.upgrade().await.map_err(|error| End::Lost(told(&error.without_url())))?;
        let max = Some(transport.options().max_frame_bytes);
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(WRITE_BUFFER)
            .max_write_buffer_size(MAX_WRITE_BUFFER)
            .max_message_size(max)
            .max_frame_size(max);
        Ok(Self { inner: WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await })
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, frame: &ClientFrame) -> Result<(), End> {
        let sent = tokio::time::timeout(WRITE_TIMEOUT, self.inner.send(Message::text(frame.encode()))).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            // What the server said before it closed is still to be read, and says more than the failed write.
            Ok(Err(_)) => Err(self.last_words().await),
            Err(_) => Err(End::Lost("the server takes no frames".to_owned())),
        }
    }

    /// The next thing that comes in. Cancel safe.
    pub(crate) async fn receive(&mut self) -> Result<Incoming, End> {
        match self.inner.next().await {
            Some(Ok(Message::Text(text))) => match ServerFrame::parse(text.as_str()) {
                Ok(frame) => Ok(Incoming::Frame(frame)),
                Err(error) => Err(self.unreadable(format!("not a frame: {error}")).await),
            },
            Some(Ok(Message::Binary(_))) => Err(self.unreadable("a binary frame".to_owned()).await),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(Incoming::Alive),
            Some(Ok(Message::Close(frame))) => {
                self.farewell().await;
                Err(End::Closed(frame.map(|frame| u16::from(frame.code))))
            }
            Some(Err(error)) => Err(end_of(&error)),
            None => Err(End::Closed(None)),
        }
    }

    /// Says goodbye and waits shortly for the answer, so that the server sees an orderly end.
    pub(crate) async fn close(mut self) {
        let frame = CloseFrame { code: WireCode::Normal, reason: "".into() };
        if tokio::time::timeout(FAREWELL, self.inner.close(Some(frame))).await.is_ok() {
            self.farewell().await;
        }
    }

    async fn unreadable(&mut self, cause: String) -> End {
        let frame = CloseFrame { code: WireCode::Protocol, reason: "".into() };
        let _ = tokio::time::timeout(FAREWELL, self.inner.close(Some(frame))).await;
        End::Unreadable(cause)
    }

    /// Reads on to the end, which also sends what the closing handshake owes.
    async fn farewell(&mut self) {
        let rest = async { while matches!(self.inner.next().await, Some(Ok(_))) {} };
        let _ = tokio::time::timeout(FAREWELL, rest).await;
    }

    async fn last_words(&mut self) -> End {
        let words = async {
            loop {
                match self.inner.next().await {
                    Some(Ok(Message::Close(frame))) => return End::Closed(frame.map(|frame| u16::from(frame.code))),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return end_of(&error),
                    None => return End::Closed(None),
                }
            }
        };
        tokio::time::timeout(FAREWELL, words).await.unwrap_or(End::Closed(None))
    }
}

fn end_of(error: &Error) -> End {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => End::Closed(None),
        Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => {
            End::Unreadable(format!("a frame of {size} bytes; this client reads at most {max_size}"))
        }
        Error::Capacity(_) | Error::Protocol(_) | Error::Utf8(_) => End::Unreadable(error.to_string()),
        _ => End::Lost(told(error)),
    }
}

fn upgrade_headers(key: &str) -> Result<HeaderMap, End> {
    let key = HeaderValue::from_str(key).map_err(|_| End::Lost("no random key".to_owned()))?;
    let fixed: [(HeaderName, HeaderValue); 3] = [
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
    ];
    Ok(fixed.into_iter().chain([(SEC_WEBSOCKET_KEY, key)]).collect())
}
