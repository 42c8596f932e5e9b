//! What happened to a server under faults, and the rules that must hold of it whatever was killed when.

use std::collections::{BTreeMap, HashSet};

/// One observation, in the order in which the observer made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The server acknowledged a publish: the event has this seq.
    Published {
        /// The event's id.
        id: String,
        /// Its seq.
        seq: u64,
    },
    /// A consumer (re)connected; the server said where its cursor stands.
    Connected {
        /// The consumer.
        consumer: String,
        /// `acked_seq` of `ready`.
        acked: u64,
    },
    /// A consumer was handed an event.
    Delivered {
        /// The consumer.
        consumer: String,
        /// The event's id.
        id: String,
        /// Its seq.
        seq: u64,
    },
    /// The server confirmed that this acknowledgement is stored.
    AckStored {
        /// The consumer.
        consumer: String,
        /// Up to here.
        seq: u64,
    },
    /// A consumer sent an acknowledgement; whether it was stored is not known.
    AckSent {
        /// The consumer.
        consumer: String,
        /// Up to here.
        seq: u64,
    },
    /// At the end: the whole log as the server holds it.
    Log {
        /// Ids and seqs in the order of the log.
        events: Vec<(String, u64)>,
    },
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An acknowledged publish is not in the log, or is there as something else.
    PublishLost(u64),
    /// The log is not gapless from its first event, or has an id twice.
    LogBroken(u64),
    /// An event was delivered that the log does not have.
    Invented(u64),
    /// Within a connection, a consumer was handed events out of order or with one left out.
    OrderBroken {
        /// The consumer.
        consumer: String,
        /// The event that came.
        seq: u64,
    },
    /// A cursor stood below a stored acknowledgement.
    CursorBack {
        /// The consumer.
        consumer: String,
        /// Where it stood.
        acked: u64,
    },
    /// An event at or below the acknowledged position of `ready` was delivered.
    AckedCameAgain {
        /// The consumer.
        consumer: String,
        /// The event.
        seq: u64,
    },
    /// A cursor stood above everything its consumer ever acknowledged.
    CursorInvented {
        /// The consumer.
        consumer: String,
        /// Where it stood.
        acked: u64,
    },
    /// An event between the consumer's start and its last acknowledgement was never delivered to it.
    Skipped {
        /// The consumer.
        consumer: String,
        /// The event.
        seq: u64,
    },
}

#[derive(Debug, Default)]
struct Consumer {
    start: Option<u64>,
    connected_at: u64,
    last: u64,
    stored: u64,
    sent: u64,
    delivered: HashSet<u64>,
}

/// Checks a history against the rules. Every event is assumed to be visible to every consumer.
#[derive(Debug, Default)]
pub struct Checker {
    faults: Vec<Fault>,
    published: Vec<(String, u64)>,
    delivered: Vec<(String, u64)>,
    consumers: BTreeMap<String, Consumer>,
}

impl Checker {
    /// Every broken rule in `history`, in order.
    pub fn check(history: &[Record]) -> Vec<Fault> {
        let mut checker = Self::default();
        for record in history {
            checker.see(record);
        }
        checker.skipped();
        checker.faults
    }

    fn see(&mut self, record: &Record) {
        match record {
            Record::Published { id, seq } => self.published.push((id.clone(), *seq)),
            Record::Connected { consumer, acked } => self.connected(consumer, *acked),
            Record::Delivered { consumer, id, seq } => {
                self.delivered.push((id.clone(), *seq));
                self.handed(consumer, *seq);
            }
            Record::AckStored { consumer, seq } => {
                let state = self.consumers.entry(consumer.clone()).or_default();
                state.stored = state.stored.max(*seq);
                state.sent = state.sent.max(*seq);
            }
            Record::AckSent { consumer, seq } => {
                let state = self.consumers.entry(consumer.clone()).or_default();
                state.sent = state.sent.max(*seq);
            }
            Record::Log { events } => self.log(events),
        }
    }

    fn connected(&mut self, consumer: &str, acked: u64) {
        let state = self.consumers.entry(consumer.to_owned()).or_default();
        let start = *state.start.get_or_insert(acked);
        let name = || consumer.to_owned();
        if acked < state.stored.max(start) {
            self.faults.push(Fault::CursorBack { consumer: name(), acked });
        } else if acked > state.sent.max(start) {
            self.faults.push(Fault::CursorInvented { consumer: name(), acked });
        }
        // What a cursor showed once is stored.
        state.stored = state.stored.max(acked);
        state.connected_at = acked;
        state.last = acked;
    }

