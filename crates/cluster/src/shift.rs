//! One piece of work while its lease is held: asked to stop a while before the lease expires, cut off when it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{HeldLease, Metrics, Settings, WorkName};

/// Does a piece of work for as long as the tenure lasts.
pub(crate) type Work = Arc<dyn Fn(Tenure) -> BoxFuture<'static, ()> + Send + Sync>;

/// The time for which a piece of work is this node's.
#[derive(Clone, Debug)]
pub struct Tenure {
    /// Cancelled when the work is to stop: to be shared anew, because the lease could not be renewed, or because the node stops.
    pub stop: CancellationToken,
    /// How often the work was taken by anybody: the fence of this tenure.
    pub generation: u64,
    /// Until when the lease surely holds; always when absent.
    until: watch::Receiver<Option<Instant>>,
    margin: Duration,
}

impl Tenure {
    /// How long the work surely goes on being this node's, also when nothing is renewed any more. Nothing when it was asked to stop.
    pub fn remaining(&self) -> Duration {
        if self.stop.is_cancelled() {
            return Duration::ZERO;
        }
        self.until.borrow().map_or(Duration::MAX, |until| before(until, self.margin).saturating_duration_since(Instant::now()))
    }
}

/// What watches over work.
pub(crate) struct Watch {
    pub(crate) settings: Settings,
    pub(crate) metrics: Arc<Metrics>,
    /// Rung when work that was asked to stop has stopped.
    pub(crate) hurry: Arc<Notify>,
}

/// Work that runs under a lease. Dropping it does not stop the work: see [`Shift::end`].
pub(crate) struct Shift {
    pub(crate) lease: HeldLease,
    /// Until when the lease surely holds. Absent when it holds always.
    until: watch::Sender<Option<Instant>>,
    stop: CancellationToken,
    has_ended: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Shift {
    /// Begins the work under a lease that surely holds until `until`.
    pub(crate) fn begin(lease: HeldLease, work: &Work, until: Option<Instant>, watching: Watch, tracker: &TaskTracker) -> Self {
        let (stop, has_ended) = (CancellationToken::new(), Arc::<AtomicBool>::default());
        let (until, limit) = watch::channel(until);
        let tenure = Tenure { stop: stop.clone(), generation: lease.generation, until: limit.clone(), margin: watching.settings.margin() };
        let (doing, asked, ended, work) = (work(tenure), stop.clone(), Arc::clone(&has_ended), lease.work.clone());
        let task = tracker.spawn(async move {
            guard(doing, &asked, limit, &watching, &work).await;
            ended.store(true, Ordering::Release);
            if asked.is_cancelled() {
                watching.hurry.notify_one();
            }
        });
        Self { lease, until, stop, has_ended, task }
    }

    /// The lease was renewed.
    pub(crate) fn prolong(&self, until: Option<Instant>) {
        self.until.send_replace(until);
    }

    /// Whether the work goes on and was not asked to stop.
    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.is_cancelled() && !self.is_over()
    }

    /// Whether the work has ended, by itself or because its time was over.
    pub(crate) fn is_over(&self) -> bool {
        // A panic sets no flag.
        self.has_ended.load(Ordering::Acquire) || self.task.is_finished()
    }

    /// Asks the work to stop.
    pub(crate) fn stop(&mut self) {
        self.stop.cancel();
    }

    /// Waits until the work has stopped: it is asked to, and cut off when its lease is about to expire, or after `patience`.
    pub(crate) async fn end(mut self, patience: Duration) {
        self.stop();
        if timeout(patience, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

/// Polls the work until it ends or must have ended.
async fn guard(
    mut doing: BoxFuture<'static, ()>,
    stop: &CancellationToken,
    mut limit: watch::Receiver<Option<Instant>>,
    watching: &Watch,
    work: &WorkName,
) {
    let Watch { settings, metrics, .. } = watching;
    metrics.held.up();
    let _held = Held(metrics);
    loop {
        let until = *limit.borrow_and_update();
        // What holds always is neither asked nor cut off.
        let ask_at = until.map(|until| before(until, settings.notice()));
        let cut_at = until.map(|until| before(until, settings.margin()));
        tokio::select! {
            biased;
            () = &mut doing => return,
            () = at(cut_at) => {
                metrics.cut_off.increment();
                tracing::warn!(work.name = %work, "work did not stop in time and is cut off, because its lease is about to expire");
                return;
            }
            () = at(ask_at), if !stop.is_cancelled() => {
                tracing::warn!(work.name = %work, "the lease could not be renewed in time; its work stops");
                stop.cancel();
            }
            Ok(()) = limit.changed() => {}
        }
    }
}

/// Counts the work down however it ends.
struct Held<'a>(&'a Metrics);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.down();
    }
}

fn before(until: Instant, span: Duration) -> Instant {
    until.checked_sub(span).unwrap_or(until)
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
