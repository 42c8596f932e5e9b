//! `heartbeat`: a worker keeps its leases. Up to the attempt's hard deadline, and independent of any socket.

use std::sync::Arc;

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::{AgentSessionId, EventId};

use crate::change::{Change, Kit};
use crate::inbox::Job;
use crate::{Extended, Heartbeat, Inbox, InboxError, InboxTx, ItemOutcome, LeaseHash, Recipient};

impl Inbox {
    /// Extends leases of the calling agent; one outcome for each, in the order of the request. `session` says who works.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an agent with the scope `inbox.heartbeat`; [`InboxError::Invalid`]; the store's.
    pub async fn heartbeat(
        &self,
        caller: &Caller,
        session: Option<&AgentSessionId>,
        beats: Vec<Heartbeat>,
    ) -> Result<Vec<ItemOutcome<Extended>>, InboxError> {
        let recipient = self.own(caller, Action::InboxHeartbeat).await?;
        self.check_batch("/leases", beats.len())?;
        self.touch(&recipient, session, None).await;
        let outcomes = self.run("heartbeat", HeartbeatJob { kit: self.kit.clone(), recipient, beats }).await?;
        let count = |wanted: fn(&ItemOutcome<Extended>) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count() as u64;
        self.parts.metrics.heartbeats.add(count(|outcome| matches!(outcome, ItemOutcome::Ok(_))));
        self.parts.metrics.leases_lost.add(count(|outcome| matches!(outcome, ItemOutcome::LeaseLost)));
        Ok(outcomes)
    }
}

struct HeartbeatJob {
    kit: Arc<Kit>,
    recipient: Recipient,
    beats: Vec<Heartbeat>,
}

#[async_trait]
impl Job for HeartbeatJob {
    type Answer = Vec<ItemOutcome<Extended>>;

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<Self::Answer, InboxError> {
        let Some(mut change) = Change::share(tx, &self.kit, &self.recipient).await? else {
            return Ok(self.beats.iter().map(|_| ItemOutcome::NotFound).collect());
        };
        let wanted: Vec<EventId> = self.beats.iter().map(|beat| beat.event).collect();
        let mut items = change.find(&wanted).await?;
        let (rules, now) = (&self.kit.settings.rules, change.now);
        let mut extended: Vec<EventId> = Vec::new();
        let mut outcomes = Vec::with_capacity(self.beats.len());
        for beat in &self.beats {
            let Some(item) = items.get_mut(&beat.event) else {
                outcomes.push(ItemOutcome::NotFound);
                continue;
            };
            let is_held = item.holds(&LeaseHash::of(&beat.token));
            let until = is_held.then(|| item.heartbeat(now, rules.lease(beat.extend)).ok()).flatten();
            outcomes.push(match (until, &item.lease) {
                (Some(until), Some(lease)) => {
                    extended.push(beat.event);
                    ItemOutcome::Ok(Extended { until, expires_in: until.since(now), attempt_deadline: lease.attempt_deadline })
                }
                _ => ItemOutcome::LeaseLost,
            });
        }
        for event in extended {
            // A lease that was extended twice is written once.
            if let Some(item) = items.remove(&event) {
                change.moved(item, None);
            }
        }
        change.close().await?;
        Ok(outcomes)
    }
}
