//! The accept loop and the life of one connection.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use protocol::{PROBLEM_MEDIA_TYPE, Problem, ProblemCode};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use super::stream::WatchedStream;
use super::watch::{Bounds, Watch};
use crate::Settings;
use crate::metrics::HttpMetrics;

/// How long accepting pauses when the system has no room for another socket.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a connection may buffer in either direction at most; it begins with far less.
const BUFFER_BYTES: usize = 64 * 1024;

/// From where a request came; present on requests that ask for an upgrade.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteAddress(pub(crate) SocketAddr);

/// A server that is to run.
#[derive(Debug)]
pub struct Listening {
    /// Where it accepts.
    pub listener: TcpListener,
    /// Its bounds.
    pub settings: Settings,
    /// What it counts into.
    pub metrics: Arc<HttpMetrics>,
    /// Who owns the connections' tasks. It is not closed here.
    pub tasks: TaskTracker,
    /// Ends accepting, and every connection after the request that it is busy with.
    pub shutdown: CancellationToken,
}

/// Accepts until `shutdown`; then returns at once, while `tasks` has the connections that are still busy.
///
/// A connection that cannot be accepted is logged and does not end the loop.
pub async fn serve(listening: Listening, router: Router) {
    let Listening { listener, settings, metrics, tasks, shutdown } = listening;
    let permits = Arc::new(Semaphore::new(settings.max_connections.min(Semaphore::MAX_PERMITS)));
    let (bounds, max_header_bytes) = (Bounds::from(&settings), settings.max_header_bytes);
    let host = Arc::new(Host { router, bounds, max_header_bytes, metrics, shutdown, too_many: too_many() });
    while let Some(accepted) = host.shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((socket, remote)) => match Arc::clone(&permits).try_acquire_owned() {
                Ok(permit) => {
                    tasks.spawn(Arc::clone(&host).connection(socket, remote, permit));
                }
                Err(_) => host.turn_away(&socket),
            },
            Err(error) => pause_after(&error).await,
        }
    }
}

/// A peer that is gone already costs nothing; a system without room for sockets needs a moment.
async fn pause_after(error: &io::Error) {
    let of_the_peer = matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    );
    if !of_the_peer {
        tracing::error!(error.cause = %error, "a connection cannot be accepted");
        sleep(ACCEPT_PAUSE).await;
    }
}

/// What all connections share.
struct Host {
    router: Router,
    bounds: Bounds,
    max_header_bytes: usize,
    metrics: Arc<HttpMetrics>,
    shutdown: CancellationToken,
    too_many: Vec<u8>,
}

/// What one connection too many is told. Whole, so that no task is needed to send it.
fn too_many() -> Vec<u8> {
    let problem = Problem::new(ProblemCode::Overloaded, "too many connections are open (http.max_connections)", "-");
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {PROBLEM_MEDIA_TYPE}\r\nretry-after: 1\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

impl Host {
    fn turn_away(&self, socket: &TcpStream) {
        self.metrics.refused();
        // A fresh socket's buffer is empty: the answer fits, or the peer is gone.
        let _ = socket.try_write(&self.too_many);
        let _ = socket.try_read(&mut [0; 1024]);
    }

    async fn connection(self: Arc<Self>, socket: TcpStream, remote: SocketAddr, permit: OwnedSemaphorePermit) {
        let open = Open::new(Arc::clone(&self.metrics), permit);
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(error.cause = %error, "a connection broke before its first request");
            return;
        }
        let watch = Arc::new(Watch::new(self.bounds));
        let stream = TokioIo::new(WatchedStream::new(socket, Arc::clone(&watch)));
        let answering = Answering { router: self.router.clone(), watch: Arc::clone(&watch), open: Arc::new(open), remote };
        let connection = http1::Builder::new()
            .max_buf_size(self.max_header_bytes.max(BUFFER_BYTES))
            .max_header_size(self.max_header_bytes)
            .header_read_timeout(None)
            .keep_alive(true)
            .serve_connection(stream, answering)
            .with_upgrades();
        let mut connection = pin!(connection);
        let mut shutdown = pin!(self.shutdown.cancelled());
        let mut overdue = pin!(Overdue::default());
        let mut told = false;
        poll_fn(|cx| {
            if !told && shutdown.as_mut().poll(cx).is_ready() {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            overdue.as_mut().poll(&watch, cx)
        })
        .await;
    }
}

/// Counts one open connection for as long as anything of it lives, an upgraded one included.
#[derive(Debug)]
pub(crate) struct Open {
    metrics: Arc<HttpMetrics>,
    _permit: OwnedSemaphorePermit,
}

impl Open {
    fn new(metrics: Arc<HttpMetrics>, permit: OwnedSemaphorePermit) -> Self {
        metrics.connected();
        Self { metrics, _permit: permit }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.disconnected();
    }
}

/// Ready when the watch's deadline has passed. The timer is set for the earliest deadline seen and looks again when it rings.
#[derive(Default)]
struct Overdue {
    timer: Option<Pin<Box<Sleep>>>,
}

impl Overdue {
    fn poll(mut self: Pin<&mut Self>, watch: &Watch, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(deadline) = watch.deadline() else { return Poll::Pending };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            if timer.deadline() > deadline {
                timer.as_mut().reset(deadline);
            }
            ready!(timer.as_mut().poll(cx));
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
    }
}

/// The service of one connection.
struct Answering {
    router: Router,
    watch: Arc<Watch>,
    open: Arc<Open>,
    remote: SocketAddr,
}

impl Service<Request<Incoming>> for Answering {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.watch.busy();
        let mut request = request.map(Body::new);
        if request.headers().contains_key(header::UPGRADE) {
            request.extensions_mut().insert(RemoteAddress(self.remote));
            request.extensions_mut().insert(Arc::clone(&self.open));
        }
        let answer = self.router.clone().call(request);
        let watch = Arc::clone(&self.watch);
        Box::pin(async move {
            let response = answer.await?;
            if !is_stream(&response) {
                watch.idle();
            }
            Ok(response)
        })
    }
}

/// An event stream has no end to wait for: until it ends, no request can follow.
fn is_stream(response: &Response<Body>) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
