//! Hints between nodes over LISTEN and NOTIFY, on connections of their own.
//!
//! Told after the commit and outside of any transaction that publishes: a NOTIFY inside one would take a lock of the whole instance. While there is no
//! connection, hints wait and are merged, and tails poll.

mod hear;
mod tell;

use std::sync::Arc;
use std::time::Duration;

use sqlx_postgres::PgConnectOptions;
use sync::HintExchange;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::failure::OpenError;
use crate::store::PostgresStore;
use crate::{PostgresOptions, connection};

/// The channel of the database that all nodes listen on. `queries/store/tell.sql` names it too.
const CHANNEL: &str = "doorstep_hints";
/// The server takes payloads shorter than 8000 bytes.
const MAX_BYTES: usize = 7_999;
/// The pause before the first attempt to connect again.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// How long the server may take to answer before the connection counts as dead.
const PATIENCE: Duration = Duration::from_secs(5);

/// How hints go over the database.
#[derive(Clone, Default)]
pub struct HintOptions {
    /// `database.listen_url`: a way to the database that keeps sessions, when `database.url` leads through a pooler. Never logged.
    pub listen_url: Option<String>,
    /// `database.listen_reconnect_backoff_cap`: the longest pause before a lost connection is tried again.
    pub reconnect_backoff_cap: Duration,
}

impl std::fmt::Debug for HintOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HintOptions").field("reconnect_backoff_cap", &self.reconnect_backoff_cap).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Carries the hints of `exchange` over this database by two tasks of `tracker`, until `cancel`. They connect, and connect again, by themselves.
    ///
    /// # Errors
    /// [`OpenError::Url`] when `listen_url` is none.
    pub fn carry_hints(
        &self,
        exchange: &Arc<HintExchange>,
        options: &HintOptions,
        tracker: &TaskTracker,
        cancel: &CancellationToken,
    ) -> Result<(), OpenError> {
        let url = options.listen_url.clone().unwrap_or_else(|| self.options().url.clone());
        let connect = connection::connect_options(&PostgresOptions { url, ..self.options().clone() })?;
        let cap = options.reconnect_backoff_cap.max(FIRST_PAUSE);
        let (hearing, telling) = (Arc::clone(exchange), Arc::clone(exchange));
        let named = |way: Way| connect.clone().application_name(&format!("doorstep/{} {}", self.options().node, way.name()));
        let (hear_at, tell_at) = (named(Way::Hear), tell::without_waiting(named(Way::Tell)));
        let (stop_hearing, stop_telling) = (cancel.clone(), cancel.clone());
        tracker.spawn(async move {
            stop_hearing.run_until_cancelled(keep(&hearing, &hear_at, cap, Way::Hear)).await;
            hearing.metrics().listening.set(0);
        });
        tracker.spawn(async move { stop_telling.run_until_cancelled(keep(&telling, &tell_at, cap, Way::Tell)).await });
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Way {
    Hear,
    Tell,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Hear => "listen",
            Self::Tell => "notify",
        }
    }
}

/// Does one half, over one connection after another, with growing pauses while there is none.
async fn keep(exchange: &HintExchange, connect: &PgConnectOptions, cap: Duration, way: Way) {
    let mut pause = FIRST_PAUSE;
    let mut was_connected = false;
    loop {
        let connected = || {
            tracing::info!(hints.way = way.name(), "hints go over the database");
            if was_connected && matches!(way, Way::Hear) {
                exchange.metrics().reconnects.increment();
            }
        };
        let (lived, error) = match way {
            Way::Hear => hear::over_one_connection(exchange, connect, connected).await,
            Way::Tell => tell::over_one_connection(exchange, connect, connected).await,
        };
        if lived {
            (pause, was_connected) = (FIRST_PAUSE, true);
            tracing::warn!(hints.way = way.name(), error = %error, "the connection for hints is lost; it is tried again, and tails poll meanwhile");
        } else if pause == FIRST_PAUSE && !was_connected {
            tracing::warn!(hints.way = way.name(), error = %error, "there is no connection for hints; it is tried again, and tails poll meanwhile");
        }
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(cap);
    }
}

/// What is said of a failed connection: never more than its kind, for the driver's own words may repeat the address.
fn told(error: &sqlx_core::Error) -> &'static str {
    match error {
        sqlx_core::Error::Database(_) => "the server refuses",
        sqlx_core::Error::Io(_) | sqlx_core::Error::Tls(_) => "the connection broke",
        sqlx_core::Error::PoolTimedOut => "no answer in time",
        _ => "the connection failed",
    }
}
