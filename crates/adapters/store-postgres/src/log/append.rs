//! Appending: one statement decides what becomes of every publication, and writes what is new.

use std::collections::HashMap;
use std::sync::Arc;

use authz::TenantState;
use domain::{Appended, Deduplication, Event, EventId, Publication, Seq, StoreError, SyncEpoch, TenantId, Timestamp};
use sqlx_postgres::PgRow;
use uuid::Uuid;

use super::checksum::{Columns, origin_number};
use crate::failure::Failure;
use crate::session::Session;
use crate::sql::sql;
use crate::tx::{LogHead, WriteTx};
use crate::{codec, db, inbox};

/// What an append answered.
struct Answered {
    /// The head row after it.
    head: LogHead,
    /// What became of each publication of each request.
    requests: Vec<Vec<Appended>>,
    /// What is new, in order.
    events: Vec<Arc<Event>>,
}

/// What one publication is within its own request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The database decides.
    Own,
    /// The key came earlier in the request, with the same body.
    Repeat(usize),
    /// The key came earlier in the request, with another body.
    Conflict,
}

/// Finds repeats within a request; the database is sent each key once.
fn places(publications: &[Publication]) -> Vec<Place> {
    let mut first: HashMap<&str, (usize, &Deduplication)> = HashMap::new();
    let mut places = Vec::with_capacity(publications.len());
    for (index, publication) in publications.iter().enumerate() {
        places.push(match &publication.deduplication {
            Some(own) if publications.len() > 1 => match first.get(own.key.as_str()) {
                Some((earlier, known)) if known.body_hash == own.body_hash => Place::Repeat(*earlier),
                Some(_) => Place::Conflict,
                None => {
                    first.insert(own.key.as_str(), (index, own));
                    Place::Own
                }
            },
            _ => Place::Own,
        });
    }
    places
}

/// The columns of everything that is sent, one element per publication.
#[derive(Default)]
struct Arrays<'a> {
    requests: Vec<i32>,
    doomed: Vec<bool>,
    ids: Vec<Uuid>,
    types: Vec<&'a str>,
    channels: Vec<Option<&'a str>>,
    audiences: Vec<Option<String>>,
    origins: Vec<i16>,
    created: Vec<i64>,
    bodies: Vec<&'a str>,
    checksums: Vec<i64>,
    keys: Vec<Option<&'a str>>,
    hashes: Vec<Option<&'a [u8]>>,
    expire: Vec<Option<i64>>,
    work: Vec<serde_json::Value>,
}

impl<'a> Arrays<'a> {
    fn push(&mut self, request: usize, is_doomed: bool, publication: &'a Publication) -> Result<(), Failure> {
        let id = publication.id.uuid();
        let event_type = publication.event_type.as_str();
        let channel = publication.channel.as_ref().map(domain::ChannelRef::as_str);
        let audience = codec::audience_text(&publication.audience);
        let (origin, created_at) = (origin_number(publication.origin), publication.created_at.as_micros());
        let columns =
            Columns { id: id.as_bytes(), event_type, channel, audience: audience.as_deref(), origin, created_at, body: &publication.body };
        self.checksums.push(i64::from(columns.checksum()));
        self.requests.push(i32::try_from(request).unwrap_or(i32::MAX));
        self.doomed.push(is_doomed);
        self.ids.push(id);
        self.types.push(event_type);
        self.channels.push(channel);
        self.audiences.push(audience);
        self.origins.push(origin);
        self.created.push(created_at);
        self.bodies.push(body_text(&publication.body)?);
        let deduplication = publication.deduplication.as_ref();
        self.keys.push(deduplication.map(|own| own.key.as_str()));
        self.hashes.push(deduplication.map(|own| own.body_hash.as_slice()));
        self.expire.push(deduplication.map(|own| own.expires_at.as_micros()));
        inbox::deliveries(publication, &mut self.work)
    }

