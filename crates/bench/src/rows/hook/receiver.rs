//! A receiver of rings on the loopback address: answers at once without looking, or never.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::failure::Failure;

/// What every ring is answered.
const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
/// More than a ring with its head has.
const RING_MAX: usize = 16 << 10;

/// What it does with a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Answers it.
    Answers,
    /// Takes it and says nothing.
    Hangs,
}

#[derive(Debug, Default)]
struct Seen {
    rings: AtomicUsize,
    has_unsigned: AtomicBool,
}

/// A listening receiver. Ends when it is dropped.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    seen: Arc<Seen>,
    _accepting: JoinSet<()>,
}

impl Receiver {
    /// Listens on a free port.
    pub(super) async fn listen(manner: Manner) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Failure::io("listen for rings"))?;
        let address = listener.local_addr().map_err(Failure::io("listen for rings"))?;
        let seen = Arc::new(Seen::default());
        let counting = Arc::clone(&seen);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                open.spawn(answer(socket, manner, Arc::clone(&counting)));
                // What has ended is let go.
                while open.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, seen, _accepting: accepting })
    }

    /// How many came.
    pub(super) fn rings(&self) -> usize {
        self.seen.rings.load(Ordering::Relaxed)
    }

    /// Whether a connection began with a ring that was not signed.
    pub(super) fn has_seen_unsigned(&self) -> bool {
        self.seen.has_unsigned.load(Ordering::Relaxed)
    }
}

async fn answer(mut socket: TcpStream, manner: Manner, seen: Arc<Seen>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let (mut read, mut is_first) = (Vec::with_capacity(RING_MAX), true);
    loop {
        if socket.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
        while let Some(length) = ring_length(&read) {
            if is_first {
                is_first = false;
                if !contains(read.get(..length).unwrap_or_default(), b"webhook-signature: v1,") {
                    seen.has_unsigned.store(true, Ordering::Relaxed);
                }
            }
            read.drain(..length);
            seen.rings.fetch_add(1, Ordering::Relaxed);
            if manner == Manner::Answers {
                socket.write_all(ANSWER).await?;
            }
        }
    }
}

/// The length of the first whole request in what was read.
fn ring_length(read: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length: ";
    let head = 4 + read.windows(4).position(|window| window == b"\r\n\r\n")?;
    let at = NAME.len() + read.get(..head)?.windows(NAME.len()).position(|window| window.eq_ignore_ascii_case(NAME))?;
    let digits: Vec<u8> = read.get(at..)?.iter().copied().take_while(u8::is_ascii_digit).collect();
    let length = head + std::str::from_utf8(&digits).ok()?.parse::<usize>().ok()?;
    (read.len() >= length).then_some(length)
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|window| window == what)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::{ANSWER, Manner, Receiver, ring_length};

    #[test]
    fn a_ring_ends_where_its_length_says() {
        let ring = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(ring_length(ring), Some(ring.len()));
        assert_eq!(ring_length(&[&ring[..], b"POST"].concat()), Some(ring.len()));
        for cut in 0..ring.len() {
            assert_eq!(ring_length(&ring[..cut]), None, "{cut}");
        }
    }

    #[tokio::test]
    async fn every_ring_is_counted_and_answered() {
        let receiver = Receiver::listen(Manner::Answers).await.unwrap();
        let mut socket = TcpStream::connect(receiver.address).await.unwrap();
        let ring = b"POST / HTTP/1.1\r\nwebhook-signature: v1,AAAA\r\ncontent-length: 2\r\n\r\n{}";
        socket.write_all(&[&ring[..], &ring[..]].concat()).await.unwrap();
        let mut answers = vec![0; ANSWER.len() * 2];
        socket.read_exact(&mut answers).await.unwrap();
        assert_eq!((receiver.rings(), receiver.has_seen_unsigned()), (2, false));
        let mut socket = TcpStream::connect(receiver.address).await.unwrap();
        socket.write_all(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        socket.read_exact(&mut answers[..ANSWER.len()]).await.unwrap();
        assert_eq!((receiver.rings(), receiver.has_seen_unsigned()), (3, true));
    }
}
