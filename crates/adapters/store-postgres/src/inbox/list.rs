//! Listings of one inbox: by event, and by ring. Rows are read in portions, so that none is read for long that is not looked at.

use domain::{EventId, QueueName, Seq, Timestamp};
use inbox::{AckState, Item, ItemFilter, ItemPage, ItemRange, PollRange, RecipientNumber};
use uuid::Uuid;

use super::rows::{Lost, ended_item, hot_item, parse_state, readable, state_number};
use super::select::{admits, named, of};
use crate::codec::{self, from_count, from_seq};
use crate::db::{PgRow, Session};
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
/// Rows of the first and of the largest portion.
const FIRST: usize = 32;
const LARGEST: usize = 1_000;

/// Whether the listing looks at items in that state.
fn asks_for(filter: &ItemFilter, wanted: fn(AckState) -> bool) -> bool {
    filter.states.is_empty() || filter.states.iter().copied().any(wanted)
}

/// Whether a row may match: what is cheap to tell before the row is read as a whole. What is odd passes, and is found to be unreadable.
fn may_match(row: &PgRow, filter: &ItemFilter) -> Result<bool, Failure> {
    let differs = |column: usize, wanted: Option<&str>| -> Result<bool, Failure> {
        let Some(wanted) = wanted else { return Ok(false) };
        Ok(codec::get::<&str>(row, column)? != wanted)
    };
    let state = parse_state(codec::get(row, STATE)?);
    let created_at: i64 = codec::get(row, CREATED_AT)?;
    Ok(!(state.is_some_and(|state| !filter.states.is_empty() && !filter.states.contains(&state))
        || differs(QUEUE, filter.queue.as_ref().map(QueueName::as_str))?
        || differs(TYPE, filter.event_type.as_ref().map(domain::EventType::as_str))?
        || filter.created_before.is_some_and(|end| created_at >= Timestamp::as_micros(end))
        || filter.created_after.is_some_and(|start| created_at < start.as_micros())))
}

/// Where rows are read from.
#[derive(Clone, Copy)]
enum Source {
    /// What has not ended.
    Hot,
    /// What was put aside in that state.
    Aside(AckState),
    Ended,
}

impl Source {
    async fn rows(self, connection: &mut Session, recipient: RecipientNumber, after: Uuid, count: usize) -> Result<Vec<PgRow>, Failure> {
        let query = match self {
            Self::Hot => of(sql!("inbox/items_after"), recipient),
            Self::Aside(state) => of(sql!("inbox/aside_after"), recipient).bind(state_number(state)),
            Self::Ended => of(sql!("inbox/ended_after"), recipient),
        };
        Ok(query.bind(after).bind(from_count(count)).fetch_all(connection).await?)
    }

    const fn read(self) -> fn(&PgRow) -> Result<Item, Failure> {
        match self {
            Self::Hot | Self::Aside(_) => hot_item,
            Self::Ended => ended_item,
        }
    }
}

/// One pass over rows in the order of their events.
struct Pass<'a> {
    connection: &'a mut Session,
    metrics: &'a StoreMetrics,
    recipient: RecipientNumber,
    filter: &'a ItemFilter,
    range: ItemRange,
    lost: &'a mut Vec<Lost>,
    items: Vec<Item>,
    /// The first event that one of the scans did not go beyond: what others found after it is for the next page.
    end: Option<EventId>,
}

