//! Appending: first decide what becomes of every publication, then write. Nothing is written before everything is decided.

use std::collections::HashMap;
use std::sync::Arc;

use domain::{Appended, Deduplication, Event, EventId, Publication, Seq, StoreError, TenantId, Timestamp};
use rusqlite::{Connection, params};

use super::checksum::{Columns, origin_number};
use crate::codec::{self, Position, audience_text};
use crate::failure::Failure;
use crate::inbox;
use crate::sql::sql;
use crate::tx::{LogHead, WriteTx};

/// Appends `publications` to the log of `tenant`. With a [`Appended::Conflict`] among the answers nothing was written.
pub(crate) fn append(tx: &mut WriteTx, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Appended>, Failure> {
    let head = tx.active_head(tenant)?;
    // Only keys need to know the time.
    let keyed = publications.iter().any(|publication| publication.deduplication.is_some());
    let now = if keyed { tx.now() } else { Timestamp::from_micros(0) };
    let (connection, heads) = tx.parts();
    let decided = decide(connection, &head, publications, now)?;
    if decided.contains(&Appended::Conflict) {
        return Ok(decided);
    }
    let events = write(connection, &head, publications, &decided)?;
    if publications.iter().any(|publication| publication.work.is_some()) {
        inbox::deliver(connection, head.number, publications, &decided)?;
    }
    if !events.is_empty() {
        heads.advance(tenant, head.seq.plus(events.len() as u64), events);
    }
    Ok(decided)
}

/// What becomes of each publication if all of them are appended now.
fn decide(connection: &Connection, head: &LogHead, publications: &[Publication], now: Timestamp) -> Result<Vec<Appended>, Failure> {
    let mut decided: Vec<Appended> = Vec::with_capacity(publications.len());
    let mut own_keys: HashMap<&str, usize> = HashMap::new();
    let mut next = head.seq.next();
    for (index, publication) in publications.iter().enumerate() {
        let known = match &publication.deduplication {
            None => None,
            Some(deduplication) => match own_keys.get(deduplication.key.as_str()) {
                Some(first) => repeat_in_request(publications.get(*first), decided.get(*first), deduplication),
                None => {
                    if publications.len() > 1 {
                        own_keys.insert(deduplication.key.as_str(), index);
                    }
                    stored_repeat(connection, head.number, publication.id, deduplication, now)?
                }
            },
        };
        decided.push(known.unwrap_or(Appended::New { seq: next, id: publication.id }));
        if known.is_none() {
            Position::new(head.number, next)?;
            next = next.next();
        }
    }
    Ok(decided)
}

/// The same key earlier in the same request: a repeat of it, or another body under it.
fn repeat_in_request(first: Option<&Publication>, decided: Option<&Appended>, repeat: &Deduplication) -> Option<Appended> {
    let first_hash = first?.deduplication.as_ref()?.body_hash;
    if first_hash != repeat.body_hash {
        return Some(Appended::Conflict);
    }
    Some(match *decided? {
        Appended::New { seq, id } => Appended::Duplicate { id, seq: Some(seq) },
        answer => answer,
    })
}

/// What the stored row of a key says; `None` when there is none that counts.
pub(crate) fn stored_repeat(
    connection: &Connection,
    tenant_number: i64,
    id: EventId,
    deduplication: &Deduplication,
    now: Timestamp,
) -> Result<Option<Appended>, Failure> {
    let mut statement = connection.prepare_cached(sql!("sync/key"))?;
    let mut rows = statement.query(params![tenant_number, deduplication.key.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let body_hash = codec::digest(row, 0)?;
    let first = EventId::new(codec::uuid(row, 1)?);
    let seq = row.get_ref(2)?.as_i64_or_null().map_err(|_| Failure::corrupt("a deduplication key without a valid seq"))?;
    let seq = seq.and_then(|seq| Seq::new(u64::try_from(seq).ok()?));
    // While its event is scheduled, or is work that somebody is still to do, a key stands, however long that takes.
    if let Some(seq) = seq
        && codec::timestamp(row, 3)? <= now
        && !inbox::work_is_current(connection, tenant_number, seq, first)?
    {
        return Ok(None);
    }
    if seq.is_none() && first == id {
        return Ok(None);
    }
    let same = body_hash == deduplication.body_hash;
    Ok(Some(if same { Appended::Duplicate { id: first, seq } } else { Appended::Conflict }))
}

/// Writes the rows and keys of what is new, and answers the events as readers will see them.
fn write(connection: &Connection, head: &LogHead, publications: &[Publication], decided: &[Appended]) -> Result<Vec<Arc<Event>>, Failure> {
    let mut insert = connection.prepare_cached(sql!("sync/insert_event"))?;
    let mut events = Vec::with_capacity(publications.len());
    for (publication, answer) in publications.iter().zip(decided) {
        let Appended::New { seq, id } = *answer else { continue };
        let body = body_text(&publication.body)?;
        let audience = audience_text(&publication.audience);
        let uuid = id.uuid();
        let channel = publication.channel.as_ref().map(domain::ChannelRef::as_str);
        let columns = Columns {
            position: Position::new(head.number, seq)?.raw(),
            id: uuid.as_bytes(),
            event_type: publication.event_type.as_str().as_bytes(),
            channel: channel.map(str::as_bytes),
            audience: audience.as_deref().map(str::as_bytes),
            origin: origin_number(publication.origin),
            created_at: publication.created_at.as_micros(),
            body: &publication.body,
        };
        insert.execute(params![
            columns.position,
            columns.id,
            publication.event_type.as_str(),
            channel,
            audience,
            columns.origin,
            columns.created_at,
            body,
            columns.checksum(),
        ])?;
        if let Some(deduplication) = &publication.deduplication {
            put_key(connection, head.number, id, Some(seq), deduplication)?;
        }
        events.push(Arc::new(event(publication, seq)));
    }
    Ok(events)
}

/// Takes a key for an event, or tells a taken one the event's `seq`.
pub(crate) fn put_key(
    connection: &Connection,
    tenant_number: i64,
    id: EventId,
    seq: Option<Seq>,
    deduplication: &Deduplication,
) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(sql!("sync/put_key"))?;
    statement.execute(params![
        tenant_number,
        deduplication.key.as_str(),
        deduplication.body_hash,
        id.uuid().into_bytes(),
        seq.map(codec::from_seq),
        deduplication.expires_at.as_micros(),
    ])?;
    Ok(())
}

/// The column holds text; anything else is the caller's fault and must not reach the log.
pub(crate) fn body_text(body: &[u8]) -> Result<&str, StoreError> {
    std::str::from_utf8(body).map_err(|_| StoreError::Conflict("an event's body is not UTF-8 text"))
}

fn event(publication: &Publication, seq: Seq) -> Event {
    Event::new(
        seq,
        publication.id,
        publication.event_type.clone(),
        publication.channel.clone(),
        publication.audience.clone(),
        publication.origin,
        publication.created_at,
        publication.body.clone(),
    )
}
