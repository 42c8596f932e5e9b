//! What a consumer was handed and what it is done with: which deliveries are repeats, and how far may be acknowledged.
//!
//! Pure: no I/O, no clock. Must not know how events arrive.

use std::collections::VecDeque;

use domain::{EventId, Seq};

use super::recent::RecentIds;

/// What an arriving event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Not seen before: hand it out.
    New,
    /// Seen before, and the application let go of it without an acknowledgement: hand it out again.
    Again,
    /// Still waiting or being worked on in this process.
    InHand,
    /// Acknowledged already; the server has not heard of it.
    Done,
}

/// Where an event that is not acknowledged is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Waiting in the queue or held by the application.
    InHand,
    /// The application let go of it.
    LetGo,
    /// Done with before its turn: acknowledged in an earlier life of the log.
    Done,
}

#[derive(Debug)]
struct Outstanding {
    seq: Seq,
    id: EventId,
    place: Place,
}

/// A position belongs to one history of the log; after a resync earlier ones mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// What was acknowledged that is above everything that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeverHandedOut;

/// The books of one consumer.
#[derive(Debug)]
pub(crate) struct Ledger {
    generation: Generation,
    /// Everything up to here is done with, by the application or by the server's account.
    acked: Seq,
    /// The server has checked everything up to here; what it did not dispatch was not for this consumer.
    checked: Seq,
    /// Dispatched and above `acked`, ascending.
    outstanding: VecDeque<Outstanding>,
    recent: RecentIds,
    /// The highest position that was sent to the server on this connection, or that it named itself.
    sent: Seq,
    /// Deliveries that were acknowledged since an acknowledgement was sent.
    unsent: usize,
}

impl Ledger {
    /// Empty books that remember the last `memory` acknowledged ids.
    pub(crate) fn new(memory: usize) -> Self {
        Self {
            generation: Generation(0),
            acked: Seq::ZERO,
            checked: Seq::ZERO,
            outstanding: VecDeque::new(),
            recent: RecentIds::new(memory),
            sent: Seq::ZERO,
            unsent: 0,
        }
    }

    /// The present history.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// The server's account at the start of a connection. What it has not heard is to be sent again; what it knows more is adopted.
    pub(crate) fn connected(&mut self, acked: Seq) {
        self.sent = acked;
        self.done_up_to(acked);
        self.checked = self.checked.max(self.acked);
    }

    /// Another history begins after `head`: what was handed out before can no longer be acknowledged.
    pub(crate) fn resync(&mut self, head: Seq) {
        self.generation = Generation(self.generation.0 + 1);
        self.outstanding.clear();
        (self.acked, self.checked, self.sent, self.unsent) = (head, head, head, 0);
    }

    /// An event has arrived.
    pub(crate) fn arrived(&mut self, seq: Seq, id: EventId) -> Arrival {
        self.checked = self.checked.max(seq);
        if seq <= self.acked {
            // Its acknowledgement was lost: say it again.
            self.sent = self.sent.min(seq.previous());
            return Arrival::Done;
        }
        let known = self.recent.contains(id);
        let at = self.outstanding.partition_point(|entry| entry.seq < seq);
        match self.outstanding.get_mut(at).filter(|entry| entry.seq == seq) {
            Some(entry) if entry.id == id => match entry.place {
                Place::InHand => Arrival::InHand,
                Place::Done => Arrival::Done,
                Place::LetGo => {
                    entry.place = Place::InHand;
                    Arrival::Again
                }
            },
            Some(entry) => {
                (entry.id, entry.place) = (id, Place::InHand);
                Arrival::New
            }
            None => {
                let place = if known { Place::Done } else { Place::InHand };
                self.outstanding.insert(at, Outstanding { seq, id, place });
                self.settle();
                if known { Arrival::Done } else { Arrival::New }
            }
        }
    }

    /// The server has checked everything up to `seq`.
    pub(crate) fn checked(&mut self, seq: Seq) {
        self.checked = self.checked.max(seq);
    }

    /// The application is done with everything up to `seq`. Positions of an earlier history change nothing.
    pub(crate) fn acknowledge(&mut self, generation: Generation, seq: Seq) -> Result<(), NeverHandedOut> {
        if generation != self.generation {
            return Ok(());
        }
        if seq > self.checked {
            return Err(NeverHandedOut);
        }
        self.done_up_to(seq);
        Ok(())
    }

    /// The application has let go of a delivery; without an acknowledgement it may come again.
    pub(crate) fn let_go(&mut self, generation: Generation, seq: Seq) {
        if generation != self.generation {
            return;
        }
        if let Ok(at) = self.outstanding.binary_search_by_key(&seq, |entry| entry.seq)
            && let Some(entry) = self.outstanding.get_mut(at)
            && entry.place == Place::InHand
        {
            entry.place = Place::LetGo;
        }
    }

