//! The hot ring: a tenant's most recent events, shared by all its readers (design/stream.md, "Hot ring").

use std::collections::VecDeque;
use std::sync::Arc;

use domain::{Event, Seq};

/// A contiguous range of events that ends at the hub position, bounded by count and bytes ([`Event::size`]).
///
/// Pure. Holds nothing until the first push; an event larger than the byte bound is not held at all.
#[derive(Debug)]
pub struct HotRing {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The position of the last event pushed, whether or not it is still held.
    end: Seq,
    max_events: usize,
    max_bytes: usize,
}

impl HotRing {
    /// An empty ring after `end`.
    pub fn new(end: Seq, max_events: usize, max_bytes: usize) -> Self {
        Self { events: VecDeque::new(), bytes: 0, end, max_events, max_bytes }
    }

    /// The position that it ends at.
    pub fn end(&self) -> Seq {
        self.end
    }

    /// The position before the first event held; [`HotRing::end`] when none is.
    pub fn start(&self) -> Seq {
        self.events.front().map_or(self.end, |event| event.seq.previous())
    }

    /// How many events are held.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The bytes of the events held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends consecutive events and lets the oldest go. Events that do not continue the ring replace what it held.
    pub fn push(&mut self, events: &[Arc<Event>]) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        if first.seq != self.end.next() {
            self.reset(first.seq.previous());
        }
        // What would be let go again is not taken in.
        let kept = events.get(events.len().saturating_sub(self.max_events)..).unwrap_or_default();
        if kept.len() < events.len() {
            self.clear();
        }
        self.bytes += kept.iter().map(|event| event.size()).sum::<usize>();
        self.events.extend(kept.iter().cloned());
        self.end = last.seq;
        self.trim();
    }

    /// Changes the byte bound.
    pub fn bound_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        self.trim();
    }

    /// Forgets everything; the ring ends at `end`.
    pub fn reset(&mut self, end: Seq) {
        self.clear();
        self.end = end;
    }

    /// Events strictly after `after` up to and with `up_to`, at most `max_events` of at most `max_bytes` together (a first one larger than that alone).
    /// `None` when the first of them is not held any more (or not yet): the store has it.
    pub fn range(&self, after: Seq, up_to: Seq, max_events: usize, max_bytes: usize) -> Option<Vec<Arc<Event>>> {
        if after < self.start() || after > self.end {
            return None;
        }
        let from = usize::try_from(after.since(self.start())).ok()?;
        let wanted = usize::try_from(up_to.min(self.end).since(after)).unwrap_or(usize::MAX).min(max_events);
        let mut bytes = 0_usize;
        let fits = |event: &&Arc<Event>| {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(event.size());
            is_first || bytes <= max_bytes
        };
        Some(self.events.range(from..).take(wanted).take_while(fits).cloned().collect())
    }

    fn clear(&mut self) {
        self.events.clear();
        self.bytes = 0;
    }

    fn trim(&mut self) {
        while self.events.len() > self.max_events || self.bytes > self.max_bytes {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.size();
        }
    }
}
