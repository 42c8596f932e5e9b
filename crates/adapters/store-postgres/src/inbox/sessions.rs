//! Sessions of agents.

use domain::{AgentSessionId, Seq, StoreError, TenantId, TokenId};
use inbox::{AgentSession, Recipient};

use crate::codec::{self, from_seq};
use crate::db::{self, PgRow, Session};
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

/// One session.
pub(super) async fn session(connection: &mut Session, tenant: &TenantId, id: &AgentSessionId) -> Result<Option<AgentSession>, Failure> {
    let row = db::query(sql!("inbox/session")).bind(tenant.as_str()).bind(id.as_str()).fetch_optional(connection).await?;
    row.as_ref().map(|row| session_row(row, tenant)).transpose()
}

fn session_row(row: &PgRow, tenant: &TenantId) -> Result<AgentSession, Failure> {
    Ok(AgentSession {
        id: codec::text(row, 0)?,
        recipient: Recipient { tenant: tenant.clone(), agent: codec::text(row, 1)? },
        device: codec::get(row, 2)?,
        transport: codec::get(row, 3)?,
        connected_at: codec::timestamp(row, 4)?,
        heartbeat_at: codec::timestamp(row, 5)?,
        last_seen: codec::seq(row, 6)?,
        token: TokenId::new(codec::uuid(row, 7)?),
        is_active: codec::get(row, 8)?,
    })
}

/// Stores a session, replacing one of the same id of the same inbox.
pub(super) async fn put(tx: &mut WriteTx, session: &AgentSession) -> Result<(), Failure> {
    // A text holds no NUL, and a device's name needs none.
    let device = session.device.as_ref().map(|device| device.replace('\0', "\u{fffd}"));
    let query = db::query(sql!("inbox/put_session")).bind(session.recipient.tenant.as_str()).bind(session.id.as_str());
    let query = query.bind(session.recipient.agent.as_str()).bind(device).bind(&session.transport);
    let query = query.bind(session.connected_at.as_micros()).bind(session.heartbeat_at.as_micros()).bind(from_seq(session.last_seen));
    let query = query.bind(session.token.uuid()).bind(session.is_active);
    match query.execute(tx.connection()).await.map_err(Failure::from) {
        Ok(done) if done.rows_affected() == 0 => Err(StoreError::Conflict("the session is another inbox's").into()),
        Ok(_) => Ok(()),
        Err(failure) if failure.is_foreign_key() => Err(StoreError::Conflict("there is no such principal").into()),
        Err(failure) => Err(failure),
    }
}

/// Notes that a session was heard of; `false` when that inbox has none of that id.
pub(super) async fn touch(
    tx: &mut WriteTx,
    recipient: &Recipient,
    id: &AgentSessionId,
    last_seen: Option<Seq>,
    is_active: bool,
) -> Result<bool, Failure> {
    let now = tx.now().as_micros();
    let query = db::query(sql!("inbox/touch_session")).bind(recipient.tenant.as_str()).bind(id.as_str()).bind(recipient.agent.as_str());
    let query = query.bind(now).bind(last_seen.map(from_seq)).bind(is_active);
    Ok(query.execute(tx.connection()).await?.rows_affected() > 0)
}
