//! A bounded queue from asynchronous callers to threads. Nobody waits to put something in: a full queue refuses at once.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How much of a bound one entry takes.
pub(crate) trait Weighed {
    /// Bytes that the entry holds.
    fn weight(&self) -> usize;
}

/// Why an entry was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The queue is full.
    Full,
    /// The queue takes nothing any more.
    Closed,
}

/// How many entries, and how many bytes of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
    bound: Bound,
}

struct State<T> {
    entries: VecDeque<T>,
    bytes: usize,
    closed: bool,
    /// Nothing is handed out for a moment.
    paused: bool,
    /// Threads that wait for an entry.
    idle: usize,
}

impl<T: Weighed> Queue<T> {
    pub(crate) fn new(bound: Bound) -> Self {
        let state = State { entries: VecDeque::new(), bytes: 0, closed: false, paused: false, idle: 0 };
        Self { state: Mutex::new(state), filled: Condvar::new(), bound }
    }

    /// Puts `entry` at the end. An entry larger than the bound of bytes is taken when nothing else waits.
    pub(crate) fn push(&self, entry: T) -> Result<(), Refused> {
        let weight = entry.weight();
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        let heavy = !state.entries.is_empty() && state.bytes.saturating_add(weight) > self.bound.bytes;
        if heavy || state.entries.len() >= self.bound.entries {
            return Err(Refused::Full);
        }
        state.bytes += weight;
        state.entries.push_back(entry);
        let wake = state.idle > 0;
        drop(state);
        if wake {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Moves the first entries, at least one, into `batch` as far as `bound` allows; waits for one. `false` when the queue is closed and empty.
    pub(crate) fn take(&self, batch: &mut Vec<T>, bound: Bound) -> bool {
        let mut state = self.lock();
        while state.entries.is_empty() || state.paused {
            if state.closed && state.entries.is_empty() {
                return false;
            }
            state.idle += 1;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
        let mut bytes = 0_usize;
        while batch.len() < bound.entries {
            let Some(weight) = state.entries.front().map(Weighed::weight) else { break };
            bytes = bytes.saturating_add(weight);
            if bytes > bound.bytes && !batch.is_empty() {
                break;
            }
            state.bytes = state.bytes.saturating_sub(weight);
            batch.extend(state.entries.pop_front());
        }
        true
    }

    /// Takes nothing any more; what waits is still handed out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }

    /// Hands out nothing until it is resumed.
    pub(crate) fn pause(&self) {
        self.lock().paused = true;
    }

    /// Hands out again.
    pub(crate) fn resume(&self) {
        self.lock().paused = false;
        self.filled.notify_all();
    }

    /// Whether it takes nothing any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Entries and bytes that wait.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let state = self.lock();
        (state.entries.len(), state.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, Queue, Refused, Weighed};

    impl Weighed for usize {
        fn weight(&self) -> usize {
            *self
        }
    }

    const WIDE: Bound = Bound { entries: 100, bytes: 100 };

    #[test]
    fn a_full_queue_refuses_at_once() {
        let queue = Queue::new(Bound { entries: 2, bytes: 10 });
        assert_eq!(queue.push(4), Ok(()));
        assert_eq!(queue.push(7), Err(Refused::Full));
        assert_eq!(queue.push(6), Ok(()));
        assert_eq!(queue.push(0), Err(Refused::Full));
        assert_eq!(queue.waiting(), (2, 10));
    }

    #[test]
    fn an_entry_above_the_bound_is_taken_alone() {
        let queue = Queue::new(Bound { entries: 9, bytes: 10 });
        assert_eq!(queue.push(50), Ok(()));
        assert_eq!(queue.push(1), Err(Refused::Full));
        let mut batch = Vec::new();
        assert!(queue.take(&mut batch, Bound { entries: 9, bytes: 10 }));
        assert_eq!(batch, [50]);
    }

    #[test]
    fn a_batch_keeps_order_and_bounds() {
        let queue = Queue::new(WIDE);
        for weight in [3, 4, 5, 6] {
            queue.push(weight).unwrap();
        }
        let mut batch = Vec::new();
        assert!(queue.take(&mut batch, Bound { entries: 9, bytes: 10 }));
        assert_eq!(batch, [3, 4]);
        batch.clear();
        assert!(queue.take(&mut batch, Bound { entries: 1, bytes: 100 }));
        assert_eq!(batch, [5]);
    }

    #[test]
    fn a_paused_queue_hands_out_nothing_and_goes_on_afterwards() {
        let queue = std::sync::Arc::new(Queue::new(WIDE));
        queue.pause();
        queue.push(1).unwrap();
        let taker = {
            let queue = std::sync::Arc::clone(&queue);
            let body = move || {
                let mut batch = Vec::new();
                assert!(queue.take(&mut batch, WIDE));
                batch
            };
            std::thread::Builder::new().spawn(body).unwrap()
        };
        while queue.lock().idle == 0 {
            std::thread::yield_now();
        }
        assert_eq!(queue.waiting(), (1, 1));
        queue.resume();
        assert_eq!(taker.join().unwrap(), [1]);
    }

    #[test]
    fn a_closed_queue_is_emptied_before_it_ends() {
        let queue = Queue::new(WIDE);
        queue.push(1).unwrap();
        queue.close();
        assert_eq!(queue.push(2), Err(Refused::Closed));
        let mut batch = Vec::new();
        assert!(queue.take(&mut batch, WIDE));
        assert_eq!(batch, [1]);
        assert!(!queue.take(&mut batch, WIDE));
    }
}
