//! Notifying.

use sqlx_postgres::{PgConnectOptions, PgConnection};
use sync::HintExchange;
use tokio::time::timeout;

use super::{MAX_BYTES, PATIENCE, told};
use crate::failure::Failure;
use crate::sql::sql;
use crate::{connection, db};

/// A hint that is lost costs latency: it is not worth waiting for the disk.
pub(super) fn without_waiting(connect: PgConnectOptions) -> PgConnectOptions {
    connect.options([("synchronous_commit", "off")])
}

/// Tells until the connection fails. Answers whether it ever worked, and what went wrong.
pub(super) async fn over_one_connection(
    exchange: &HintExchange,
    connect: &PgConnectOptions,
    connected: impl FnOnce() + Send,
) -> (bool, &'static str) {
    let mut connection = match connection::open(connect).await {
        Ok(connection) => connection,
        Err(error) => return (false, told(&error)),
    };
    connected();
    loop {
        let texts = exchange.next(MAX_BYTES).await;
        match timeout(PATIENCE, tell(&mut connection, &texts)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => {
                exchange.lost();
                return (true, "the connection broke");
            }
            Err(_) => {
                exchange.lost();
                return (true, "no answer in time");
            }
        }
    }
}

/// One statement, whatever there is to tell.
async fn tell(connection: &mut PgConnection, texts: &[String]) -> Result<(), Failure> {
    db::query(sql!("store/tell")).bind(texts).execute(connection).await?;
    Ok(())
}
