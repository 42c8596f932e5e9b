//! What the store counts about itself.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the buckets of commit latency, in microseconds; a last bucket has no bound.
pub(crate) const LATENCY_BOUNDS_MICROS: [u64; 10] = [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000];

/// Counters of one store, since it was opened.
#[derive(Debug, Default)]
pub struct StoreMetrics {
    commits: AtomicU64,
    failed_commits: AtomicU64,
    units: AtomicU64,
    failed_units: AtomicU64,
    events: AtomicU64,
    overloaded: AtomicU64,
    queued: AtomicU64,
    queued_bytes: AtomicU64,
    reads: AtomicU64,
    in_doubt: AtomicU64,
    resolved: AtomicU64,
    connections: AtomicU64,
    commit_micros: AtomicU64,
    latency: [AtomicU64; LATENCY_BOUNDS_MICROS.len() + 1],
    retries: Mutex<BTreeMap<&'static str, u64>>,
    unreadable: Mutex<HashSet<(i64, Vec<u8>)>>,
    unreadable_rows: Mutex<HashSet<(&'static str, Vec<u8>)>>,
}

/// Unreadable items, and as many rows of hooks, that are told apart; more than this are neither counted nor logged.
const TOLD: usize = 10_000;

/// The counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsSnapshot {
    /// Durable commits.
    pub commits: u64,
    /// Batches and units that could not be committed.
    pub failed_commits: u64,
    /// Units of work that were committed; divided by `commits` it is the mean batch.
    pub units: u64,
    /// Units of work that were undone.
    pub failed_units: u64,
    /// Events appended.
    pub events: u64,
    /// Requests refused because a queue was full or no connection was free in time.
    pub overloaded: u64,
    /// Appends that wait.
    pub queued: u64,
    /// Bytes of publications that wait.
    pub queued_bytes: u64,
    /// Reads begun.
    pub reads: u64,
    /// Commits whose outcome nobody could tell.
    pub in_doubt: u64,
    /// Commits whose answer was lost and whose outcome was found out.
    pub resolved: u64,
    /// Connections lent at the moment.
    pub connections: u64,
    /// Sum of the time from the begin of a batch to its durable commit, in microseconds.
    pub commit_micros: u64,
    /// How many commits took at most so many microseconds (not cumulative); the last has no bound.
    pub latency: Vec<(Option<u64>, u64)>,
    /// Repeated attempts after a transient failure, by unit name.
    pub retries: BTreeMap<&'static str, u64>,
    /// Inbox items that were met and cannot be read, each counted once.
    pub unreadable_items: u64,
    /// Rows of hooks, their keys, rings and attempts that were met and cannot be read, each counted once.
    pub unreadable_hook_rows: u64,
}

impl StoreMetrics {
    /// The counters now. Each is exact; they are not read at the same instant.
    pub fn snapshot(&self) -> MetricsSnapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let bounds = LATENCY_BOUNDS_MICROS.iter().copied().map(Some).chain([None]);
        MetricsSnapshot {
            commits: load(&self.commits),
            failed_commits: load(&self.failed_commits),
            units: load(&self.units),
            failed_units: load(&self.failed_units),
            events: load(&self.events),
            overloaded: load(&self.overloaded),
            queued: load(&self.queued),
            queued_bytes: load(&self.queued_bytes),
            reads: load(&self.reads),
            in_doubt: load(&self.in_doubt),
            resolved: load(&self.resolved),
            connections: load(&self.connections),
            commit_micros: load(&self.commit_micros),
            latency: bounds.zip(self.latency.iter().map(load)).collect(),
            retries: self.retries.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            unreadable_items: self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).len() as u64,
            unreadable_hook_rows: self.unreadable_rows.lock().unwrap_or_else(PoisonError::into_inner).len() as u64,
        }
    }

    pub(crate) fn committed(&self, units: u64, events: u64, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = LATENCY_BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.units.fetch_add(units, Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
        self.commit_micros.fetch_add(micros, Ordering::Relaxed);
        if let Some(counter) = self.latency.get(bucket) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn commit_failed(&self) {
        self.failed_commits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unit_failed(&self) {
        self.failed_units.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.overloaded.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn resolved(&self) {
        self.resolved.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn in_doubt(&self) {
        self.in_doubt.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn waiting(&self, units: u64, bytes: u64) {
        self.queued.store(units, Ordering::Relaxed);
        self.queued_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn connected(&self, lent: usize) {
        self.connections.store(lent as u64, Ordering::Relaxed);
    }

    /// Counts and logs an inbox item that cannot be read, once.
    pub(crate) fn unreadable_item(&self, recipient: i64, event: &[u8], reason: &str) {
        let mut told = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < TOLD && told.insert((recipient, event.to_vec())) {
            let event = hexadecimal(event);
            tracing::error!(inbox.recipient = recipient, event.id = event, reason, "an inbox item cannot be read; it is left out");
        }
    }

    /// Counts and logs a row of hooks that cannot be read, once. Its key is no secret; its columns are not told.
    pub(crate) fn unreadable_row(&self, table: &'static str, key: Vec<u8>, reason: &str) {
        let mut told = self.unreadable_rows.lock().unwrap_or_else(PoisonError::into_inner);
        let text = hexadecimal(&key);
        if told.len() < TOLD && told.insert((table, key)) {
            tracing::error!(store.table = table, row.key = text, reason, "a row of hooks cannot be read; it is left out");
        }
    }

    pub(crate) fn retried(&self, name: &'static str) {
        *self.retries.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
