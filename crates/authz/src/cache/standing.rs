//! Whether a token that was accepted may still be used. Shared by the authorizer and every live connection of the token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::time::Duration;

use domain::{PrincipalId, Timestamp};

use super::{RightsCell, TenantCell};
use crate::{Standing, TokenHash};

/// Why a token lost its standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It was revoked, or its principal is disabled or gone.
    Unauthenticated = 1,
    /// Its tenant is not served.
    TenantSuspended = 2,
}

/// The standing of one token. It only ever worsens: a token that is good again after all gets a new cell, and its old connections stay closed.
#[derive(Debug)]
pub(crate) struct StandingCell {
    pub(crate) principal: PrincipalId,
    pub(crate) hash: TokenHash,
    pub(crate) tenant: Arc<TenantCell>,
    pub(crate) rights: Arc<RightsCell>,
    faults: AtomicU8,
    outdated: AtomicBool,
    used_at: AtomicI64,
}

impl StandingCell {
    pub(crate) fn new(hash: TokenHash, principal: PrincipalId, tenant: Arc<TenantCell>, rights: Arc<RightsCell>) -> Self {
        Self {
            principal,
            hash,
            tenant,
            rights,
            faults: AtomicU8::new(0),
            outdated: AtomicBool::new(false),
            used_at: AtomicI64::new(i64::MIN),
        }
    }

    /// The standing now.
    pub(crate) fn get(&self) -> Standing {
        let faults = self.faults.load(Ordering::Acquire);
        if faults & Fault::Unauthenticated as u8 != 0 {
            Standing::Unauthenticated
        } else if faults != 0 {
            Standing::TenantSuspended
        } else {
            Standing::Good
        }
    }

    /// Takes the standing away for good.
    pub(crate) fn fail(&self, fault: Fault) {
        self.faults.fetch_or(fault as u8, Ordering::AcqRel);
    }

    /// What is remembered beside the standing (the role) has changed: the next request reads the token anew.
    pub(crate) fn outdate(&self) {
        self.outdated.store(true, Ordering::Release);
    }

    /// Whether [`StandingCell::outdate`] was called since the last [`StandingCell::update`].
    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::Acquire)
    }

    /// To be called before the token is read anew.
    pub(crate) fn update(&self) {
        self.outdated.store(false, Ordering::Release);
    }

    /// Whether this use is to be noted: none was within `interval` before it.
    pub(crate) fn takes_note(&self, now: Timestamp, interval: Duration) -> bool {
        let noted = self.used_at.load(Ordering::Relaxed);
        let due = noted == i64::MIN || now >= Timestamp::from_micros(noted).plus(interval);
        due && self.used_at.compare_exchange(noted, now.as_micros(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
