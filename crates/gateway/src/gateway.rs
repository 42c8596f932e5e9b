//! The engine as the outside sees it: what it is made of, the life of a socket, flushing and closing.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use agents::Consumers;
use authz::Authorizer;
use domain::{Clock, IdGenerator};
use protocol::{CloseCode, Secret};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{Connection, DeliveryHook, Metrics, Settings};

/// What the engine is made of.
#[expect(missing_debug_implementations, reason = "ports have no debug form")]
pub struct Parts {
    /// Who may what.
    pub authorizer: Arc<Authorizer>,
    /// The durable cursors' use cases.
    pub consumers: Arc<dyn Consumers>,
    /// What every delivery to a consumer passes.
    pub hook: Arc<dyn DeliveryHook>,
    /// Wall time, for the expiry of tokens.
    pub clock: Arc<dyn Clock>,
    /// Where session ids come from.
    pub ids: Arc<dyn IdGenerator>,
    /// Limits, windows and thresholds.
    pub settings: Settings,
}

/// The delivery engine of this process: sessions, their runners, the save ticker.
pub struct Gateway {
    parts: Parts,
    metrics: Metrics,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    /// An engine without connections. Nothing is saved by itself until [`Gateway::run`].
    pub fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self { parts, metrics: Metrics::default() })
    }

    /// Starts the background tasks: the save ticker (`agent.ack_persist_interval`) and the sweeper of sessions that were not resumed.
    pub fn run(self: &Arc<Self>, tasks: &TaskTracker, stop: &CancellationToken) {
        let _ = (tasks, stop);
    }

    /// The whole life of one socket: handshake, delivery, close. Returns when the connection is gone.
    ///
    /// `credential` is the bearer token of the upgrade, if it carried one; a token in `identify` or `resume` wins over it. `remote` is
    /// the peer's address, for logs.
    pub async fn serve<C: Connection>(&self, connection: C, credential: Option<Secret>, remote: Option<IpAddr>) {
        let _ = (connection, credential, remote, &self.parts);
        todo!()
    }

    /// From now on new connections, streams and polls are turned away (4013) and waiting polls answer what they have.
    pub fn drain(&self) {}

    /// Saves every acknowledgement that is held in memory, taking at most `within`. Answers whether all were saved.
    pub async fn flush_all(&self, within: Duration) -> bool {
        let _ = within;
        todo!()
    }

    /// Closes every connection and stream with `code` and waits until they are gone, at most `within`. Answers whether all are.
    pub async fn close_all(&self, code: CloseCode, within: Duration) -> bool {
        let _ = (code, within);
        todo!()
    }

    /// The settings, e.g. for the transport's `gateway.max_frame_bytes`.
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// What was counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}