impl Pass<'_> {
    /// Looks at no more than its share of the rows, of which there are as many as scans.
    async fn over(&mut self, source: Source) -> Result<(), Failure> {
        let (mut found, mut looked, mut bytes) = (0, 0, 0);
        let scan_max = (self.range.scan_max / SCANS).max(1);
        let mut after = self.range.after.map_or(Uuid::nil(), EventId::uuid);
        let mut portion = self.range.limit.saturating_add(1).clamp(FIRST, LARGEST);
        loop {
            portion = portion.min(scan_max - looked);
            let rows = source.rows(self.connection, self.recipient, after, portion).await?;
            for row in &rows {
                looked += 1;
                after = codec::uuid(row, 1)?;
                let item = if may_match(row, self.filter)? { readable(row, source.read(), self.metrics, self.lost)? } else { None };
                if let Some(item) = item.filter(|item| self.filter.matches(item)) {
                    found += 1;
                    bytes += item.history_bytes();
                    self.items.push(item);
                }
                // One more than fits tells whether more follow.
                if found > self.range.limit || looked >= scan_max || (bytes > self.range.bytes_max && found > 1) {
                    let event = EventId::new(after);
                    self.end = Some(self.end.map_or(event, |end| end.min(event)));
                    return Ok(());
                }
            }
            if rows.len() < portion {
                return Ok(());
            }
            portion = portion.saturating_mul(2).min(LARGEST);
        }
    }

    /// The named events only.
    async fn named(&mut self) -> Result<(), Failure> {
        let mut events = self.filter.event_ids.clone();
        events.sort_unstable();
        events.dedup();
        events.retain(|event| self.range.after.is_none_or(|after| *event > after));
        let found = named(self.connection, self.metrics, sql!("inbox/items"), self.recipient, &events, self.lost).await?;
        let filter = self.filter;
        self.items.extend(events.iter().filter_map(|event| found.get(event)).filter(|item| filter.matches(item)).cloned());
        Ok(())
    }

    async fn hot(&mut self) -> Result<(), Failure> {
        let aside = |state: AckState| !state.is_current() && !state.is_ended();
        if self.filter.states.is_empty() || self.filter.states.iter().any(|state| state.is_current()) {
            return self.over(Source::Hot).await;
        }
        for state in self.filter.states.clone().into_iter().filter(|state| aside(*state)) {
            self.over(Source::Aside(state)).await?;
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

/// Items that have not ended.
pub(super) async fn hot(
    connection: &mut Session,
    metrics: &StoreMetrics,
    recipient: RecipientNumber,
    filter: &ItemFilter,
    range: ItemRange,
    lost: &mut Vec<Lost>,
) -> Result<ItemPage, Failure> {
    let mut pass = Pass { connection, metrics, recipient, filter, range, lost, items: Vec::new(), end: None };
    if filter.event_ids.is_empty() {
        pass.hot().await?;
    } else {
        pass.named().await?;
        pass.items.retain(|item| !item.state.is_ended());
    }
    Ok(pass.finish())
}

/// Items in any state.
pub(super) async fn any(
    connection: &mut Session,
    metrics: &StoreMetrics,
    recipient: RecipientNumber,
    filter: &ItemFilter,
    range: ItemRange,
) -> Result<ItemPage, Failure> {
    let mut lost = Vec::new();
    let mut pass = Pass { connection, metrics, recipient, filter, range, lost: &mut lost, items: Vec::new(), end: None };
    if !filter.event_ids.is_empty() {
        pass.named().await?;
        return Ok(pass.finish());
    }
    if asks_for(filter, |state| !state.is_ended()) {
        pass.hot().await?;
    }
    if asks_for(filter, AckState::is_ended) {
        pass.over(Source::Ended).await?;
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
pub(super) async fn poll(
    connection: &mut Session,
    metrics: &StoreMetrics,
    recipient: RecipientNumber,
    range: &PollRange,
) -> Result<Rings, Failure> {
    let (mut items, mut lost): (Vec<Item>, _) = (Vec::new(), Vec::new());
    let (mut looked, mut reached) = (0, range.after);
    let (limit, scan_max) = (range.limit.max(1), range.scan_max.max(1));
    let mut portion = limit.saturating_add(1).clamp(FIRST, LARGEST);
    loop {
        let query = of(sql!("inbox/poll"), recipient).bind(from_seq(reached)).bind(from_count(portion));
        let rows = query.fetch_all(&mut *connection).await?;
        for row in &rows {
            if looked >= scan_max {
                return Ok(Rings { items, more: true, next: reached });
            }
            looked += 1;
            reached = codec::seq(row, RING).unwrap_or(reached);
            let claimable = codec::get::<i16>(row, STATE)? == state_number(AckState::Available);
            if !admits(&range.queues, codec::get(row, QUEUE)?) || (range.claimable_only && !claimable) {
                continue;
            }
            let Some(item) = readable(row, hot_item, metrics, &mut lost)? else { continue };
            if items.len() >= limit {
                let next = items.last().map_or(range.after, |item| item.ring_seq);
                return Ok(Rings { items, more: true, next });
            }
            items.push(item);
        }
        if rows.len() < portion {
            let next = items.last().map_or(range.after, |item| item.ring_seq);
            return Ok(Rings { items, more: false, next });
        }
        portion = portion.saturating_mul(2).min(LARGEST);
    }
}

/// The lowest ring of a current item.
pub(super) async fn oldest(connection: &mut Session, recipient: RecipientNumber) -> Result<Option<Seq>, Failure> {
    let row = of(sql!("inbox/oldest_ring"), recipient).fetch_one(connection).await?;
    codec::optional_seq(&row, 0)
}