    /// Whether nothing of it can be known already, so that the database need not compare.
    fn is_new(&self) -> bool {
        self.keys.iter().all(Option::is_none) && !self.doomed.contains(&true)
    }

    fn work(&self) -> Option<String> {
        (!self.work.is_empty()).then(|| serde_json::Value::from(self.work.clone()).to_string())
    }

    /// Appends what [`Arrays::is_new`]; answers the head row after it.
    async fn send_new(&self, connection: &mut Session, tenant: &TenantId, now: Timestamp) -> Result<LogHead, Failure> {
        let query = db::query(sql!("sync/append_new")).bind(tenant.as_str()).bind(slot_of(now));
        let query = query.bind(&self.ids).bind(&self.types).bind(&self.channels).bind(&self.audiences).bind(&self.origins);
        let query = query.bind(&self.created).bind(&self.bodies).bind(&self.checksums).bind(self.work());
        let row = query.fetch_optional(connection).await?.ok_or(Failure::Store(StoreError::TenantInactive))?;
        head_after(&row, 0)
    }

    async fn send(&self, connection: &mut Session, tenant: &TenantId, now: Timestamp) -> Result<Vec<PgRow>, Failure> {
        let query = db::query(sql!("sync/append")).bind(tenant.as_str()).bind(now.as_micros()).bind(slot_of(now));
        let query = query.bind(&self.requests).bind(&self.doomed).bind(&self.ids).bind(&self.types).bind(&self.channels);
        let query = query.bind(&self.audiences).bind(&self.origins).bind(&self.created).bind(&self.bodies).bind(&self.checksums);
        let query = query.bind(&self.keys).bind(&self.hashes).bind(&self.expire);
        let query = query.bind(self.work());
        Ok(query.fetch_all(connection).await?)
    }
}

/// The partition of what is appended at `now`: the day since the epoch.
pub(crate) fn slot_of(now: Timestamp) -> i32 {
    const DAY_MICROS: i64 = 86_400_000_000;
    i32::try_from(now.as_micros().div_euclid(DAY_MICROS)).unwrap_or_default()
}

/// Appends requests to the log of `tenant`, each as a whole or not at all. No key may occur in two of them, and at least one has a publication.
/// The partition of `now` is there.
async fn append(connection: &mut Session, tenant: &TenantId, now: Timestamp, requests: &[&[Publication]]) -> Result<Answered, Failure> {
    let mut arrays = Arrays::default();
    let planned: Vec<Vec<Place>> = requests.iter().map(|publications| places(publications)).collect();
    for (number, (publications, places)) in requests.iter().zip(&planned).enumerate() {
        let is_doomed = places.contains(&Place::Conflict);
        for (publication, _) in publications.iter().zip(places).filter(|(_, place)| **place == Place::Own) {
            arrays.push(number, is_doomed, publication)?;
        }
    }
    if arrays.is_new() {
        let head = arrays.send_new(connection, tenant, now).await?;
        return Ok(numbered(head, requests));
    }
    let rows = arrays.send(connection, tenant, now).await?;
    let head = rows.first().ok_or(Failure::Store(StoreError::TenantInactive)).and_then(|row| head_after(row, 3))?;
    let mut answered = Answered { head, requests: Vec::with_capacity(requests.len()), events: Vec::new() };
    let mut rows = rows.iter();
    for (publications, places) in requests.iter().zip(&planned) {
        let answers = answer(publications, places, &mut rows, &mut answered)?;
        answered.requests.push(answers);
    }
    Ok(answered)
}

/// The answers to requests that are all new: their positions are the last ones.
fn numbered(head: LogHead, requests: &[&[Publication]]) -> Answered {
    let count: usize = requests.iter().map(|publications| publications.len()).sum();
    let mut seq = Seq::new(head.seq.get().saturating_sub(count as u64)).unwrap_or(Seq::ZERO);
    let mut answered = Answered { head, requests: Vec::with_capacity(requests.len()), events: Vec::with_capacity(count) };
    for publications in requests {
        let mut answers = Vec::with_capacity(publications.len());
        for publication in *publications {
            seq = seq.next();
            answered.events.push(Arc::new(event(publication, seq)));
            answers.push(Appended::New { seq, id: publication.id });
        }
        answered.requests.push(answers);
    }
    answered
}

