//! Looking at inboxes: listing, one item, the inbox as a whole. Never changes anything.

use authz::Caller;
use domain::{EventId, PrincipalId};

use crate::{Inbox, InboxError, InboxState, Item, ItemFilter, ItemPage, ItemRange, QueueFilter, Recipient};

impl Inbox {
    /// Items of an inbox in any state, by event id, strictly after `after`. Without `agent` the calling agent's own; operators may name any. A page
    /// may have fewer than `limit` although more follow: `inbox.scan_max` and `inbox.claim_max_bytes` end it early.
    ///
    /// # Errors
    /// [`InboxError::Denied`]; [`InboxError::Invalid`] for a limit of zero; [`InboxError::NotFound`] for an agent that is not there; the store's.
    pub async fn items(
        &self,
        caller: &Caller,
        agent: Option<&PrincipalId>,
        filter: ItemFilter,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<ItemPage, InboxError> {
        let recipient = self.readable(caller, agent).await?;
        let limit = Self::limit("#query/limit", limit, self.settings().poll_max_items)?;
        Ok(self.parts.store.items(&recipient, &filter, self.item_range(after, limit)).await?)
    }

    /// A part of a listing within the bounds of every part.
    pub(crate) fn item_range(&self, after: Option<EventId>, limit: usize) -> ItemRange {
        let settings = self.settings();
        ItemRange { after, limit, scan_max: settings.scan_max.max(1), bytes_max: settings.claim_max_bytes }
    }

    /// One item of an inbox in any state.
    ///
    /// # Errors
    /// [`InboxError::Denied`]; [`InboxError::NotFound`]; the store's.
    pub async fn item(&self, caller: &Caller, agent: Option<&PrincipalId>, event: EventId) -> Result<Item, InboxError> {
        let recipient = self.readable(caller, agent).await?;
        self.parts.store.item(&recipient, event).await?.ok_or(InboxError::NotFound)
    }

    /// An inbox as a whole.
    ///
    /// # Errors
    /// [`InboxError::Denied`]; [`InboxError::NotFound`]; the store's.
    pub async fn state(&self, caller: &Caller, agent: Option<&PrincipalId>) -> Result<InboxState, InboxError> {
        let recipient = self.readable(caller, agent).await?;
        self.state_of(recipient).await
    }

    pub(crate) async fn state_of(&self, recipient: Recipient) -> Result<InboxState, InboxError> {
        let now = self.parts.clock.now();
        let view = self.view(&recipient).await?;
        let backlog = self.parts.store.backlog(&recipient, &QueueFilter::default(), now, self.settings().backlog_count_max).await?;
        let (head, epoch) = (view.head(), view.epoch);
        let agent = recipient.agent;
        let Some(row) = view.row else {
            let (presence, policy) = Default::default();
            return Ok(InboxState { recipient: agent, head, epoch, paused: false, paused_queues: Vec::new(), presence, policy, backlog });
        };
        Ok(InboxState {
            recipient: agent,
            head,
            epoch,
            paused: row.paused,
            paused_queues: row.paused_queues.into_iter().collect(),
            presence: row.presence.at(now),
            policy: row.policy,
            backlog,
        })
    }
}
