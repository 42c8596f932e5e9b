//! The sweeper: does what time asks for. Correctness never depends on it being on time: whoever claims first decides alike.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::{StoreError, Timestamp};
use futures_util::StreamExt;
use futures_util::stream::iter;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::change::{Change, Kit, Retry, Tally};
use crate::inbox::Job;
use crate::{Inbox, InboxError, InboxTx, Presence, Recipient, ResumeCause};

/// Sweeps in one go before anybody else gets a turn.
const ROUNDS: usize = 64;
/// The shortest pause, so that what is due shortly after one another shares a round.
const SHORTEST: Duration = Duration::from_millis(10);
/// The longest that an inbox that fails is left alone.
const LONGEST: Duration = Duration::from_mins(5);

/// Moves what is due, in every inbox of the store. Safe on every node at once.
#[derive(Debug)]
pub struct Sweeper {
    inbox: Arc<Inbox>,
    /// Inboxes that failed: how often in a row, and until when they are left alone.
    failing: Mutex<HashMap<Recipient, (u32, Instant)>>,
}

impl Sweeper {
    /// A sweeper of what `inbox` serves.
    pub fn new(inbox: Arc<Inbox>) -> Self {
        Self { inbox, failing: Mutex::default() }
    }

    /// Sweeps every `inbox.sweep_interval` and at the next due time, until `stop`; prunes every `inbox.prune_interval`, and in between for as long
    /// as there is more to prune, one step after each sweep.
    pub async fn run(&self, stop: CancellationToken) {
        let mut prune_at = Instant::now();
        while !stop.is_cancelled() {
            let mut pause = self.sweep_all(&stop).await;
            if prune_at <= Instant::now() && !stop.is_cancelled() {
                let has_more = self.prune().await;
                prune_at = Instant::now() + if has_more { SHORTEST } else { self.inbox.settings().prune_interval };
            }
            pause = pause.min(prune_at.saturating_duration_since(Instant::now()));
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// Sweeps until nothing more is due; answers how long to wait for what is next.
    async fn sweep_all(&self, stop: &CancellationToken) -> Duration {
        let settings = self.inbox.settings();
        let mut more = true;
        for _ in 0..ROUNDS {
            if stop.is_cancelled() {
                break;
            }
            match self.sweep().await {
                Ok(true) => {}
                Ok(false) => {
                    more = false;
                    break;
                }
                Err(error) => {
                    self.inbox.parts.metrics.sweep_errors.increment();
                    tracing::warn!(error = %error, "what is due in inboxes could not be read; it is tried again");
                    return settings.sweep_interval;
                }
            }
        }
        if more {
            return SHORTEST;
        }
        let now = self.inbox.parts.clock.now();
        match self.inbox.parts.store.next_due().await {
            // What is due already and was not moved now: an inbox that fails.
            Ok(Some(due)) if due > now => due.since(now).clamp(SHORTEST, settings.sweep_interval.max(SHORTEST)),
            _ => settings.sweep_interval,
        }
    }

    /// One round over the inboxes that are due; answers whether another would find more.
    ///
    /// # Errors
    /// When the store cannot say what is due. One inbox that fails keeps no other from its turn.
    pub async fn sweep(&self) -> Result<bool, StoreError> {
        let settings = self.inbox.settings();
        let shunned = self.shunned();
        let limit = settings.sweep_inboxes.max(1) + shunned.len();
        let due = self.inbox.parts.store.due(self.inbox.parts.clock.now(), limit).await?;
        let is_full = due.len() >= limit;
        let due: Vec<Recipient> = due.into_iter().filter(|recipient| !shunned.contains(recipient)).collect();
        let mut more = is_full && !due.is_empty();
        let sweeps = iter(due.into_iter().map(|recipient| self.sweep_one(recipient)));
        let mut sweeps = sweeps.buffer_unordered(settings.sweep_concurrency.max(1));
        while let Some(is_left) = sweeps.next().await {
            more = more || is_left;
        }
        Ok(more)
    }

    /// Answers whether more of this inbox is due.
    async fn sweep_one(&self, recipient: Recipient) -> bool {
        let metrics = &self.inbox.parts.metrics;
        metrics.sweeps.increment();
        match self.inbox.run("sweep", SweepJob { kit: self.inbox.kit.clone(), recipient: recipient.clone() }).await {
            Ok((tally, more)) => {
                tally.count(metrics);
                self.failing.lock().unwrap_or_else(PoisonError::into_inner).remove(&recipient);
                if tally.has_lapsed() {
                    self.inbox.bells.make_room(&recipient);
                }
                more
            }
            Err(error) => {
                metrics.sweep_errors.increment();
                let pause = self.shun(&recipient);
                tracing::warn!(
                    tenant.id = %recipient.tenant, agent.id = %recipient.agent, error = %error, retry.in_ms = pause.as_millis(),
                    "an inbox could not be swept; it is tried again"
                );
                false
            }
        }
    }

    /// The inboxes that failed and are left alone for now. One that was not tried again long after it could have been is not due any more, or gone.
    fn shunned(&self) -> Vec<Recipient> {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        failing.retain(|_, (_, until)| *until + LONGEST > now);
        failing.iter().filter(|(_, (_, until))| *until > now).map(|(recipient, _)| recipient.clone()).collect()
    }

    fn shun(&self, recipient: &Recipient) -> Duration {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let (failures, until) = failing.entry(recipient.clone()).or_insert((0, Instant::now()));
        let pause = self.inbox.settings().sweep_interval.saturating_mul(1 << (*failures).min(16)).min(LONGEST);
        *failures = failures.saturating_add(1);
        *until = Instant::now() + pause;
        pause
    }

    /// Removes a batch of what its retention has passed; answers whether there is more.
    async fn prune(&self) -> bool {
        let pruned = self.inbox.run("prune_inboxes", PruneJob { kit: self.inbox.kit.clone() }).await;
        pruned.unwrap_or_else(|error| {
            self.inbox.parts.metrics.sweep_errors.increment();
            tracing::warn!(error = %error, "old rows of inboxes could not be removed; it is tried again");
            false
        })
    }
}

struct SweepJob {
    kit: Arc<Kit>,
    recipient: Recipient,
}

#[async_trait]
impl Job for SweepJob {
    type Answer = (Tally, bool);

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<(Tally, bool), InboxError> {
        let Some(mut change) = Change::of(tx, &self.kit, &self.recipient).await? else { return Ok((Tally::default(), false)) };
        let (_, more) = change.settle_due(|_| Retry::Return).await?;
        if change.row.presence.at(change.now) != change.row.presence {
            change.row.presence = Presence::In;
            change.resume(None, ResumeCause::Presence).await?;
        }
        change.recompute_due().await?;
        Ok((change.close().await?, more))
    }
}

struct PruneJob {
    kit: Arc<Kit>,
}

#[async_trait]
impl Job for PruneJob {
    type Answer = bool;

    async fn run(&self, tx: &mut dyn InboxTx) -> Result<bool, InboxError> {
        let (settings, now): (_, Timestamp) = (&self.kit.settings, tx.now());
        let before = |retention: Duration| now.minus(retention);
        let (ended, records) = (before(settings.ended_retention), before(settings.claim_record_retention));
        Ok(tx.prune_inboxes(ended, records, before(settings.session_retention), settings.prune_batch.max(1)).await?)
    }
}
