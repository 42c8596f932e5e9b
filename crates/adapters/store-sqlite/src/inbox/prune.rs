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

/// How far the walk through ended items has come. They have no index by age, which would cost every acknowledge: ids of events are in the order
/// of their making, so what may be old comes first in an inbox, and from the first id that is young the rest of it is skipped. The id decides,
/// not when the item came about: an event that was scheduled has an id from long before.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    recipient: i64,
    event: Vec<u8>,
    /// How far the walk through open inboxes has come, which looks for those whose agent is gone.
    open: i64,
}

/// What a part of the walk has found.
#[derive(Default)]
struct Stretch {
    /// What is to be removed.
    old: Vec<(i64, Vec<u8>)>,
    looked: usize,
    /// Nothing comes after it.
    is_last: bool,
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
    let mut walk = std::mem::take(tx.walk());
    let closed = walk.close_orphans(tx, limit);
    let discarded = discard(tx, limit)?;
    let more_ended = walk.step(tx, ended_before, limit);
    *tx.walk() = walk;
    closed?;
    let inboxes = tx.prepare(sql!("inbox/remove_closed"))?.execute([codec::from_count(limit)])?;
    Ok(more_ended? || full(records) || full(sessions) || full(discarded) || full(inboxes))
}

impl Walk {
    /// Closes inboxes whose agent is gone: work that was let in while its agent was being deleted has opened them. One stretch for each call.
    fn close_orphans(&mut self, tx: &WriteTx, limit: usize) -> Result<(), Failure> {
        let looked = {
            let mut statement = tx.prepare(sql!("union/open_inboxes"))?;
            let values = params![self.open, codec::from_count(limit.saturating_mul(LOOK))];
            collect(statement.query(values)?, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?)))?
        };
        for (recipient, _) in looked.iter().filter(|(_, has_agent)| !has_agent) {
            tx.prepare(sql!("inbox/close_inbox"))?.execute([recipient])?;
        }
        // From the beginning, once the end is reached.
        self.open = if looked.len() < limit.saturating_mul(LOOK) { 0 } else { looked.last().map_or(0, |(recipient, _)| *recipient) };
        Ok(())
    }

    fn step(&mut self, tx: &WriteTx, before: Timestamp, limit: usize) -> Result<bool, Failure> {
        let (mut removed, mut looked, most) = (0, 0, limit.saturating_mul(LOOK));
        while removed < limit && looked < most {
            let stretch = self.read(tx, before, limit - removed, most - looked)?;
            looked += stretch.looked;
            let mut statement = tx.prepare(sql!("inbox/remove_ended"))?;
            for (recipient, event) in &stretch.old {
                removed += statement.execute(params![recipient, event])?;
            }
            if stretch.is_last {
                *self = Self { open: self.open, ..Self::default() };
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes on until `room` rows are to be removed, `most` were read, or the rest of an inbox is young. Rows are read one at a time: none is read
    /// that is not counted.
    fn read(&mut self, tx: &WriteTx, before: Timestamp, room: usize, most: usize) -> Result<Stretch, Failure> {
        let mut statement = tx.prepare(sql!("inbox/ended_from"))?;
        let mut rows = statement.query(params![self.recipient, self.event, codec::from_count(most)])?;
        let mut stretch = Stretch::default();
        while let Some(row) = rows.next()? {
            stretch.looked += 1;
            let event: Vec<u8> = row.get(1)?;
            self.recipient = row.get(0)?;
            if made_at(&event).is_some_and(|made_at| made_at >= before) {
                self.event = LAST_EVENT.to_vec();
                return Ok(stretch);
            }
            // What only came about lately, as an event that was scheduled long ago, is passed by: it hides nothing.
            if codec::timestamp(row, 2)? < before && codec::timestamp(row, 3)? < before {
                stretch.old.push((self.recipient, event.clone()));
            }
            self.event = event;
            if stretch.old.len() >= room {
                return Ok(stretch);
            }
        }
        stretch.is_last = stretch.looked < most;
        Ok(stretch)
    }
}

/// When an event's id was made, as `UUIDv7` say. Its item was made then or later, never before.
fn made_at(event: &[u8]) -> Option<Timestamp> {
    let mut bytes = [0; 8];
    bytes.get_mut(2..)?.copy_from_slice(event.get(..6)?);
    let (millis, version) = (i64::from_be_bytes(bytes), *event.get(6)?);
    (version >> 4 == 7).then(|| Timestamp::from_micros(millis.saturating_mul(1_000)))
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
