//! Delivery mode: which events one principal is shown, with the rights of the moment. No store, no audit, no lock in the common case.

use std::sync::Arc;

use domain::{ChannelRef, Event, EventOrigin, PrincipalId};

use crate::cache::RightsCell;
use crate::rights::RightsView;

/// Decides which events one principal is delivered, with the rights of the moment; no store read, no audit.
///
/// It follows the rights for as long as the tenant's tail observes. Whoever delivers asks [`crate::Caller::standing`] first: an event that is not admitted is skipped, and the
/// reader's position moves over it.
#[derive(Debug)]
pub struct Admission {
    principal: PrincipalId,
    rights: Arc<RightsCell>,
    version: u64,
    view: Arc<RightsView>,
    /// The last decision about a channel: consecutive events mostly share theirs.
    last: Option<(ChannelRef, bool)>,
}

impl Admission {
    pub(crate) fn new(principal: PrincipalId, rights: Arc<RightsCell>) -> Self {
        let (view, version) = rights.current();
        Self { principal, rights, version, view, last: None }
    }

    /// Whether the principal may see `event` now: as a reader of its channel or in its audience (stream.md, "Event envelope"). Owners and operators see the server's own events
    /// as well. A principal that is disabled or gone sees nothing.
    ///
    /// At most 100 ns: the decision is cached per channel and version of the rights.
    pub fn admits(&mut self, event: &Event) -> bool {
        if self.rights.version() != self.version {
            (self.view, self.version) = self.rights.current();
            self.last = None;
        }
        self.view.enabled
            && (event.channel.as_ref().is_some_and(|channel| self.reads(channel))
                || (event.origin == EventOrigin::Server && self.view.role.administers())
                || event.audience.contains(&self.principal))
    }

    fn reads(&mut self, channel: &ChannelRef) -> bool {
        if let Some((known, decision)) = &self.last
            && known == channel
        {
            return *decision;
        }
        let decision = self.view.channel(channel).is_some();
        self.last = Some((channel.clone(), decision));
        decision
    }
}
