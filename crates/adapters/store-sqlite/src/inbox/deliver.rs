//! The items that events leave in inboxes, in the transaction that appends them.

use std::collections::HashMap;

use domain::{Appended, PrincipalId, Publication, Seq, Timestamp};
use inbox::{Item, RecipientNumber};
use rusqlite::{Connection, params};

use super::{recipients, rows};
use crate::codec;
use crate::failure::Failure;
use crate::sql::sql;

/// What arrives in one inbox.
struct Arrival {
    number: i64,
    head: Seq,
    due: Option<Timestamp>,
}

/// Inserts an item for each recipient of each publication that is new, and raises the heads of their inboxes.
pub(crate) fn deliver(
    connection: &Connection,
    tenant_number: i64,
    publications: &[Publication],
    decided: &[Appended],
) -> Result<(), Failure> {
    let mut arrivals: HashMap<&PrincipalId, Arrival> = HashMap::new();
    for (publication, answer) in publications.iter().zip(decided) {
        let (Some(work), Appended::New { seq, id }) = (publication.work.as_deref(), *answer) else { continue };
        for recipient in &work.recipients {
            let arrival = match arrivals.entry(&recipient.agent) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    let number = number_of(connection, tenant_number, &recipient.agent)?;
                    entry.insert(Arrival { number, head: seq, due: None })
                }
            };
            let key = publication.deduplication.as_ref().map(|deduplication| &deduplication.key);
            let (number, bytes) = (RecipientNumber::new(arrival.number), publication.body.len());
            let item = Item::new(number, recipient, work, id, seq, &publication.event_type, key, publication.created_at, bytes);
            insert(connection, &item)?;
            arrival.head = arrival.head.max(seq);
            arrival.due = [arrival.due, item.due_at()].into_iter().flatten().min();
        }
    }
    arrivals.into_values().try_for_each(|arrival| note(connection, &arrival))
}

fn number_of(connection: &Connection, tenant_number: i64, agent: &PrincipalId) -> Result<i64, Failure> {
    match recipients::number(connection, tenant_number, agent)? {
        Some(number) => Ok(number),
        None => recipients::create(connection, tenant_number, agent),
    }
}

fn note(connection: &Connection, arrival: &Arrival) -> Result<(), Failure> {
    connection.prepare_cached(sql!("inbox/raise_head"))?.execute(params![arrival.number, codec::from_seq(arrival.head)])?;
    if let Some(due) = arrival.due {
        connection.prepare_cached(sql!("inbox/look_at"))?.execute(params![arrival.number, due.as_micros()])?;
    }
    Ok(())
}

fn insert(connection: &Connection, item: &Item) -> Result<(), Failure> {
    let facts = &item.facts;
    connection.prepare_cached(sql!("inbox/insert_item"))?.execute(params![
        facts.recipient.get(),
        facts.event_id.uuid().into_bytes(),
        codec::from_seq(facts.inbox_seq),
        facts.event_type.as_str(),
        facts.kind,
        facts.source,
        facts.summary,
        facts.queue.as_str(),
        rows::priority_number(facts.priority),
        facts.deduplication_key.as_ref().map(domain::DeduplicationKey::as_str),
        facts.available_at.as_micros(),
        facts.expires_at.map(Timestamp::as_micros),
        facts.max_attempts,
        facts.created_at.as_micros(),
        facts.envelope_bytes,
        item.claim_key.as_micros(),
    ])?;
    Ok(())
}
