//! What is remembered of identities and rights, and for how long it may be trusted.
//!
//! Two things make a remembered value valid: a tail that observes the tenant since before the value was read, or its age. Every store read notes a generation before it and
//! gives its result up when the generation has moved, so a change that is observed between reading and remembering is never lost.

mod credentials;
mod places;
mod rights_cell;
mod standing;
mod tenant;

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use domain::Timestamp;

pub(crate) use credentials::{Credentials, Known};
pub(crate) use places::Place;
pub(crate) use rights_cell::RightsCell;
pub(crate) use standing::{Fault, StandingCell};
pub(crate) use tenant::{TenantCell, Tenants};

/// Since when a value is known to be true.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freshness {
    /// The run of the tail that has observed everything since; [`Freshness::NO_TAIL`] when none had begun before the value was read.
    session: u64,
    /// When the value was read.
    at: Timestamp,
}

impl Freshness {
    /// The session of a tenant without a tail.
    pub(crate) const NO_TAIL: u64 = 0;
    /// Never trusted.
    pub(crate) const STALE: Self = Self { session: Self::NO_TAIL, at: Timestamp::from_micros(i64::MIN) };

    /// Of a value that is about to be read now.
    pub(crate) fn of(session: u64, at: Timestamp) -> Self {
        Self { session, at }
    }

    /// Whether the value may still be used while the tail's present run is `session`.
    pub(crate) fn holds(self, session: u64, now: Timestamp, ttl: Duration) -> bool {
        (self.session != Self::NO_TAIL && self.session == session) || now < self.at.plus(ttl)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
