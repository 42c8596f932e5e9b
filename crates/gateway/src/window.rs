//! The delivery window of a consumer: which events may be on their way, which come again, which carry the flag (seed 004, design
//! note 5). Pure: no I/O, no clock; knows positions, never events.

use std::collections::VecDeque;
use std::time::Duration;

use domain::{DeliveryFields, Seq};
use tokio::time::Instant;

use crate::progress::Progress;

/// How many windows full of dispatched numbers are remembered for the flag. More than one is only needed when the agent's rights
/// change between redeliveries of the same unacknowledged stretch.
const REMEMBERED_WINDOWS: usize = 4;

/// What an idle window may keep allocated, in dispatches.
const IDLE_CAPACITY: usize = 8;

/// Bounds of a window.
#[derive(Clone, Copy, Debug)]
pub struct WindowLimits {
    /// `agent.max_inflight_events`.
    pub max_inflight: usize,
    /// `agent.ack_timeout`.
    pub ack_timeout: Duration,
    /// `sync.cursor_advance_every`.
    pub cursor_advance_every: u64,
}

/// An event on its way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: Seq,
    at: Instant,
}

/// The delivery window of one consumer.
///
/// A caller reads events after [`DeliveryWindow::read`] up to [`DeliveryWindow::bound`], hands each to [`DeliveryWindow::pass`] or
/// [`DeliveryWindow::dispatch`] in order, and ends every page with [`DeliveryWindow::end_page`], or with [`DeliveryWindow::cut_page`] when
/// there was no budget for an event of it.
#[derive(Clone, Debug)]
pub struct DeliveryWindow {
    limits: WindowLimits,
    progress: Progress,
    acked: Seq,
    /// Dispatched since the last restart and not acknowledged, ascending. Empty until the first dispatch, and bounded.
    in_flight: VecDeque<Sent>,
    /// Dispatched before the last restart and not acknowledged, ascending: exactly these carry the flag when they come again.
    sent_before: Vec<Seq>,
}

impl DeliveryWindow {
    /// A fresh window after `acked` that catches up to `head`. Nothing it dispatches carries the flag until a timeout.
    pub fn new(acked: Seq, head: Seq, limits: WindowLimits) -> Self {
        Self {
            limits,
            progress: Progress::catching_up(acked, head, limits.cursor_advance_every),
            acked,
            in_flight: VecDeque::new(),
            sent_before: Vec::new(),
        }
    }

    /// How many more events may be dispatched. At zero nothing is read.
    pub fn budget(&self) -> usize {
        self.limits.max_inflight.saturating_sub(self.in_flight.len())
    }

    /// Everything up to here is acknowledged.
    pub const fn acked(&self) -> Seq {
        self.acked
    }

    /// Everything up to here was checked.
    pub const fn read(&self) -> Seq {
        self.progress.read()
    }

    /// How many events are on their way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Up to where to read next; see [`Progress::bound`].
    pub fn bound(&self, position: Seq) -> Seq {
        self.progress.bound(position)
    }

    /// `seq` was checked and is not delivered: not admitted, or withheld by the hook.
    pub fn pass(&mut self, seq: Seq) {
        self.progress.pass(seq);
    }

    /// Dispatches `seq` at `now` and answers its delivery fields; `None` when the budget is used up.
    pub fn dispatch(&mut self, seq: Seq, now: Instant) -> Option<DeliveryFields> {
        if self.budget() == 0 {
            return None;
        }
        self.in_flight.push_back(Sent { seq, at: now });
        self.progress.send(seq);
        Some(DeliveryFields { redelivered: self.was_sent_before(seq) })
    }

    fn was_sent_before(&self, seq: Seq) -> bool {
        self.sent_before.last().is_some_and(|last| *last >= seq) && self.sent_before.binary_search(&seq).is_ok()
    }

    /// Ends the page at hand. Answers the position of the `cursor` frame that is due, if one is.
    pub fn end_page(&mut self) -> Option<Seq> {
        self.progress.end_page()
    }

    /// Ends the page at hand before its end: what was passed behind the last dispatch is checked again.
    pub fn cut_page(&mut self) {
        self.progress.cut_page();
    }

    /// See [`Progress::caught_up`].
    pub fn caught_up(&mut self) -> Option<Seq> {
        self.progress.caught_up()
    }

    /// Acknowledges everything up to `seq`, also beyond what was dispatched. Answers whether that changed anything.
    ///
    /// An acknowledgement that was stored elsewhere (REST, a verification) is adopted in the same way.
    pub fn ack(&mut self, seq: Seq) -> bool {
        if seq <= self.acked {
            return false;
        }
        self.acked = seq;
        while self.in_flight.pop_front_if(|sent| sent.seq <= seq).is_some() {}
        let forgotten = self.sent_before.partition_point(|sent| *sent <= seq);
        self.sent_before.drain(..forgotten);
        self.progress.raise(seq);
        true
    }

    /// When the oldest event on its way was dispatched.
    pub fn oldest(&self) -> Option<Instant> {
        self.in_flight.front().map(|oldest| oldest.at)
    }

    /// When delivery restarts unless an acknowledgement comes: `agent.ack_timeout` after the oldest dispatch on its way.
    pub fn deadline(&self) -> Option<Instant> {
        self.oldest().map(|oldest| oldest + self.limits.ack_timeout)
    }

    /// Restarts delivery after what is acknowledged, if the deadline has passed by `now`. Answers whether it did.
    pub fn expire(&mut self, now: Instant) -> bool {
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return false;
        }
        self.remember_in_flight();
        self.progress.rewind(self.acked);
        true
    }

    /// Moves what is on its way to what was sent before. Beyond the bound, the highest of the numbers that were not on their way are
    /// forgotten: they come without the flag should they ever be admitted again.
    fn remember_in_flight(&mut self) {
        let fresh: Vec<Seq> = self.in_flight.drain(..).map(|sent| sent.seq).collect();
        self.sent_before.retain(|seq| fresh.binary_search(seq).is_err());
        let room = self.limits.max_inflight.saturating_mul(REMEMBERED_WINDOWS).saturating_sub(fresh.len());
        self.sent_before.truncate(room);
        self.sent_before.extend(fresh);
        self.sent_before.sort_unstable();
    }

    /// The dispatches of `gone` were purged before they left: they hold no budget any more, and the next `cursor` lets the consumer
    /// acknowledge past them.
    pub fn release(&mut self, gone: impl Fn(Seq) -> bool) {
        self.in_flight.retain(|sent| !gone(sent.seq));
        if gone(self.progress.told()) {
            let last = self.in_flight.back().map_or(self.acked, |sent| sent.seq);
            self.progress.untell(last);
        }
    }

    /// Starts afresh and live after `head`, without `catchup.complete`: the position could not be served.
    pub fn restart_at(&mut self, head: Seq) {
        self.acked = head;
        self.in_flight = VecDeque::new();
        self.sent_before = Vec::new();
        self.progress.jump(head);
    }

    /// Gives the memory of a burst back while nothing is on its way; for a consumer about to be idle.
    pub fn trim(&mut self) {
        if self.in_flight.is_empty() && self.in_flight.capacity() > IDLE_CAPACITY {
            self.in_flight = VecDeque::new();
        }
        if self.sent_before.is_empty() && self.sent_before.capacity() > 0 {
            self.sent_before = Vec::new();
        }
    }
}
