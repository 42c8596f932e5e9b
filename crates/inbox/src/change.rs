//! A change of one inbox within a transaction: its row locked, items moved by the machine, the log told, everything written once.

use std::collections::HashMap;
use std::sync::Arc;

use domain::{EventId, IdGenerator, Publication, QueueName, Timestamp};

use crate::announce::{dead_lettered, quarantined, requeued, resumed};
use crate::{AckState, InboxError, InboxTx, Item, Metrics, Presence, Recipient, RecipientRow, RequeueReason, ResumeCause, Settings, Step};

/// Batches of due items that one change passes by at most.
const BATCHES: usize = 8;

/// What jobs need beside their transaction.
#[derive(Clone, Debug)]
pub(crate) struct Kit {
    pub(crate) ids: Arc<dyn IdGenerator>,
    pub(crate) settings: Arc<Settings>,
    /// Before then nobody could be heard.
    pub(crate) started_at: Timestamp,
}

/// What a change did, counted once it is committed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    lapsed: u64,
    requeued: u64,
    redriven: u64,
    dead_lettered: u64,
    quarantined: u64,
    expired: u64,
}

impl Tally {
    /// Whether somebody came to hold less.
    pub(crate) const fn has_lapsed(self) -> bool {
        self.lapsed > 0
    }

    pub(crate) fn count(self, metrics: &Metrics) {
        metrics.lease_expiries.add(self.lapsed);
        metrics.requeued.add(self.requeued);
        metrics.redriven.add(self.redriven);
        metrics.dead_lettered.add(self.dead_lettered);
        metrics.quarantined.add(self.quarantined);
        metrics.expired.add(self.expired);
    }

    fn note(&mut self, item: &Item, step: Step) {
        match step {
            Step::Requeued(reason) => {
                self.requeued += 1;
                self.redriven += u64::from(reason == RequeueReason::Redriven);
            }
            Step::DeadLettered => self.dead_lettered += 1,
            Step::Quarantined => self.quarantined += 1,
            Step::Ended => self.expired += u64::from(item.state == AckState::Expired),
            Step::Resting => {}
        }
    }
}

/// What became of one due item.
pub(crate) enum Due {
    /// Its lease lapsed, its rest is over or it expired: it was moved. Or its lease lasts longer, because the server was away.
    Moved,
    /// Its rest is over, and the caller wants it as it is.
    Kept(Box<Item>),
    /// Nothing is due any more, or it is left to the sweeper.
    Left,
}

/// A change under way. Nothing of it is written before [`Change::write`] and [`Change::close`].
pub(crate) struct Change<'t> {
    pub(crate) tx: &'t mut (dyn InboxTx + 't),
    pub(crate) row: RecipientRow,
    pub(crate) now: Timestamp,
    pub(crate) kit: &'t Kit,
    found: RecipientRow,
    moved: Vec<(Item, Option<Step>)>,
    tally: Tally,
}

