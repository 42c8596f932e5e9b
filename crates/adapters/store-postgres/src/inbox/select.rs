//! Choosing items inside a transaction. A row that cannot be read is put aside on the way, so that it never blocks its neighbours.
//!
//! What is answered is locked, so that those who share an inbox never answer the same item twice. Claims pass by what others are taking; whoever
//! asks for items by name waits for them, in the order of their events.

use std::collections::{BTreeMap, HashMap};

use domain::{EventId, QueueName, Timestamp};
use inbox::{Item, ItemFilter, ItemPage, ItemRange, QueueFilter, RecipientNumber};
use sqlx_core::query::Query;
use sqlx_postgres::PgArguments;
use uuid::Uuid;

use super::rows::{Lost, ended_item, hot_item, readable};
use super::{list, tenant_number};
use crate::codec::{self, from_count};
use crate::db::{self, PgRow, Postgres, Session};
use crate::failure::Failure;
use crate::metrics::StoreMetrics;
use crate::sql::sql;
use crate::tx::WriteTx;

/// A statement whose first two values name an inbox.
pub(super) fn of(text: &'static str, recipient: RecipientNumber) -> Query<'static, Postgres, PgArguments> {
    db::query(text).bind(tenant_number(recipient)).bind(recipient.get())
}

/// Rows as items; what cannot be read goes to `lost`.
fn items(rows: &[PgRow], metrics: &StoreMetrics, lost: &mut Vec<Lost>) -> Result<Vec<Item>, Failure> {
    let mut items = Vec::with_capacity(rows.len());
    for row in rows {
        items.extend(readable(row, hot_item, metrics, lost)?);
    }
    Ok(items)
}

/// Quarantines rows that cannot be read. Answers how many that were.
pub(super) async fn set_aside(tx: &mut WriteTx, lost: &[Lost]) -> Result<u64, Failure> {
    let mut inboxes: BTreeMap<RecipientNumber, Vec<Uuid>> = BTreeMap::new();
    for (recipient, event) in lost {
        inboxes.entry(*recipient).or_default().push(*event);
    }
    let mut changed = 0;
    for (recipient, events) in inboxes {
        changed += of(sql!("inbox/set_aside"), recipient).bind(events).execute(tx.connection()).await?.rows_affected();
    }
    Ok(changed)
}

/// The queues of an inbox that `filter` admits and that may have something claimable.
async fn claimable_queues(tx: &mut WriteTx, recipient: RecipientNumber, filter: &QueueFilter) -> Result<Vec<String>, Failure> {
    let known: Vec<String> = match tx.inboxes().get(recipient) {
        Some(locked) => locked.queues.iter().map(|(queue, _)| queue.clone()).collect(),
        None => {
            let rows = of(sql!("inbox/queues"), recipient).fetch_all(tx.connection()).await?;
            rows.iter().map(|row| codec::get(row, 0)).collect::<Result<_, _>>()?
        }
    };
    Ok(known.into_iter().filter(|queue| admits(filter, queue)).collect())
}

/// The queues that have something available but for those in `except`, by name, at most `limit`.
pub(super) async fn queues_with_items(
    connection: &mut Session,
    recipient: RecipientNumber,
    except: &[QueueName],
    limit: usize,
) -> Result<Vec<QueueName>, Failure> {
    let except: Vec<&str> = except.iter().map(QueueName::as_str).collect();
    let rows = of(sql!("inbox/claimable_queues"), recipient).bind(except).bind(from_count(limit)).fetch_all(connection).await?;
    let names = rows.iter().map(|row| codec::get::<String>(row, 0)).collect::<Result<Vec<_>, _>>()?;
    // A name that cannot be read hides no other.
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}

/// Available items of admitted queues by (`claim_key`, event), at most `limit`. Reads again for as long as rows had to be put aside, which may have
/// taken the places of others.
pub(super) async fn available(
    tx: &mut WriteTx,
    recipient: RecipientNumber,
    filter: &QueueFilter,
    limit: usize,
) -> Result<Vec<Item>, Failure> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let queues = claimable_queues(tx, recipient, filter).await?;
    loop {
        let rows = first_rows(tx.connection(), recipient, &queues, limit).await?;
        let mut lost = Vec::new();
        let items = items(&rows, tx.metrics(), &mut lost)?;
        if lost.is_empty() || set_aside(tx, &lost).await? == 0 {
            return Ok(items);
        }
    }
}

async fn first_rows(connection: &mut Session, recipient: RecipientNumber, queues: &[String], limit: usize) -> Result<Vec<PgRow>, Failure> {
    let limit = from_count(limit);
    match queues {
        [] => Ok(Vec::new()),
        [queue] => Ok(of(sql!("inbox/available"), recipient).bind(queue).bind(limit).fetch_all(connection).await?),
        queues => {
            let first = of(sql!("inbox/available_of_some"), recipient).bind(queues).bind(limit).fetch_all(&mut *connection).await?;
            if !first.is_empty() {
                return Ok(first);
            }
            Ok(of(sql!("inbox/available_of_any"), recipient).bind(queues).bind(limit).fetch_all(connection).await?)
        }
    }
}

