//! A new history for every log: after a restore to an earlier point, or a failover that lost the end.
//!
//! `seq` goes on from where the log now ends: numbers above it may be given to other events than before. Every log gets a new epoch, by which readers
//! tell the two histories apart, and no durable cursor stays above the head. Generations of leases count on from the restored point: with the old
//! keys a lease that was given after it and one that is given now could have the same token, so new keys are made, and what claims were answered
//! with is forgotten.

use domain::Clock;
use sqlx_core::executor::Executor as _;

use crate::failure::OpenError;
use crate::sql::sql;
use crate::{PostgresOptions, connection, db, schema};

/// Gives every log a new epoch; answers how many.
///
/// # Errors
/// [`OpenError::InUse`] while a server is connected, otherwise as [`schema::status`].
pub async fn new_epoch(options: &PostgresOptions, clock: &dyn Clock) -> Result<u64, OpenError> {
    let schema = schema::status(options).await?;
    if !schema.is_current() {
        return Err(OpenError::OldSchema { database: schema.database, found: schema.version, needed: schema.known });
    }
    let connect = connection::connect_options(options)?;
    let failed = |error: sqlx_core::Error| schema::failed(&connect, error.into());
    let mut connection = connection::open(&connect).await.map_err(failed)?;
    let servers: i64 = db::scalar(sql!("store/other_sessions")).fetch_one(&mut connection).await.map_err(failed)?;
    if servers > 0 {
        return Err(OpenError::InUse { database: schema.database, sessions: servers });
    }
    connection.execute(db::script(sql!("store/begin"))).await.map_err(failed)?;
    let logs = db::query(sql!("sync/new_epochs")).execute(&mut connection).await.map_err(failed)?.rows_affected();
    db::query(sql!("union/release_consumers")).bind(clock.now().as_micros()).execute(&mut connection).await.map_err(failed)?;
    for statement in [sql!("union/hold_hooks"), sql!("inbox/forget_lease_keys"), sql!("inbox/forget_claims"), sql!("inbox/end_sessions")] {
        db::query(statement).execute(&mut connection).await.map_err(failed)?;
    }
    connection.execute(db::script(sql!("store/commit"))).await.map_err(failed)?;
    Ok(logs)
}
