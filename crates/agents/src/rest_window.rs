//! The rules of the REST window: one poll's computation over the row that it read (design/stream.md, "REST window"; seed 004, design notes 5 and 10).
//!
//! Pure: no I/O, no clock (time is passed in). Whoever serves a poll (the gateway's feed) reads the row, calls [`RestPoll::begin`], asks for the [`RestPoll::plan`], reads and
//! admits events, tells [`RestPoll::record`] what it dispatches, stores what [`RestPoll::change`] answers with the version it read, and only then answers the client.

use std::time::Duration;

use domain::{Seq, Timestamp};

use crate::{ConsumerError, CursorRow, InFlight, RestWindow, Settings};

/// The bounds of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimits {
    /// `agent.ack_timeout`.
    pub ack_timeout: Duration,
    /// `agent.max_inflight_events`.
    pub max_inflight_events: usize,
}

impl From<&Settings> for WindowLimits {
    fn from(settings: &Settings) -> Self {
        Self { ack_timeout: settings.ack_timeout, max_inflight_events: settings.max_inflight_events }
    }
}

/// What a poll may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The last page is not proven received: dispatch nothing, answer empty with [`RestPoll::next_cursor`] and `unproven`. Waiting for an acknowledgement or the deadline makes sense.
    Unproven,
    /// As many events as may be are on their way: dispatch nothing. Waiting for an acknowledgement or the deadline makes sense.
    Full,
    /// Read the log and dispatch.
    Read {
        /// The position after which to read.
        after: Seq,
        /// At most this many events may be dispatched, at least 1.
        budget: usize,
    },
}

/// One computation of a poll.
///
/// What the window remembers: an entry of [`RestWindow::in_flight`] at or below [`RestWindow::read`] is on its way, holds budget and has a deadline. One above it was dispatched before
/// delivery restarted below it: it holds nothing, and when it is dispatched again it carries the flag. One that is passed over then (no right any more) is forgotten.
#[derive(Clone, Debug)]
pub struct RestPoll {
    /// The window as it was read, reconciled with the acknowledgement; what [`RestPoll::change`] compares with.
    stored: RestWindow,
    window: RestWindow,
    acked: Seq,
    limits: WindowLimits,
    has_dispatched: bool,
}

impl RestPoll {
    /// Begins a computation at `now` (the store's clock): reconciles with the acknowledged position, restarts what is overdue, judges `after`, and sees whether the last page is proven.
    ///
    /// `head` is the committed head. A window that was never used begins at the acknowledged position.
    ///
    /// # Errors
    /// [`ConsumerError::AfterAboveHead`].
    pub fn begin(row: &CursorRow, after: Option<Seq>, head: Seq, now: Timestamp, limits: WindowLimits) -> Result<Self, ConsumerError> {
        if after.is_some_and(|after| after > head) {
            return Err(ConsumerError::AfterAboveHead);
        }
        let mut stored = row.window.clone();
        let is_new = stored.read == Seq::ZERO && stored.highest_sent == Seq::ZERO;
        stored.in_flight.retain(|entry| entry.seq > row.acked);
        stored.read = stored.read.max(row.acked);
        let mut poll = Self { window: stored.clone(), stored, acked: row.acked, limits, has_dispatched: false };
        if is_new {
            // Another holder may have told the client any position up to the head: an acknowledgement up to there proves nothing about a page of this window.
            poll.window.highest_sent = head.max(row.acked);
        }
        if poll.deadline().is_some_and(|deadline| deadline <= now) {
            poll.restart(row.acked);
        }
        poll.judge(after);
        poll.prove_by_acknowledgement();
        Ok(poll)
    }

    /// What may be done for a client that asks for at most `limit` events (at least 1).
    pub fn plan(&self, limit: usize) -> Plan {
        let free = self.limits.max_inflight_events.saturating_sub(self.in_flight());
        match free.min(limit) {
            _ if self.is_unproven() => Plan::Unproven,
            0 => Plan::Full,
            budget => Plan::Read { after: self.window.read, budget },
        }
    }

    /// Whether an event that is dispatched now carries `redelivered`: this window dispatched it before.
    pub fn is_redelivery(&self, seq: Seq) -> bool {
        seq > self.window.read && self.window.in_flight.binary_search_by_key(&seq, |entry| entry.seq).is_ok()
    }

