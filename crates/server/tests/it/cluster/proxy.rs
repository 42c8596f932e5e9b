//! A way to the database that a test can cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What becomes of the connections that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The server's next answer is swallowed, and the connection closed.
    LoseAnswers,
    /// Nothing goes through any more.
    Cut,
}

/// Passes bytes on between a client and the server.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    /// The number of the last order, and what it was. A connection obeys orders that were given after it was made.
    orders: watch::Sender<(u64, Order)>,
    harmed: Arc<AtomicU64>,
    server: Arc<AtomicU16>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (orders, following) = watch::channel((0, Order::Cut));
        let harmed = Arc::<AtomicU64>::default();
        let counting = Arc::clone(&harmed);
        let server = Arc::new(AtomicU16::new(server));
        let reading = Arc::clone(&server);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", reading.load(Ordering::SeqCst))).await else { continue };
                let (mut orders, harmed) = (following.clone(), Arc::clone(&counting));
                orders.mark_unchanged();
                tokio::spawn(pass(client, server, orders, harmed));
            }
        });
        Self { port, orders, harmed, server, accepting }
    }

    /// On every connection that there is, the server does what it was asked, and nobody hears the answer.
    pub(crate) fn lose_answers(&self) {
        self.order(Order::LoseAnswers);
    }

    /// Every connection that there is is cut where it is.
    pub(crate) fn cut(&self) {
        self.order(Order::Cut);
    }

    /// From now on new connections go to this server.
    pub(crate) fn lead_to(&self, server: u16) {
        self.server.store(server, Ordering::SeqCst);
    }

    fn order(&self, order: Order) {
        self.orders.send_modify(|last| *last = (last.0 + 1, order));
    }

    /// Connections that were closed by an order.
    pub(crate) fn harmed(&self) -> u64 {
        self.harmed.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(client: TcpStream, server: TcpStream, mut orders: watch::Receiver<(u64, Order)>, harmed: Arc<AtomicU64>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut is_losing = false;
    loop {
        tokio::select! {
            biased;
            changed = orders.changed() => {
                let order = orders.borrow_and_update().1;
                if changed.is_err() || order == Order::Cut {
                    harmed.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                is_losing = true;
            }
            read = from_server.read(&mut answered) => match read {
                Ok(count) if count > 0 && is_losing => {
                    harmed.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                Ok(count) if count > 0 && to_client.write_all(&answered[..count]).await.is_ok() => {}
                _ => return,
            },
            read = from_client.read(&mut asked) => match read {
                Ok(count) if count > 0 && to_server.write_all(&asked[..count]).await.is_ok() => {}
                _ => return,
            },
        }
    }
}
