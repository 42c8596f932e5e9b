//! Starting in one order and stopping in the other (design: "Lifecycle").

use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::node::Node;
use super::{ServeError, announce, first_start};
use crate::config::Config;

/// The whole life of the server: start, serve until a signal, stop.
pub(super) async fn live(config: Config) -> Result<(), ServeError> {
    let address = config.server.listen;
    let listener = TcpListener::bind(address).await.map_err(|error| unbound(address, &error))?;
    let listening = listener.local_addr().map_err(|error| ServeError::new("the listener has no address", error))?;
    let (stop_accepting, total) = (CancellationToken::new(), config.shutdown.total_timeout);
    let signals = Signals::new()?;
    let data = config.data.dir.clone();
    let node = Node::start(config, listening).await?;
    first_start::prepare(&node.admin, &data).await?;
    let accepting = node.accept(listener, stop_accepting.clone());
    announce(listening).map_err(|error| ServeError::new("standard output", error))?;
    tracing::info!(listen.address = %listening, "serving");
    signals.received().await;
    stop(node, &stop_accepting, accepting, Instant::now() + total).await
}

/// Why there is no listener. Who has the port is most often another server, to which a second one needs a port of its own.
fn unbound(address: std::net::SocketAddr, error: &std::io::Error) -> ServeError {
    let hint = if error.kind() == std::io::ErrorKind::AddrInUse { "; --listen takes another, and port 0 any that is free" } else { "" };
    ServeError::new(&format!("cannot listen on {address}"), format!("{error}{hint}"))
}

/// Stops in the order in which nothing acknowledged is lost: no new work, then what is owed to peers, then what is owed to the disk.
async fn stop(
    node: Node,
    stop_accepting: &CancellationToken,
    accepting: super::node::Accepting,
    deadline: Instant,
) -> Result<(), ServeError> {
    tracing::info!("stopping");
    node.readiness.drain();
    node.cluster.drain();
    let left = || deadline.saturating_duration_since(Instant::now());
    // Meanwhile requests are served as ever: whoever balances the load has time to notice.
    let _ = timeout_at(deadline, node.gateway.disperse(node.drain_spread())).await;
    node.gateway.drain();
    node.inbox.drain();
    stop_accepting.cancel();
    if !node.gateway.flush_all(share(left())).await {
        tracing::warn!("not every cursor was saved in time; those events come again");
    }
    if !node.gateway.close_all(protocol::CloseCode::ShuttingDown, share(left())).await {
        tracing::warn!("not every peer was told in time");
    }
    accepting.tasks.close();
    let drained = timeout_at(deadline, accepting.tasks.wait()).await.is_ok();
    // Claims whose answers nobody takes are given back, so that no restart counts as an attempt.
    let settled = timeout_at(deadline, node.inbox.finish()).await.is_ok();
    node.stop.cancel();
    node.tasks.close();
    let ended = timeout_at(deadline, node.tasks.wait()).await.is_ok();
    // What was accepted is worth a moment beyond the deadline, not for ever: a medium that hangs must not keep the process.
    let patience = deadline.max(Instant::now() + CLOSE_AT_LEAST);
    if timeout_at(patience, node.store.close()).await.is_err() {
        tracing::error!("the store could not be closed in time; what was answered is on the disk");
    }
    tracing::info!(requests.drained = drained, claims.settled = settled, tasks.ended = ended, "stopped");
    Ok(())
}

/// How long closing the store may take, also when stopping has used up its time.
const CLOSE_AT_LEAST: Duration = Duration::from_secs(1);

/// What one step of stopping may take of the time that is left, so that the later ones have some too.
fn share(left: Duration) -> Duration {
    left / 2
}

/// SIGTERM and SIGINT, or Ctrl-C where there are no such signals.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    /// Listens from now on: one that arrives while the server starts is not lost.
    #[cfg(unix)]
    fn new() -> Result<Self, ServeError> {
        use tokio::signal::unix::{SignalKind, signal};
        let on = |kind| signal(kind).map_err(|error| ServeError::new("signals cannot be received", error));
        Ok(Self { terminate: on(SignalKind::terminate())?, interrupt: on(SignalKind::interrupt())? })
    }

    #[cfg(unix)]
    async fn received(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn new() -> Result<Self, ServeError> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn received(self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

#[cfg(test)]
mod tests {
    use super::unbound;

    #[test]
    fn who_finds_the_port_in_use_is_told_of_the_flag() {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 7420));
        let told = |kind: std::io::ErrorKind| unbound(address, &kind.into()).to_string();
        assert!(told(std::io::ErrorKind::AddrInUse).contains("--listen"));
        assert!(!told(std::io::ErrorKind::PermissionDenied).contains("--listen"));
    }
}
