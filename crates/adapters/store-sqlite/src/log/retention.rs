//! Removing old rows: first the floor goes up, a while later the rows below it go.

use std::time::Duration;

use domain::{EventId, Seq, StoreError, TenantId, Timestamp};
use rusqlite::params;
use sync::Retired;

use crate::codec::{self, Position};
use crate::failure::Failure;
use crate::identity::collect;
use crate::inbox;
use crate::sql::sql;
use crate::tx::WriteTx;

/// The columns of a head row that retention moves.
struct Marks {
    number: i64,
    floor: Seq,
    sweep_floor: Seq,
    sweep_raised_at: Timestamp,
}

fn marks(tx: &WriteTx, tenant: &TenantId) -> Result<Marks, Failure> {
    let mut statement = tx.prepare(sql!("sync/retention"))?;
    let mut rows = statement.query([tenant.as_str()])?;
    let Some(row) = rows.next()? else { return Err(StoreError::TenantInactive.into()) };
    Ok(Marks {
        number: row.get(0)?,
        floor: codec::seq(row, 1)?,
        sweep_floor: codec::seq(row, 2)?,
        sweep_raised_at: codec::timestamp(row, 3)?,
    })
}

/// Raises the floor past rows accepted before `older_than`, at most `limit` of them.
pub(crate) fn raise_floor(tx: &mut WriteTx, tenant: &TenantId, older_than: Timestamp, limit: usize) -> Result<Retired, Failure> {
    let head = tx.log_head(tenant)?;
    let old = marks(tx, tenant)?;
    let floor = new_floor(tx, &old, head.seq, older_than, limit)?;
    if floor > old.floor {
        inbox::keep_envelopes(tx, old.number, old.floor, floor)?;
        let now = tx.now();
        tx.prepare(sql!("sync/raise_floor"))?.execute(params![old.number, codec::from_seq(floor), now.as_micros()])?;
        let (_, heads) = tx.parts();
        heads.change(tenant, |head| head.floor = floor);
    }
    let more = floor.since(old.floor) >= limit as u64 && floor <= head.seq;
    Ok(Retired { floor, removed: 0, more })
}

/// The first row that is not older, or the end of what one step may look at.
fn new_floor(tx: &WriteTx, old: &Marks, head: Seq, older_than: Timestamp, limit: usize) -> Result<Seq, Failure> {
    if old.floor > head {
        return Ok(old.floor);
    }
    let (from, to) = (Position::new(old.number, old.floor)?, Position::new(old.number, head)?);
    let mut statement = tx.prepare(sql!("sync/first_young"))?;
    let values = params![from.raw(), to.raw(), codec::from_count(limit), older_than.as_micros()];
    let young: Option<i64> = statement.query_row(values, |row| row.get(0))?;
    Ok(match young {
        Some(position) => Position::from_raw(position).seq(),
        None => old.floor.plus(limit as u64).min(head.next()),
    })
}

/// Removes rows that have lain below the floor since before `raised_before`, at most `limit` of them.
pub(crate) fn sweep(tx: &mut WriteTx, tenant: &TenantId, raised_before: Timestamp, limit: usize) -> Result<Retired, Failure> {
    // The head that this transaction sees may not be in the row yet, but retention reads only marks that are.
    let mut marks = marks(tx, tenant)?;
    let mut removed = 0;
    if marks.sweep_raised_at < raised_before {
        removed = remove(tx, &marks, limit)?;
        if lowest(tx, &marks)?.is_some() {
            return Ok(Retired { floor: marks.floor, removed, more: true });
        }
    }
    if lowest(tx, &marks)?.is_none() && marks.sweep_floor < marks.floor {
        tx.prepare(sql!("sync/follow_floor"))?.execute([marks.number])?;
        marks = self::marks(tx, tenant)?;
    }
    let more = marks.sweep_raised_at < raised_before && lowest(tx, &marks)?.is_some();
    Ok(Retired { floor: marks.floor, removed, more })
}

/// The lowest row below the sweep floor.
fn lowest(tx: &WriteTx, marks: &Marks) -> Result<Option<Seq>, Failure> {
    let end = Position::new(marks.number, marks.sweep_floor)?;
    let mut statement = tx.prepare(sql!("sync/lowest_row"))?;
    let position: Option<i64> = statement.query_row(params![Position::before(marks.number), end.raw()], |row| row.get(0))?;
    Ok(position.map(|position| Position::from_raw(position).seq()))
}

fn remove(tx: &WriteTx, marks: &Marks, limit: usize) -> Result<u64, Failure> {
    let Some(first) = lowest(tx, marks)? else { return Ok(0) };
    let end = first.plus(limit as u64).min(marks.sweep_floor);
    let (from, to) = (Position::new(marks.number, first)?, Position::new(marks.number, end)?);
    let removed = tx.prepare(sql!("sync/remove_rows"))?.execute(params![from.raw(), to.raw()])?;
    Ok(removed as u64)
}

/// How long a key that expired while its work is current is left alone before it is looked at again.
const PROLONGED: Duration = Duration::from_hours(1);
/// Keys that one step looks at for each that it may remove.
const LOOK: usize = 4;

/// An expired key.
struct Expired {
    tenant_number: i64,
    key: String,
    event: EventId,
    seq: Seq,
}

/// Removes deduplication keys that expired before `now`, at most `limit`. Keys of work that is current live on.
pub(crate) fn expire_keys(tx: &WriteTx, now: Timestamp, limit: usize) -> Result<u64, Failure> {
    let (mut removed, mut looked) = (0, 0);
    while removed < limit && looked < limit.saturating_mul(LOOK) {
        let expired = expired_keys(tx, now, limit - removed)?;
        if expired.is_empty() {
            break;
        }
        for key in expired {
            looked += 1;
            if inbox::work_is_current(tx.connection(), key.tenant_number, key.seq, key.event)? {
                let values = params![key.tenant_number, key.key, now.plus(PROLONGED).as_micros()];
                tx.prepare(sql!("sync/prolong_key"))?.execute(values)?;
            } else {
                tx.prepare(sql!("sync/remove_key"))?.execute(params![key.tenant_number, key.key])?;
                removed += 1;
            }
        }
    }
    Ok(removed as u64)
}

fn expired_keys(tx: &WriteTx, now: Timestamp, limit: usize) -> Result<Vec<Expired>, Failure> {
    let mut statement = tx.prepare(sql!("sync/expired_keys"))?;
    collect(statement.query(params![now.as_micros(), codec::from_count(limit)])?, |row| {
        Ok(Expired { tenant_number: row.get(0)?, key: row.get(1)?, event: EventId::new(codec::uuid(row, 2)?), seq: codec::seq(row, 3)? })
    })
}