impl<'t> Change<'t> {
    /// Locks an inbox; `None` when it has no row.
    pub(crate) async fn of(tx: &'t mut (dyn InboxTx + 't), kit: &'t Kit, recipient: &Recipient) -> Result<Option<Self>, InboxError> {
        let row = tx.recipient(recipient).await?;
        Ok(row.map(|row| Self::new(tx, kit, row)))
    }

    /// Locks an inbox for taking, ending and returning single items, beside others who do; `None` when it has no row.
    pub(crate) async fn share(tx: &'t mut (dyn InboxTx + 't), kit: &'t Kit, recipient: &Recipient) -> Result<Option<Self>, InboxError> {
        let row = tx.share_recipient(recipient).await?;
        Ok(row.map(|row| Self::new(tx, kit, row)))
    }

    /// Locks an inbox; makes its row when there is none.
    pub(crate) async fn open(tx: &'t mut (dyn InboxTx + 't), kit: &'t Kit, recipient: &Recipient) -> Result<Self, InboxError> {
        let row = tx.open_recipient(recipient).await?;
        Ok(Self::new(tx, kit, row))
    }

    fn new(tx: &'t mut (dyn InboxTx + 't), kit: &'t Kit, row: RecipientRow) -> Self {
        Self { now: tx.now(), tx, kit, found: row.clone(), row, moved: Vec::new(), tally: Tally::default() }
    }

    fn id(&self) -> EventId {
        EventId::new(self.kit.ids.uuid())
    }

    /// These items in any state, each once.
    pub(crate) async fn find(&mut self, events: &[EventId]) -> Result<HashMap<EventId, Item>, InboxError> {
        let mut wanted = events.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let found = self.tx.find(self.row.number, &wanted).await?;
        Ok(found.into_iter().flatten().map(|item| (item.facts.event_id, item)).collect())
    }

    /// Takes an item that the machine changed. At most once for each item before the next [`Change::write`].
    pub(crate) fn moved(&mut self, item: Item, step: Option<Step>) {
        if let Some(step) = step {
            self.tally.note(&item, step);
        }
        self.moved.push((item, step));
    }

    /// What time has made of an item. `retries` says what becomes of one that is a retry and due.
    pub(crate) fn settle(&mut self, mut item: Item, retries: impl Fn(&Item) -> Retry) -> Due {
        let claimed = item.state == AckState::Claimed;
        if item.due_at().is_some_and(|due| due <= self.now) && item.forgive(self.now, self.kit.started_at) {
            self.moved(item, None);
            return Due::Moved;
        }
        let is_retry = item.state == AckState::RetryScheduled && item.is_claimable(self.now);
        match is_retry.then(|| retries(&item)) {
            Some(Retry::Keep) => return Due::Kept(Box::new(item)),
            Some(Retry::Leave) => return Due::Left,
            Some(Retry::Return) | None => {}
        }
        let Some(step) = item.settle(self.now, &self.kit.settings.rules) else { return Due::Left };
        self.tally.lapsed += u64::from(claimed);
        self.moved(item, Some(step));
        Due::Moved
    }

    /// Settles what is due first, at most `inbox.sweep_batch` of it, and writes it. Answers the kept retries, and whether another call would find more. Passes
    /// by batches of which nothing is settled or kept.
    pub(crate) async fn settle_due(&mut self, retries: impl Fn(&Item) -> Retry) -> Result<(Vec<Item>, bool), InboxError> {
        let limit = self.kit.settings.sweep_batch.max(1);
        let (mut kept, mut after, mut more) = (Vec::new(), None, true);
        for _ in 0..BATCHES {
            let due = self.tx.due_items(self.row.number, self.now, after, limit).await?;
            more = due.len() >= limit;
            after = due.last().and_then(|item| Some((item.due_at()?, item.facts.event_id)));
            let mut is_left = true;
            for item in due {
                match self.settle(item, &retries) {
                    Due::Kept(item) => kept.push(*item),
                    Due::Moved => is_left = false,
                    Due::Left => {}
                }
            }
            if !more || !is_left || !kept.is_empty() {
                break;
            }
        }
        let has_progressed = !self.moved.is_empty() || !kept.is_empty();
        self.write().await?;
        Ok((kept, more && has_progressed))
    }

    /// Has `next_due` say exactly when time will next change the inbox.
    pub(crate) async fn recompute_due(&mut self) -> Result<(), InboxError> {
        let until = match self.row.presence {
            Presence::Out { until } => until,
            Presence::In => None,
        };
        self.row.next_due = [self.tx.next_due_item(self.row.number).await?, until].into_iter().flatten().min();
        Ok(())
    }

    /// Announces and writes the items that were moved; answers them as they stand now, in the same order.
    pub(crate) async fn write(&mut self) -> Result<Vec<Item>, InboxError> {
        if self.moved.is_empty() {
            return Ok(Vec::new());
        }
        let moved = std::mem::take(&mut self.moved);
        let mut publications = Vec::new();
        for (item, step) in &moved {
            publications.extend(step.map(|step| self.announcement(item, step)).transpose()?.flatten());
        }
        let mut seqs = self.append(&publications).await?.into_iter();
        let mut items = Vec::with_capacity(moved.len());
        for (mut item, step) in moved {
            let is_announced = matches!(step, Some(Step::Requeued(_) | Step::DeadLettered | Step::Quarantined));
            let seq = if is_announced { seqs.next() } else { None };
            if let (Some(Step::Requeued(_)), Some(seq)) = (step, seq) {
                item.ring_seq = seq;
                self.row.head = self.row.head.max(seq);
            }
            self.row.look_at(item.due_at());
            items.push(item);
        }
        self.tx.put(&items).await?;
        Ok(items)
    }

    fn announcement(&self, item: &Item, step: Step) -> Result<Option<Publication>, InboxError> {
        let recipient = &self.row.recipient;
        Ok(match step {
            Step::Requeued(reason) => Some(requeued(recipient, item, reason, self.id(), self.now)?),
            Step::DeadLettered => Some(dead_lettered(recipient, item, self.id(), self.now)?),
            Step::Quarantined => Some(quarantined(recipient, item, self.id(), self.now)?),
            Step::Resting | Step::Ended => None,
        })
    }

    /// Announces that the inbox, or a queue of it, is to be rung again.
    pub(crate) async fn resume(&mut self, queue: Option<&QueueName>, cause: ResumeCause) -> Result<(), InboxError> {
        let publication = resumed(&self.row.recipient, queue, cause, self.id(), self.now)?;
        if let Some(seq) = self.append(&[publication]).await?.last() {
            self.row.head = self.row.head.max(*seq);
        }
        Ok(())
    }

    async fn append(&mut self, publications: &[Publication]) -> Result<Vec<domain::Seq>, InboxError> {
        if publications.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.tx.append_inbox(&self.row.recipient.tenant, publications).await?)
    }

    /// Writes what is left to write, the row too if it changed.
    pub(crate) async fn close(mut self) -> Result<Tally, InboxError> {
        self.write().await?;
        if self.row != self.found {
            self.tx.save_recipient(&self.row).await?;
        }
        Ok(self.tally)
    }
}

/// What becomes of a retry that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// It is claimable again, and the log says so.
    Return,
    /// The caller may claim it as it is.
    Keep,
    /// The sweeper will return it.
    Leave,
}
