//! Rows as the values of `agents`. Each function names the columns that it expects, in order.

use agents::{ConsumerStatus, CursorRow, Holder, RestWindow};
use domain::{SessionId, SyncEpoch};
use uuid::Uuid;

use super::in_flight;
use crate::codec;
use crate::db::PgRow;
use crate::failure::Failure;

/// The column of a holder: a session's UUID, or the nil UUID that no session has.
pub(super) fn holder_uuid(holder: Holder) -> Uuid {
    match holder {
        Holder::Gateway(session) => session.uuid(),
        Holder::Rest => Uuid::nil(),
    }
}

pub(super) fn holder(row: &PgRow, column: usize) -> Result<Option<Holder>, Failure> {
    let uuid = codec::optional_uuid(row, column)?;
    Ok(uuid.map(|uuid| if uuid.is_nil() { Holder::Rest } else { Holder::Gateway(SessionId::new(uuid)) }))
}

/// `acked_seq, epoch, holder_session_id, window_version, read_seq, sent_before, page_first, highest_sent, redeliver_up_to, in_flight` from `at` on.
pub(super) fn cursor_row(row: &PgRow, at: usize) -> Result<CursorRow, Failure> {
    let in_flight = in_flight::decode(codec::get(row, at + 9)?);
    Ok(CursorRow {
        acked: codec::seq(row, at)?,
        epoch: SyncEpoch::new(codec::uuid(row, at + 1)?),
        holder: holder(row, at + 2)?,
        window_version: codec::natural(row, at + 3)?,
        window: RestWindow {
            read: codec::seq(row, at + 4)?,
            sent_before: codec::seq(row, at + 5)?,
            page_first: codec::seq(row, at + 6)?,
            highest_sent: codec::seq(row, at + 7)?,
            redeliver_up_to: codec::seq(row, at + 8)?,
            in_flight: in_flight.ok_or_else(|| Failure::corrupt("a consumer's window cannot be read"))?,
        },
    })
}

/// `consumer_name, updated_at, head, epoch`, then a cursor row.
pub(super) fn status_row(row: &PgRow) -> Result<ConsumerStatus, Failure> {
    Ok(ConsumerStatus {
        name: codec::text(row, 0)?,
        updated_at: codec::timestamp(row, 1)?,
        head: codec::seq(row, 2)?,
        epoch: SyncEpoch::new(codec::uuid(row, 3)?),
        row: cursor_row(row, 4)?,
    })
}
