//! The leader of a lane: one transaction for many units.

#![expect(clippy::result_large_err, reason = "what is not of the wanted kind goes back where it was; it is no error")]

use std::collections::HashMap;
use std::sync::Arc;

use domain::{EventId, StoreError};
use inbox::{InboxWrite as _, QueueFilter, Recipient, RecipientNumber, RecipientRow};
use tokio::sync::mpsc;

use super::Newcomer;
use super::member::{Answer, Call, Verdict};
use crate::inbox::held::Mode;
use crate::inbox::recipients;
use crate::store::Shared;
use crate::tx::WriteTx;

/// A unit that takes part.
struct Member {
    calls: mpsc::Receiver<Call>,
    /// What it asks for and was not answered yet.
    pending: Option<Call>,
    has_written: bool,
    /// How it ended, and where its verdict goes, once it waits for the commit.
    waiting: Option<(Result<(), StoreError>, Answer<Verdict>)>,
    is_done: bool,
}

impl Member {
    /// What becomes of it after the commit.
    fn verdict(has_written: bool, outcome: Result<(), StoreError>, committed: &Result<(), StoreError>) -> Verdict {
        match committed {
            Ok(()) => Verdict::Settled(outcome),
            // Whoever wrote nothing may run again whatever became of the commit, and finds out for itself.
            Err(error) if has_written && *error != StoreError::Transient => Verdict::Settled(Err(error.clone())),
            Err(_) => Verdict::Alone,
        }
    }
}

/// Everything is undone, and every unit runs again alone.
struct Undone;

impl From<StoreError> for Undone {
    fn from(error: StoreError) -> Self {
        tracing::debug!(error = %error, "units that shared a transaction run again alone");
        Self
    }
}

/// Runs the units of `newcomers` in one transaction.
pub(super) async fn lead(shared: &Arc<Shared>, recipient: &Recipient, newcomers: Vec<Newcomer>) {
    // Who is not answered runs alone, and is told there what is wrong.
    let Ok(mut tx) = WriteTx::begin(shared, &shared.pool).await else { return };
    let Ok(row) = recipients::lock(&mut tx, recipient, Mode::Shared).await else { return };
    let is_alone = row.as_ref().is_some_and(|row| tx.inboxes().is_exclusive(row.number));
    let mut batch = Batch { tx, members: Vec::with_capacity(newcomers.len()), owners: HashMap::new(), is_broken: false };
    let led = if is_alone { batch.one_by_one(row, newcomers).await } else { batch.together(row.as_ref(), newcomers).await };
    let Batch { tx, members, .. } = batch;
    let committed = match led {
        Ok(()) => tx.commit("inbox_lane").await,
        Err(Undone) => Err(StoreError::Transient),
    };
    for Member { has_written, waiting, .. } in members {
        if let Some((outcome, answer)) = waiting {
            // Whoever asked may have gone.
            let _ = answer.send(Member::verdict(has_written, outcome, &committed));
        }
    }
}

struct Batch {
    tx: WriteTx,
    members: Vec<Member>,
    /// Which unit has which item in hand, by its place.
    owners: HashMap<EventId, usize>,
    /// A unit that has written went away before it was done.
    is_broken: bool,
}

impl Batch {
    fn admit(&mut self, newcomer: Newcomer, row: Option<RecipientRow>) {
        let Newcomer { row: told, calls } = newcomer;
        // A unit that is not there any more asks for nothing: its channel is closed.
        let _ = told.send(row);
        self.members.push(Member { calls, pending: None, has_written: false, waiting: None, is_done: false });
    }

    /// One unit after the other, each with what the last one left.
    async fn one_by_one(&mut self, mut row: Option<RecipientRow>, newcomers: Vec<Newcomer>) -> Result<(), Undone> {
        for newcomer in newcomers {
            self.admit(newcomer, row.clone());
            let place = self.members.len() - 1;
            while self.hear(place).await {
                self.round().await?;
            }
            self.whole()?;
            row = row.and_then(|row| self.tx.inboxes().get(row.number).map(|locked| locked.row.clone()));
        }
        Ok(())
    }

    /// All units side by side.
    async fn together(&mut self, row: Option<&RecipientRow>, newcomers: Vec<Newcomer>) -> Result<(), Undone> {
        for newcomer in newcomers {
            self.admit(newcomer, row.cloned());
        }
        loop {
            let mut is_busy = false;
            for place in 0..self.members.len() {
                is_busy |= self.hear(place).await;
            }
            if !is_busy {
                return self.whole();
            }
            self.round().await?;
        }
    }

