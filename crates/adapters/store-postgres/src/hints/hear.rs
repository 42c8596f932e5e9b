//! Listening.

use sqlx_core::Error;
use sqlx_core::pool::PoolOptions;
use sqlx_postgres::{PgConnectOptions, PgListener, Postgres};
use sync::HintExchange;
use tokio::time::timeout;

use super::{CHANNEL, PATIENCE, told};
use crate::db::{self, Executor as _};
use crate::sql::sql;

/// How long a quiet connection is trusted before it is asked whether it lives.
const QUIET: std::time::Duration = std::time::Duration::from_secs(10);

/// Listens until the connection fails. Answers whether it ever worked, and what went wrong.
pub(super) async fn over_one_connection(
    exchange: &HintExchange,
    connect: &PgConnectOptions,
    connected: impl FnOnce() + Send,
) -> (bool, &'static str) {
    let mut listener = match timeout(PATIENCE, open(connect)).await {
        Ok(Ok(listener)) => listener,
        Ok(Err(error)) => return (false, told(&error)),
        Err(_) => return (false, "no answer in time"),
    };
    connected();
    exchange.metrics().listening.set(1);
    let error = listen(exchange, &mut listener).await;
    exchange.metrics().listening.set(0);
    (true, error)
}

async fn open(connect: &PgConnectOptions) -> Result<PgListener, Error> {
    let pool = PoolOptions::<Postgres>::new().max_connections(1).max_lifetime(None).idle_timeout(None).test_before_acquire(false);
    let pool = pool.connect_lazy_with(connect.clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.ignore_pool_close_event(true);
    // Connecting again is done here, with pauses, and known to whoever watches.
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

async fn listen(exchange: &HintExchange, listener: &mut PgListener) -> &'static str {
    loop {
        match timeout(QUIET, listener.try_recv()).await {
            Ok(Ok(Some(notification))) => exchange.received(notification.payload()),
            Ok(Ok(None)) => return "the connection broke",
            Ok(Err(error)) => return told(&error),
            // A connection whose other end is gone without a word is found out.
            Err(_) => match timeout(PATIENCE, listener.execute(db::script(sql!("store/ping")))).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return told(&error),
                Err(_) => return "no answer in time",
            },
        }
    }
}