    fn handed(&mut self, consumer: &str, seq: u64) {
        let state = self.consumers.entry(consumer.to_owned()).or_default();
        let name = || consumer.to_owned();
        if seq <= state.connected_at {
            self.faults.push(Fault::AckedCameAgain { consumer: name(), seq });
        } else if seq != state.last + 1 && seq > state.last {
            self.faults.push(Fault::OrderBroken { consumer: name(), seq });
        }
        state.last = seq;
        state.delivered.insert(seq);
    }

    fn log(&mut self, events: &[(String, u64)]) {
        let mut ids = HashSet::new();
        let first = events.first().map_or(1, |(_, seq)| *seq);
        for (expected, (id, seq)) in (first..).zip(events) {
            if *seq != expected || !ids.insert(id) {
                self.faults.push(Fault::LogBroken(*seq));
            }
        }
        let by_seq: BTreeMap<u64, &String> = events.iter().map(|(id, seq)| (*seq, id)).collect();
        let holds = |(id, seq): &&(String, u64)| by_seq.get(seq).is_some_and(|held| *held == id);
        self.faults.extend(self.published.iter().filter(|event| !holds(event)).map(|(_, seq)| Fault::PublishLost(*seq)));
        self.faults.extend(self.delivered.iter().filter(|event| !holds(event)).map(|(_, seq)| Fault::Invented(*seq)));
    }

    fn skipped(&mut self) {
        for (name, state) in &self.consumers {
            let start = state.start.unwrap_or(0);
            let missing = (start + 1..=state.sent).filter(|seq| !state.delivered.contains(seq));
            self.faults.extend(missing.map(|seq| Fault::Skipped { consumer: name.clone(), seq }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Checker, Fault, Record};

    fn published(seq: u64) -> Record {
        Record::Published { id: format!("e{seq}"), seq }
    }

    fn delivered(seq: u64) -> Record {
        Record::Delivered { consumer: "c".into(), id: format!("e{seq}"), seq }
    }

    fn connected(acked: u64) -> Record {
        Record::Connected { consumer: "c".into(), acked }
    }

    fn stored(seq: u64) -> Record {
        Record::AckStored { consumer: "c".into(), seq }
    }

    fn log(last: u64) -> Record {
        Record::Log { events: (1..=last).map(|seq| (format!("e{seq}"), seq)).collect() }
    }

    #[test]
    fn a_clean_history_has_no_fault() {
        let sent = Record::AckSent { consumer: "c".into(), seq: 3 };
        let history = [
            connected(0),
            published(1),
            delivered(1),
            published(2),
            delivered(2),
            stored(2),
            published(3),
            delivered(3),
            sent,
            // The server was killed before it stored 3: it comes again.
            connected(2),
            delivered(3),
            stored(3),
            log(3),
        ];
        assert_eq!(Checker::check(&history), []);
    }

    #[test]
    fn every_seeded_fault_is_found() {
        let c = || "c".to_owned();
        let cases: Vec<(Vec<Record>, Fault)> = vec![
            (vec![published(1), published(2), log(1)], Fault::PublishLost(2)),
            (vec![Record::Log { events: vec![("a".into(), 1), ("b".into(), 3)] }], Fault::LogBroken(3)),
            (vec![Record::Log { events: vec![("a".into(), 1), ("a".into(), 2)] }], Fault::LogBroken(2)),
            (vec![connected(0), delivered(1), log(0)], Fault::Invented(1)),
            (vec![connected(0), delivered(1), delivered(3), log(3)], Fault::OrderBroken { consumer: c(), seq: 3 }),
            (vec![connected(0), delivered(1), stored(1), connected(0), log(1)], Fault::CursorBack { consumer: c(), acked: 0 }),
            (vec![connected(1), delivered(1), log(1)], Fault::AckedCameAgain { consumer: c(), seq: 1 }),
            (vec![connected(0), connected(1), log(1)], Fault::CursorInvented { consumer: c(), acked: 1 }),
            (vec![connected(0), stored(1), log(1)], Fault::Skipped { consumer: c(), seq: 1 }),
        ];
        for (history, fault) in cases {
            assert!(Checker::check(&history).contains(&fault), "{fault:?} not found in {history:?}");
        }
    }
}
