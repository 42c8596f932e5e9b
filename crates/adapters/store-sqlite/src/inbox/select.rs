//! Choosing items inside a transaction. A row that cannot be read is put aside on the way, so that it never blocks its neighbours.

use domain::{EventId, Timestamp};
use inbox::{AckState, Item, ItemFilter, ItemPage, ItemRange, QueueFilter, RecipientNumber};
use rusqlite::{Connection, Params, Row, Statement, params};

use super::list;
use super::rows::{ended_item, hot_item, parsed, state_number};
use crate::codec;
use crate::failure::Failure;
use crate::identity::first;
use crate::metrics::StoreMetrics;
use crate::sql::sql;
use crate::tx::WriteTx;

/// The states in which an item can be due.
const DUE_STATES: [AckState; 3] = [AckState::Available, AckState::Claimed, AckState::RetryScheduled];

/// The key of a row that cannot be read.
pub(super) type Lost = (i64, Vec<u8>);

/// A row as an item; one that cannot be read is counted, logged once and remembered in `lost`.
pub(super) fn readable(
    row: &Row<'_>,
    read: fn(&Row<'_>) -> Result<Item, Failure>,
    metrics: &StoreMetrics,
    lost: &mut Vec<Lost>,
) -> Result<Option<Item>, Failure> {
    match read(row) {
        Ok(item) => Ok(Some(item)),
        Err(Failure::Store(domain::StoreError::Corrupt(reason))) => {
            let key = (row.get(0)?, row.get_ref(1)?.as_bytes_or_null().ok().flatten().unwrap_or_default().to_vec());
            metrics.unreadable_item(key.0, &key.1, &reason);
            lost.push(key);
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// What a scan found.
#[derive(Default)]
struct Scan {
    items: Vec<Item>,
    lost: Vec<Lost>,
}

impl Scan {
    fn read(&mut self, tx: &WriteTx, statement: &str, values: impl Params) -> Result<(), Failure> {
        let mut statement = tx.prepare(statement)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            self.items.extend(readable(row, hot_item, tx.metrics(), &mut self.lost)?);
        }
        Ok(())
    }
}

/// Quarantines rows that cannot be read. Answers how many that were.
fn set_aside(tx: &WriteTx, lost: &[Lost]) -> Result<usize, Failure> {
    let mut changed = 0;
    for (recipient, event) in lost {
        changed += tx.prepare(sql!("inbox/set_aside"))?.execute(params![recipient, event])?;
    }
    Ok(changed)
}

/// Scans again for as long as rows had to be put aside, which may have taken the places of others.
fn scan(tx: &WriteTx, mut once: impl FnMut(&mut Scan) -> Result<(), Failure>) -> Result<Vec<Item>, Failure> {
    loop {
        let mut scan = Scan::default();
        once(&mut scan)?;
        if set_aside(tx, &scan.lost)? == 0 {
            return Ok(scan.items);
        }
    }
}

/// A queue that may have something claimable.
pub(super) struct ClaimableQueue {
    pub(super) name: String,
    /// Nothing in it stands before this.
    first: i64,
}

/// The queues that have something claimable and that `filter` admits: those that it names, else one look at an index for each that there is.
pub(super) fn claimable_queues(
    connection: &Connection,
    recipient: RecipientNumber,
    filter: &QueueFilter,
) -> Result<Vec<ClaimableQueue>, Failure> {
    if let Some(only) = &filter.only {
        let admitted = only.iter().filter(|queue| !filter.except.contains(queue));
        let mut names: Vec<_> = admitted.map(|queue| queue.as_str().to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        return Ok(names.into_iter().map(|name| ClaimableQueue { name, first: i64::MIN }).collect());
    }
    let mut statement = connection.prepare_cached(sql!("inbox/next_queue"))?;
    let mut queues: Vec<ClaimableQueue> = Vec::new();
    let mut after = String::new();
    let read = |row: &Row<'_>| Ok(ClaimableQueue { name: row.get(0)?, first: row.get(1)? });
    while let Some(queue) = first(statement.query(params![recipient.get(), after])?, read)? {
        after.clone_from(&queue.name);
        if !filter.except.iter().any(|except| except.as_str() == queue.name) {
            queues.push(queue);
        }
    }
    Ok(queues)
}

/// Available items of admitted queues by (`claim_key`, event), at most `limit`. However many queues there are, only those are read whose first item
/// stands before what is found already.
pub(super) fn available(tx: &WriteTx, recipient: RecipientNumber, queues: &QueueFilter, limit: usize) -> Result<Vec<Item>, Failure> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    scan(tx, |scan| {
        let mut queues = claimable_queues(tx.connection(), recipient, queues)?;
        queues.sort_by_key(|queue| queue.first);
        let mut last = i64::MAX;
        for queue in &queues {
            if queue.first > last {
                break;
            }
            scan.read(tx, sql!("inbox/available"), params![recipient.get(), queue.name, last, codec::from_count(limit)])?;
            if queues.len() > 1 {
                scan.items.sort_by_key(|item| (item.claim_key, item.facts.event_id));
                scan.items.truncate(limit);
            }
            // What stands behind a full selection need not be looked at in the other queues.
            if let Some(item) = scan.items.get(limit - 1) {
                last = item.claim_key.as_micros();
            }
        }
        Ok(())
    })
}

/// Items that are due by `now`, by (due time, event), strictly after `after`, at most `limit`.
pub(super) fn due_items(
    tx: &WriteTx,
    recipient: RecipientNumber,
    now: Timestamp,
    after: Option<(Timestamp, EventId)>,
    limit: usize,
) -> Result<Vec<Item>, Failure> {
    let (time, event) = after.map_or((i64::MIN, Vec::new()), |(time, event)| (time.as_micros(), event.uuid().into_bytes().to_vec()));
    scan(tx, |scan| {
        for state in DUE_STATES {
            let values = params![recipient.get(), state_number(state), now.as_micros(), time, event, codec::from_count(limit)];
            scan.read(tx, sql!("inbox/due_items"), values)?;
        }
        scan.items.sort_by_key(|item| (item.due_at(), item.facts.event_id));
        scan.items.truncate(limit);
        Ok(())
    })
}

/// When the first item is due.
pub(super) fn next_due_item(connection: &Connection, recipient: RecipientNumber) -> Result<Option<Timestamp>, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/next_due_item"))?;
    let mut next = None;
    for state in DUE_STATES {
        let due = first(statement.query(params![recipient.get(), state_number(state)])?, |row| codec::timestamp(row, 0))?;
        next = [next, due].into_iter().flatten().min();
    }
    Ok(next)
}

/// How many items are claimed, at most `most`.
pub(super) fn claimed(connection: &Connection, recipient: RecipientNumber, most: u64) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/count_claimed"))?;
    let values = params![recipient.get(), i64::try_from(most).unwrap_or(i64::MAX)];
    let count: i64 = statement.query_row(values, |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// One item in any state.
pub(super) fn item(
    connection: &Connection,
    metrics: &StoreMetrics,
    recipient: RecipientNumber,
    event: EventId,
    lost: &mut Vec<Lost>,
) -> Result<Option<Item>, Failure> {
    let mut hot = connection.prepare_cached(sql!("inbox/item"))?;
    item_by(&mut hot, connection, metrics, recipient, event, lost)
}

/// The same with the statement that finds it in the hot table.
fn item_by(
    hot: &mut Statement<'_>,
    connection: &Connection,
    metrics: &StoreMetrics,
    recipient: RecipientNumber,
    event: EventId,
    lost: &mut Vec<Lost>,
) -> Result<Option<Item>, Failure> {
    let uuid = event.uuid();
    let key = params![recipient.get(), uuid.as_bytes()];
    if let Some(row) = hot.query(key)?.next()? {
        return readable(row, hot_item, metrics, lost);
    }
    let mut statement = connection.prepare_cached(sql!("inbox/ended_item"))?;
    let mut rows = statement.query(key)?;
    // An ended row is not put aside: it is in nobody's way.
    rows.next()?.map_or(Ok(None), |row| readable(row, ended_item, metrics, &mut Vec::new()))
}

/// These items in any state, in the order asked.
pub(super) fn find(tx: &WriteTx, recipient: RecipientNumber, events: &[EventId]) -> Result<Vec<Option<Item>>, Failure> {
    let mut lost = Vec::new();
    let mut hot = tx.prepare(sql!("inbox/item"))?;
    let found = events.iter().map(|event| item_by(&mut hot, tx.connection(), tx.metrics(), recipient, *event, &mut lost)).collect();
    drop(hot);
    set_aside(tx, &lost)?;
    found
}

/// Items that have not ended, by event.
pub(super) fn matching(tx: &WriteTx, recipient: RecipientNumber, filter: &ItemFilter, range: ItemRange) -> Result<ItemPage, Failure> {
    let mut lost = Vec::new();
    let items = list::hot(tx.connection(), tx.metrics(), recipient, filter, range, &mut lost);
    set_aside(tx, &lost)?;
    items
}

/// Whether a queue of that name is admitted. A name that is none is: the row is then found to be unreadable.
pub(super) fn admits(filter: &QueueFilter, queue: &str) -> bool {
    parsed(queue).map_or(true, |queue| filter.admits(&queue))
}
