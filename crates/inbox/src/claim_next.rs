//! `claimNext`: claim whatever comes first. The order is that of `claim_key`, which is priority with aging (inbox.md, "Order of claim").

use std::sync::Arc;

use async_trait::async_trait;
use authz::{Action, Caller};
use domain::{EventId, Timestamp};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::change::{Change, Kit, Retry, Tally};
use crate::handing::{Handing, lease_of};
use crate::inbox::Job;
use crate::terms::{Taken, Terms, fits};
use crate::wait::{Again, Wait};
use crate::{Backlog, ClaimNext, Claimed, ClaimedNext, Inbox, InboxError, InboxTx, Item, LeaseToken, QueueFilter, Recipient, RecipientRow};

/// How often one claim reads on when what it read had expired.
const ROUNDS: usize = 8;
/// How many units one look of a claim has for ending what has expired, before it is said that nothing is there.
const LOOKS: usize = 64;

impl Inbox {
    /// Claims the next items of the calling agent, waiting for the first if it may. A due retry and a lapsed lease end the wait like a ring.
    ///
    /// # Errors
    /// [`InboxError::Denied`] unless the caller is an agent with the scope `inbox.claim`; [`InboxError::Invalid`];
    /// [`InboxError::SessionNotActive`]; [`InboxError::IdempotencyConflict`]; the store's.
    pub async fn claim_next(&self, caller: &Caller, request: ClaimNext) -> Result<ClaimedNext, InboxError> {
        self.claim_next_until(caller, request, &CancellationToken::new()).await
    }

    /// The same for a client that may go away meanwhile: a wait ends at once when `gone` is cancelled. What is under way then goes on, so the
    /// call is to be driven to its end and its claims given back ([`Inbox::give_back_unread`]).
    ///
    /// # Errors
    /// As [`Inbox::claim_next`].
    pub async fn claim_next_until(&self, caller: &Caller, request: ClaimNext, gone: &CancellationToken) -> Result<ClaimedNext, InboxError> {
        let (recipient, since) = (self.own(caller, Action::InboxClaim).await?, Instant::now());
        let limit = Self::limit("/limit", request.limit, self.settings().claim_max_items)?;
        let queues = self.queue_filter(request.queues)?;
        self.bells.fetched(&recipient);
        self.touch(&recipient, request.session.as_ref(), None).await;
        let terms = Terms::new(request.lease, request.session, request.key)?;
        let job = NextJob { kit: self.kit.clone(), recipient: recipient.clone(), queues, limit, terms };
        let mut wait: Option<Wait> = None;
        let mut is_last = false;
        loop {
            let next = self.look_next(caller, &job).await?;
            let is_empty = next.answer().is_none_or(|next| next.claims.is_empty());
            if !is_empty || is_last {
                return self.answer(&recipient, next).await;
            }
            let has_waited = wait.is_some();
            if !has_waited {
                wait = self.wait(caller, &recipient, request.wait, since).await;
            }
            let (Some(waiting), Some(found)) = (wait.as_mut(), next.answer()) else { return self.answer(&recipient, next).await };
            let woken = tokio::select! {
                biased;
                () = gone.cancelled() => Again::Drained,
                woken = self.await_work(caller, &recipient, waiting, found, has_waited) => woken?,
            };
            match woken {
                Again::Drained => {
                    self.parts.metrics.long_poll_timeouts.increment();
                    return self.answer(&recipient, next).await;
                }
                again => is_last = again == Again::Last,
            }
        }
    }

