//! How much waits in an inbox, counted over indexes up to a bound.

use domain::{QueueName, Timestamp};
use inbox::{Backlog, QueueFilter, RecipientNumber};

use super::select::of;
use crate::codec::{self, from_natural};
use crate::db::Session;
use crate::failure::Failure;
use crate::sql::sql;

fn names(queues: &[QueueName]) -> Vec<&str> {
    queues.iter().map(QueueName::as_str).collect()
}

/// Counts what `filter` admits, each number up to `most`.
pub(super) async fn backlog(
    connection: &mut Session,
    recipient: RecipientNumber,
    filter: &QueueFilter,
    now: Timestamp,
    most: u64,
) -> Result<Backlog, Failure> {
    let query = of(sql!("inbox/backlog"), recipient).bind(filter.only.as_deref().map(names)).bind(names(&filter.except));
    let row = query.bind(now.as_micros()).bind(from_natural(most)).fetch_one(connection).await?;
    let (claimable, retries) = (codec::natural(&row, 0)?, codec::natural(&row, 1)?);
    let next_due = [codec::optional_timestamp(&row, 3)?, codec::optional_timestamp(&row, 5)?].into_iter().flatten().min();
    Ok(Backlog {
        available: claimable.saturating_add(retries).min(most),
        claimed: codec::natural(&row, 2)?,
        resting: codec::natural(&row, 4)?,
        next_due,
    })
}