fn answer<'r>(
    publications: &[Publication],
    places: &[Place],
    rows: &mut impl Iterator<Item = &'r PgRow>,
    answered: &mut Answered,
) -> Result<Vec<Appended>, Failure> {
    let mut answers: Vec<Appended> = Vec::with_capacity(publications.len());
    // What would be new in a request that is not kept is told the position that it would have had.
    let mut would_be = answered.head.seq;
    for (publication, place) in publications.iter().zip(places) {
        let answer = match place {
            Place::Conflict => Appended::Conflict,
            Place::Repeat(first) => match answers.get(*first) {
                Some(Appended::New { seq, id }) => Appended::Duplicate { id: *id, seq: Some(*seq) },
                Some(known) => *known,
                None => Appended::Conflict,
            },
            Place::Own => {
                let row = rows.next().ok_or_else(|| Failure::corrupt("an append answered fewer lines than it was asked for"))?;
                let id = EventId::new(codec::uuid(row, 2)?);
                match codec::get::<i16>(row, 0)? {
                    0 => {
                        let seq = codec::seq(row, 1)?;
                        answered.events.push(Arc::new(event(publication, seq)));
                        Appended::New { seq, id }
                    }
                    1 => Appended::Duplicate { id, seq: codec::optional_seq(row, 1)? },
                    3 => {
                        would_be = would_be.next();
                        Appended::New { seq: would_be, id }
                    }
                    _ => Appended::Conflict,
                }
            }
        };
        answers.push(answer);
    }
    Ok(answers)
}

/// The head row after an append, from the column `first`: head, floor, epoch, number of the tenant.
fn head_after(row: &PgRow, first: usize) -> Result<LogHead, Failure> {
    Ok(LogHead {
        number: codec::get(row, first + 3)?,
        seq: codec::seq(row, first)?,
        floor: codec::seq(row, first + 1)?,
        epoch: SyncEpoch::new(codec::uuid(row, first + 2)?),
        state: TenantState::Active,
    })
}

impl WriteTx {
    /// Appends `publications` to the log of `tenant` and locks its head row. With a [`Appended::Conflict`] among the answers nothing was written.
    pub(crate) async fn append(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Appended>, Failure> {
        Ok(self.append_requests(tenant, &[publications]).await?.into_iter().next().unwrap_or_default())
    }

    /// The same for several requests, each as a whole or not at all. No key may occur in two of them.
    pub(crate) async fn append_requests(&mut self, tenant: &TenantId, requests: &[&[Publication]]) -> Result<Vec<Vec<Appended>>, Failure> {
        if requests.iter().all(|publications| publications.is_empty()) {
            return self.active_head(tenant).await.map(|_| vec![Vec::new(); requests.len()]);
        }
        let now = self.now();
        let shared = Arc::clone(self.shared());
        shared.partitions.ensure(&shared.connect, now).await?;
        let answered = match append(self.connection(), tenant, now, requests).await {
            // There is no partition, although this process made it.
            Err(failure) if failure.is_code("23514") => {
                shared.partitions.forget();
                return Err(StoreError::Transient.into());
            }
            answered => answered?,
        };
        self.note_appended(tenant, answered.head, answered.events);
        Ok(answered.requests)
    }
}

/// The column holds text; anything else is the caller's fault and must not reach the log. PostgreSQL holds no NUL in a text: JSON text has none,
/// because a payload with one is refused before.
pub(crate) fn body_text(body: &[u8]) -> Result<&str, StoreError> {
    match std::str::from_utf8(body) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(StoreError::Conflict("an event's body is not UTF-8 text")),
    }
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