    /// Waits until there may be something to claim; looks without the writer. Who `has_looked` since it took its place waits first.
    async fn await_work(
        &self,
        caller: &Caller,
        recipient: &Recipient,
        wait: &mut Wait,
        next: &Found,
        has_looked: bool,
    ) -> Result<Again, InboxError> {
        let mut again = if has_looked { None } else { Some(Again::Rung) };
        loop {
            let now = self.parts.clock.now();
            let mut due = next.due;
            if let Some(again) = again {
                if wait.begin_look() {
                    // The queues of the last attempt are not those that it would look at now.
                    return Ok(again);
                }
                let Some(backlog) = self.backlog(recipient, &next.queues, now).await else { return Ok(again) };
                if backlog.available > 0 || again == Again::Due {
                    return Ok(again);
                }
                if again == Again::Last {
                    return Ok(Again::Drained);
                }
                due = [due.filter(|due| *due > now), backlog.next_due].into_iter().flatten().min();
            }
            let woken = wait.again(due.filter(|due| *due > now).map(|due| due.since(now))).await;
            if woken == Again::Drained {
                return Ok(woken);
            }
            self.own(caller, Action::InboxClaim).await?;
            again = Some(woken);
        }
    }

    /// Tries to claim, and tries again for as long as what has expired keeps it from seeing what has not.
    async fn look_next(&self, caller: &Caller, job: &NextJob) -> Result<Handing<Found>, InboxError> {
        let mut looks = 1;
        loop {
            let (inbox, owner, job) = (self.shared()?, caller.clone(), job.clone());
            let next = self.hand(caller, leases, async move { inbox.take_next(&owner, job).await }).await?;
            let is_unsettled = next.answer().is_some_and(|found| found.claims.is_empty() && found.is_unsettled);
            if !is_unsettled || looks >= LOOKS {
                return Ok(next);
            }
            looks += 1;
        }
    }

    /// One attempt, with the envelopes.
    async fn take_next(&self, caller: &Caller, job: NextJob) -> Result<Found, InboxError> {
        let recipient = job.recipient.clone();
        let Next { taken, queues, due, is_unsettled, is_paused } = self.run("claim_next", job).await?;
        self.count_claims(&taken);
        let (claims, backlog) = self.hand_out(caller, &recipient, taken.items, taken.at, Some(&queues)).await?;
        Ok(Found { claims, backlog, queues, due, is_unsettled, is_paused })
    }

    async fn answer(&self, recipient: &Recipient, next: Handing<Found>) -> Result<ClaimedNext, InboxError> {
        let backlog = match next.answer() {
            Some(Found { backlog: Some(backlog), .. }) => Some(*backlog),
            Some(found) => self.backlog(recipient, &found.queues, self.parts.clock.now()).await,
            None => None,
        };
        let (found, mut backlog) = (next.take()?, backlog.unwrap_or_default());
        if found.is_paused {
            // What is held back can be claimed by nobody, now or when something is due.
            (backlog.available, backlog.next_due) = (0, None);
        }
        Ok(ClaimedNext { claims: found.claims, backlog })
    }

    /// What waits; `None` when it cannot be read.
    async fn backlog(&self, recipient: &Recipient, queues: &QueueFilter, now: Timestamp) -> Option<Backlog> {
        let read = self.parts.store.backlog(recipient, queues, now, self.settings().backlog_count_max).await;
        read.inspect_err(|error| tracing::warn!(error = %error, "a backlog could not be read")).ok()
    }
}

/// What one attempt found.
struct Found {
    claims: Vec<Claimed>,
    /// What is left, read with the envelopes.
    backlog: Option<Backlog>,
    /// The queues that were looked at, without the paused ones.
    queues: QueueFilter,
    /// A lower bound of when time will next change the inbox.
    due: Option<Timestamp>,
    /// Much had expired: not everything was seen.
    is_unsettled: bool,
    /// The inbox is paused as a whole.
    is_paused: bool,
}

fn leases(found: &Found) -> Vec<(EventId, LeaseToken)> {
    found.claims.iter().map(lease_of).collect()
}

/// The same as the transaction answers it.
struct Next {
    taken: Taken,
    queues: QueueFilter,
    due: Option<Timestamp>,
    is_unsettled: bool,
    is_paused: bool,
}

