//! One transaction over several jobs: each is kept or undone by itself, all that is kept becomes durable together.

use std::panic::{AssertUnwindSafe, catch_unwind};

use domain::StoreError;

use super::job::Job;
use crate::failure::Failure;
use crate::tx::WriteTx;

/// How far a batch came before it failed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No job has run.
    Begin,
    /// Jobs have run; nothing of them is kept.
    Jobs,
    /// The commit was refused.
    Commit,
}

/// A batch of which nothing is kept.
#[derive(Debug)]
pub(crate) struct BatchFailure {
    pub(crate) error: StoreError,
    pub(crate) stage: Stage,
}

impl BatchFailure {
    /// Whether a crash right now could still bring the batch back: its pages may have reached the medium, with only the confirmation missing.
    pub(crate) fn in_doubt(&self) -> bool {
        self.stage == Stage::Commit && self.error == StoreError::Unavailable
    }
}

/// Runs `jobs` in one transaction. Answers what became of each, all of it durable.
///
/// # Errors
/// [`BatchFailure`]: nothing was kept, whatever the jobs themselves said.
pub(crate) fn run(tx: &mut WriteTx, jobs: &mut [Job]) -> Result<Vec<Result<(), StoreError>>, BatchFailure> {
    tx.begin().map_err(|failure| BatchFailure { error: failure.into(), stage: Stage::Begin })?;
    let mut verdicts = Vec::with_capacity(jobs.len());
    for job in jobs {
        match attempt(tx, job) {
            Ok(verdict) => verdicts.push(verdict),
            Err(error) => {
                tx.roll_back();
                return Err(BatchFailure { error, stage: Stage::Jobs });
            }
        }
    }
    if let Err(failure) = tx.commit() {
        tx.roll_back();
        return Err(BatchFailure { error: failure.into(), stage: Stage::Commit });
    }
    Ok(verdicts)
}

/// Runs one job. The outer error means that the transaction cannot go on.
fn attempt(tx: &mut WriteTx, job: &mut Job) -> Result<Result<(), StoreError>, StoreError> {
    match job {
        Job::Append(append) => together(tx, "append", |tx| append.attempt(tx)),
        Job::Work(work) if !work.is_undone_alone() => together(tx, work.name(), |tx| work.attempt(tx)),
        Job::Work(work) => {
            tx.begin_unit()?;
            let name = work.name();
            let outcome = guarded(name, || work.attempt(tx));
            let settled = if outcome.is_ok() { tx.keep_unit() } else { tx.undo_unit() };
            match settled {
                Ok(()) => Ok(outcome),
                Err(failure) => Err(outcome.err().unwrap_or_else(|| failure.into())),
            }
        }
    }
}

/// Runs a job that is undone with its batch only.
fn together(
    tx: &mut WriteTx,
    name: &'static str,
    attempt: impl FnOnce(&mut WriteTx) -> Result<(), StoreError>,
) -> Result<Result<(), StoreError>, StoreError> {
    let before = tx.changes();
    match guarded(name, || attempt(tx)) {
        // It wrote something and then failed: without a savepoint only the whole batch can be undone.
        Err(error) if tx.changes() != before || tx.is_over() => Err(error),
        outcome => Ok(outcome),
    }
}

/// A panic of a unit is its own failure, not the store's.
fn guarded(name: &'static str, attempt: impl FnOnce() -> Result<(), StoreError>) -> Result<(), StoreError> {
    catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|_| {
        tracing::error!(unit.name = name, "a unit of work panicked; it is rolled back");
        Err(StoreError::Unavailable)
    })
}

impl WriteTx {
    fn begin(&mut self) -> Result<(), Failure> {
        self.execute("BEGIN IMMEDIATE")
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let (connection, heads) = self.parts();
        heads.flush(connection)?;
        self.execute("COMMIT")
    }

    /// Undoes everything since the begin. A failure here leaves the connection without a transaction all the same, or the next begin fails.
    fn roll_back(&mut self) {
        if !self.is_over()
            && let Err(failure) = self.execute("ROLLBACK")
        {
            tracing::error!(error = ?failure, "a rollback failed");
        }
        let (_, heads) = self.parts();
        heads.forget();
    }

    /// Whether the engine has rolled the transaction back by itself.
    fn is_over(&self) -> bool {
        self.connection().is_autocommit()
    }

    fn changes(&self) -> u64 {
        self.connection().total_changes()
    }

    fn begin_unit(&mut self) -> Result<(), Failure> {
        self.execute("SAVEPOINT unit")?;
        let (_, heads) = self.parts();
        heads.begin_unit();
        Ok(())
    }

    fn keep_unit(&mut self) -> Result<(), Failure> {
        self.execute("RELEASE unit")?;
        let (_, heads) = self.parts();
        heads.keep_unit();
        Ok(())
    }

    fn undo_unit(&mut self) -> Result<(), Failure> {
        let (_, heads) = self.parts();
        heads.undo_unit();
        self.execute("ROLLBACK TO unit")?;
        self.execute("RELEASE unit")
    }

    fn execute(&self, text: &'static str) -> Result<(), Failure> {
        self.prepare(text)?.execute([])?;
        Ok(())
    }
}
