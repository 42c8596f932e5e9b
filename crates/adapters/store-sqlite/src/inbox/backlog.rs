//! How much waits in an inbox, counted over indexes up to a bound.

use domain::Timestamp;
use inbox::{AckState, Backlog, QueueFilter, RecipientNumber};
use rusqlite::{Connection, params};

use super::rows::state_number;
use super::select::{admits, claimable_queues};
use crate::codec;
use crate::failure::Failure;
use crate::sql::sql;

/// Counts what `filter` admits, each number up to `most`.
pub(super) fn backlog(
    connection: &Connection,
    recipient: RecipientNumber,
    filter: &QueueFilter,
    now: Timestamp,
    most: u64,
) -> Result<Backlog, Failure> {
    let count = Count { connection, recipient: recipient.get(), filter, now, most };
    let expired = count.lapsed(AckState::Available, |_, expires_at| expires_at.is_some_and(|end| end <= now))?;
    let due_retries = count.lapsed(AckState::RetryScheduled, |retry_at, expires_at| {
        retry_at.is_some_and(|at| at <= now) && expires_at.is_none_or(|end| end > now)
    })?;
    let available = count.available(recipient, most.saturating_add(expired))?.saturating_sub(expired);
    let (claimed, first_lease) = count.due(AckState::Claimed, i64::MIN)?;
    let (resting, first_retry) = count.due(AckState::RetryScheduled, now.as_micros())?;
    let next_due = [first_lease, first_retry].into_iter().flatten().min();
    Ok(Backlog { available: available.saturating_add(due_retries).min(most), claimed, resting, next_due })
}

struct Count<'a> {
    connection: &'a Connection,
    recipient: i64,
    filter: &'a QueueFilter,
    now: Timestamp,
    most: u64,
}

impl Count<'_> {
    /// Items in state `available`, whether or not they have expired.
    fn available(&self, recipient: RecipientNumber, most: u64) -> Result<u64, Failure> {
        let bound = |left: u64| i64::try_from(left).unwrap_or(i64::MAX);
        if self.filter.only.is_none() && self.filter.except.is_empty() {
            let mut statement = self.connection.prepare_cached(sql!("inbox/count_all_available"))?;
            let count: i64 = statement.query_row(params![self.recipient, bound(most)], |row| row.get(0))?;
            return Ok(u64::try_from(count).unwrap_or(0));
        }
        let mut statement = self.connection.prepare_cached(sql!("inbox/count_available"))?;
        let mut total = 0;
        for queue in claimable_queues(self.connection, recipient, self.filter)? {
            let left = bound(most.saturating_sub(total));
            let count: i64 = statement.query_row(params![self.recipient, queue.name, left], |row| row.get(0))?;
            total = total.saturating_add(u64::try_from(count).unwrap_or(0));
        }
        Ok(total)
    }

    /// Items in `state` that are due after `after`, and when the first of them is.
    fn due(&self, state: AckState, after: i64) -> Result<(u64, Option<Timestamp>), Failure> {
        let mut statement = self.connection.prepare_cached(sql!("inbox/due_in_state"))?;
        let mut rows = statement.query(params![self.recipient, state_number(state), after])?;
        let (mut count, mut next) = (0, None);
        while count < self.most {
            let Some(row) = rows.next()? else { break };
            if row.get_ref(1)?.as_str().is_ok_and(|queue| admits(self.filter, queue)) {
                count += 1;
                next = next.or(Some(codec::timestamp(row, 0)?));
            }
        }
        Ok((count, next))
    }

    /// Items in `state` that are due by now and, by their retry and their expiry, `counts`.
    fn lapsed(&self, state: AckState, counts: impl Fn(Option<Timestamp>, Option<Timestamp>) -> bool) -> Result<u64, Failure> {
        let mut statement = self.connection.prepare_cached(sql!("inbox/lapsed_in_state"))?;
        let mut rows = statement.query(params![self.recipient, state_number(state), self.now.as_micros()])?;
        let mut count = 0;
        while count < self.most {
            let Some(row) = rows.next()? else { break };
            let admitted = row.get_ref(0)?.as_str().is_ok_and(|queue| admits(self.filter, queue));
            if admitted && counts(codec::optional_timestamp(row, 1)?, codec::optional_timestamp(row, 2)?) {
                count += 1;
            }
        }
        Ok(count)
    }
}
