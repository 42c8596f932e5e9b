//! The writer: one thread that drains the queue of writes without a timer and commits many of them at once.

mod batch;
mod job;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use domain::StoreError;
use sync::CommitListener;

use crate::checkpoint::{Checkpoints, checkpoint, finish};
use crate::metrics::StoreMetrics;
use crate::queue::{Bound, Queue};
use crate::readers::ReadJob;
use crate::tx::WriteTx;

pub(crate) use job::{AppendJob, Call, Job, UnitJob};

/// How often a unit of work is tried when what keeps it from committing passes.
const ATTEMPTS: usize = 4;

/// Who is told of commits.
pub(crate) type Listener = RwLock<Option<Arc<dyn CommitListener>>>;

/// The writer's state; lives on its thread.
pub(crate) struct Writer {
    pub(crate) tx: WriteTx,
    pub(crate) queue: Arc<Queue<Job>>,
    pub(crate) reads: Arc<Queue<ReadJob>>,
    pub(crate) checkpoints: Arc<Checkpoints>,
    pub(crate) metrics: Arc<StoreMetrics>,
    pub(crate) listener: Arc<Listener>,
    pub(crate) bound: Bound,
}

impl Writer {
    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let mut batch = Vec::with_capacity(self.bound.entries);
        while self.queue.take(&mut batch, self.bound) {
            self.process(&mut batch);
            self.checkpoints.between_commits(self.tx.connection(), &self.reads);
        }
        finish(self.tx.connection());
        if let Err(error) = self.tx.close() {
            tracing::warn!(error = %error, "the store did not close cleanly");
        }
    }

    /// Commits a batch together; when that fails, each job by itself, so that every answer is the truth about its own job.
    fn process(&mut self, batch: &mut Vec<Job>) {
        let started = Instant::now();
        match batch::run(&mut self.tx, batch) {
            Ok(verdicts) => {
                let committed = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
                self.committed(committed, started);
                for (job, verdict) in batch.drain(..).zip(verdicts) {
                    match verdict {
                        Err(StoreError::Transient) => self.alone(job, false),
                        verdict => self.answer(job, verdict),
                    }
                }
            }
            Err(failure) if failure.stage == batch::Stage::Begin => {
                self.metrics.commit_failed();
                for job in batch.drain(..) {
                    self.answer(job, Err(failure.error.clone()));
                }
            }
            Err(failure) => {
                self.metrics.commit_failed();
                if failure.error == StoreError::Full {
                    // What the write-ahead log holds may find room in the database, and then its own room is free.
                    checkpoint(self.tx.connection());
                }
                tracing::warn!(error = %failure.error, units = batch.len(), "a batch was rolled back; its units run one by one");
                for job in batch.drain(..) {
                    self.alone(job, failure.in_doubt());
                }
            }
        }
    }

    /// Commits one job by itself, again while what fails is passing. `in_doubt`: a commit that held it failed half-way before.
    fn alone(&mut self, mut job: Job, mut in_doubt: bool) {
        for attempt in 1..=ATTEMPTS {
            let started = Instant::now();
            let verdict = match batch::run(&mut self.tx, std::slice::from_mut(&mut job)) {
                Ok(mut verdicts) => {
                    let verdict = verdicts.pop().unwrap_or(Err(StoreError::Unavailable));
                    self.committed(usize::from(verdict.is_ok()), started);
                    verdict
                }
                Err(failure) => {
                    self.metrics.commit_failed();
                    in_doubt |= failure.in_doubt();
                    Err(if in_doubt { StoreError::InDoubt } else { failure.error })
                }
            };
            if verdict == Err(StoreError::Transient) && attempt < ATTEMPTS {
                self.metrics.retried(job.name());
                continue;
            }
            return self.answer(job, verdict);
        }
    }

    /// Tells the listener what became durable, before anybody is answered.
    fn committed(&mut self, units: usize, started: Instant) {
        let listener = self.listener.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut appended = 0;
        let (_, heads) = self.tx.parts();
        heads.committed(|tenant, epoch, events| {
            appended += events.len() as u64;
            let Some(listener) = &listener else { return };
            let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| listener.committed(tenant, epoch, &events)));
            if told.is_err() {
                tracing::error!("the listener of commits panicked");
            }
        });
        self.metrics.committed(units as u64, appended, started.elapsed());
    }

    fn answer(&self, job: Job, verdict: Result<(), StoreError>) {
        if verdict.is_err() {
            self.metrics.unit_failed();
        }
        job.answer(verdict);
    }
}

#[cfg(test)]
mod tests;
