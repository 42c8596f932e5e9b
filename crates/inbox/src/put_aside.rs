//! Quarantine: an operator puts an item aside, and releases it again.

use std::sync::Arc;

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::{EventId, PrincipalId};
use serde_json::json;

use crate::audit::item_value;
use crate::change::{Change, Kit, Tally};
use crate::inbox::Job;
use crate::{Inbox, InboxError, InboxTx, Item, Recipient};

impl Inbox {
    /// Puts a current item aside; whoever holds it loses the lease.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an operator; [`InboxError::NotFound`]; [`InboxError::NotInThatState`]; the store's.
    pub async fn quarantine(&self, caller: &Caller, agent: &PrincipalId, event: EventId) -> Result<Item, InboxError> {
        self.put_aside(caller, agent, event, true).await
    }

    /// Releases an item that was put aside: it is claimable again.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an operator; [`InboxError::NotFound`]; [`InboxError::NotInThatState`]; the store's.
    pub async fn unquarantine(&self, caller: &Caller, agent: &PrincipalId, event: EventId) -> Result<Item, InboxError> {
        self.put_aside(caller, agent, event, false).await
    }

    async fn put_aside(&self, caller: &Caller, agent: &PrincipalId, event: EventId, aside: bool) -> Result<Item, InboxError> {
        let recipient = self.agents(caller, Action::InboxManage, agent).await?;
        let actor = caller.principal.clone();
        let job = PutAsideJob { kit: self.kit.clone(), recipient: recipient.clone(), event, aside, actor };
        let (item, tally) = self.run("quarantine", job).await?;
        tally.count(&self.parts.metrics);
        self.bells.make_room(&recipient);
        Ok(item)
    }
}

struct PutAsideJob {
    kit: Arc<Kit>,
    recipient: Recipient,
    event: EventId,
    aside: bool,
    actor: PrincipalId,
}

#[async_trait]
impl Job for PutAsideJob {
    type Answer = (Item, Tally);

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<(Item, Tally), InboxError> {
        let mut change = Change::of(tx, &self.kit, &self.recipient).await?.ok_or(InboxError::NotFound)?;
        let mut item = change.find(&[self.event]).await?.remove(&self.event).ok_or(InboxError::NotFound)?;
        let before = item_value(&item);
        let (now, rules) = (change.now, &self.kit.settings.rules);
        let (operation, step) =
            if self.aside { ("quarantine", item.quarantine(now, rules)) } else { ("unquarantine", item.unquarantine(now, rules)) };
        let step = step.map_err(|_| InboxError::NotInThatState)?;
        change.moved(item.clone(), Some(step));
        let item = change.write().await?.pop().unwrap_or(item);
        let after = json!({ "operation": operation, "item": item_value(&item) });
        change.audit(&self.actor, Action::InboxManage, &json!({ "item": before }), &after).await?;
        Ok((item, change.close().await?))
    }
}
