//! Keeps leases while their work goes on: one heartbeat for all of them, at a third of the lease, also through outages.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{BoxFuture, EventId};
use protocol::Secret;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::lease::{Beat, Key, LeaseLoss, LeaseTime, Leases, Notices, Signs};
use super::sleep::SleepWatch;
use crate::{Backoff, BackoffOptions, Client, ClientError, told};

/// How often is looked whether the machine has slept.
const SLEEP_CHECK: Duration = Duration::from_secs(5);

/// The shortest time between two heartbeats of a process.
const PAUSE: Duration = Duration::from_millis(50);
/// The shortest time that a heartbeat may take.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(250);

/// How leases are kept. The default is what most need.
#[derive(Clone, Copy, Debug)]
pub struct LeaseKeeperOptions {
    /// By how much a heartbeat extends; the server's default (`inbox.lease_default`) when absent.
    pub extend_by: Option<Duration>,
    /// How long before its attempt's deadline a worker is told; never more than a tenth of the attempt.
    pub deadline_notice: Duration,
    /// How long before a lease's end its worker is told of the loss when no heartbeat extends it, so that it has stopped when another begins;
    /// never more than a third of the lease.
    pub lapse_notice: Duration,
    /// Pauses between heartbeats that failed. They go on until the lease's own end.
    pub backoff: BackoffOptions,
    /// The most leases of one heartbeat.
    pub batch: usize,
}

impl Default for LeaseKeeperOptions {
    fn default() -> Self {
        let backoff = BackoffOptions { cap: Duration::from_secs(3), ..BackoffOptions::default() };
        Self { extend_by: None, deadline_notice: Duration::from_secs(15), lapse_notice: Duration::ZERO, backoff, batch: 100 }
    }
}

/// Who brings heartbeats to the server.
pub(crate) trait Heart: Send + Sync + 'static {
    /// One heartbeat of these leases: an answer for each, in their order.
    fn beat(&self, leases: Vec<(EventId, Secret)>) -> BoxFuture<'static, Result<Vec<Beat>, ClientError>>;
}

/// A client that extends by a duration.
struct ClientHeart {
    client: Client,
    extend_by: Option<Duration>,
}

impl Heart for ClientHeart {
    fn beat(&self, leases: Vec<(EventId, Secret)>) -> BoxFuture<'static, Result<Vec<Beat>, ClientError>> {
        let (client, extend_by) = (self.client.clone(), self.extend_by);
        Box::pin(async move { client.beat(leases, extend_by).await })
    }
}

/// Keeps the leases of one process. Dropping it lets all of them lapse.
#[derive(Debug)]
pub struct LeaseKeeper {
    shared: Arc<Shared>,
    notices: Notices,
    stop: CancellationToken,
    // Owns the task, which ends with `stop`.
    _tracker: TaskTracker,
}

/// A lease that is kept until this is dropped.
#[derive(Debug)]
pub struct KeptLease {
    key: Key,
    signs: Signs,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    leases: Mutex<Leases>,
    changed: Notify,
    /// Why heartbeats fail at the moment.
    trouble: watch::Sender<Option<String>>,
}

impl LeaseKeeper {
    /// Starts a keeper. Needs a tokio runtime.
    pub fn new(client: Client, options: LeaseKeeperOptions) -> Self {
        Self::start(ClientHeart { client, extend_by: options.extend_by }, options)
    }

    pub(crate) fn start(heart: impl Heart, options: LeaseKeeperOptions) -> Self {
        let (shared, stop, tracker) = (Arc::new(Shared::default()), CancellationToken::new(), TaskTracker::new());
        let keeping = Keeping { heart, shared: Arc::clone(&shared), options, sleep: SleepWatch::start() };
        let stopped = stop.clone();
        tracker.spawn(async move { stopped.run_until_cancelled(keeping.run()).await });
        tracker.close();
        let notices = Notices { deadline: options.deadline_notice, lapse: options.lapse_notice };
        Self { shared, notices, stop, _tracker: tracker }
    }

    /// Keeps a lease that was granted at `at` for `time`. The worker watches the tokens of what is returned, and drops it when the server has
    /// answered what became of the work.
    pub fn keep(&self, event: EventId, token: Secret, at: Instant, time: LeaseTime) -> KeptLease {
        let (key, signs) = self.shared.leases().keep(event, token, at, time, self.notices);
        self.shared.changed.notify_one();
        KeptLease { key, signs, shared: Arc::clone(&self.shared) }
    }

