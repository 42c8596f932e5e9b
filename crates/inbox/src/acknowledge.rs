//! `acknowledge`: a worker's result. Accepted as long as the item is still claimed under the token; the same token and result again is a
//! success, anything else is a lost lease.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::{AgentSessionId, EventId};

use crate::change::{Change, Kit, Tally};
use crate::inbox::Job;
use crate::{AckResult, Acknowledge, Inbox, InboxError, InboxTx, Item, ItemOutcome, LeaseHash, Recipient};

impl Inbox {
    /// Ends attempts of the calling agent with their results; one outcome for each, in the order of the request. `session` says who works.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an agent with the scope `inbox.ack`; [`InboxError::Invalid`]; the store's.
    pub async fn acknowledge(
        &self,
        caller: &Caller,
        session: Option<&AgentSessionId>,
        acks: Vec<Acknowledge>,
    ) -> Result<Vec<ItemOutcome<Item>>, InboxError> {
        let recipient = self.own(caller, Action::InboxAck).await?;
        self.check_batch("/acks", acks.len())?;
        for (number, ack) in acks.iter().enumerate() {
            let settings = self.settings();
            Self::check_text(format!("/acks/{number}/summary"), ack.report.summary.as_ref(), settings.summary_max)?;
            Self::check_text(format!("/acks/{number}/output"), ack.report.result.as_ref(), settings.result_max)?;
        }
        self.touch(&recipient, session, None).await;
        let job = AckJob { kit: self.kit.clone(), recipient: recipient.clone(), acks };
        let answer = self.run("acknowledge", job).await?;
        self.count_acks(&answer);
        if answer.makes_room {
            self.bells.make_room(&recipient);
        }
        Ok(answer.outcomes)
    }

    fn count_acks(&self, answer: &Answer) {
        let metrics = &self.parts.metrics;
        answer.tally.count(metrics);
        for (result, latency) in &answer.ended {
            match result {
                AckResult::Completed => metrics.acks.increment(),
                AckResult::Failed => metrics.failed.increment(),
                AckResult::Discarded => metrics.discarded.increment(),
            }
            metrics.ack_latency.observe(*latency);
        }
        let lost = answer.outcomes.iter().filter(|outcome| matches!(outcome, ItemOutcome::LeaseLost)).count();
        metrics.leases_lost.add(lost as u64);
    }
}

struct AckJob {
    kit: Arc<Kit>,
    recipient: Recipient,
    acks: Vec<Acknowledge>,
}

struct Answer {
    outcomes: Vec<ItemOutcome<Item>>,
    /// The results that were accepted, each with the time since its claim.
    ended: Vec<(AckResult, Duration)>,
    tally: Tally,
    /// Whether a claim may be waiting for the agent to hold less.
    makes_room: bool,
}

#[async_trait]
impl Job for AckJob {
    type Answer = Answer;

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<Answer, InboxError> {
        let mut answer = Answer { outcomes: Vec::new(), ended: Vec::new(), tally: Tally::default(), makes_room: false };
        let Some(mut change) = Change::share(tx, &self.kit, &self.recipient).await? else {
            answer.outcomes = self.acks.iter().map(|_| ItemOutcome::NotFound).collect();
            return Ok(answer);
        };
        let wanted: Vec<EventId> = self.acks.iter().map(|ack| ack.event).collect();
        let mut items = change.find(&wanted).await?;
        for ack in &self.acks {
            let outcome = apply(&mut change, &mut items, ack, &mut answer.ended);
            answer.outcomes.push(outcome);
        }
        let written: HashMap<EventId, Item> = change.write().await?.into_iter().map(|item| (item.facts.event_id, item)).collect();
        for outcome in &mut answer.outcomes {
            if let ItemOutcome::Ok(item) = outcome
                && let Some(item_now) = written.get(&item.facts.event_id)
            {
                *item = item_now.clone();
            }
        }
        answer.makes_room = !answer.ended.is_empty() && change.row.policy.max_in_flight.is_some();
        answer.tally = change.close().await?;
        Ok(answer)
    }
}

fn apply(
    change: &mut Change<'_>,
    items: &mut HashMap<EventId, Item>,
    ack: &Acknowledge,
    ended: &mut Vec<(AckResult, Duration)>,
) -> ItemOutcome<Item> {
    let Some(item) = items.get_mut(&ack.event) else { return ItemOutcome::NotFound };
    let token = LeaseHash::of(&ack.token);
    if item.settled_by(&token).is_some_and(|attempt| attempt.outcome == ack.result.outcome()) {
        return ItemOutcome::Ok(item.clone());
    }
    if !item.holds(&token) {
        return ItemOutcome::LeaseLost;
    }
    let claimed_at = item.lease.as_ref().map_or(change.now, |lease| lease.claimed_at);
    match item.acknowledge(change.now, ack.result, ack.report.clone(), &change.kit.settings.rules) {
        Ok(step) => {
            ended.push((ack.result, change.now.since(claimed_at)));
            change.moved(item.clone(), Some(step));
            ItemOutcome::Ok(item.clone())
        }
        Err(_) => ItemOutcome::LeaseLost,
    }
}