    fn whole(&self) -> Result<(), Undone> {
        if self.is_broken { Err(Undone) } else { Ok(()) }
    }

    /// Waits for what a unit asks for next; `false` when it is done.
    async fn hear(&mut self, place: usize) -> bool {
        let Some(member) = self.members.get_mut(place).filter(|member| !member.is_done) else { return false };
        if member.pending.is_none() {
            member.pending = member.calls.recv().await;
            member.is_done = member.pending.is_none();
            // It went away in the middle: nothing of it may be kept.
            self.is_broken |= member.is_done && member.has_written;
        }
        !member.is_done
    }

    /// Answers what was asked for, of each kind all at once. At least one unit gets on.
    async fn round(&mut self) -> Result<(), Undone> {
        self.put_all().await?;
        self.append_all().await?;
        self.find_all().await?;
        self.available_all().await?;
        let mut others = Vec::new();
        for (place, member) in self.members.iter_mut().enumerate() {
            others.extend(member.pending.take_if(|call| is_single(call)).map(|call| (place, call)));
        }
        for (place, call) in others {
            self.single(place, call).await?;
        }
        if self.is_stuck() { Err(Undone) } else { Ok(()) }
    }

    /// Units that wait for one another's items, all of them: none can get on.
    fn is_stuck(&self) -> bool {
        let mut busy = self.members.iter().enumerate().filter(|(_, member)| !member.is_done).peekable();
        busy.peek().is_some()
            && busy.all(|(place, member)| match &member.pending {
                Some(Call::Find { events, .. }) => events.iter().any(|event| self.is_taken(*event, place)),
                _ => false,
            })
    }

    /// The pending calls that `wanted` says are of a kind.
    fn take<T>(&mut self, wanted: impl Fn(Call) -> Result<T, Call>) -> Vec<(usize, T)> {
        let mut taken = Vec::new();
        for (place, member) in self.members.iter_mut().enumerate() {
            match member.pending.take().map(&wanted) {
                Some(Ok(call)) => taken.push((place, call)),
                Some(Err(other)) => member.pending = Some(other),
                None => {}
            }
        }
        taken
    }

    fn written(&mut self, place: usize) {
        if let Some(member) = self.members.get_mut(place) {
            member.has_written = true;
        }
    }

    async fn put_all(&mut self) -> Result<(), Undone> {
        let calls = self.take(|call| match call {
            Call::Put { items, answer } => Ok((items, answer)),
            other => Err(other),
        });
        let (mut all, mut answers) = (Vec::new(), Vec::new());
        for (place, (items, answer)) in calls {
            self.written(place);
            all.extend(items);
            answers.push(answer);
        }
        if !all.is_empty() {
            self.tx.put(&all).await?;
        }
        for answer in answers {
            let _ = answer.send(());
        }
        Ok(())
    }

    async fn append_all(&mut self) -> Result<(), Undone> {
        let calls = self.take(|call| match call {
            Call::Append { tenant, publications, answer } => Ok((tenant, publications, answer)),
            other => Err(other),
        });
        let Some(tenant) = calls.first().map(|(_, (tenant, ..))| tenant.clone()) else { return Ok(()) };
        let (mut all, mut answers) = (Vec::new(), Vec::new());
        for (place, (_, publications, answer)) in calls {
            self.written(place);
            answers.push((publications.len(), answer));
            all.extend(publications);
        }
        let mut seqs = self.tx.append_inbox(&tenant, &all).await?.into_iter();
        for (count, answer) in answers {
            let _ = answer.send(seqs.by_ref().take(count).collect());
        }
        Ok(())
    }

    /// Whether a unit other than that at `place` has the item in hand.
    fn is_taken(&self, event: EventId, place: usize) -> bool {
        let owner = self.owners.get(&event).filter(|owner| **owner != place);
        owner.and_then(|owner| self.members.get(*owner)).is_some_and(|owner| !owner.is_done)
    }

    /// Items by name. Who asks for one that another has in hand waits until that is done, and finds what became of it.
    async fn find_all(&mut self) -> Result<(), Undone> {
        let calls = self.take(|call| match call {
            Call::Find { recipient, events, answer } => Ok((recipient, events, answer)),
            other => Err(other),
        });
        let (mut all, mut answers, mut number) = (Vec::new(), Vec::new(), None);
        for (place, (recipient, events, answer)) in calls {
            if events.iter().any(|event| self.is_taken(*event, place)) {
                if let Some(member) = self.members.get_mut(place) {
                    member.pending = Some(Call::Find { recipient, events, answer });
                }
                continue;
            }
            self.owners.extend(events.iter().map(|event| (*event, place)));
            number = Some(recipient);
            all.extend(events.iter().copied());
            answers.push((events.len(), answer));
        }
        let Some(number) = number else { return Ok(()) };
        let mut found = self.tx.find(number, &all).await?.into_iter();
        for (count, answer) in answers {
            let _ = answer.send(found.by_ref().take(count).collect());
        }
        Ok(())
    }

