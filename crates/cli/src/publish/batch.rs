//! Which events go in one request. Pure.

/// The bounds of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The most events.
    pub(crate) events: usize,
    /// About how many bytes; a single event may have more.
    pub(crate) bytes: usize,
}

/// What a member of ours and the punctuation around an event add to its length.
const OVERHEAD: usize = 96;

/// Gathers events until a bound is reached.
#[derive(Debug)]
pub(crate) struct Batch<T> {
    items: Vec<T>,
    bytes: usize,
    bounds: Bounds,
}

impl<T> Batch<T> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { items: Vec::new(), bytes: 0, bounds }
    }

    /// Whether an event of `size` bytes still belongs in this request.
    pub(crate) fn takes(&self, size: usize) -> bool {
        self.items.is_empty() || (self.items.len() < self.bounds.events && self.bytes + size + OVERHEAD <= self.bounds.bytes)
    }

    /// Whether nothing more is worth waiting for.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= self.bounds.events || self.bytes >= self.bounds.bytes
    }

    pub(crate) fn push(&mut self, item: T, size: usize) {
        self.items.push(item);
        self.bytes += size + OVERHEAD;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The events gathered so far; the next request begins.
    pub(crate) fn take(&mut self) -> Vec<T> {
        self.bytes = 0;
        std::mem::take(&mut self.items)
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, Bounds, OVERHEAD};

    fn batches(sizes: &[usize], bounds: Bounds) -> Vec<Vec<usize>> {
        let (mut batch, mut batches) = (Batch::new(bounds), Vec::new());
        for &size in sizes {
            if !batch.takes(size) {
                batches.push(batch.take());
            }
            batch.push(size, size);
        }
        batches.push(batch.take());
        batches
    }

    #[test]
    fn a_request_is_bounded_by_count_and_by_bytes_and_keeps_the_order() {
        let bounds = Bounds { events: 3, bytes: 10 * OVERHEAD };
        assert_eq!(batches(&[1, 2, 3, 4], bounds), [vec![1, 2, 3], vec![4]]);
        assert_eq!(batches(&[8 * OVERHEAD, OVERHEAD, 1], bounds), [vec![8 * OVERHEAD], vec![OVERHEAD, 1]]);
    }

    #[test]
    fn an_event_above_the_bound_goes_alone() {
        let bounds = Bounds { events: 3, bytes: 100 };
        assert_eq!(batches(&[1, 5_000, 1], bounds), [vec![1], vec![5_000], vec![1]]);
    }
}
