//! Tells the other nodes of commits.

use std::fmt;
use std::sync::Arc;

use domain::{Event, SyncEpoch, TenantId};

use crate::{CommitListener, Hint, HintBus};

/// Hands commits on to this process's own listener, then tells the other nodes that there is a new head.
pub struct Announcer {
    own: Arc<dyn CommitListener>,
    others: Arc<dyn HintBus>,
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcer").finish_non_exhaustive()
    }
}

impl Announcer {
    /// Between the store and who listens to it.
    pub fn new(own: Arc<dyn CommitListener>, others: Arc<dyn HintBus>) -> Self {
        Self { own, others }
    }
}

impl CommitListener for Announcer {
    fn committed(&self, tenant: &TenantId, epoch: SyncEpoch, events: &[Arc<Event>]) {
        self.own.committed(tenant, epoch, events);
        if let Some(last) = events.last() {
            self.others.tell(Hint::Head { tenant: tenant.clone(), seq: last.seq });
        }
    }
}