/// Items that are due by `now`, by (due time, event), strictly after `after`, at most `limit`.
pub(super) async fn due_items(
    tx: &mut WriteTx,
    recipient: RecipientNumber,
    now: Timestamp,
    after: Option<(Timestamp, EventId)>,
    limit: usize,
) -> Result<Vec<Item>, Failure> {
    let (time, event) = after.map_or((i64::MIN, Uuid::nil()), |(time, event)| (time.as_micros(), event.uuid()));
    loop {
        let query = of(sql!("inbox/due_items"), recipient).bind(now.as_micros()).bind(time).bind(event).bind(from_count(limit));
        let rows = query.fetch_all(tx.connection()).await?;
        let mut lost = Vec::new();
        let items = items(&rows, tx.metrics(), &mut lost)?;
        if lost.is_empty() || set_aside(tx, &lost).await? == 0 {
            return Ok(items);
        }
    }
}

/// When the first item is due.
pub(super) async fn next_due_item(tx: &mut WriteTx, recipient: RecipientNumber) -> Result<Option<Timestamp>, Failure> {
    let row = of(sql!("inbox/next_due_item"), recipient).fetch_one(tx.connection()).await?;
    codec::optional_timestamp(&row, 0)
}

/// How many items are claimed, at most `most`.
pub(super) async fn claimed(tx: &mut WriteTx, recipient: RecipientNumber, most: u64) -> Result<u64, Failure> {
    let row = of(sql!("inbox/count_claimed"), recipient).bind(codec::from_natural(most)).fetch_one(tx.connection()).await?;
    codec::natural(&row, 0)
}

/// These items in any state, in the order asked.
pub(super) async fn find(tx: &mut WriteTx, recipient: RecipientNumber, events: &[EventId]) -> Result<Vec<Option<Item>>, Failure> {
    let statement = if tx.inboxes().is_exclusive(recipient) { sql!("inbox/items") } else { sql!("inbox/lock_items") };
    let mut lost = Vec::new();
    let metrics = std::sync::Arc::clone(tx.shared());
    let found = named(tx.connection(), &metrics.metrics, statement, recipient, events, &mut lost).await?;
    if !lost.is_empty() {
        set_aside(tx, &lost).await?;
    }
    Ok(events.iter().map(|event| found.get(event).cloned()).collect())
}

/// Items by name, in any state, where `statement` finds those that have not ended. What ended while it waited is seen to have.
pub(super) async fn named(
    connection: &mut Session,
    metrics: &StoreMetrics,
    statement: &'static str,
    recipient: RecipientNumber,
    events: &[EventId],
    lost: &mut Vec<Lost>,
) -> Result<HashMap<EventId, Item>, Failure> {
    let ids: Vec<Uuid> = events.iter().map(|event| event.uuid()).collect();
    let rows = of(statement, recipient).bind(&ids).fetch_all(&mut *connection).await?;
    let hot = items(&rows, metrics, lost)?;
    let mut found: HashMap<EventId, Item> = hot.into_iter().map(|item| (item.facts.event_id, item)).collect();
    let missing: Vec<Uuid> =
        ids.into_iter().filter(|id| !found.contains_key(&EventId::new(*id)) && !lost.contains(&(recipient, *id))).collect();
    if !missing.is_empty() {
        // An ended row is not put aside: it is in nobody's way.
        let mut unreadable = Vec::new();
        for row in of(sql!("inbox/ended_items"), recipient).bind(missing).fetch_all(connection).await? {
            found.extend(readable(&row, ended_item, metrics, &mut unreadable)?.map(|item| (item.facts.event_id, item)));
        }
    }
    Ok(found)
}

/// Items that have not ended, by event.
pub(super) async fn matching(
    tx: &mut WriteTx,
    recipient: RecipientNumber,
    filter: &ItemFilter,
    range: ItemRange,
) -> Result<ItemPage, Failure> {
    let mut lost = Vec::new();
    let shared = std::sync::Arc::clone(tx.shared());
    let page = list::hot(tx.connection(), &shared.metrics, recipient, filter, range, &mut lost).await?;
    if !lost.is_empty() {
        set_aside(tx, &lost).await?;
    }
    Ok(page)
}

/// Whether a queue of that name is admitted. A name that is none is: the row is then found to be unreadable.
pub(super) fn admits(filter: &QueueFilter, queue: &str) -> bool {
    queue.parse().map_or(true, |queue| filter.admits(&queue))
}
