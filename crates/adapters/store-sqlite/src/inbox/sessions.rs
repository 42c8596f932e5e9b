//! Sessions of agents.

use domain::{AgentSessionId, Seq, StoreError, TenantId, TokenId};
use inbox::{AgentSession, Recipient};
use rusqlite::{Connection, params};

use crate::codec;
use crate::failure::Failure;
use crate::identity::first;
use crate::sql::sql;
use crate::tx::WriteTx;

/// One session.
pub(super) fn session(connection: &Connection, tenant: &TenantId, id: &AgentSessionId) -> Result<Option<AgentSession>, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/session"))?;
    first(statement.query([tenant.as_str(), id.as_str()])?, |row| {
        Ok(AgentSession {
            id: codec::text(row, 0)?,
            recipient: Recipient { tenant: tenant.clone(), agent: codec::text(row, 1)? },
            device: row.get(2)?,
            transport: row.get(3)?,
            connected_at: codec::timestamp(row, 4)?,
            heartbeat_at: codec::timestamp(row, 5)?,
            last_seen: codec::seq(row, 6)?,
            token: TokenId::new(codec::uuid(row, 7)?),
            is_active: row.get(8)?,
        })
    })
}

/// Stores a session, replacing one of the same id of the same inbox.
pub(super) fn put(tx: &WriteTx, session: &AgentSession) -> Result<(), Failure> {
    let values = params![
        session.recipient.tenant.as_str(),
        session.id.as_str(),
        session.recipient.agent.as_str(),
        session.device,
        session.transport,
        session.connected_at.as_micros(),
        session.heartbeat_at.as_micros(),
        codec::from_seq(session.last_seen),
        session.token.uuid().into_bytes(),
        session.is_active,
    ];
    match tx.prepare(sql!("inbox/put_session"))?.execute(values).map_err(Failure::from) {
        Ok(0) => Err(StoreError::Conflict("the session is another inbox's").into()),
        Ok(_) => Ok(()),
        Err(failure) if failure.is_foreign_key() => Err(StoreError::Conflict("there is no such principal").into()),
        Err(failure) => Err(failure),
    }
}

/// Notes that a session was heard of; `false` when that inbox has none of that id.
pub(super) fn touch(
    tx: &WriteTx,
    recipient: &Recipient,
    id: &AgentSessionId,
    last_seen: Option<Seq>,
    is_active: bool,
) -> Result<bool, Failure> {
    let values = params![
        recipient.tenant.as_str(),
        id.as_str(),
        recipient.agent.as_str(),
        tx.now().as_micros(),
        last_seen.map(codec::from_seq),
        is_active,
    ];
    Ok(tx.prepare(sql!("inbox/touch_session"))?.execute(values)? > 0)
}
