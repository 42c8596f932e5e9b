//! The one place that authenticates, authorises and admits. STUB SIGNATURES, being written.

use std::sync::Arc;

use domain::{Clock, Event, StoreError, TenantId};

use crate::{Action, AuthenticationError, Caller, Denied, IdentityStore, Standing, Target};

/// Standing of a token, shared between authorizer and connections.
#[derive(Debug)]
pub(crate) struct StandingCell;

impl StandingCell {
    pub(crate) fn get(&self) -> Standing {
        Standing::Good
    }
}

/// Authenticates, authorises, admits.
#[derive(Debug)]
pub struct Authorizer;

/// Decides which events one principal is delivered, with the rights of the moment; no store read, no audit.
#[derive(Debug)]
pub struct Admission;

impl Admission {
    /// Whether the principal may see `event` now. At most 100 ns: decisions are cached per channel and permission version.
    pub fn admits(&mut self, event: &Event) -> bool {
        let _ = event;
        todo!()
    }
}

impl Authorizer {
    /// An authorizer over `store`.
    pub fn new(store: Arc<dyn IdentityStore>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let _ = (store, clock);
        Arc::new(Self)
    }

    /// Recognises a token secret.
    pub async fn authenticate(&self, secret: &str) -> Result<Caller, AuthenticationError> {
        let _ = secret;
        todo!()
    }

    /// The one function that decides. Denials are audited (aggregated); pure over cached rights.
    pub async fn authorize(&self, caller: &Caller, action: Action, target: Target<'_>) -> Result<(), Denied> {
        let _ = (caller, action, target);
        todo!()
    }

    /// Delivery mode for `caller`.
    pub async fn admission(&self, caller: &Caller) -> Result<Admission, StoreError> {
        let _ = caller;
        todo!()
    }

    /// Sees committed events before any reader does: reloads what `access.changed` touches. On an error the caller repeats, and no position moves.
    pub async fn observe(&self, tenant: &TenantId, events: &[Arc<Event>]) -> Result<(), StoreError> {
        let _ = (tenant, events);
        todo!()
    }

    /// The tail of `tenant` runs: to be called once it has fixed the position above which it hands every event to [`Authorizer::observe`], and before the first of them.
    pub async fn tail_started(&self, tenant: &TenantId) -> Result<(), StoreError> {
        let _ = tenant;
        todo!()
    }

    /// The tail of `tenant` stopped: nothing cached of the tenant is trusted for longer than `authz.cache_ttl`.
    pub fn tail_stopped(&self, tenant: &TenantId) {
        let _ = tenant;
    }
}
