//! What waits to be told: coalesced and bounded.

use std::collections::{HashMap, HashSet};

use domain::{ConsumerName, PrincipalId, Seq, TenantId};

use super::Hint;

/// What became of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    /// It waits.
    New,
    /// Another one that waits says it too.
    Merged,
    /// There was no room: it is forgotten.
    Dropped,
}

/// Hints in no particular order. Pure.
#[derive(Debug)]
pub(super) struct HintQueue {
    heads: HashMap<TenantId, Seq>,
    taken: HashSet<(TenantId, PrincipalId, ConsumerName)>,
    max: usize,
}

impl HintQueue {
    /// Holds at most `max` hints, at least one.
    pub(super) fn new(max: usize) -> Self {
        Self { heads: HashMap::new(), taken: HashSet::new(), max: max.max(1) }
    }

    /// Adds a hint; a head is told once, as the highest.
    pub(super) fn push(&mut self, hint: Hint) -> Queued {
        let has_room = self.heads.len() + self.taken.len() < self.max;
        match hint {
            Hint::Head { tenant, seq } => match self.heads.get_mut(&tenant) {
                Some(known) => {
                    *known = seq.max(*known);
                    Queued::Merged
                }
                None if has_room => {
                    self.heads.insert(tenant, seq);
                    Queued::New
                }
                None => Queued::Dropped,
            },
            Hint::Taken { tenant, agent, consumer } => {
                let key = (tenant, agent, consumer);
                if self.taken.contains(&key) {
                    return Queued::Merged;
                }
                if !has_room {
                    return Queued::Dropped;
                }
                self.taken.insert(key);
                Queued::New
            }
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.heads.is_empty() && self.taken.is_empty()
    }

    /// Takes everything out.
    pub(super) fn take(&mut self) -> Vec<Hint> {
        let heads = std::mem::take(&mut self.heads).into_iter().map(|(tenant, seq)| Hint::Head { tenant, seq });
        let taken = std::mem::take(&mut self.taken).into_iter();
        heads.chain(taken.map(|(tenant, agent, consumer)| Hint::Taken { tenant, agent, consumer })).collect()
    }
}

#[cfg(test)]
mod tests {
    use domain::{ConsumerName, PrincipalId, Seq, TenantId};

    use super::{Hint, HintQueue, Queued};

    fn head(tenant: &str, seq: u64) -> Hint {
        Hint::Head { tenant: TenantId::parse(tenant).unwrap(), seq: Seq::new(seq).unwrap() }
    }

    fn taken(agent: &str) -> Hint {
        Hint::Taken { tenant: TenantId::parse("a").unwrap(), agent: PrincipalId::parse(agent).unwrap(), consumer: ConsumerName::default() }
    }

    #[test]
    fn a_head_is_told_once_as_the_highest() {
        let mut queue = HintQueue::new(10);
        assert_eq!(queue.push(head("a", 7)), Queued::New);
        assert_eq!(queue.push(head("a", 9)), Queued::Merged);
        assert_eq!(queue.push(head("a", 8)), Queued::Merged);
        assert_eq!(queue.take(), [head("a", 9)]);
        assert_eq!(queue.take(), []);
    }

    #[test]
    fn a_takeover_is_told_once() {
        let mut queue = HintQueue::new(10);
        assert_eq!([queue.push(taken("x")), queue.push(taken("x"))], [Queued::New, Queued::Merged]);
        assert_eq!(queue.take(), [taken("x")]);
    }

    #[test]
    fn a_full_queue_forgets_what_is_new_and_merges_what_it_has() {
        let mut queue = HintQueue::new(2);
        assert_eq!([queue.push(head("a", 1)), queue.push(taken("x"))], [Queued::New, Queued::New]);
        assert_eq!([queue.push(head("b", 1)), queue.push(taken("y"))], [Queued::Dropped, Queued::Dropped]);
        assert_eq!([queue.push(head("a", 2)), queue.push(taken("x"))], [Queued::Merged, Queued::Merged]);
        assert_eq!(queue.take(), [head("a", 2), taken("x")]);
    }
}