    /// What comes first, handed out in turn.
    async fn available_all(&mut self) -> Result<(), Undone> {
        let mut calls = self.take(|call| match call {
            Call::Available { recipient, queues, limit, answer } => Ok((recipient, queues, limit, answer)),
            other => Err(other),
        });
        while let Some((recipient, queues)) = calls.first().map(|(_, (recipient, queues, ..))| (*recipient, queues.clone())) {
            let (alike, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(_, (_, other, ..))| *other == queues);
            calls = others;
            let asks = alike.into_iter().map(|(place, (_, _, limit, answer))| (place, limit, answer)).collect();
            self.hand_out(recipient, &queues, asks).await?;
        }
        Ok(())
    }

    async fn hand_out(
        &mut self,
        recipient: RecipientNumber,
        queues: &QueueFilter,
        asks: Vec<(usize, usize, Answer<Vec<inbox::Item>>)>,
    ) -> Result<(), Undone> {
        // What others have in hand is locked by this very transaction, and would come again.
        let in_hand = self.owners.values().filter(|owner| self.members.get(**owner).is_some_and(|member| !member.is_done)).count();
        let wanted = asks.iter().fold(in_hand, |sum, (_, limit, _)| sum.saturating_add(*limit));
        let mut items = self.tx.available(recipient, queues, wanted).await?;
        for (place, limit, answer) in asks {
            let mut share = Vec::with_capacity(limit.min(items.len()));
            let mut rest = Vec::with_capacity(items.len());
            for item in items {
                let event = item.facts.event_id;
                if share.len() < limit && !self.is_taken(event, place) {
                    self.owners.insert(event, place);
                    share.push(item);
                } else {
                    rest.push(item);
                }
            }
            items = rest;
            let _ = answer.send(share);
        }
        Ok(())
    }

    /// What is asked for by one unit alone.
    async fn single(&mut self, place: usize, call: Call) -> Result<(), Undone> {
        match call {
            Call::Due { recipient, now, after, limit, answer } => {
                let items = self.tx.due_items(recipient, now, after, limit).await?;
                let mine: Vec<_> = items.into_iter().filter(|item| !self.is_taken(item.facts.event_id, place)).collect();
                self.owners.extend(mine.iter().map(|item| (item.facts.event_id, place)));
                let _ = answer.send(mine);
            }
            Call::NextDue { recipient, answer } => drop(answer.send(self.tx.next_due_item(recipient).await?)),
            Call::Claimed { recipient, most, answer } => drop(answer.send(self.tx.claimed(recipient, most).await?)),
            Call::Save { row, answer } => {
                self.written(place);
                self.tx.save_recipient(&row).await?;
                let _ = answer.send(());
            }
            Call::LeaseKey { tenant, offered, answer } => drop(answer.send(self.tx.lease_key(&tenant, &offered).await?)),
            Call::Done { outcome, answer } => return self.done(place, outcome, answer),
            Call::Available { .. } | Call::Find { .. } | Call::Put { .. } | Call::Append { .. } => {}
        }
        Ok(())
    }

    /// A unit is done. One that failed is answered at once when nobody has written; else it may have failed on what is rolled back in the end.
    fn done(&mut self, place: usize, outcome: Result<(), StoreError>, answer: Answer<Verdict>) -> Result<(), Undone> {
        let nobody_has_written = self.members.iter().all(|member| !member.has_written);
        let Some(member) = self.members.get_mut(place) else { return Ok(()) };
        member.is_done = true;
        if outcome.is_err() && nobody_has_written {
            let _ = answer.send(Verdict::Settled(outcome));
            return Ok(());
        }
        let must_go = outcome.is_err() && member.has_written;
        member.waiting = Some((outcome, answer));
        if must_go { Err(Undone) } else { Ok(()) }
    }
}

/// Whether a call is answered for itself.
const fn is_single(call: &Call) -> bool {
    !matches!(call, Call::Available { .. } | Call::Find { .. } | Call::Put { .. } | Call::Append { .. })
}
