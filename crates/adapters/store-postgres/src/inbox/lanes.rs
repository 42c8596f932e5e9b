//! Units of work on one inbox share transactions: while one commits, others gather, and the next transaction takes them all.
//!
//! Only units that share their inbox do ([`InboxWrite::share_recipient`]); each runs in its own task and keeps its own verdict. A lane's leader has the
//! transaction: it waits until every unit asks for something or is done, asks the database for all of it at once, and commits once for all. A unit
//! that needs anything else, or whose transaction failed for whatever reason, runs again in a transaction of its own.

mod lead;
mod member;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use domain::{BoxFuture, StoreError, Transactions, Unit};
use inbox::{InboxTx, Recipient, RecipientRow};
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::store::{PostgresStore, Shared};
use crate::tx::{self, WriteTx};

use member::{Call, LaneTx, Verdict};

/// Transactions of one inbox at the same time.
const LEADERS: usize = 2;
/// Units that share a transaction.
const MEMBERS: usize = 64;

/// The inboxes that are worked on.
#[derive(Default)]
pub(crate) struct Lanes(Mutex<HashMap<Recipient, Lane>>);

#[derive(Default)]
struct Lane {
    waiting: VecDeque<Newcomer>,
    leaders: usize,
}

/// A unit that waits for a transaction.
pub(super) struct Newcomer {
    /// Told the row of the inbox.
    row: oneshot::Sender<Option<RecipientRow>>,
    /// What it asks for then.
    calls: mpsc::Receiver<Call>,
}

/// A leader of a lane. One that panics is counted out too, so that the next unit starts another.
struct Leader {
    shared: Arc<Shared>,
    recipient: Recipient,
    is_counted: bool,
}

impl Leader {
    async fn run(mut self) {
        while let Some(members) = Lanes::next(&self.shared, &self.recipient) {
            lead::lead(&self.shared, &self.recipient, members).await;
        }
        self.is_counted = false;
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if self.is_counted {
            let mut lanes = self.shared.inboxes.lanes.0.lock().unwrap_or_else(PoisonError::into_inner);
            Lanes::leave(&mut lanes, &self.recipient);
        }
    }
}

impl Lanes {
    fn leave(lanes: &mut HashMap<Recipient, Lane>, recipient: &Recipient) {
        let Some(lane) = lanes.get_mut(recipient) else { return };
        lane.leaders = lane.leaders.saturating_sub(1);
        if lane.leaders == 0 {
            // Who waits is told by its channel, and runs alone.
            lanes.remove(recipient);
        }
    }

    /// Queues a unit, and starts a leader when there are not enough.
    fn join(shared: &Arc<Shared>, recipient: &Recipient, newcomer: Newcomer) {
        let mut lanes = shared.inboxes.lanes.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.entry(recipient.clone()).or_default();
        lane.waiting.push_back(newcomer);
        if lane.leaders < LEADERS {
            lane.leaders += 1;
            let leader = Leader { shared: Arc::clone(shared), recipient: recipient.clone(), is_counted: true };
            shared.tracker.spawn(leader.run());
        }
    }

    /// Who shares the next transaction; `None` when nobody waits, and the leader is none any more.
    fn next(shared: &Shared, recipient: &Recipient) -> Option<Vec<Newcomer>> {
        let mut lanes = shared.inboxes.lanes.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.get_mut(recipient)?;
        let count = lane.waiting.len().min(MEMBERS);
        if count > 0 {
            return Some(lane.waiting.drain(..count).collect());
        }
        Self::leave(&mut lanes, recipient);
        None
    }
}

/// Runs a unit in a lane, else alone.
async fn run(shared: &Arc<Shared>, name: &'static str, mut unit: Unit<dyn InboxTx>) -> Result<(), StoreError> {
    let mut shared_tx = LaneTx::new(shared);
    let outcome = unit(&mut shared_tx).await;
    match shared_tx.finish(outcome).await {
        Verdict::Settled(verdict) => verdict,
        Verdict::Alone => {
            tx::run(shared, name, move |tx: &mut WriteTx| -> BoxFuture<'_, Result<(), Failure>> {
                let done = unit(tx);
                Box::pin(async move { done.await.map_err(Failure::from) })
            })
            .await
        }
    }
}

#[async_trait]
impl Transactions<dyn InboxTx> for PostgresStore {
    async fn run(&self, name: &'static str, unit: Unit<dyn InboxTx>) -> Result<(), StoreError> {
        if self.shared.cancel.is_cancelled() {
            return Err(StoreError::Unavailable);
        }
        let (sender, receiver) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        // A caller who goes away must not cut a commit in half.
        self.shared.tracker.spawn(async move {
            let _ = sender.send(run(&shared, name, unit).await);
        });
        receiver.await.unwrap_or(Err(StoreError::InDoubt))
    }
}
