//! Removing what is old, and ending what belongs to agents that are gone, in bounded steps.

use domain::Timestamp;
use inbox::RecipientNumber;
use rusqlite::params;

use super::put::Copies;
use crate::codec;
use crate::failure::Failure;
use crate::identity::{collect, first};
use crate::sql::sql;
use crate::tx::WriteTx;

/// Greater than every event's key.
const LAST_EVENT: [u8; 17] = [0xff; 17];
/// Rows that one step looks at for each that it may remove: what was made long ago and ended lately is passed by, not waited for.
const LOOK: usize = 4;

/// How far the walk through ended items has come. They have no index by age, which would cost every acknowledge: events are numbered in the
/// order of their making, so an inbox's old items come first and the rest of it is skipped.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    recipient: i64,
    event: Vec<u8>,
}

struct EndedRow {
    recipient: i64,
    event: Vec<u8>,
    created_at: Timestamp,
    ended_at: Timestamp,
}

/// Removes at most `limit` of each; `true` when another call would look at more.
pub(super) fn prune(
    tx: &mut WriteTx,
    ended_before: Timestamp,
    records_before: Timestamp,
    sessions_before: Timestamp,
    limit: usize,
) -> Result<bool, Failure> {
    let limit = limit.max(1);
    let full = |removed: usize| removed >= limit;
    let records = tx.prepare(sql!("inbox/prune_claims"))?.execute(params![records_before.as_micros(), codec::from_count(limit)])?;
    let sessions = tx.prepare(sql!("inbox/prune_sessions"))?.execute(params![sessions_before.as_micros(), codec::from_count(limit)])?;
    let discarded = discard(tx, limit)?;
    let mut walk = std::mem::take(tx.walk());
    let more_ended = walk.step(tx, ended_before, limit);
    *tx.walk() = walk;
    let inboxes = tx.prepare(sql!("inbox/remove_closed"))?.execute([codec::from_count(limit)])?;
    Ok(more_ended? || full(records) || full(sessions) || full(discarded) || full(inboxes))
}

impl Walk {
    fn step(&mut self, tx: &WriteTx, before: Timestamp, limit: usize) -> Result<bool, Failure> {
        let (mut removed, mut looked) = (0, 0);
        while removed < limit && looked < limit.saturating_mul(LOOK) {
            let rows = self.rows(tx, limit - removed)?;
            if rows.is_empty() {
                *self = Self::default();
                return Ok(false);
            }
            for row in rows {
                looked += 1;
                self.recipient = row.recipient;
                if row.created_at >= before {
                    self.event = LAST_EVENT.to_vec();
                    break;
                }
                if row.ended_at < before {
                    removed += tx.prepare(sql!("inbox/remove_ended"))?.execute(params![row.recipient, row.event])?;
                }
                self.event = row.event;
            }
        }
        Ok(true)
    }

    fn rows(&self, tx: &WriteTx, limit: usize) -> Result<Vec<EndedRow>, Failure> {
        let mut statement = tx.prepare(sql!("inbox/ended_from"))?;
        collect(statement.query(params![self.recipient, self.event, codec::from_count(limit)])?, |row| {
            Ok(EndedRow {
                recipient: row.get(0)?,
                event: row.get(1)?,
                created_at: codec::timestamp(row, 2)?,
                ended_at: codec::timestamp(row, 3)?,
            })
        })
    }
}

/// Discards items of agents that are gone.
fn discard(tx: &WriteTx, limit: usize) -> Result<usize, Failure> {
    let (now, mut discarded, mut copies) = (tx.now(), 0, Copies::default());
    while discarded < limit {
        let closing = first(tx.prepare(sql!("inbox/closing"))?.query([])?, |row| Ok(row.get::<_, i64>(0)?))?;
        let Some(recipient) = closing else { break };
        let items = {
            let mut statement = tx.prepare(sql!("inbox/first_items"))?;
            let values = params![recipient, codec::from_count(limit - discarded)];
            collect(statement.query(values)?, |row| Ok((row.get::<_, Vec<u8>>(0)?, codec::seq(row, 1)?)))?
        };
        if items.is_empty() {
            tx.prepare(sql!("inbox/closed"))?.execute([recipient])?;
        }
        for (event, seq) in items {
            tx.prepare(sql!("inbox/discard_item"))?.execute(params![recipient, event, now.as_micros()])?;
            tx.prepare(sql!("inbox/remove_item"))?.execute(params![recipient, event])?;
            copies.release(tx, RecipientNumber::new(recipient), seq)?;
            discarded += 1;
        }
    }
    Ok(discarded)
}
