//! A WebSocket connection that counts: frames are looked at where they were read, and nothing is copied but the beginning of a frame
//! whose end has not arrived.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use super::WireError;
use super::frame::{Frame, Outbox, parse};
use super::http::{Request, open_stream};

/// Bytes asked for in one read.
const READ: usize = 64 << 10;

thread_local! {
    // Every connection of a thread reads into the same memory, which therefore stays in the processor's cache. A read and the look at
    // what it brought are one step without a pause, so nobody else can come between.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A connection after its upgrade.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    /// The beginning of a frame that is not all there.
    rest: Vec<u8>,
    /// Whether `rest` may hold whole frames, which came with the answer to the upgrade.
    unseen: bool,
    outbox: Outbox,
}

impl Socket {
    /// Connects to `path` and upgrades, with a bearer token when given.
    pub(crate) async fn connect(address: SocketAddr, path: &str, token: Option<&str>) -> Result<Self, WireError> {
        let mut request = Request::new("GET", path);
        for (name, value) in [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            // Any sixteen bytes: what the server makes of them proves nothing here.
            ("sec-websocket-key", "ZG9vcnN0ZXAtYmVuY2gxNg=="),
        ] {
            request = request.header(name, value);
        }
        if let Some(token) = token {
            request = request.bearer(token);
        }
        let (stream, rest) = open_stream(address, &request.render(), 101).await?;
        let unseen = !rest.is_empty();
        Ok(Self { stream, rest, unseen, outbox: Outbox::default() })
    }

    /// Sends a text message.
    pub(crate) async fn send(&mut self, text: &[u8]) -> Result<(), WireError> {
        self.outbox.text(text);
        self.flush().await
    }

    /// Reads once and shows every text message that is complete to `visit`, with an outbox for answers. Pings are answered. Returns
    /// how many messages there were, possibly none.
    pub(crate) async fn receive(&mut self, mut visit: impl FnMut(&[u8], &mut Outbox)) -> Result<usize, WireError> {
        let texts = poll_fn(|context| SCRATCH.with_borrow_mut(|scratch| self.poll_receive(context, scratch, &mut visit))).await?;
        if !self.outbox.bytes().is_empty() {
            self.flush().await?;
        }
        Ok(texts)
    }

