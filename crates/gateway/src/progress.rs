//! How far a reader of the log is, and which frames that calls for. Pure: no I/O, no clock.

use domain::Seq;

/// The position of one reader: what was checked, what the reader was told, and whether it is still catching up.
///
/// Rules of seed 004, design note 5 ("Frames"); the same for consumers and for people and apps.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// Everything up to here was checked.
    read: Seq,
    /// Everything up to here was checked in the page at hand; becomes `read` when the page ends uncut.
    passed: Seq,
    /// The last position that a frame carried.
    told: Seq,
    /// The head at the start; absent once it was reached, or when there is no catching up.
    catch_up: Option<Seq>,
    /// `sync.cursor_advance_every`.
    advance_every: u64,
}

impl Progress {
    /// A reader that has everything up to `start` and catches up to `head`.
    pub(crate) const fn catching_up(start: Seq, head: Seq, advance_every: u64) -> Self {
        Self { read: start, passed: start, told: start, catch_up: Some(head), advance_every }
    }

    /// A reader that begins live after `start`.
    pub(crate) const fn live(start: Seq, advance_every: u64) -> Self {
        Self { read: start, passed: start, told: start, catch_up: None, advance_every }
    }

    /// Everything up to here was checked.
    pub(crate) const fn read(&self) -> Seq {
        self.read
    }

    /// The last position that a frame carried.
    pub(crate) const fn told(&self) -> Seq {
        self.told
    }

    /// Up to where to read next, when the log is known up to `position`: while catching up not beyond the head of the start, so that
    /// `catchup.complete` stands exactly behind it.
    pub(crate) fn bound(&self, position: Seq) -> Seq {
        self.catch_up.map_or(position, |head| head.min(position))
    }

    /// `seq` was checked and is not for this reader.
    pub(crate) fn pass(&mut self, seq: Seq) {
        self.passed = self.passed.max(seq);
    }

    /// `seq` is on its way in a frame.
    pub(crate) fn send(&mut self, seq: Seq) {
        self.read = seq;
        self.passed = seq;
        self.told = seq;
    }

    /// The page at hand was cut: what was passed after the last frame is checked again.
    pub(crate) fn cut_page(&mut self) {
        self.passed = self.read;
    }

    /// The page at hand is done. Answers the position of the `cursor` frame that is due, if one is.
    pub(crate) fn end_page(&mut self) -> Option<Seq> {
        self.read = self.passed;
        let skipped = self.read.since(self.told);
        let due = if self.catch_up.is_some() { skipped > 0 } else { skipped >= self.advance_every.max(1) };
        due.then(|| {
            self.told = self.read;
            self.read
        })
    }

    /// The head of the start, once: when everything up to it was checked, `catchup.complete` is due.
    pub(crate) fn caught_up(&mut self) -> Option<Seq> {
        self.catch_up.take_if(|head| *head <= self.read)
    }

    /// The reader has everything up to `seq`.
    pub(crate) fn raise(&mut self, seq: Seq) {
        self.told = self.told.max(seq);
        self.read = self.read.max(seq);
        self.passed = self.passed.max(seq);
    }

    /// Reading begins again after `seq`.
    pub(crate) fn rewind(&mut self, seq: Seq) {
        self.read = seq;
        self.passed = seq;
    }

    /// What was told last did not leave after all; the last that did is `seq`.
    pub(crate) fn untell(&mut self, seq: Seq) {
        self.told = seq;
    }

    /// Reading goes on live after `head`, without `catchup.complete` (a resync).
    pub(crate) fn jump(&mut self, head: Seq) {
        *self = Self::live(head, self.advance_every);
    }
}
