//! A way to the server that a test can cut where it hurts most.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What happens to the next commit that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trap {
    /// The connection breaks before the server hears of it.
    Before,
    /// The server answers, and the connection breaks before anybody hears that.
    After,
    /// The same, and every other connection breaks too.
    AfterWithAll,
    /// It is held until the test says so.
    Held,
}

/// A proxy for one server.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    tracker: TaskTracker,
    cancel: CancellationToken,
}

struct Shared {
    trap: Mutex<Option<Trap>>,
    /// Cancelled, and replaced, to break every connection.
    cut: Mutex<CancellationToken>,
    /// Cancelled, and replaced, to have every connection go silent.
    silenced: Mutex<CancellationToken>,
    reached: Notify,
    go: Notify,
}

impl Proxy {
    pub(crate) async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared =
            Shared { trap: Mutex::default(), cut: Mutex::default(), silenced: Mutex::default(), reached: Notify::new(), go: Notify::new() };
        let shared = Arc::new(shared);
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        let (state, tasks, ended) = (Arc::clone(&shared), tracker.clone(), cancel.clone());
        let accept = async move {
            while let Ok((client, _)) = listener.accept().await {
                let (state, ended) = (Arc::clone(&state), ended.clone());
                tasks.spawn(async move { ended.run_until_cancelled(carry(&state, client, server)).await });
            }
        };
        let ended = cancel.clone();
        tracker.spawn(async move { ended.run_until_cancelled(accept).await });
        Self { port, shared, tracker, cancel }
    }

    /// Sets a trap for the next commit.
    pub(crate) fn set(&self, trap: Trap) {
        *self.shared.trap.lock().unwrap() = Some(trap);
    }

    /// From now on nothing passes on the connections that there are, and nobody is told. New ones are carried.
    pub(crate) fn silence(&self) {
        std::mem::take(&mut *self.shared.silenced.lock().unwrap()).cancel();
    }

    /// Whether a commit went into the trap.
    pub(crate) fn has_sprung(&self) -> bool {
        self.shared.trap.lock().unwrap().is_none()
    }

    /// Waits until a commit is held.
    pub(crate) async fn holds(&self) {
        self.shared.reached.notified().await;
    }

    /// Lets it go on.
    pub(crate) fn let_go(&self) {
        self.shared.go.notify_one();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.tracker.close();
    }
}

async fn carry(shared: &Shared, mut client: TcpStream, server: u16) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let cut = shared.cut.lock().unwrap().clone();
    let silenced = shared.silenced.lock().unwrap().clone();
    let (mut asked, mut answered) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(count @ 1..) = read else { return };
                let text = &asked[..count];
                // At the beginning of a line: "READ COMMITTED" is none.
                let is_commit = text.windows(7).any(|part| part == b"\nCOMMIT");
                let trap = if is_commit { shared.trap.lock().unwrap().take() } else { None };
                match trap {
                    Some(Trap::Before) => return,
                    Some(Trap::Held) => {
                        shared.reached.notify_one();
                        shared.go.notified().await;
                    }
                    Some(Trap::After | Trap::AfterWithAll) | None => {}
                }
                if server.write_all(text).await.is_err() {
                    return;
                }
                if let Some(Trap::After | Trap::AfterWithAll) = trap {
                    let _ = server.read(&mut answered).await;
                    if trap == Some(Trap::AfterWithAll) {
                        std::mem::take(&mut *shared.cut.lock().unwrap()).cancel();
                    }
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                if client.write_all(&answered[..count]).await.is_err() {
                    return;
                }
            }
            () = cut.cancelled() => return,
            () = silenced.cancelled() => return std::future::pending().await,
        }
    }
}
