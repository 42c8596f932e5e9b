//! The floor under delivery: a server thread that writes ready-made texts to WebSockets and knows nothing else, read by the same
//! client as the rows.

use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::SinkExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::failure::Failure;
use crate::wire::{Socket, WireError};

/// How long all connections may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is pushed how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PushFloor {
    /// WebSockets that are served in turn.
    pub(crate) connections: usize,
    /// Frames that leave in one write.
    pub(crate) frames_per_write: usize,
    /// Bytes of a frame's text.
    pub(crate) bytes: usize,
}

impl PushFloor {
    /// Frames per second that arrive over all connections, counted by a client on `runtime`.
    pub(crate) fn rate(self, runtime: &Runtime, window: Duration) -> Result<f64, Failure> {
        let listener = StdListener::bind("127.0.0.1:0").map_err(Failure::io("listen"))?;
        listener.set_nonblocking(true).map_err(Failure::io("listen"))?;
        let address = listener.local_addr().map_err(Failure::io("listen"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let server = self.start(listener, Arc::clone(&stop))?;
        let counted: Result<f64, Failure> = runtime.block_on(async {
            let mut readers = JoinSet::new();
            let frames = Arc::new(AtomicU64::new(0));
            for _ in 0..self.connections {
                let socket = Socket::connect(address, "/", None).await?;
                readers.spawn(count(socket, Arc::clone(&frames)));
            }
            let rate = rate_of(&frames, window).await;
            stop.store(true, Ordering::Relaxed);
            // Closes the connections, so that a write which waits for its reader ends.
            readers.shutdown().await;
            Ok(rate)
        });
        stop.store(true, Ordering::Relaxed);
        let served = server.join().unwrap_or_else(|_| Err(Failure::Wrong("the raw push loop panicked".to_owned())));
        let rate = counted?;
        served.map(|()| rate)
    }

    fn start(self, listener: StdListener, stop: Arc<AtomicBool>) -> Result<JoinHandle<Result<(), Failure>>, Failure> {
        std::thread::Builder::new()
            .name("push-floor".to_owned())
            .spawn(move || {
                let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::io("start a runtime"))?;
                runtime.block_on(async {
                    let accepted = tokio::time::timeout(PATIENCE, self.accept(listener)).await;
                    let sockets = accepted.map_err(|_| Failure::Late("the connections of the raw push loop"))??;
                    self.push(sockets, &stop).await;
                    Ok(())
                })
            })
            .map_err(Failure::io("start a thread"))
    }

    async fn accept(self, listener: StdListener) -> Result<Vec<WebSocketStream<TcpStream>>, Failure> {
        let listener = TcpListener::from_std(listener).map_err(Failure::io("listen"))?;
        let mut sockets = Vec::with_capacity(self.connections);
        while sockets.len() < self.connections {
            let (stream, _) = listener.accept().await.map_err(Failure::io("accept"))?;
            stream.set_nodelay(true).map_err(Failure::io("accept"))?;
            sockets.push(tokio_tungstenite::accept_async(stream).await?);
        }
        Ok(sockets)
    }

    /// Writes until it is told to stop, or until the readers are gone.
    async fn push(self, mut sockets: Vec<WebSocketStream<TcpStream>>, stop: &AtomicBool) {
        let text = Utf8Bytes::from("x".repeat(self.bytes));
        while !stop.load(Ordering::Relaxed) {
            for socket in &mut sockets {
                for _ in 0..self.frames_per_write {
                    if socket.feed(Message::Text(text.clone())).await.is_err() {
                        return;
                    }
                }
                if socket.flush().await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Adds the texts that arrive to `frames` for as long as they do.
async fn count(mut socket: Socket, frames: Arc<AtomicU64>) -> Result<(), WireError> {
    loop {
        let texts = socket.receive(|_, _| {}).await?;
        frames.fetch_add(texts as u64, Ordering::Relaxed);
    }
}

/// How fast `frames` grows in `window`, after a fifth of it to get going.
async fn rate_of(frames: &AtomicU64, window: Duration) -> f64 {
    tokio::time::sleep(window / 5).await;
    let (begin, before) = (Instant::now(), frames.load(Ordering::Relaxed));
    tokio::time::sleep(window).await;
    (frames.load(Ordering::Relaxed) - before) as f64 / begin.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::PushFloor;

    #[test]
    fn every_shape_of_the_loop_pushes_and_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (connections, frames_per_write) in [(1, 1), (1, 64), (20, 1), (20, 64)] {
            let floor = PushFloor { connections, frames_per_write, bytes: 512 };
            assert!(floor.rate(&runtime, Duration::from_millis(50)).unwrap() > 0.0, "{floor:?}");
        }
    }
}