#[derive(Clone)]
struct NextJob {
    kit: Arc<Kit>,
    recipient: Recipient,
    queues: QueueFilter,
    limit: usize,
    terms: Terms,
}

#[async_trait]
impl Job for NextJob {
    type Answer = Next;

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<Next, InboxError> {
        let at = tx.now();
        let Some(mut change) = Change::share(tx, &self.kit, &self.recipient).await? else {
            let taken = Taken { items: Vec::new(), at, tally: Tally::default(), is_replay: false };
            return Ok(Next { taken, queues: self.queues.clone(), due: None, is_unsettled: false, is_paused: false });
        };
        self.terms.check_session(&change)?;
        let queues = self.open_queues(&change.row);
        let mut is_unsettled = false;
        let (items, is_replay) = match self.terms.replay(&mut change).await? {
            Some(items) => (items, true),
            None if change.row.paused => (Vec::new(), false),
            None => (self.take(&mut change, &queues, &mut is_unsettled).await?, false),
        };
        let (due, is_paused) = (change.row.next_due, change.row.paused);
        Ok(Next { taken: Taken { items, at, tally: change.close().await?, is_replay }, queues, due, is_unsettled, is_paused })
    }
}

impl NextJob {
    /// The queues that were asked for, without the paused ones.
    fn open_queues(&self, row: &RecipientRow) -> QueueFilter {
        QueueFilter { only: self.queues.only.clone(), except: row.paused_queues.iter().cloned().collect() }
    }

    /// What it can get. Says whether something was settled and more of it hides what could be had.
    async fn take(
        &self,
        change: &mut Change<'_>,
        queues: &QueueFilter,
        is_unsettled: &mut bool,
    ) -> Result<Vec<(Item, LeaseToken)>, InboxError> {
        let mut retries = Vec::new();
        if change.row.next_due.is_some_and(|due| due <= change.now) {
            let admitted = queues.clone();
            let (kept, more) =
                change.settle_due(move |item| if admitted.admits(&item.facts.queue) { Retry::Keep } else { Retry::Leave }).await?;
            (retries, *is_unsettled) = (kept, more);
            change.recompute_due().await?;
        }
        let room = Terms::room(change, self.limit).await?;
        if room == 0 {
            return Ok(Vec::new());
        }
        let (mut candidates, is_done) = self.candidates(change, queues, room).await?;
        *is_unsettled = *is_unsettled || !is_done;
        candidates.extend(retries);
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let rules = &self.kit.settings.rules;
        candidates.sort_by_key(|item| (item.claim_key(rules), item.facts.event_id));
        let key = self.terms.lease_key(change).await?;
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for mut item in candidates {
            if taken.len() >= room || !fits(&self.kit.settings, &mut bytes, &item) {
                break;
            }
            if let Ok(token) = self.terms.take(&mut item, &key, change) {
                change.moved(item.clone(), None);
                taken.push((item, token));
            }
        }
        self.terms.record(change, &taken).await?;
        Ok(taken)
    }

    /// The first available items, and whether there are no more than these or as many as there is room for. What expired meanwhile ends here, and
    /// does not keep others from being read.
    async fn candidates(&self, change: &mut Change<'_>, queues: &QueueFilter, room: usize) -> Result<(Vec<Item>, bool), InboxError> {
        let (mut alive, mut is_done) = (Vec::new(), false);
        for _ in 0..ROUNDS {
            let read = change.tx.available(change.row.number, queues, room).await?;
            let is_full_page = read.len() >= room;
            let (claimable, expired): (Vec<_>, Vec<_>) = read.into_iter().partition(|item| item.is_claimable(change.now));
            alive = claimable;
            is_done = expired.is_empty() || !is_full_page;
            for item in expired {
                change.settle(item, |_| Retry::Leave);
            }
            change.write().await?;
            if is_done {
                break;
            }
        }
        Ok((alive, is_done))
    }
}
