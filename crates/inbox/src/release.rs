//! `release`: a worker gives an item back. And the server's own reason to take one back: its client was gone before the answer.

use std::sync::Arc;

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::EventId;

use crate::change::{Change, Kit, Tally};
use crate::inbox::Job;
use crate::{AttemptOutcome, GiveBack, Inbox, InboxError, InboxTx, Item, LeaseHash, LeaseToken, Recipient, Release, Report};

/// The reason that does not count as an attempt.
const SNOOZE: &str = "snooze";

impl Inbox {
    /// Gives back an item that the calling agent holds. The same token and kind of release again is a success.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an agent with the scope `inbox.release`; [`InboxError::Invalid`];
    /// [`InboxError::NotFound`]; [`InboxError::LeaseLost`]; the store's.
    pub async fn release(&self, caller: &Caller, request: GiveBack) -> Result<Item, InboxError> {
        let recipient = self.own(caller, Action::InboxRelease).await?;
        let settings = self.settings();
        Self::check_text("/reason".to_owned(), Some(&request.reason), settings.summary_max)?;
        if request.rest.is_some_and(|rest| rest > settings.rules.retry_cap) {
            let most = settings.rules.retry_cap.as_secs();
            return Err(InboxError::invalid("/retry_after_seconds", format!("at most {most}")));
        }
        self.touch(&recipient, request.session.as_ref(), None).await;
        let rest = request.rest;
        let release = if request.reason == SNOOZE { Release::Snooze { rest } } else { Release::Counted { rest } };
        let job = ReleaseJob {
            kit: self.kit.clone(),
            recipient: recipient.clone(),
            event: request.event,
            token: LeaseHash::of(&request.token),
            release,
            reason: request.reason,
        };
        let answer = self.run("release", job).await.inspect_err(|error| {
            if *error == InboxError::LeaseLost {
                self.parts.metrics.leases_lost.increment();
            }
        })?;
        answer.tally.count(&self.parts.metrics);
        self.parts.metrics.released.add(u64::from(answer.is_new));
        if answer.makes_room {
            self.bells.make_room(&recipient);
        }
        Ok(answer.item)
    }

    /// Takes back what was claimed for a client that was gone before the answer was written: claimable at once, not counted. What is not held
    /// under its token any more is left alone, and so is what the client has shown to know of since: by a heartbeat, or by asking again under
    /// its `Idempotency-Key`.
    ///
    /// # Errors
    /// The store's.
    pub async fn give_back_unread(&self, caller: &Caller, claims: Vec<(EventId, LeaseToken)>) -> Result<(), InboxError> {
        let recipient = Recipient { tenant: caller.tenant.clone(), agent: caller.principal.clone() };
        let claims = claims.into_iter().map(|(event, token)| (event, token.hash())).collect();
        let job = UnreadJob { kit: self.kit.clone(), recipient: recipient.clone(), claims };
        let (given_back, tally) = self.run("give_back", job).await?;
        tally.count(&self.parts.metrics);
        self.parts.metrics.given_back_unread.add(given_back);
        Ok(())
    }
}

struct ReleaseJob {
    kit: Arc<Kit>,
    recipient: Recipient,
    event: EventId,
    token: LeaseHash,
    release: Release,
    reason: String,
}

struct Answer {
    item: Item,
    tally: Tally,
    is_new: bool,
    makes_room: bool,
}

impl ReleaseJob {
    const fn outcome(&self) -> AttemptOutcome {
        match self.release {
            Release::Counted { .. } => AttemptOutcome::Released,
            Release::Snooze { .. } => AttemptOutcome::Snoozed,
            Release::Interrupted => AttemptOutcome::Interrupted,
        }
    }
}

#[async_trait]
impl Job for ReleaseJob {
    type Answer = Answer;

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<Answer, InboxError> {
        let mut change = Change::share(tx, &self.kit, &self.recipient).await?.ok_or(InboxError::NotFound)?;
        let mut item = change.find(&[self.event]).await?.remove(&self.event).ok_or(InboxError::NotFound)?;
        if item.settled_by(&self.token).is_some_and(|attempt| attempt.outcome == self.outcome()) {
            return Ok(Answer { item, tally: Tally::default(), is_new: false, makes_room: false });
        }
        if !item.holds(&self.token) {
            return Err(InboxError::LeaseLost);
        }
        let report = Report { summary: Some(self.reason.clone()).filter(|reason| !reason.is_empty()), result: None };
        let step = item.release(change.now, &self.release, report, &self.kit.settings.rules).map_err(|_| InboxError::LeaseLost)?;
        change.moved(item.clone(), Some(step));
        let item = change.write().await?.pop().unwrap_or(item);
        let makes_room = change.row.policy.max_in_flight.is_some();
        Ok(Answer { item, tally: change.close().await?, is_new: true, makes_room })
    }
}

struct UnreadJob {
    kit: Arc<Kit>,
    recipient: Recipient,
    claims: Vec<(EventId, LeaseHash)>,
}

#[async_trait]
impl Job for UnreadJob {
    type Answer = (u64, Tally);

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<(u64, Tally), InboxError> {
        let Some(mut change) = Change::share(tx, &self.kit, &self.recipient).await? else { return Ok((0, Tally::default())) };
        let wanted: Vec<EventId> = self.claims.iter().map(|(event, _)| *event).collect();
        let mut items = change.find(&wanted).await?;
        let mut given_back = 0;
        for (event, token) in &self.claims {
            let Some(mut item) = items.remove(event).filter(|item| item.holds(token) && item.is_unheard()) else { continue };
            if let Ok(step) = item.release(change.now, &Release::Interrupted, Report::default(), &self.kit.settings.rules) {
                change.moved(item, Some(step));
                given_back += 1;
            }
        }
        Ok((given_back, change.close().await?))
    }
}
