//! Listing staged events: everybody its own, owners and operators all.

use authz::{Action, Caller, Target};

use super::{Staged, StagedNumber};
use crate::{Publisher, ScheduleError};

/// One page of staged events.
#[derive(Clone, Debug)]
pub struct StagedPage {
    /// In the order in which they were handed in.
    pub items: Vec<Staged>,
    /// What to pass as `after` for the next page; absent on the last one.
    pub next: Option<StagedNumber>,
}

impl Publisher {
    /// Staged events, those that failed and those that are still on their way, strictly after `after`: those of a role with the caller's own name;
    /// all for owners and operators. A store that no application shares has none.
    ///
    /// # Errors
    /// [`ScheduleError::Denied`], the store's.
    pub async fn staged(&self, caller: &Caller, after: Option<StagedNumber>, limit: usize) -> Result<StagedPage, ScheduleError> {
        self.parts.authorizer.authorize(caller, Action::EventsScheduled, Target::Tenant).await?;
        let publisher = (!caller.role.administers()).then_some(&caller.principal);
        let limit = limit.clamp(1, self.parts.settings.list_max.max(1));
        let mut items = self.staged.staged(&caller.tenant, publisher, after, limit + 1).await?;
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|last| last.number);
        Ok(StagedPage { items, next })
    }
}
