//! Rows of the log that inboxes ask for: envelopes by position, and what left items.

use std::collections::HashMap;

use bytes::Bytes;
use domain::{Audience, EventId, Seq};
use sqlx_postgres::PgRow;
use uuid::Uuid;

use super::checksum::{Columns, mixed, parse_origin};
use crate::codec::{self, from_seq};
use crate::db;
use crate::failure::Failure;
use crate::session::Session;
use crate::sql::sql;

/// A row that left inbox items, as retention looks at it.
pub(crate) struct WorkRow {
    pub(crate) seq: Seq,
    pub(crate) id: Uuid,
    pub(crate) audience: Audience,
    pub(crate) body: String,
}

/// The rows from `from` up to but not at `to` that left inbox items. Damaged ones are passed by: there is nothing in them to keep.
pub(crate) async fn work_rows(connection: &mut Session, tenant_number: i64, from: Seq, to: Seq) -> Result<Vec<WorkRow>, Failure> {
    let query = db::query(sql!("sync/work_rows")).bind(tenant_number).bind(from_seq(from)).bind(from_seq(to));
    let mut rows = Vec::new();
    for row in query.fetch_all(connection).await? {
        let seq = codec::seq(&row, 0)?;
        let audience = codec::get::<Option<&str>>(&row, 4)?.and_then(codec::parse_audience);
        let (true, Some(audience)) = (is_sound(&row, tenant_number)?, audience) else {
            tracing::error!(event.seq = seq.get(), "a damaged event goes, and items of it stay without it");
            continue;
        };
        rows.push(WorkRow { seq, id: codec::uuid(&row, 1)?, audience, body: codec::get(&row, 7)? });
    }
    Ok(rows)
}

/// The envelopes of events whose rows are where they are said to be, and unharmed.
pub(crate) async fn bodies(
    connection: &mut Session,
    tenant_number: i64,
    events: &[(Seq, EventId)],
) -> Result<HashMap<(Seq, EventId), Bytes>, Failure> {
    let seqs: Vec<i64> = events.iter().map(|(seq, _)| from_seq(*seq)).collect();
    let rows = db::query(sql!("sync/rows_at")).bind(tenant_number).bind(seqs).fetch_all(connection).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        let key = (codec::seq(row, 0)?, EventId::new(codec::uuid(row, 1)?));
        if is_sound(row, tenant_number)? {
            found.insert(key, Bytes::copy_from_slice(codec::get::<&str>(row, 7)?.as_bytes()));
        } else {
            tracing::error!(event.seq = key.0.get(), "an event does not match its checksum");
        }
    }
    Ok(found)
}

/// Holds `seq, id, type, channel, audience, origin, created_at, body, checksum` against one another.
fn is_sound(row: &PgRow, tenant_number: i64) -> Result<bool, Failure> {
    let id = codec::uuid(row, 1)?;
    let origin: i16 = codec::get(row, 5)?;
    let columns = Columns {
        id: id.as_bytes(),
        event_type: codec::get(row, 2)?,
        channel: codec::get(row, 3)?,
        audience: codec::get(row, 4)?,
        origin,
        created_at: codec::get(row, 6)?,
        body: codec::get::<&str>(row, 7)?.as_bytes(),
    };
    let stored: i64 = codec::get(row, 8)?;
    let is_known = parse_origin(origin).is_some();
    Ok(is_known && stored == mixed(columns.checksum(), tenant_number, codec::seq(row, 0)?))
}