    /// Everything up to here may be acknowledged: what is done with, and what lies between and was not for this consumer.
    pub(crate) fn position(&self) -> Seq {
        match self.outstanding.front() {
            Some(first) => self.checked.min(first.seq.previous()),
            None => self.checked,
        }
        .max(self.acked)
    }

    /// Deliveries whose acknowledgement the server has not been sent.
    pub(crate) fn unsent(&self) -> usize {
        if self.acked > self.sent { self.unsent.max(1) } else { 0 }
    }

    /// Whether the position is above what the server was sent.
    pub(crate) fn is_ahead(&self) -> bool {
        self.position() > self.sent
    }

    /// Whether everything that was handed out is done with.
    pub(crate) fn is_settled(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// The position is being sent.
    pub(crate) fn sending(&mut self) -> Seq {
        self.sent = self.sent.max(self.position());
        self.unsent = 0;
        self.sent
    }

    /// What the server was sent on this connection, or named itself.
    pub(crate) fn sent(&self) -> Seq {
        self.sent
    }

    /// What was sent was not taken; it has to be sent again.
    pub(crate) fn refused(&mut self) {
        self.sent = Seq::ZERO;
    }

    fn done_up_to(&mut self, seq: Seq) {
        while let Some(first) = self.outstanding.front().filter(|first| first.seq <= seq) {
            self.recent.insert(first.id);
            self.unsent += 1;
            self.outstanding.pop_front();
        }
        self.acked = self.acked.max(seq);
        self.settle();
    }

    /// Takes what was done before its turn when its turn comes.
    fn settle(&mut self) {
        while let Some(first) = self.outstanding.front().filter(|first| first.place == Place::Done) {
            self.acked = self.acked.max(first.seq);
            self.unsent += 1;
            self.outstanding.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{EventId, IdGenerator as _, Seq, SystemIds};
    use proptest::prelude::*;

    use super::{Arrival, Ledger, NeverHandedOut};

    fn seq(number: u64) -> Seq {
        Seq::new(number).unwrap()
    }

    fn ids(count: usize) -> Vec<EventId> {
        (0..=count).map(|_| EventId::new(SystemIds.uuid())).collect()
    }

    fn started(acked: u64) -> Ledger {
        let mut ledger = Ledger::new(100);
        ledger.connected(seq(acked));
        ledger
    }

    fn ack(ledger: &mut Ledger, to: u64) {
        ledger.acknowledge(ledger.generation(), seq(to)).unwrap();
    }

    #[test]
    fn acknowledging_is_cumulative_and_monotone() {
        let (mut ledger, ids) = (started(10), ids(20));
        for number in 11..=15 {
            assert_eq!(ledger.arrived(seq(number), ids[number as usize]), Arrival::New);
        }
        ack(&mut ledger, 13);
        assert_eq!((ledger.position(), ledger.unsent()), (seq(13), 3));
        ack(&mut ledger, 12);
        assert_eq!(ledger.position(), seq(13));
    }

    #[test]
    fn a_cursor_moves_the_position_only_over_what_is_not_for_this_consumer() {
        let (mut ledger, ids) = (started(10), ids(30));
        ledger.checked(seq(14));
        assert_eq!(ledger.position(), seq(14));
        assert_eq!(ledger.unsent(), 0);
        assert!(ledger.is_ahead());
        ledger.arrived(seq(20), ids[20]);
        ledger.checked(seq(25));
        assert_eq!(ledger.position(), seq(19));
        ack(&mut ledger, 20);
        assert_eq!(ledger.position(), seq(25));
    }

    #[test]
    fn what_was_never_handed_out_cannot_be_acknowledged() {
        let mut ledger = started(10);
        ledger.checked(seq(12));
        assert_eq!(ledger.acknowledge(ledger.generation(), seq(13)), Err(NeverHandedOut));
        assert_eq!(ledger.position(), seq(12));
    }

    #[test]
    fn a_repeat_of_what_is_in_hand_is_not_handed_out_again() {
        let (mut ledger, ids) = (started(0), ids(3));
        ledger.arrived(seq(1), ids[1]);
        ledger.connected(seq(0));
        assert_eq!(ledger.arrived(seq(1), ids[1]), Arrival::InHand);
    }

    #[test]
    fn a_repeat_of_what_was_let_go_is_handed_out_again_once() {
        let (mut ledger, ids) = (started(0), ids(3));
        ledger.arrived(seq(1), ids[1]);
        ledger.let_go(ledger.generation(), seq(1));
        assert_eq!(ledger.arrived(seq(1), ids[1]), Arrival::Again);
        assert_eq!(ledger.arrived(seq(1), ids[1]), Arrival::InHand);
    }

    #[test]
    fn a_repeat_of_what_is_acknowledged_is_acknowledged_again() {
        let (mut ledger, ids) = (started(0), ids(3));
        ledger.arrived(seq(1), ids[1]);
        ack(&mut ledger, 1);
        assert_eq!(ledger.sending(), seq(1));
        assert!(!ledger.is_ahead());
        ledger.connected(seq(0));
        assert!(ledger.is_ahead());
        ledger.sending();
        assert_eq!(ledger.arrived(seq(1), ids[1]), Arrival::Done);
        assert!(ledger.is_ahead());
    }

    #[test]
    fn an_id_that_was_acknowledged_is_recognised_at_another_position() {
        let (mut ledger, ids) = (started(0), ids(9));
        for number in 1..=3 {
            ledger.arrived(seq(number), ids[number as usize]);
        }
        ack(&mut ledger, 3);
        ledger.resync(seq(1));
        assert_eq!(ledger.arrived(seq(2), ids[7]), Arrival::New);
        assert_eq!(ledger.arrived(seq(3), ids[3]), Arrival::Done);
        assert_eq!(ledger.position(), seq(1));
        ack(&mut ledger, 2);
        assert_eq!(ledger.position(), seq(3));
    }

    #[test]
    fn after_a_resync_earlier_positions_mean_nothing() {
        let (mut ledger, ids) = (started(0), ids(9));
        ledger.arrived(seq(8), ids[8]);
        let before = ledger.generation();
        ledger.resync(seq(4));
        assert_eq!(ledger.acknowledge(before, seq(8)), Ok(()));
        ledger.let_go(before, seq(8));
        assert_eq!(ledger.position(), seq(4));
        assert!(!ledger.is_ahead());
    }

    #[test]
    fn what_the_server_knows_more_is_adopted() {
        let (mut ledger, ids) = (started(0), ids(9));
        ledger.arrived(seq(5), ids[5]);
        ledger.connected(seq(7));
        assert_eq!(ledger.position(), seq(7));
        assert!(!ledger.is_ahead());
    }

    #[test]
    fn a_refused_acknowledgement_is_sent_again() {
        let (mut ledger, ids) = (started(3), ids(9));
        ledger.arrived(seq(5), ids[5]);
        ack(&mut ledger, 5);
        ledger.sending();
        ledger.refused();
        assert!(ledger.is_ahead());
        assert_eq!(ledger.sending(), seq(5));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Dispatch { gap: u64 },
        Cursor { gap: u64 },
        Ack { nth: usize },
        LetGo { nth: usize },
        Reconnect,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0_u64..3).prop_map(|gap| Step::Dispatch { gap }),
            1 => (0_u64..3).prop_map(|gap| Step::Cursor { gap }),
            3 => (0_usize..8).prop_map(|nth| Step::Ack { nth }),
            1 => (0_usize..8).prop_map(|nth| Step::LetGo { nth }),
            1 => Just(Step::Reconnect),
        ]
    }

    proptest! {
        /// The model: a list of handed-out events and the highest one that the application acknowledged.
        #[test]
        fn nothing_is_acknowledged_that_the_application_did_not_finish(steps in proptest::collection::vec(step(), 1..200)) {
            let mut ledger = started(0);
            let (mut log, mut head, mut app_acked, mut server_acked) = (Vec::<(Seq, EventId)>::new(), 0_u64, 0_u64, 0_u64);
            let mut handed_out = 0_usize;
            for step in steps {
                match step {
                    Step::Dispatch { gap } => {
                        head += gap + 1;
                        let id = EventId::new(SystemIds.uuid());
                        log.push((seq(head), id));
                        prop_assert_eq!(ledger.arrived(seq(head), id), Arrival::New);
                        handed_out += 1;
                    }
                    Step::Cursor { gap } => {
                        head += gap;
                        ledger.checked(seq(head));
                    }
                    Step::Ack { nth } => {
                        if let Some((at, _)) = log.get(nth) {
                            ack(&mut ledger, at.get());
                            app_acked = app_acked.max(at.get());
                        }
                    }
                    Step::LetGo { nth } => {
                        if let Some((at, _)) = log.get(nth) {
                            ledger.let_go(ledger.generation(), *at);
                        }
                    }
                    Step::Reconnect => {
                        ledger.connected(seq(server_acked));
                        for (at, id) in log.iter().filter(|(at, _)| at.get() > server_acked) {
                            match ledger.arrived(*at, *id) {
                                Arrival::New => prop_assert!(false, "{} handed out as new twice", at),
                                Arrival::Done => prop_assert!(at.get() <= app_acked),
                                Arrival::Again | Arrival::InHand => prop_assert!(at.get() > app_acked),
                            }
                        }
                    }
                }
                let unfinished = log.iter().map(|(at, _)| at.get()).find(|at| *at > app_acked);
                prop_assert_eq!(ledger.position().get(), unfinished.map_or(head, |first| first - 1));
                if ledger.is_ahead() {
                    let sent = ledger.sending().get();
                    prop_assert!(sent >= server_acked);
                    server_acked = sent;
                }
            }
            prop_assert_eq!(handed_out, log.len());
        }
    }
}
