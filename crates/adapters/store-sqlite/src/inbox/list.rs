//! Listings of one inbox: by event, and by ring.

use domain::{EventId, Seq};
use inbox::{AckState, Item, ItemFilter, ItemPage, ItemRange, PollRange, RecipientNumber};
use rusqlite::{Connection, Params, Row, params};

use super::rows::{ended_item, hot_item, state_number};
use super::select::{Lost, admits, item, readable};
use crate::codec;
use crate::failure::Failure;
use crate::metrics::StoreMetrics;
use crate::sql::sql;

/// The place of `state`, `queue`, `type`, `created_at` and `ring_seq` among the columns of an item.
const STATE: usize = 16;
const QUEUE: usize = 7;
const TYPE: usize = 3;
const CREATED_AT: usize = 13;
const RING: usize = 15;

/// Scans that one listing consists of at most: what is current or put aside in either way, and what has ended.
const SCANS: usize = 3;

/// Whether the listing looks at items in that state.
fn asks_for(filter: &ItemFilter, wanted: fn(AckState) -> bool) -> bool {
    filter.states.is_empty() || filter.states.iter().copied().any(wanted)
}

/// Whether a row may match: what is cheap to tell before the row is read as a whole. What is odd passes, and is found to be unreadable.
fn may_match(row: &Row<'_>, filter: &ItemFilter) -> Result<bool, Failure> {
    let differs = |column: usize, wanted: Option<&str>| {
        let text = row.get_ref(column).ok().and_then(|value| value.as_str().ok());
        wanted.is_some_and(|wanted| text.is_some_and(|text| text != wanted))
    };
    let state = row.get_ref(STATE)?.as_i64().ok().and_then(super::rows::parse_state);
    let created_at = row.get_ref(CREATED_AT)?.as_i64().unwrap_or_default();
    Ok(!(state.is_some_and(|state| !filter.states.is_empty() && !filter.states.contains(&state))
        || differs(QUEUE, filter.queue.as_ref().map(domain::QueueName::as_str))
        || differs(TYPE, filter.event_type.as_ref().map(domain::EventType::as_str))
        || filter.created_before.is_some_and(|end| created_at >= end.as_micros())
        || filter.created_after.is_some_and(|start| created_at < start.as_micros())))
}

/// One pass over rows in the order of their events.
struct Pass<'a> {
    connection: &'a Connection,
    metrics: &'a StoreMetrics,
    filter: &'a ItemFilter,
    range: ItemRange,
    lost: &'a mut Vec<Lost>,
    items: Vec<Item>,
    /// The first event that one of the scans did not go beyond: what others found after it is for the next page.
    end: Option<EventId>,
}

impl Pass<'_> {
    /// Looks at no more than its share of the rows, of which there are as many as scans.
    fn over(&mut self, statement: &str, values: impl Params, read: fn(&Row<'_>) -> Result<Item, Failure>) -> Result<(), Failure> {
        let mut statement = self.connection.prepare_cached(statement)?;
        let mut rows = statement.query(values)?;
        let (mut found, mut looked, mut bytes) = (0, 0, 0);
        let scan_max = (self.range.scan_max / SCANS).max(1);
        while let Some(row) = rows.next()? {
            looked += 1;
            let item = if may_match(row, self.filter)? { readable(row, read, self.metrics, self.lost)? } else { None };
            if let Some(item) = item.filter(|item| self.filter.matches(item)) {
                found += 1;
                bytes += item.history_bytes();
                self.items.push(item);
            }
            // One more than fits tells whether more follow.
            let is_enough = found > self.range.limit || looked >= scan_max || (bytes > self.range.bytes_max && found > 1);
            if is_enough && let Ok(event) = codec::uuid(row, 1).map(EventId::new) {
                self.end = Some(self.end.map_or(event, |end| end.min(event)));
                break;
            }
        }
        Ok(())
    }

    /// The named events only.
    fn named(&mut self, recipient: RecipientNumber, after: Option<EventId>) -> Result<(), Failure> {
        let mut events = self.filter.event_ids.clone();
        events.sort_unstable();
        events.dedup();
        for event in events.into_iter().filter(|event| after.is_none_or(|after| *event > after)) {
            let item = item(self.connection, self.metrics, recipient, event, self.lost)?;
            self.items.extend(item.filter(|item| self.filter.matches(item)));
        }
        Ok(())
    }

    fn hot(&mut self, recipient: RecipientNumber, after: &[u8]) -> Result<(), Failure> {
        let aside = |state: AckState| !state.is_current() && !state.is_ended();
        if self.filter.states.is_empty() || self.filter.states.iter().any(|state| state.is_current()) {
            return self.over(sql!("inbox/items_after"), params![recipient.get(), after], hot_item);
        }
        for state in self.filter.states.iter().copied().filter(|state| aside(*state)) {
            self.over(sql!("inbox/aside_after"), params![recipient.get(), state_number(state), after], hot_item)?;
        }
        Ok(())
    }

    fn finish(self) -> ItemPage {
        let Self { range, mut items, end: mut next, .. } = self;
        items.retain(|item| next.is_none_or(|end| item.facts.event_id <= end));
        items.sort_by_key(|item| item.facts.event_id);
        items.dedup_by_key(|item| item.facts.event_id);
        let mut bytes = 0;
        let mut fits = |item: &Item| {
            bytes += item.history_bytes();
            bytes <= range.bytes_max
        };
        let room = items.iter().take_while(|item| fits(item)).count().max(1).min(range.limit.max(1));
        if items.len() > room {
            items.truncate(room);
            next = items.last().map(|item| item.facts.event_id);
        }
        ItemPage { items, next }
    }
}

