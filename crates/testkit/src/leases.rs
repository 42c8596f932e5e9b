//! What happened to inbox items under faults, and the rules that must hold of it whatever was killed when: an item has at most one valid lease,
//! and what was acknowledged is over.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// One observation, in the order in which the observers made them.
#[derive(Debug, Clone)]
pub enum LeaseRecord {
    /// The server acknowledged a publish: there is this item.
    Published {
        /// The event's id.
        id: String,
    },
    /// A worker was answered that it holds the item.
    Claimed {
        /// The event's id.
        id: String,
        /// The lease token.
        token: String,
        /// When the claim was asked for: the lease began later.
        asked_at: Instant,
        /// When the answer was read: the lease had begun.
        answered_at: Instant,
        /// For how long, by the answer.
        lasts: Duration,
    },
    /// A worker was answered that its lease was extended.
    Extended {
        /// The event's id.
        id: String,
        /// The lease token.
        token: String,
        /// When the extension was asked for.
        asked_at: Instant,
        /// For how long from then, by the answer.
        lasts: Duration,
    },
    /// A worker is about to give the item back, fail it or complete it: from here on its lease may be over.
    Ending {
        /// The event's id.
        id: String,
        /// The lease token.
        token: String,
    },
    /// A worker was answered that its completion counts.
    Completed {
        /// The event's id.
        id: String,
        /// The lease token.
        token: String,
    },
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseFault {
    /// Two leases of one item were valid at the same time.
    TwoLeases {
        /// The event's id.
        id: String,
    },
    /// Two leases of one item were completed.
    CompletedTwice {
        /// The event's id.
        id: String,
    },
    /// An item was handed out after its completion was acknowledged.
    ClaimedAfterCompletion {
        /// The event's id.
        id: String,
    },
    /// A published item was never completed.
    Lost {
        /// The event's id.
        id: String,
    },
    /// An item was handed out that nobody published.
    Invented {
        /// The event's id.
        id: String,
    },
}

#[derive(Default)]
struct Item {
    is_published: bool,
    /// Tokens with the earliest instant at which each lease may have ended by itself; absent once its holder may have ended it.
    leases: BTreeMap<String, Option<Instant>>,
    completed_by: Option<String>,
}

/// Holds a history of leases against the rules.
#[derive(Debug)]
pub struct LeaseChecker;

impl LeaseChecker {
    /// Every broken rule. A publish whose answer was lost may leave an item that nobody recorded as published: `unanswered` names how many such
    /// items there may be at most.
    pub fn check(history: &[LeaseRecord], unanswered: usize) -> Vec<LeaseFault> {
        let (mut items, mut faults) = (BTreeMap::<&str, Item>::new(), Vec::new());
        for record in history {
            match record {
                LeaseRecord::Published { id } => items.entry(id).or_default().is_published = true,
                LeaseRecord::Claimed { id, token, asked_at, answered_at, lasts } => {
                    let item = items.entry(id).or_default();
                    if item.completed_by.as_ref().is_some_and(|by| by != token) {
                        faults.push(LeaseFault::ClaimedAfterCompletion { id: id.clone() });
                    }
                    let others = item.leases.iter().filter(|(other, _)| *other != token);
                    if others.into_iter().any(|(_, until)| until.is_some_and(|until| until > *answered_at)) {
                        faults.push(LeaseFault::TwoLeases { id: id.clone() });
                    }
                    item.leases.insert(token.clone(), Some(*asked_at + *lasts));
                }
                LeaseRecord::Extended { id, token, asked_at, lasts } => {
                    let item = items.entry(id).or_default();
                    if let Some(Some(until)) = item.leases.get_mut(token) {
                        *until = (*until).max(*asked_at + *lasts);
                    }
                }
                LeaseRecord::Ending { id, token } => {
                    items.entry(id).or_default().leases.insert(token.clone(), None);
                }
                LeaseRecord::Completed { id, token } => {
                    let item = items.entry(id).or_default();
                    if item.completed_by.as_ref().is_some_and(|by| by != token) {
                        faults.push(LeaseFault::CompletedTwice { id: id.clone() });
                    }
                    item.completed_by = Some(token.clone());
                }
            }
        }
        let invented: Vec<_> = items.iter().filter(|(_, item)| !item.is_published).map(|(id, _)| (*id).to_owned()).collect();
        if invented.len() > unanswered {
            faults.extend(invented.into_iter().map(|id| LeaseFault::Invented { id }));
        }
        let lost = items.iter().filter(|(_, item)| item.is_published && item.completed_by.is_none());
        faults.extend(lost.map(|(id, _)| LeaseFault::Lost { id: (*id).to_owned() }));
        faults
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{LeaseChecker, LeaseFault, LeaseRecord};

    const SECOND: Duration = Duration::from_secs(1);

    fn published() -> LeaseRecord {
        LeaseRecord::Published { id: "i".into() }
    }

    fn claimed(start: Instant, after: u64, token: &str) -> LeaseRecord {
        let asked_at = start + SECOND * u32::try_from(after).unwrap();
        LeaseRecord::Claimed { id: "i".into(), token: token.into(), asked_at, answered_at: asked_at + SECOND / 10, lasts: 10 * SECOND }
    }

    fn extended(start: Instant, after: u32, token: &str) -> LeaseRecord {
        LeaseRecord::Extended { id: "i".into(), token: token.into(), asked_at: start + SECOND * after, lasts: 10 * SECOND }
    }

    fn ending(token: &str) -> LeaseRecord {
        LeaseRecord::Ending { id: "i".into(), token: token.into() }
    }

    fn completed(token: &str) -> LeaseRecord {
        LeaseRecord::Completed { id: "i".into(), token: token.into() }
    }

    fn faults(history: &[LeaseRecord]) -> Vec<LeaseFault> {
        LeaseChecker::check(history, 0)
    }

    #[test]
    fn a_history_that_holds_has_no_faults() {
        let start = Instant::now();
        let history = [
            published(),
            claimed(start, 0, "a"),
            extended(start, 5, "a"),
            // The lease lapsed.
            claimed(start, 20, "b"),
            ending("b"),
            claimed(start, 21, "c"),
            ending("c"),
            completed("c"),
            // The answer was lost and the completion repeated.
            completed("c"),
        ];
        assert_eq!(faults(&history), []);
    }

    #[test]
    fn every_kind_of_fault_is_found() {
        let start = Instant::now();
        let id = || "i".to_owned();
        let two = [published(), claimed(start, 0, "a"), claimed(start, 5, "b"), completed("b")];
        assert_eq!(faults(&two), [LeaseFault::TwoLeases { id: id() }]);
        let extended = [published(), claimed(start, 0, "a"), extended(start, 9, "a"), claimed(start, 15, "b"), completed("b")];
        assert_eq!(faults(&extended), [LeaseFault::TwoLeases { id: id() }]);
        let twice = [published(), claimed(start, 0, "a"), claimed(start, 20, "b"), completed("a"), completed("b")];
        assert_eq!(faults(&twice), [LeaseFault::CompletedTwice { id: id() }]);
        let again = [published(), claimed(start, 0, "a"), ending("a"), completed("a"), claimed(start, 20, "b")];
        assert_eq!(faults(&again), [LeaseFault::ClaimedAfterCompletion { id: id() }]);
        assert_eq!(faults(&[published(), claimed(start, 0, "a")]), [LeaseFault::Lost { id: id() }]);
        assert_eq!(faults(&[claimed(start, 0, "a"), completed("a")]), [LeaseFault::Invented { id: id() }]);
        assert_eq!(LeaseChecker::check(&[claimed(start, 0, "a"), completed("a")], 1), []);
    }
}
