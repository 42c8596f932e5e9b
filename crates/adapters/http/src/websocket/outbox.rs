//! A write buffer that is given back: many small writes become one, and an idle connection holds next to nothing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What waits before the stream is written to at the latest: 64 frames of common size leave in one write.
pub(super) const CAPACITY: usize = 64 * 1024;
/// The first growth goes up to here, the next to [`CAPACITY`]: in between lies only copying.
const SMALL: usize = 4 * 1024;

/// Gathers writes until they are flushed or [`CAPACITY`] is reached.
#[derive(Debug)]
pub(super) struct Outbox<S> {
    stream: S,
    waiting: Vec<u8>,
    written: usize,
}

impl<S: AsyncWrite + Unpin> Outbox<S> {
    /// An empty one over `stream`.
    pub(super) fn new(stream: S) -> Self {
        Self { stream, waiting: Vec::new(), written: 0 }
    }

    /// Writes out what waits, and gives the buffer back: taking it again costs far less than the write.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.waiting.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        (self.waiting, self.written) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }

    fn make_room(&mut self, length: usize) {
        let needed = self.waiting.len() + length;
        if needed > self.waiting.capacity() {
            let capacity = if needed <= SMALL { SMALL.min(needed.next_power_of_two()) } else { CAPACITY.max(needed) };
            self.waiting.reserve_exact(capacity - self.waiting.len());
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Outbox<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.waiting.len() >= CAPACITY || self.written > 0 {
            ready!(self.poll_drain(cx))?;
        }
        let taken = bytes.get(..CAPACITY).unwrap_or(bytes);
        self.make_room(taken.len());
        self.waiting.extend_from_slice(taken);
        Poll::Ready(Ok(taken.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Outbox<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncWrite, AsyncWriteExt};

    use super::{CAPACITY, Outbox};

    /// Takes `room` bytes, then blocks; counts writes.
    #[derive(Default)]
    struct Peer {
        taken: Vec<u8>,
        writes: usize,
        room: usize,
    }

    impl AsyncWrite for Peer {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Poll::Pending;
            }
            self.room -= count;
            self.writes += 1;
            self.taken.extend_from_slice(&bytes[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn outbox(room: usize) -> Outbox<Peer> {
        Outbox::new(Peer { room, ..Peer::default() })
    }

    #[tokio::test]
    async fn sixty_four_frames_leave_in_one_write_and_the_buffer_is_given_back() {
        let mut outbox = outbox(usize::MAX);
        for _ in 0..64 {
            outbox.write_all(&[7; 640]).await.unwrap();
        }
        assert_eq!(outbox.stream.writes, 0);
        outbox.flush().await.unwrap();
        assert_eq!((outbox.stream.writes, outbox.stream.taken.len()), (1, 64 * 640));
        assert_eq!(outbox.waiting.capacity(), 0);
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_costs_bounded_memory() {
        let mut outbox = outbox(1_000);
        let mut accepted = 0;
        let blocked = loop {
            let write = futures_util::poll!(std::pin::pin!(outbox.write(&[1; 600])));
            match write {
                Poll::Ready(written) => accepted += written.unwrap(),
                Poll::Pending => break true,
            }
            assert!(accepted < 10 * CAPACITY);
        };
        assert!(blocked);
        assert!(outbox.waiting.capacity() <= CAPACITY + 1_024);
        outbox.stream.room = usize::MAX;
        outbox.flush().await.unwrap();
        assert_eq!(outbox.stream.taken.len(), accepted);
    }

    #[tokio::test]
    async fn bytes_keep_their_order_over_partial_writes() {
        let mut outbox = outbox(3);
        outbox.write_all(b"abcde").await.unwrap();
        assert!(futures_util::poll!(std::pin::pin!(outbox.flush())).is_pending());
        outbox.stream.room = 100;
        outbox.write_all(b"fgh").await.unwrap();
        outbox.flush().await.unwrap();
        assert_eq!(outbox.stream.taken, b"abcdefgh");
    }
}