    /// Why heartbeats fail at the moment; `None` while they do not.
    pub(super) fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.shared.trouble.subscribe()
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl KeptLease {
    /// Cancelled when the lease is lost: the worker has to stop, since somebody else may begin.
    pub fn lost(&self) -> &CancellationToken {
        &self.signs.lost
    }

    /// Cancelled shortly before the attempt's deadline: the last chance to end in an orderly way.
    pub fn deadline_near(&self) -> &CancellationToken {
        &self.signs.deadline_near
    }

    /// Why it is lost; `None` while it is held.
    pub fn loss(&self) -> Option<LeaseLoss> {
        self.signs.loss.get().copied()
    }
}

impl Drop for KeptLease {
    fn drop(&mut self) {
        self.shared.leases().let_go(self.key);
    }
}

impl Shared {
    fn leases(&self) -> MutexGuard<'_, Leases> {
        // Nothing under the lock panics half way through a change.
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A heartbeat that is under way.
struct Beating {
    keys: Vec<Key>,
    sent_at: Instant,
    answer: BoxFuture<'static, Result<Vec<Beat>, ClientError>>,
}

/// The task of a keeper.
struct Keeping<H> {
    heart: H,
    shared: Arc<Shared>,
    options: LeaseKeeperOptions,
    sleep: SleepWatch,
}

impl<H: Heart> Keeping<H> {
    async fn run(mut self) {
        let mut backoff = Backoff::new(self.options.backoff);
        let mut not_before = Instant::now();
        let mut beating: Option<Beating> = None;
        loop {
            let now = Instant::now();
            if self.sleep.has_slept(now) {
                // The leases may be over: whatever the clock of this process says, the server is asked at once.
                (beating, not_before) = (self.beat(now), now);
                backoff.reset();
            }
            let (due_at, change_at, idle) = {
                let mut leases = self.shared.leases();
                leases.pass(now);
                (leases.due_at().map(|due| due.max(not_before)), leases.change_at(), leases.is_empty())
            };
            if beating.is_none() && due_at.is_some_and(|due| due <= now) {
                beating = self.beat(now);
            }
            let due_at = due_at.filter(|_| beating.is_none());
            let wake_at = [due_at, change_at, (!idle).then(|| now + SLEEP_CHECK)].into_iter().flatten().min();
            tokio::select! {
                answer = answered(&mut beating) => match (beating.take(), answer) {
                    (Some(done), Ok(beats)) => {
                        backoff.reset();
                        not_before = Instant::now() + PAUSE;
                        self.shared.trouble.send_if_modified(|trouble| trouble.take().is_some());
                        self.book(&done, &beats);
                    }
                    (_, Err(error)) => {
                        let pause = backoff.next_pause().max(error.retry_after().unwrap_or_default()).max(PAUSE);
                        not_before = Instant::now() + pause;
                        let cause = told(&error);
                        tracing::debug!(cause, pause.ms = pause.as_millis() as u64, "a heartbeat failed and is tried again");
                        self.shared.trouble.send_replace(Some(cause));
                    }
                    (None, Ok(_)) => {}
                },
                () = self.shared.changed.notified() => {}
                () = sleep_until(wake_at) => {}
            }
        }
    }

    fn beat(&self, now: Instant) -> Option<Beating> {
        let batch = self.shared.leases().batch(self.options.batch);
        if batch.is_empty() {
            return None;
        }
        let keys = batch.iter().map(|(key, ..)| *key).collect();
        let call = self.heart.beat(batch.into_iter().map(|(_, event, token)| (event, token)).collect());
        // A call that hangs must not cost the time in which another could succeed.
        let patience = self.shared.leases().shortest_interval().unwrap_or_default().max(SHORTEST_PATIENCE);
        let answer = async move {
            let answer = tokio::time::timeout(patience, call).await;
            answer.unwrap_or(Err(ClientError::Timeout { waited: patience }))
        };
        Some(Beating { keys, sent_at: now, answer: Box::pin(answer) })
    }

    fn book(&self, done: &Beating, beats: &[Beat]) {
        let mut leases = self.shared.leases();
        for (key, beat) in done.keys.iter().zip(beats) {
            // From when it was sent: the server counts from a later moment, so this end is never too late.
            leases.beaten(*key, done.sent_at, *beat);
        }
    }
}

async fn answered(beating: &mut Option<Beating>) -> Result<Vec<Beat>, ClientError> {
    match beating {
        Some(beating) => (&mut beating.answer).await,
        None => pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
