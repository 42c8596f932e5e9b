//! Where the scans of an inbox begin: below a queue's floor nothing is claimable, below an inbox's floor nothing is due.
//!
//! What was claimed or acknowledged leaves dead entries in the indexes. While somebody's transaction stays open they cannot be removed, and every
//! claim would walk over all of them. So after so many items that were taken the floors are raised to what is really there: alone in the inbox, with
//! the tenant's head row in hand, so that nothing is on its way that is not seen. Whoever writes something lower lowers them first.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use domain::{TenantId, Timestamp};
use inbox::{AckState, Item, RecipientNumber};

use super::{recipients, tenant_number};
use crate::db;
use crate::failure::Failure;
use crate::sql::sql;
use crate::store::Shared;
use crate::tx::{self, WriteTx};

/// Items taken from an inbox between two raises.
const TAKEN: u64 = 500;
/// Inboxes that are counted; when there are more, those are forgotten that were counted.
const COUNTED: usize = 10_000;

/// Items that a transaction took: from which inbox, of which tenant, how many.
pub(crate) type Taken = Vec<(RecipientNumber, TenantId, u64)>;

/// Lowers the floors for items that are about to be written.
pub(super) async fn lower(tx: &mut WriteTx, number: RecipientNumber, items: &[&Item]) -> Result<(), Failure> {
    let held = tx.inboxes().get(number);
    let tenant = held.map(|locked| locked.row.recipient.tenant.clone());
    let due = items.iter().filter_map(|item| item.due_at()).min();
    let due = due.filter(|due| held.is_none_or(|locked| *due < locked.due_floor));
    let mut queues: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for item in items.iter().filter(|item| item.state == AckState::Available) {
        let queue = item.facts.queue.as_str();
        if held.is_none_or(|locked| locked.is_below(queue, item.claim_key)) {
            let key = queues.entry(queue).or_insert(item.claim_key);
            *key = item.claim_key.min(*key);
        }
    }
    if due.is_none() && queues.is_empty() {
        return Ok(());
    }
    if let Some(tenant) = tenant {
        tx.lock_head(&tenant).await?;
    }
    if let Some(due) = due {
        let query = db::query(sql!("inbox/lower_due")).bind(tenant_number(number)).bind(number.get()).bind(due.as_micros());
        query.execute(tx.connection()).await?;
    }
    if !queues.is_empty() {
        let (names, keys): (Vec<&str>, Vec<i64>) = queues.iter().map(|(queue, key)| (*queue, key.as_micros())).unzip();
        let query = db::query(sql!("inbox/lower_queues")).bind(tenant_number(number)).bind(number.get()).bind(names).bind(keys);
        query.execute(tx.connection()).await?;
    }
    if let Some(locked) = tx.inboxes().get_mut(number) {
        locked.due_floor = due.map_or(locked.due_floor, |due| due.min(locked.due_floor));
        for (queue, key) in queues {
            locked.lower(queue, key);
        }
    }
    Ok(())
}

/// Counts what a committed transaction took, and raises the floors of inboxes from which much was taken, beside the calls.
pub(crate) fn note(shared: &Arc<Shared>, taken: Taken) {
    for (number, tenant, count) in taken {
        if is_much(shared, number, count) {
            let task = Arc::clone(shared);
            shared.tracker.spawn(async move {
                if let Err(failure) = raise(&task, number, tenant).await {
                    tracing::debug!(error = %failure, "the floors of an inbox could not be raised");
                }
            });
        }
    }
}

fn is_much(shared: &Shared, number: RecipientNumber, count: u64) -> bool {
    let mut taken = shared.inboxes.taken.lock().unwrap_or_else(PoisonError::into_inner);
    if taken.len() >= COUNTED && !taken.contains_key(&number.get()) {
        taken.clear();
    }
    let sum = taken.entry(number.get()).or_default();
    *sum += count;
    let is_much = *sum >= TAKEN;
    if is_much {
        *sum = 0;
    }
    is_much
}

/// Raises the floors of an inbox to what is there.
async fn raise(shared: &Arc<Shared>, number: RecipientNumber, tenant: TenantId) -> Result<(), domain::StoreError> {
    tx::run(shared, "raise_floors", move |tx: &mut WriteTx| {
        let tenant = tenant.clone();
        Box::pin(async move { raise_in(tx, number, &tenant).await })
    })
    .await
}

async fn raise_in(tx: &mut WriteTx, number: RecipientNumber, tenant: &TenantId) -> Result<(), Failure> {
    // It may be lost in a crash: lower floors are right too.
    db::script(sql!("inbox/commit_lazily")).execute(tx.connection()).await?;
    recipients::lock_number(tx, number).await?;
    tx.lock_head(tenant).await?;
    let now = tx.now().as_micros();
    for statement in [sql!("inbox/raise_queues"), sql!("inbox/raise_due")] {
        db::query(statement).bind(tenant_number(number)).bind(number.get()).bind(now).execute(tx.connection()).await?;
    }
    // Publishers name queues as they like; every claim reads those that there are.
    let empty = db::query(sql!("inbox/remove_empty_queues")).bind(tenant_number(number)).bind(number.get());
    empty.execute(tx.connection()).await?;
    Ok(())
}
