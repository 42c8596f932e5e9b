//! Running a unit of work: again while what fails passes, and by a task of the store, so that a caller who goes away cuts nothing in half.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use domain::{BoxFuture, StoreError};
use tokio::time::Instant;

use super::WriteTx;
use crate::failure::{Failure, note_trouble};
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
    let verdict = repeat(shared, pool, name, &mut function).await;
    match &verdict {
        Ok(_) => {}
        Err(StoreError::Overloaded) => shared.metrics.refused(),
        Err(_) => shared.metrics.unit_failed(),
    }
    verdict
}

/// Why an attempt came to nothing.
enum Failed {
    /// It would be the same again.
    Lasting(StoreError),
    /// It may pass. This is what is answered when it does not.
    Passing(StoreError),
}

async fn repeat<T, F>(shared: &Arc<Shared>, pool: &Pool, name: &'static str, function: &mut F) -> Result<T, StoreError>
where
    F: for<'t> FnMut(&'t mut WriteTx) -> BoxFuture<'t, Result<T, Failure>>,
{
    // A server that is away, or a lock that is never given free, must not hold a caller for as many times as there are attempts.
    let began = Instant::now();
    let patience = |error: &StoreError| match error {
        StoreError::Transient => shared.options.lock_timeout.saturating_mul(3),
        _ => shared.options.acquire_timeout,
    };
    let mut pause = PAUSE;
    let (mut attempts, mut is_contended) = (1, false);
    loop {
        // Those who were in one another's way go one at a time: side by side they would be again, and a deadlock is found only after a second.
        let turn = if is_contended { tokio::time::timeout(shared.options.lock_timeout, shared.turns.lock()).await.ok() } else { None };
        let outcome = attempt(shared, pool, name, function).await;
        drop(turn);
        match outcome {
            Ok(value) => return Ok(value),
            Err(Failed::Lasting(error)) => return Err(error),
            Err(Failed::Passing(error)) if attempts == ATTEMPTS || began.elapsed() >= patience(&error) => return Err(error),
            Err(Failed::Passing(error)) => is_contended = error == StoreError::Transient,
        }
        shared.metrics.retried(name);
        attempts += 1;
        tokio::time::sleep(jittered(pause)).await;
        pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
    }
}

async fn attempt<T, F>(shared: &Arc<Shared>, pool: &Pool, name: &'static str, function: &mut F) -> Result<T, Failed>
where
    F: for<'t> FnMut(&'t mut WriteTx) -> BoxFuture<'t, Result<T, Failure>>,
{
    // The server bounds its statements, but a connection that has gone silent tells nobody.
    let mut tx = match WriteTx::begin(shared, pool).await {
        Ok(tx) => tx,
        // Nothing was begun yet: a connection that died unnoticed is replaced by the next attempt.
        Err(failure) if failure.is_connection() => return Err(Failed::Passing(failure.into())),
        Err(failure) => return Err(judged(failure.into())),
    };
    let Ok(outcome) = tokio::time::timeout(shared.options.statement_timeout.saturating_mul(2), function(&mut tx)).await else {
        tx.lease.set_unsure();
        note_trouble();
        tracing::warn!(unit.name = name, "the database did not answer in time; the connection is given up");
        return Err(Failed::Lasting(StoreError::Unavailable));
    };
    match outcome {
        Ok(value) => tx.commit(name).await.map(|()| value).map_err(judged),
        Err(failure) => {
            let is_connection = failure.is_connection();
            let error = StoreError::from(failure);
            // Whatever was written on a connection that is gone is rolled back: the unit can run again.
            if is_connection || (error == StoreError::Unavailable && tx.is_lost().await) {
                tx.lease.set_unsure();
                return Err(Failed::Passing(error));
            }
            Err(judged(error))
        }
    }
}

fn judged(error: StoreError) -> Failed {
    if error == StoreError::Transient { Failed::Passing(error) } else { Failed::Lasting(error) }
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
