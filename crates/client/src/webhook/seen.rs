//! Deliveries that were there already. A bounded memory: whoever restarts forgets, which costs a ring that was heard before.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::{Clock, SystemClock, Timestamp};

use super::VerifiedDelivery;

/// Deliveries that are remembered unless said otherwise.
const CAPACITY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(16_383);
/// How long they are remembered: longer than a signature is believed, and than attempts of one delivery are apart.
const KEEP: Duration = Duration::from_hours(1);

/// What a delivery is to a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is new: act on it.
    First,
    /// Another attempt to bring what was there already: answer as before, and do nothing.
    Repeat,
    /// The very request was there already, nonce and all: somebody replays it. Refuse it.
    Replay,
}

/// Remembers the ids of deliveries and the nonces of attempts.
#[derive(Debug)]
pub struct SeenDeliveries {
    capacity: NonZeroUsize,
    keep: Duration,
    clock: Arc<dyn Clock>,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// Until when each is remembered.
    until: HashMap<Entry, Timestamp>,
    /// The same in the order in which they came; entries that were forgotten or renewed since are passed over.
    order: VecDeque<(Entry, Timestamp)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Entry {
    Delivery(Arc<str>),
    Nonce(Arc<str>),
}

impl Default for SeenDeliveries {
    fn default() -> Self {
        Self::new(CAPACITY, KEEP)
    }
}

impl SeenDeliveries {
    /// Remembers this many, for this long. `keep` has to be twice the verifier's tolerance at least: that long a request is believed.
    pub fn new(capacity: NonZeroUsize, keep: Duration) -> Self {
        Self { capacity, keep, clock: Arc::new(SystemClock::new()), memory: Mutex::default() }
    }

    /// Takes the time from this clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Notes a delivery, and says what it is.
    pub fn note(&self, delivery: &VerifiedDelivery) -> Arrival {
        let now = self.clock.now();
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.forget_before(now);
        let is_replayed = delivery.nonce.as_deref().is_some_and(|nonce| !self.remember(&mut memory, Entry::Nonce(nonce.into()), now));
        if is_replayed {
            return Arrival::Replay;
        }
        if self.remember(&mut memory, Entry::Delivery(delivery.id.as_str().into()), now) { Arrival::First } else { Arrival::Repeat }
    }

    /// Forgets a delivery that could not be acted on, so that its next attempt is the first again. Its nonce stays.
    pub fn forget(&self, delivery: &VerifiedDelivery) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.until.remove(&Entry::Delivery(delivery.id.as_str().into()));
    }

    /// Whether it was not remembered yet; it is now.
    fn remember(&self, memory: &mut Memory, entry: Entry, now: Timestamp) -> bool {
        if memory.until.contains_key(&entry) {
            return false;
        }
        while memory.order.len() >= self.capacity.get() {
            memory.forget_oldest();
        }
        let until = now.plus(self.keep);
        memory.until.insert(entry.clone(), until);
        memory.order.push_back((entry, until));
        true
    }
}

impl Memory {
    fn forget_before(&mut self, now: Timestamp) {
        while self.order.front().is_some_and(|(_, until)| *until <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((entry, until)) = self.order.pop_front()
            && self.until.get(&entry) == Some(&until)
        {
            self.until.remove(&entry);
        }
    }
}
