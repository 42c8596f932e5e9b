//! Where a reader stands: a consumer behind its window, or a person or app with its own cursor.

use domain::{DeliveryFields, Seq};
use tokio::time::Instant;

use crate::DeliveryWindow;
use crate::progress::Progress;

/// The position of the reader behind a connection.
#[derive(Debug)]
pub(crate) enum Track {
    /// An agent's consumer.
    Consumer(DeliveryWindow),
    /// A person or app.
    Client(Progress),
}

impl Track {
    /// Everything up to here was checked.
    pub(crate) fn read(&self) -> Seq {
        match self {
            Self::Consumer(window) => window.read(),
            Self::Client(progress) => progress.read(),
        }
    }

    /// How many events may be dispatched now.
    pub(crate) fn budget(&self) -> usize {
        match self {
            Self::Consumer(window) => window.budget(),
            Self::Client(_) => usize::MAX,
        }
    }

    /// Up to where to read next.
    pub(crate) fn bound(&self, position: Seq) -> Seq {
        match self {
            Self::Consumer(window) => window.bound(position),
            Self::Client(progress) => progress.bound(position),
        }
    }

    /// `seq` was checked and is not delivered.
    pub(crate) fn pass(&mut self, seq: Seq) {
        match self {
            Self::Consumer(window) => window.pass(seq),
            Self::Client(progress) => progress.pass(seq),
        }
    }

    /// `seq` goes out; `None` when there is no budget for it.
    pub(crate) fn dispatch(&mut self, seq: Seq, now: Instant) -> Option<DeliveryFields> {
        match self {
            Self::Consumer(window) => window.dispatch(seq, now),
            Self::Client(progress) => {
                progress.send(seq);
                Some(DeliveryFields::default())
            }
        }
    }

    /// Ends a page; answers the position of the `cursor` frame that is due, if one is.
    pub(crate) fn end_page(&mut self) -> Option<Seq> {
        match self {
            Self::Consumer(window) => window.end_page(),
            Self::Client(progress) => progress.end_page(),
        }
    }

    /// Ends a page before its end: what was passed behind the last dispatch is checked again.
    pub(crate) fn cut_page(&mut self) {
        match self {
            Self::Consumer(window) => window.cut_page(),
            Self::Client(progress) => progress.cut_page(),
        }
    }

    /// The head of `catchup.complete`, when that is due.
    pub(crate) fn caught_up(&mut self) -> Option<Seq> {
        match self {
            Self::Consumer(window) => window.caught_up(),
            Self::Client(progress) => progress.caught_up(),
        }
    }

    /// Goes on live after `head`.
    pub(crate) fn restart_at(&mut self, head: Seq) {
        match self {
            Self::Consumer(window) => window.restart_at(head),
            Self::Client(progress) => progress.jump(head),
        }
    }
}