    /// Reads until `wanted` says that a text message is the one.
    pub(crate) async fn wait_for(&mut self, mut wanted: impl FnMut(&[u8]) -> bool) -> Result<(), WireError> {
        let mut found = false;
        while !found {
            self.receive(|text, _| found |= wanted(text)).await?;
        }
        Ok(())
    }

    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        scratch: &mut Vec<u8>,
        visit: &mut impl FnMut(&[u8], &mut Outbox),
    ) -> Poll<Result<usize, WireError>> {
        let kept = self.rest.len();
        if scratch.len() < kept + READ {
            scratch.resize(kept + READ, 0);
        }
        let (front, free) = scratch.split_at_mut(kept);
        let mut read = 0;
        if !std::mem::take(&mut self.unseen) {
            let mut buffer = ReadBuf::new(free);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            read = buffer.filled().len();
            if read == 0 {
                return Poll::Ready(Err(WireError::Ended));
            }
        }
        front.copy_from_slice(&self.rest);
        Poll::Ready(self.look(scratch.get(..kept + read).unwrap_or_default(), visit))
    }

    /// Shows what is complete in `bytes` and keeps the rest.
    fn look(&mut self, mut bytes: &[u8], visit: &mut impl FnMut(&[u8], &mut Outbox)) -> Result<usize, WireError> {
        let mut texts = 0;
        while let Some((frame, after)) = parse(bytes)? {
            bytes = after;
            match frame {
                Frame::Text(text) => {
                    texts += 1;
                    visit(text, &mut self.outbox);
                }
                Frame::Ping(payload) => self.outbox.pong(payload),
                Frame::Pong => {}
                Frame::Close(code, reason) => {
                    return Err(WireError::Closed { code, reason: String::from_utf8_lossy(reason).into_owned() });
                }
            }
        }
        self.rest.clear();
        self.rest.extend_from_slice(bytes);
        Ok(texts)
    }

    async fn flush(&mut self) -> Result<(), WireError> {
        self.stream.write_all(self.outbox.bytes()).await?;
        self.outbox.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use futures_util::{SinkExt, StreamExt};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::{Bytes, Message, protocol::CloseFrame};

    use super::Socket;
    use crate::wire::WireError;

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// Runs `server` beside `client` until both are done.
    async fn both<T>(server: impl Future<Output = ()>, client: impl Future<Output = T>) -> T {
        tokio::join!(server, client).1
    }

    #[tokio::test]
    async fn messages_of_all_sizes_and_pings_in_between_arrive_whole_from_a_real_server() {
        let (listener, address) = listener().await;
        let sizes = [1, 125, 126, 5_000, 65_535, 65_536, 300_000, 2];
        let server = async {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            for size in sizes {
                socket.send(Message::text("x".repeat(size))).await.unwrap();
                socket.send(Message::Ping(Bytes::from_static(b"there?"))).await.unwrap();
            }
            let mut pongs = 0;
            while pongs < sizes.len() {
                match socket.next().await.unwrap().unwrap() {
                    Message::Pong(payload) => {
                        assert_eq!(payload, &b"there?"[..]);
                        pongs += 1;
                    }
                    Message::Text(text) => assert_eq!(text.as_str(), "answer"),
                    other => panic!("{other:?}"),
                }
            }
            let close = CloseFrame { code: 4015.into(), reason: "replaced".into() };
            socket.close(Some(close)).await.unwrap();
        };
        let client = async {
            let mut socket = Socket::connect(address, "/", None).await.unwrap();
            socket.send(b"answer").await.unwrap();
            let mut seen = Vec::new();
            loop {
                let received = socket.receive(|text, outbox| {
                    assert!(text.iter().all(|byte| *byte == b'x'));
                    seen.push(text.len());
                    outbox.text(b"answer");
                });
                match received.await {
                    Ok(_) => {}
                    Err(WireError::Closed { code, reason }) => break assert_eq!((code, &*reason), (4015, "replaced")),
                    Err(other) => panic!("{other}"),
                }
            }
            assert_eq!(seen, sizes);
        };
        both(server, client).await;
    }

    /// Answers the upgrade, then writes `bytes` in pieces of `piece`.
    async fn dribble(listener: &TcpListener, bytes: &[u8], piece: usize) {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        for piece in bytes.chunks(piece) {
            stream.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn frames_are_found_wherever_the_reads_are_cut() {
        let upgraded = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n";
        let texts = [&b"\x81\x02{}"[..], b"\x89\x01p", b"\x81\x7e\x01\x2c", &[b'y'; 300], b"\x81\x00"].concat();
        let bytes = [&upgraded[..], &texts].concat();
        for piece in [1, 2, 3, 7, 61, bytes.len()] {
            let (listener, address) = listener().await;
            let client = async {
                let mut socket = Socket::connect(address, "/", Some("token")).await.unwrap();
                let mut seen = Vec::new();
                while seen.len() < 3 {
                    socket.receive(|text, _| seen.push(text.len())).await.unwrap();
                }
                assert_eq!(seen, [2, 300, 0], "in pieces of {piece}");
            };
            both(dribble(&listener, &bytes, piece), client).await;
        }
    }

    #[tokio::test]
    async fn an_end_without_a_close_frame_is_an_error() {
        let (listener, address) = listener().await;
        let client = async {
            let mut socket = Socket::connect(address, "/", None).await.unwrap();
            assert!(matches!(socket.wait_for(|_| true).await, Err(WireError::Ended | WireError::Io(_))));
        };
        both(dribble(&listener, b"HTTP/1.1 101 Switching Protocols\r\n\r\n", 100), client).await;
    }

    #[tokio::test]
    async fn a_refused_upgrade_says_why() {
        let (listener, address) = listener().await;
        let client = async {
            let refused = Socket::connect(address, "/", None).await.unwrap_err();
            assert_eq!(refused.to_string(), "refused with 401: who?");
        };
        both(dribble(&listener, b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 4\r\n\r\nwho?", 9), client).await;
    }
}
