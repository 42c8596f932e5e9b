//! `claimItems`: claim items by name. Each is answered for itself.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::EventId;

use crate::change::{Change, Kit, Retry, Tally};
use crate::handing::lease_of;
use crate::inbox::Job;
use crate::terms::{Taken, Terms, fits};
use crate::{AckState, Claim, Claimed, Inbox, InboxError, InboxTx, Item, ItemOutcome, LeaseToken, Recipient};

impl Inbox {
    /// Claims items of the calling agent by event id; one outcome for each that was asked for, in that order. A repeat under the same
    /// `Idempotency-Key` is answered with the claims that are still held, and those only.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an agent with the scope `inbox.claim`; [`InboxError::Invalid`];
    /// [`InboxError::SessionNotActive`]; [`InboxError::IdempotencyConflict`]; the store's.
    pub async fn claim(&self, caller: &Caller, request: Claim) -> Result<Vec<(EventId, ItemOutcome<Claimed>)>, InboxError> {
        let recipient = self.own(caller, Action::InboxClaim).await?;
        self.check_batch("/event_ids", request.events.len())?;
        self.bells.fetched(&recipient);
        self.touch(&recipient, request.session.as_ref(), None).await;
        let terms = Terms::new(request.lease, request.session, request.key)?;
        let job = ClaimJob { kit: self.kit.clone(), recipient: recipient.clone(), events: request.events, terms };
        let (inbox, owner) = (self.shared()?, caller.clone());
        self.hand(caller, leases, async move { inbox.claim_named(&owner, job).await }).await?.take()
    }

    async fn claim_named(&self, caller: &Caller, job: ClaimJob) -> Result<Outcomes, InboxError> {
        let recipient = job.recipient.clone();
        let (taken, refused) = self.run("claim", job).await?;
        self.count_claims(&taken);
        self.parts.metrics.duplicate_claims.add(refused.iter().filter(|(_, _, why)| *why == Refused::AlreadyClaimed).count() as u64);
        let (claimed, _) = self.hand_out(caller, &recipient, taken.items, taken.at, None).await?;
        let claimed = claimed.into_iter().map(|claimed| (claimed.item.facts.event_id, ItemOutcome::Ok(claimed)));
        Ok(in_order(claimed.collect(), refused))
    }
}

/// What became of each item that was asked for.
type Outcomes = Vec<(EventId, ItemOutcome<Claimed>)>;

/// The leases in an answer.
fn leases(outcomes: &Outcomes) -> Vec<(EventId, LeaseToken)> {
    let lease = |(_, outcome): &(EventId, ItemOutcome<Claimed>)| match outcome {
        ItemOutcome::Ok(claimed) => Some(lease_of(claimed)),
        _ => None,
    };
    outcomes.iter().filter_map(lease).collect()
}

/// Puts the refusals back where they were asked for.
fn in_order(claimed: Outcomes, refused: Vec<(usize, EventId, Refused)>) -> Outcomes {
    let mut answer = Vec::with_capacity(claimed.len() + refused.len());
    let (mut claimed, mut refused) = (claimed.into_iter(), refused.into_iter().peekable());
    loop {
        if let Some((_, event, why)) = refused.next_if(|(place, ..)| *place == answer.len()) {
            answer.push((event, why.outcome()));
        } else if let Some(next) = claimed.next() {
            answer.push(next);
        } else {
            return answer;
        }
    }
}

/// Why an item was not claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    AlreadyClaimed,
    NotAvailable,
    Expired,
    NotFound,
    LimitReached,
}

impl Refused {
    const fn outcome(self) -> ItemOutcome<Claimed> {
        match self {
            Self::AlreadyClaimed => ItemOutcome::AlreadyClaimed,
            Self::NotAvailable => ItemOutcome::NotAvailable,
            Self::Expired => ItemOutcome::Expired,
            Self::NotFound => ItemOutcome::NotFound,
            Self::LimitReached => ItemOutcome::LimitReached,
        }
    }
}

struct ClaimJob {
    kit: Arc<Kit>,
    recipient: Recipient,
    events: Vec<EventId>,
    terms: Terms,
}

/// What was taken, and the places of the request where nothing was.
type Answer = (Taken, Vec<(usize, EventId, Refused)>);

#[async_trait]
impl Job for ClaimJob {
    type Answer = Answer;

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<Answer, InboxError> {
        let at = tx.now();
        let Some(mut change) = Change::share(tx, &self.kit, &self.recipient).await? else {
            let refused = self.events.iter().enumerate().map(|(place, event)| (place, *event, Refused::NotFound)).collect();
            return Ok((Taken { items: Vec::new(), at, tally: Tally::default(), is_replay: false }, refused));
        };
        self.terms.check_session(&change)?;
        if let Some(items) = self.terms.replay(&mut change).await? {
            return Ok((Taken { items, at, tally: change.close().await?, is_replay: true }, Vec::new()));
        }
        let mut items = self.find(&mut change).await?;
        let (mut taken, mut refused, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut room = Terms::room(&mut change, self.events.len()).await?;
        let key = self.terms.lease_key(&mut change).await?;
        for (place, event) in self.events.iter().enumerate() {
            let Some(item) = items.get_mut(event) else {
                refused.push((place, *event, Refused::NotFound));
                continue;
            };
            let why = refusal(item, &change)
                .or_else(|| (room == 0 || !fits(&self.kit.settings, &mut bytes, item)).then_some(Refused::LimitReached));
            match why {
                Some(why) => refused.push((place, *event, why)),
                None => match self.terms.take(item, &key, &change) {
                    Ok(token) => {
                        room -= 1;
                        taken.push((item.clone(), token));
                    }
                    Err(_) => refused.push((place, *event, Refused::NotAvailable)),
                },
            }
        }
        for (item, _) in &taken {
            change.moved(item.clone(), None);
        }
        self.terms.record(&mut change, &taken).await?;
        Ok((Taken { items: taken, at, tally: change.close().await?, is_replay: false }, refused))
    }
}

impl ClaimJob {
    /// The items asked for, after time has done to each what it does; retries that are due are left as they are.
    async fn find(&self, change: &mut Change<'_>) -> Result<HashMap<EventId, Item>, InboxError> {
        let mut items = change.find(&self.events).await?;
        let found: Vec<Item> = items.values().cloned().collect();
        for item in found {
            change.settle(item, |_| Retry::Keep);
        }
        items.extend(change.write().await?.into_iter().map(|item| (item.facts.event_id, item)));
        Ok(items)
    }
}

/// Why this item cannot be claimed now.
fn refusal(item: &Item, change: &Change<'_>) -> Option<Refused> {
    match item.state {
        AckState::Claimed => Some(Refused::AlreadyClaimed),
        AckState::Expired => Some(Refused::Expired),
        AckState::Available | AckState::RetryScheduled => {
            let is_open = item.is_claimable(change.now) && !change.row.is_paused(&item.facts.queue);
            (!is_open).then_some(Refused::NotAvailable)
        }
        _ => Some(Refused::NotAvailable),
    }
}
