//! A bounded memory of event ids.

use std::collections::{HashSet, VecDeque};

use domain::EventId;

/// The last ids that were put in; older ones are forgotten.
#[derive(Debug)]
pub(crate) struct RecentIds {
    known: HashSet<EventId>,
    order: VecDeque<EventId>,
    capacity: usize,
}

impl RecentIds {
    /// Remembers at most `capacity` ids.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { known: HashSet::new(), order: VecDeque::new(), capacity }
    }

    /// Remembers `id`, and forgets the oldest when there are too many.
    pub(crate) fn insert(&mut self, id: EventId) {
        if self.capacity == 0 || !self.known.insert(id) {
            return;
        }
        if self.order.len() == self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(id);
    }

    /// Whether `id` is among the last ones.
    pub(crate) fn contains(&self, id: EventId) -> bool {
        self.known.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use domain::{EventId, IdGenerator as _, SystemIds};

    use super::RecentIds;

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let ids: Vec<_> = (0..5).map(|_| EventId::new(SystemIds.uuid())).collect();
        let mut recent = RecentIds::new(3);
        ids.iter().chain(&ids[3..]).for_each(|id| recent.insert(*id));
        let kept: Vec<_> = ids.iter().map(|id| recent.contains(*id)).collect();
        assert_eq!(kept, [false, false, true, true, true]);
        assert_eq!((recent.known.len(), recent.order.len()), (3, 3));
    }
}
