//! What is decided about an inbox as a whole: pause, presence, policy. The return of an agent and the end of a pause ring again.

use std::sync::Arc;

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::{PrincipalId, QueueName};

use crate::audit::row_value;
use crate::change::{Change, Kit};
use crate::inbox::Job;
use crate::{Inbox, InboxError, InboxState, InboxTx, Policy, Presence, PresenceChange, Recipient, ResumeCause};

impl Inbox {
    /// Holds back an inbox, or one queue of it: nothing is claimable, nothing rings, nothing is lost.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an operator; [`InboxError::NotFound`]; [`InboxError::LimitReached`] for too many paused
    /// queues; the store's.
    pub async fn pause(&self, caller: &Caller, agent: &PrincipalId, queue: Option<QueueName>) -> Result<InboxState, InboxError> {
        self.govern(caller, Action::InboxManage, agent, Decision::Pause(queue)).await
    }

    /// Ends a pause; announces `inbox.resumed` if there was one.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an operator; [`InboxError::NotFound`]; the store's.
    pub async fn resume(&self, caller: &Caller, agent: &PrincipalId, queue: Option<QueueName>) -> Result<InboxState, InboxError> {
        self.govern(caller, Action::InboxManage, agent, Decision::Resume(queue)).await
    }

    /// Says whether an agent wants to be rung; announces `inbox.resumed` when it returns.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is the agent or an operator; [`InboxError::NotFound`]; [`InboxError::Invalid`] for an absence
    /// longer than `inbox.presence_max`; the store's.
    pub async fn set_presence(&self, caller: &Caller, agent: &PrincipalId, change: PresenceChange) -> Result<InboxState, InboxError> {
        if let PresenceChange::Out { for_: Some(length) } = change
            && (length.is_zero() || length > self.settings().presence_max)
        {
            let most = self.settings().presence_max.as_secs();
            return Err(InboxError::invalid("/for_seconds", format!("1 to {most}")));
        }
        self.govern(caller, Action::PresenceSet, agent, Decision::Presence(change)).await
    }

    /// Decides how an agent may claim.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an operator; [`InboxError::NotFound`]; [`InboxError::Invalid`] for a `max_in_flight` of
    /// zero; the store's.
    pub async fn set_policy(&self, caller: &Caller, agent: &PrincipalId, policy: Policy) -> Result<InboxState, InboxError> {
        if policy.max_in_flight == Some(0) {
            return Err(InboxError::invalid("/max_in_flight", "at least 1; pause the inbox to hold everything back"));
        }
        let state = self.govern(caller, Action::InboxManage, agent, Decision::Policy(policy)).await?;
        self.bells.make_room(&Recipient { tenant: caller.tenant.clone(), agent: agent.clone() });
        Ok(state)
    }

    async fn govern(&self, caller: &Caller, action: Action, agent: &PrincipalId, decision: Decision) -> Result<InboxState, InboxError> {
        let recipient = self.agents(caller, action, agent).await?;
        // What an agent says about itself is no administration.
        let actor = (*agent != caller.principal).then(|| caller.principal.clone());
        self.run("govern", GovernJob { kit: self.kit.clone(), recipient: recipient.clone(), decision, action, actor }).await?;
        self.state_of(recipient).await
    }
}

#[derive(Clone, Debug)]
enum Decision {
    Pause(Option<QueueName>),
    Resume(Option<QueueName>),
    Presence(PresenceChange),
    Policy(Policy),
}

struct GovernJob {
    kit: Arc<Kit>,
    recipient: Recipient,
    decision: Decision,
    action: Action,
    /// Whose decision is written down.
    actor: Option<PrincipalId>,
}

#[async_trait]
impl Job for GovernJob {
    type Answer = ();

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<(), InboxError> {
        let mut change = Change::open(tx, &self.kit, &self.recipient).await?;
        let before = row_value(&change.row);
        if let Some((queue, cause)) = self.decide(&mut change)? {
            change.resume(queue.as_ref(), cause).await?;
        }
        let after = row_value(&change.row);
        if let Some(actor) = self.actor.as_ref().filter(|_| before != after) {
            change.audit(actor, self.action, &before, &after).await?;
        }
        change.close().await?;
        Ok(())
    }
}

impl GovernJob {
    /// Changes the row; answers what is to be rung again, and why.
    fn decide(&self, change: &mut Change<'_>) -> Result<Option<(Option<QueueName>, ResumeCause)>, InboxError> {
        let row = &mut change.row;
        Ok(match &self.decision {
            Decision::Pause(None) => {
                row.paused = true;
                None
            }
            Decision::Pause(Some(queue)) => {
                if !row.paused_queues.contains(queue) && row.paused_queues.len() >= self.kit.settings.max_queues {
                    return Err(InboxError::LimitReached("inbox.max_queues"));
                }
                row.paused_queues.insert(queue.clone());
                None
            }
            Decision::Resume(None) => std::mem::take(&mut row.paused).then_some((None, ResumeCause::Unpaused)),
            Decision::Resume(Some(queue)) => row.paused_queues.remove(queue).then(|| (Some(queue.clone()), ResumeCause::Unpaused)),
            Decision::Presence(PresenceChange::In) => {
                let was = std::mem::take(&mut row.presence);
                (was != Presence::In).then_some((None, ResumeCause::Presence))
            }
            Decision::Presence(PresenceChange::Out { for_ }) => {
                let until = for_.map(|length| change.now.plus(length));
                row.presence = Presence::Out { until };
                row.look_at(until);
                None
            }
            Decision::Policy(policy) => {
                row.policy = *policy;
                None
            }
        })
    }
}