/// Where a listing continues; no event is smaller than the empty key.
fn after_key(after: Option<EventId>) -> Vec<u8> {
    after.map(|event| event.uuid().into_bytes().to_vec()).unwrap_or_default()
}

/// Items that have not ended.
pub(super) fn hot(
    connection: &Connection,
    metrics: &StoreMetrics,
    recipient: RecipientNumber,
    filter: &ItemFilter,
    range: ItemRange,
    lost: &mut Vec<Lost>,
) -> Result<ItemPage, Failure> {
    let mut pass = Pass { connection, metrics, filter, range, lost, items: Vec::new(), end: None };
    if filter.event_ids.is_empty() {
        pass.hot(recipient, &after_key(range.after))?;
    } else {
        pass.named(recipient, range.after)?;
        pass.items.retain(|item| !item.state.is_ended());
    }
    Ok(pass.finish())
}

/// Items in any state.
pub(super) fn any(
    connection: &Connection,
    metrics: &StoreMetrics,
    recipient: RecipientNumber,
    filter: &ItemFilter,
    range: ItemRange,
) -> Result<ItemPage, Failure> {
    let mut lost = Vec::new();
    let mut pass = Pass { connection, metrics, filter, range, lost: &mut lost, items: Vec::new(), end: None };
    if !filter.event_ids.is_empty() {
        pass.named(recipient, range.after)?;
        return Ok(pass.finish());
    }
    let key = after_key(range.after);
    if asks_for(filter, |state| !state.is_ended()) {
        pass.hot(recipient, &key)?;
    }
    if asks_for(filter, AckState::is_ended) {
        pass.over(sql!("inbox/ended_after"), params![recipient.get(), key], ended_item)?;
    }
    Ok(pass.finish())
}

/// What a poll finds.
pub(super) struct Rings {
    pub(super) items: Vec<Item>,
    /// Whether more may follow, and where to go on.
    pub(super) more: bool,
    pub(super) next: Seq,
}

/// Current items by their ring.
pub(super) fn poll(
    connection: &Connection,
    metrics: &StoreMetrics,
    recipient: RecipientNumber,
    range: &PollRange,
) -> Result<Rings, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/poll"))?;
    let mut rows = statement.query(params![recipient.get(), codec::from_seq(range.after)])?;
    let (mut items, mut lost): (Vec<Item>, _) = (Vec::new(), Vec::new());
    let (mut looked, mut reached) = (0, range.after);
    while let Some(row) = rows.next()? {
        if looked >= range.scan_max.max(1) {
            return Ok(Rings { items, more: true, next: reached });
        }
        looked += 1;
        reached = codec::seq(row, RING).unwrap_or(reached);
        let claimable = row.get_ref(STATE)?.as_i64().ok() == Some(state_number(AckState::Available));
        let admitted = row.get_ref(QUEUE)?.as_str().is_ok_and(|queue| admits(&range.queues, queue));
        if !admitted || (range.claimable_only && !claimable) {
            continue;
        }
        let Some(item) = readable(row, hot_item, metrics, &mut lost)? else { continue };
        if items.len() >= range.limit.max(1) {
            let next = items.last().map_or(range.after, |item| item.ring_seq);
            return Ok(Rings { items, more: true, next });
        }
        items.push(item);
    }
    let next = items.last().map_or(range.after, |item| item.ring_seq);
    Ok(Rings { items, more: false, next })
}

/// The lowest ring of a current item.
pub(super) fn oldest(connection: &Connection, recipient: RecipientNumber) -> Result<Option<Seq>, Failure> {
    let mut statement = connection.prepare_cached(sql!("inbox/oldest_ring"))?;
    let ring: Option<i64> = statement.query_row([recipient.get()], |row| row.get(0))?;
    Ok(ring.and_then(|ring| Seq::new(u64::try_from(ring).ok()?)))
}
