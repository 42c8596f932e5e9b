//! Giving up old rows: first the floor goes up, a while later the rows below it count no more, and a partition goes when nobody's rows in it count.

use std::time::Duration;

use domain::{Seq, StoreError, TenantId, Timestamp};
use sqlx_postgres::PgRow;
use sync::Retired;

use super::append::slot_of;
use crate::failure::Failure;
use crate::sql::sql;
use crate::store::PostgresStore;
use crate::tx::WriteTx;
use crate::{codec, db, inbox};

/// The columns of a head row that retention moves.
struct Marks {
    number: i64,
    head: Seq,
    floor: Seq,
    sweep_floor: Seq,
    sweep_raised_at: Timestamp,
    swept: Seq,
}

impl Marks {
    fn from_row(row: &PgRow) -> Result<Self, Failure> {
        Ok(Self {
            number: codec::get(row, 0)?,
            head: codec::seq(row, 1)?,
            floor: codec::seq(row, 2)?,
            sweep_floor: codec::seq(row, 3)?,
            sweep_raised_at: codec::timestamp(row, 4)?,
            swept: codec::seq(row, 5)?,
        })
    }
}

async fn marks(tx: &mut WriteTx, statement: &'static str, tenant: &TenantId) -> Result<Marks, Failure> {
    let row = db::query(statement).bind(tenant.as_str()).fetch_optional(tx.connection()).await?;
    Marks::from_row(&row.ok_or(Failure::Store(StoreError::TenantInactive))?)
}

/// Raises the floor past rows accepted before `older_than`, at most `limit` of them.
pub(crate) async fn raise_floor(tx: &mut WriteTx, tenant: &TenantId, older_than: Timestamp, limit: usize) -> Result<Retired, Failure> {
    let old = marks(tx, sql!("sync/retention"), tenant).await?;
    let floor = new_floor(tx, &old, older_than, limit).await?;
    if floor > old.floor {
        inbox::keep_envelopes(tx, old.number, old.floor, floor).await?;
        let now = tx.now();
        let query = db::query(sql!("sync/raise_floor")).bind(old.number).bind(codec::from_seq(floor)).bind(now.as_micros());
        query.execute(tx.connection()).await?;
        tx.change_head(tenant, |head| head.floor = floor);
    }
    let more = floor.since(old.floor) >= limit as u64 && floor <= old.head;
    Ok(Retired { floor, removed: 0, more })
}

/// The first row that is not older, or the end of what one step may look at.
async fn new_floor(tx: &mut WriteTx, old: &Marks, older_than: Timestamp, limit: usize) -> Result<Seq, Failure> {
    if old.floor > old.head {
        return Ok(old.floor);
    }
    let query = db::query(sql!("sync/first_young")).bind(old.number).bind(codec::from_seq(old.floor)).bind(codec::from_seq(old.head));
    let row = query.bind(codec::from_count(limit)).bind(older_than.as_micros()).fetch_one(tx.connection()).await?;
    Ok(match codec::optional_seq(&row, 0)? {
        Some(young) => young,
        None => old.floor.plus(limit as u64).min(old.head.next()),
    })
}

/// Gives up rows that have lain below the floor since before `raised_before`, at most `limit` of them. They lie in their partition until that goes.
/// Answers with it whether a partition may be without rows that count now.
pub(crate) async fn sweep(tx: &mut WriteTx, tenant: &TenantId, raised_before: Timestamp, limit: usize) -> Result<(Retired, bool), Failure> {
    let mut marks = marks(tx, sql!("sync/lock_retention"), tenant).await?;
    let (mut removed, mut has_left) = (0, false);
    if marks.sweep_raised_at < raised_before && marks.swept < marks.sweep_floor {
        let swept = marks.swept.plus(limit as u64).min(marks.sweep_floor);
        removed = swept.since(marks.swept);
        has_left = give_up(tx, &marks, swept).await?;
        if swept < marks.sweep_floor {
            return Ok((Retired { floor: marks.floor, removed, more: true }, has_left));
        }
        marks.swept = swept;
    }
    if marks.swept == marks.sweep_floor && marks.sweep_floor < marks.floor {
        let row = db::query(sql!("sync/follow_floor")).bind(marks.number).fetch_one(tx.connection()).await?;
        marks = Marks::from_row(&row)?;
    }
    let more = marks.sweep_raised_at < raised_before && marks.swept < marks.sweep_floor;
    Ok((Retired { floor: marks.floor, removed, more }, has_left))
}

/// Whether the tenant has left a partition.
async fn give_up(tx: &mut WriteTx, marks: &Marks, swept: Seq) -> Result<bool, Failure> {
    let today = slot_of(tx.now());
    let swept = codec::from_seq(swept);
    db::query(sql!("sync/give_up")).bind(marks.number).bind(swept).execute(tx.connection()).await?;
    let query = db::query(sql!("sync/forget_slots")).bind(marks.number).bind(swept).bind(codec::from_seq(marks.head));
    let forgotten = query.bind(today.saturating_sub(1)).execute(tx.connection()).await?;
    Ok(forgotten.rows_affected() > 0)
}

/// How long a key that expired while its work is current is left alone before it is looked at again.
const PROLONGED: Duration = Duration::from_hours(1);
/// Keys that one step looks at for each that it may remove.
const LOOK: usize = 4;

/// Removes deduplication keys that expired before `now`, at most `limit`. Keys of work that is current live on.
pub(crate) async fn expire_keys(store: &PostgresStore, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
    let (mut removed, mut looked) = (0, 0);
    while removed < limit && looked < limit.saturating_mul(LOOK) {
        let step = limit - removed;
        let expired = store.write("expire_keys", move |tx| Box::pin(expire_some(tx, now, step))).await?;
        if expired.0 == 0 {
            break;
        }
        looked += expired.0;
        removed += expired.1;
    }
    Ok(removed as u64)
}

/// How many keys were looked at, and how many of them removed.
async fn expire_some(tx: &mut WriteTx, now: Timestamp, limit: usize) -> Result<(usize, usize), Failure> {
    let query = db::query(sql!("sync/expire_keys")).bind(now.as_micros()).bind(codec::from_count(limit));
    let row = query.bind(now.plus(PROLONGED).as_micros()).fetch_one(tx.connection()).await?;
    let count = |column| codec::natural(&row, column).map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    Ok((count(0)?, count(1)?))
}
