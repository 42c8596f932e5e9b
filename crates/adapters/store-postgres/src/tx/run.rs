//! Running a unit of work: again while what fails passes, and by a task of the store, so that a caller who goes away cuts nothing in half.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use domain::{BoxFuture, StoreError};
use sqlx_core::connection::Connection as _;

use super::WriteTx;
use crate::failure::Failure;
use crate::pool::Pool;
use crate::store::Shared;

/// How often a unit is tried when what keeps it from committing passes.
const ATTEMPTS: u32 = 10;
/// The mean pause before the second attempt; it doubles each time.
const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How long a connection may take to show that it lives.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs `function` in a transaction and commits it. It may run several times.
pub(crate) async fn run<T, F>(shared: &Arc<Shared>, name: &'static str, function: F) -> Result<T, StoreError>
where
    F: for<'t> FnMut(&'t mut WriteTx) -> BoxFuture<'t, Result<T, Failure>>,
{
    run_on(shared, &shared.pool, name, function).await
}

/// The same on a connection of `pool`.
pub(crate) async fn run_on<T, F>(shared: &Arc<Shared>, pool: &Pool, name: &'static str, mut function: F) -> Result<T, StoreError>
where
    F: for<'t> FnMut(&'t mut WriteTx) -> BoxFuture<'t, Result<T, Failure>>,
{
    let mut pause = PAUSE;
    for _ in 1..ATTEMPTS {
        match attempt(shared, pool, name, &mut function).await {
            Err(StoreError::Transient) => shared.metrics.retried(name),
            verdict => return settle(shared, verdict),
        }
        tokio::time::sleep(jittered(pause)).await;
        pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
    }
    let verdict = attempt(shared, pool, name, &mut function).await;
    settle(shared, verdict)
}

/// What is passing and does not pass is too much load.
fn settle<T>(shared: &Shared, verdict: Result<T, StoreError>) -> Result<T, StoreError> {
    let verdict = verdict.map_err(|error| if error == StoreError::Transient { StoreError::Overloaded } else { error });
    match &verdict {
        Ok(_) => {}
        Err(StoreError::Overloaded) => shared.metrics.refused(),
        Err(_) => shared.metrics.unit_failed(),
    }
    verdict
}

async fn attempt<T, F>(shared: &Arc<Shared>, pool: &Pool, name: &'static str, function: &mut F) -> Result<T, StoreError>
where
    F: for<'t> FnMut(&'t mut WriteTx) -> BoxFuture<'t, Result<T, Failure>>,
{
    let mut tx = match WriteTx::begin(shared, pool).await {
        Ok(tx) => tx,
        Err(failure) => return Err(unless_lost(failure)),
    };
    match function(&mut tx).await {
        Ok(value) => tx.commit(name).await.map(|()| value),
        Err(failure) => {
            let is_connection = failure.is_connection();
            let error = StoreError::from(failure);
            // Whatever was written on a connection that is gone is rolled back: the unit can run again.
            if is_connection || (error == StoreError::Unavailable && tx.is_lost().await) {
                tx.lease.set_unsure();
                return Err(StoreError::Transient);
            }
            Err(error)
        }
    }
}

/// Nothing was begun yet: a connection that died unnoticed is replaced by the next attempt.
fn unless_lost(failure: Failure) -> StoreError {
    let is_connection = failure.is_connection();
    let error = StoreError::from(failure);
    if is_connection && error != StoreError::Overloaded { StoreError::Transient } else { error }
}

/// Between half of `pause` and one and a half of it.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 1024;
    pause / 2 + pause.mul_f64(random as f64 / 1024.0)
}

impl WriteTx {
    /// Whether the connection does not answer any more.
    async fn is_lost(&mut self) -> bool {
        !matches!(tokio::time::timeout(PATIENCE, self.lease.ping()).await, Ok(Ok(())))
    }
}
