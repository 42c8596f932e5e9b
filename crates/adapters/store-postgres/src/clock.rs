//! The database's clock, as this process reads it without asking each time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::{Clock, Timestamp};
use sqlx_postgres::{PgConnectOptions, PgConnection};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::failure::{Failure, OpenError};
use crate::sql::sql;
use crate::{PostgresOptions, connection, db, schema};

/// Between two measurements.
const INTERVAL: Duration = Duration::from_secs(10);
/// Of so many measurements in a row the one with the shortest round trip counts.
const SAMPLES: usize = 3;
/// How long a measurement may take to be of use.
const PATIENCE: Duration = Duration::from_secs(2);
/// The share of the elapsed time by which the clock runs faster or slower to meet the database's again.
const SLEW: i64 = 20;
/// Readings closer to each other than this many microseconds are one step of the clock.
const GRAIN: i64 = 1_000;
/// The largest difference that is slewed forwards, in microseconds; the other nodes count by the database's clock already.
const STEP: i64 = 1_000_000;

/// The database's clock (`clock_timestamp()`), anchored to this process's monotonic clock, so that the wall clock of a node decides nothing.
///
/// It is measured again at an interval. A small difference is slewed. When this process stood still, or the database's clock was put forward, the
/// difference is stepped over at once: what others count by decides. Time never runs backwards: behind a clock that was put back it runs slower until they meet.
/// While the database is away the monotonic clock goes on.
pub struct DatabaseClock {
    state: Mutex<State>,
}

struct State {
    read_at: Instant,
    given: i64,
    /// The latest that anybody was told.
    answered: i64,
    /// What the database's clock read at `measured_at`.
    measured: i64,
    measured_at: Instant,
}

impl std::fmt::Debug for DatabaseClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseClock").finish_non_exhaustive()
    }
}

impl DatabaseClock {
    /// Measures the clock of the database that `options` names, and from then on follows it by a task of `tracker` until `cancel`.
    ///
    /// # Errors
    /// [`OpenError`] when the database cannot be reached.
    pub async fn start(options: &PostgresOptions, tracker: &TaskTracker, cancel: CancellationToken) -> Result<Arc<Self>, OpenError> {
        let connect = connection::connect_options(options)?;
        let failed = |failure| schema::failed(&connect, failure);
        let mut connection = connection::open(&connect).await.map_err(|error| failed(error.into()))?;
        let (measured, measured_at) = measure(&mut connection).await.map_err(failed)?;
        let state = State { read_at: measured_at, given: measured, answered: measured, measured, measured_at };
        let clock = Arc::new(Self { state: Mutex::new(state) });
        let following = Arc::clone(&clock);
        tracker.spawn(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = following.follow(&connect, Some(connection)) => {}
            }
        });
        Ok(clock)
    }

    async fn follow(&self, connect: &PgConnectOptions, mut connection: Option<PgConnection>) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let attempt = tokio::time::timeout(PATIENCE, async {
                let mut open = match connection.take() {
                    Some(open) => open,
                    None => connection::open(connect).await?,
                };
                let measured = measure(&mut open).await?;
                Ok::<_, Failure>((open, measured))
            });
            match attempt.await {
                Ok(Ok((open, (measured, measured_at)))) => {
                    connection = Some(open);
                    let mut state = self.state();
                    state.measured = measured;
                    state.measured_at = measured_at;
                }
                Ok(Err(_)) | Err(_) => tracing::debug!("the database's clock could not be read; the monotonic clock goes on"),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        let mut state = self.state();
        let now = Instant::now();
        let elapsed = micros(now.saturating_duration_since(state.read_at));
        if elapsed < GRAIN {
            // Not worth a step: what is cut off from each would add up.
            state.answered = state.answered.max(state.given.saturating_add(elapsed));
            return Timestamp::from_micros(state.answered);
        }
        let target = state.measured.saturating_add(micros(now.saturating_duration_since(state.measured_at)));
        state.given = slewed(state.given, elapsed, target);
        state.read_at = now;
        state.answered = state.answered.max(state.given);
        Timestamp::from_micros(state.answered)
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The next reading: `elapsed` after `given`, moved towards `target` by at most a [`SLEW`]th of `elapsed`, or onto it when it is more than a [`STEP`] ahead.
fn slewed(given: i64, elapsed: i64, target: i64) -> i64 {
    let expected = given.saturating_add(elapsed);
    if target.saturating_sub(expected) > STEP {
        return target;
    }
    let most = elapsed / SLEW;
    expected.saturating_add(target.saturating_sub(expected).clamp(-most, most))
}

/// What the database's clock reads, and when it did: in the middle of the shortest of a few round trips.
async fn measure(connection: &mut PgConnection) -> Result<(i64, Instant), Failure> {
    let mut best: Option<(Duration, i64, Instant)> = None;
    for _ in 0..SAMPLES {
        let asked = Instant::now();
        let reading: i64 = db::scalar(sql!("store/clock")).fetch_one(&mut *connection).await?;
        let trip = asked.elapsed();
        if best.is_none_or(|(shortest, ..)| trip < shortest) {
            best = Some((trip, reading, asked + trip / 2));
        }
    }
    best.map(|(_, reading, at)| (reading, at)).ok_or_else(|| Failure::corrupt("no reading of the clock"))
}

#[cfg(test)]
mod tests {
    use super::slewed;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn a_small_difference_is_slewed_and_so_is_a_clock_that_was_put_back() {
        for target in [1_900_000, 100_000, -HOUR] {
            let next = slewed(0, 1_000_000, target);
            assert!((950_000..=1_050_000).contains(&next), "{next}");
        }
    }

    #[test]
    fn who_stood_still_counts_as_the_others_do_at_once() {
        assert_eq!(slewed(0, 1_000_000, 180 * 1_000_000), 180 * 1_000_000);
        assert_eq!(slewed(0, 1_000_000, HOUR), HOUR);
    }

    #[test]
    fn time_never_runs_backwards_and_meets_the_databases_clock() {
        let (mut given, mut target) = (HOUR, 0);
        for _ in 0..1_000_000 {
            target += 1_000_000;
            let next = slewed(given, 1_000_000, target);
            assert!(next >= given);
            given = next;
        }
        assert_eq!(given, target);
    }
}
