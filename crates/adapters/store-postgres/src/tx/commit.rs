//! Committing, and finding out what became of a commit whose answer was lost.

use std::time::Duration;

use domain::StoreError;

use tokio::time::Instant;

use super::{AppendedEvents, WriteTx};
use crate::doubt::Outcome;
use crate::failure::Failure;
use crate::sql::sql;
use crate::store::Shared;
use crate::{db, inbox};

/// How much longer than a statement a commit may take before its answer counts as lost. A synchronous standby may be slow.
const GRACE: Duration = Duration::from_secs(30);

impl WriteTx {
    /// Commits durably, then tells who listens.
    pub(crate) async fn commit(mut self, name: &'static str) -> Result<(), StoreError> {
        let answer = tokio::time::timeout(GRACE, db::script(sql!("store/commit")).execute(&mut *self.lease)).await;
        let failure = match answer {
            Ok(Ok(_)) => {
                self.lease.set_open(false);
                announce(&self.shared, self.began, self.units, std::mem::take(&mut self.appended));
                inbox::note_taken(&self.shared, self.inboxes.taken());
                return Ok(());
            }
            Ok(Err(error)) => Some(Failure::from(error)),
            Err(_) => None,
        };
        self.shared.metrics.commit_failed();
        match failure {
            Some(failure) if !failure.is_connection() => {
                if failure.is_code("25P02") {
                    tracing::error!(unit.name = name, "a unit of work went on after a statement that failed; it is rolled back");
                }
                Err(failure.into())
            }
            _ => self.resolve(name).await,
        }
    }

    async fn resolve(self, name: &'static str) -> Result<(), StoreError> {
        let Self { mut lease, shared, xid, began, appended, units, mut inboxes, .. } = self;
        lease.set_unsure();
        drop(lease);
        match shared.doubt.outcome(&shared, &xid, began, &appended).await {
            Outcome::Committed => {
                shared.metrics.resolved();
                announce(&shared, began, units, appended);
                inbox::note_taken(&shared, inboxes.taken());
                Ok(())
            }
            Outcome::RolledBack => {
                shared.metrics.resolved();
                Err(StoreError::Transient)
            }
            Outcome::Unknown => {
                shared.metrics.in_doubt();
                tracing::error!(unit.name = name, "the answer to a commit was lost, and nobody can tell whether it happened");
                Err(StoreError::InDoubt)
            }
        }
    }
}

fn announce(shared: &Shared, began: Instant, units: u64, appended: Vec<AppendedEvents>) {
    let mut events = 0;
    for each in appended {
        events += each.events.len() as u64;
        shared.tell(&each.tenant, each.epoch, &each.events);
    }
    shared.metrics.committed(units, events, began.elapsed());
}