    /// Notes a page: `dispatched` (ascending, above the position of the plan, within its budget) goes out at `now`, and everything up to `checked` was read. When the page
    /// was cut at the budget, `checked` is its last event.
    pub fn record(&mut self, dispatched: &[Seq], checked: Seq, now: Timestamp) {
        let told_before = self.window.highest_sent.max(self.window.read);
        let before = self.window.read;
        let read = dispatched.last().copied().unwrap_or(before).max(checked).max(before);
        // Entries up to `before` stay on their way, those above `read` stay remembered; between them the page decides.
        let remembered = self.window.in_flight.split_off(self.window.in_flight.partition_point(|entry| entry.seq <= before));
        self.window.in_flight.extend(dispatched.iter().map(|&seq| InFlight { seq, dispatched_at: now }));
        self.window.in_flight.extend(remembered.into_iter().filter(|entry| entry.seq > read));
        self.window.in_flight.truncate(self.limits.max_inflight_events.saturating_mul(2));
        if let Some(&first) = dispatched.first() {
            self.window.sent_before = told_before;
            self.window.page_first = first;
            self.has_dispatched = true;
        }
        self.window.read = read;
        self.window.highest_sent = told_before.max(read);
    }

    /// What the client is told to acknowledge after processing: everything checked so far, or the acknowledged position when the answer is [`RestPoll::is_unproven`].
    pub fn next_cursor(&self) -> Seq {
        if self.is_unproven() { self.acked } else { self.window.read }
    }

    /// Whether the answer must say that an earlier page is not proven received.
    pub fn is_unproven(&self) -> bool {
        self.window.page_first != Seq::ZERO && !self.has_dispatched
    }

    /// When the oldest event on its way is overdue: waiting ends there at the latest, and a poll at or after it dispatches again.
    pub fn deadline(&self) -> Option<Timestamp> {
        let oldest = self.on_its_way().iter().map(|entry| entry.dispatched_at).min()?;
        Some(oldest.plus(self.limits.ack_timeout))
    }

    /// How many events are on their way.
    pub fn in_flight(&self) -> usize {
        self.on_its_way().len()
    }

    /// The window to store before answering; `None` when there is nothing that a later poll must know.
    pub fn change(&self) -> Option<RestWindow> {
        let known = |window: &RestWindow| (window.read, window.highest_sent, window.redeliver_up_to);
        let differs = known(&self.window) != known(&self.stored) || self.window.in_flight != self.stored.in_flight;
        // A page that `after` has proven must stay proven for a poll that says nothing; what an acknowledgement proves is seen again.
        let is_proven = self.window.page_first == Seq::ZERO && self.stored.page_first != Seq::ZERO && !self.is_acknowledged();
        let differs = differs || is_proven;
        (self.has_dispatched || differs).then(|| self.window.clone())
    }

    fn on_its_way(&self) -> &[InFlight] {
        let entries = &self.window.in_flight;
        entries.get(..entries.partition_point(|entry| entry.seq <= self.window.read)).unwrap_or_default()
    }

    /// Delivery goes on after `position`; what was on its way above it comes again. No page is outstanding then.
    fn restart(&mut self, position: Seq) {
        self.window.read = position;
        self.window.page_first = Seq::ZERO;
        let highest = self.window.in_flight.last().map_or(Seq::ZERO, |entry| entry.seq);
        self.window.redeliver_up_to = self.window.redeliver_up_to.max(highest);
    }

    /// Below what was read, the client says that it lost a response; exactly there, that it has everything; above, nothing that we know of.
    fn judge(&mut self, after: Option<Seq>) {
        let Some(after) = after.map(|after| after.max(self.acked)) else { return };
        if after < self.window.read {
            self.restart(after);
        } else if after == self.window.read {
            self.window.page_first = Seq::ZERO;
        }
    }

    /// An acknowledgement above everything told before the page can only come from that page (or a later copy of it); so does one that leaves nothing on its way.
    fn prove_by_acknowledgement(&mut self) {
        if self.is_acknowledged() {
            self.window.page_first = Seq::ZERO;
        }
    }

    fn is_acknowledged(&self) -> bool {
        self.acked > self.window.sent_before || self.on_its_way().is_empty()
    }
}
