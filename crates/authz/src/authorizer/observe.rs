//! How changes reach what is remembered: from the tail, in order and before any reader sees the event; and from this process's own
//! administration at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::{Event, PrincipalId, StoreError, TenantId};

use super::{Authorizer, verify};
use crate::cache::{Fault, Freshness, StandingCell, TenantCell};
use crate::{AccessChange, AuthenticationError, Change, Resource};

impl Authorizer {
    /// Sees committed events before any reader does: reloads what `access.changed` touches.
    ///
    /// # Errors
    /// The store's. The caller repeats the same events, and no position moves; until then nothing that they touch is decided from memory.
    pub async fn observe(&self, tenant: &TenantId, events: &[Arc<Event>]) -> Result<(), StoreError> {
        let changes: Vec<AccessChange> = events.iter().filter_map(|event| AccessChange::reported_by(event)).collect();
        if changes.is_empty() { Ok(()) } else { self.apply(tenant, &changes).await }
    }

    /// Does what committed changes ask for. Repeating it does no harm.
    pub(crate) async fn apply(&self, tenant: &TenantId, changes: &[AccessChange]) -> Result<(), StoreError> {
        self.changes.fetch_add(1, Ordering::SeqCst);
        let Some(tenant) = self.tenants.find(tenant) else { return Ok(()) };
        let mut touched = BTreeSet::new();
        for change in changes {
            let principal = change.principal.as_ref();
            match change.change {
                Change::GrantCreated | Change::GrantRevoked | Change::PrincipalEnabled => touched.extend(principal),
                Change::PrincipalDisabled | Change::PrincipalDeleted => {
                    fail_all(&tenant, Fault::Unauthenticated, |standing| Some(&standing.principal) == principal);
                    touched.extend(principal);
                }
                Change::PrincipalRole => {
                    outdate(&tenant, principal);
                    touched.extend(principal);
                }
                Change::TokenRevoked => {
                    if let Some(standing) = change.token_id.and_then(|token| tenant.standing(token)) {
                        standing.fail(Fault::Unauthenticated);
                    }
                }
                Change::TenantSuspended | Change::TenantDeleting => fail_all(&tenant, Fault::TenantSuspended, |_| true),
                Change::SpaceDeleted | Change::ChannelDeleted => forget_place(&tenant, change.resource.as_deref()),
                Change::TokenCreated | Change::TenantResumed => {}
                Change::Unrecognised => return self.reread(&tenant).await,
            }
        }
        self.reload(&tenant, touched).await
    }

    /// The tail of `tenant` runs: to be called once it has fixed the position above which it hands every event to
    /// [`Authorizer::observe`], and before the first of them. From now on what is remembered of the tenant is trusted without a look at
    /// its age, and what is in use is read anew.
    ///
    /// # Errors
    /// The store's. The tail repeats the call before it hands over any event.
    pub async fn tail_started(&self, tenant: &TenantId) -> Result<(), StoreError> {
        let tenant = self.tenants.cell(tenant);
        // First the changes, then the session: whoever sees the new session and read before it also sees that the changes have moved.
        self.changes.fetch_add(1, Ordering::SeqCst);
        tenant.set_session(self.sessions.fetch_add(1, Ordering::SeqCst) + 1);
        self.reread(&tenant).await
    }

    /// The tail of `tenant` stopped: nothing remembered of the tenant is trusted for longer than `authz.cache_ttl`.
    pub fn tail_stopped(&self, tenant: &TenantId) {
        if let Some(tenant) = self.tenants.find(tenant) {
            tenant.set_session(Freshness::NO_TAIL);
        }
    }

    async fn reload(&self, tenant: &TenantCell, principals: BTreeSet<&PrincipalId>) -> Result<(), StoreError> {
        // First nothing of it is trusted any more, then it is read: an error on the way leaves nothing wrong behind.
        let cells: Vec<_> = principals.into_iter().filter_map(|id| Some((id, tenant.invalidate_rights(id)?))).collect();
        for (principal, cell) in &cells {
            self.load(tenant, principal, cell).await?;
        }
        Ok(())
    }

    /// Reads anew everything of the tenant that is in use.
    async fn reread(&self, tenant: &TenantCell) -> Result<(), StoreError> {
        tenant.places.forget(&Resource::All);
        let (principals, standings) = (tenant.principals(), tenant.standings());
        for standing in &standings {
            standing.outdate();
        }
        self.reload(tenant, principals.iter().collect()).await?;
        for standing in standings {
            self.reverify(&standing).await?;
        }
        Ok(())
    }

    async fn reverify(&self, standing: &StandingCell) -> Result<(), StoreError> {
        let now = self.clock.now();
        let verdict = match self.store.0.credential(&standing.hash).await? {
            Some(credential) => verify(&credential, now),
            None => Err(AuthenticationError::Unauthenticated),
        };
        match verdict {
            Ok(()) => {}
            Err(AuthenticationError::TenantSuspended) => standing.fail(Fault::TenantSuspended),
            Err(_) => standing.fail(Fault::Unauthenticated),
        }
        Ok(())
    }
}

fn fail_all(tenant: &TenantCell, fault: Fault, concerned: impl Fn(&StandingCell) -> bool) {
    for standing in tenant.standings().iter().filter(|standing| concerned(standing)) {
        standing.fail(fault);
    }
}

fn outdate(tenant: &TenantCell, principal: Option<&PrincipalId>) {
    for standing in tenant.standings().iter().filter(|standing| Some(&standing.principal) == principal) {
        standing.outdate();
    }
}

fn forget_place(tenant: &TenantCell, resource: Option<&str>) {
    // A name that cannot be read forgets everything.
    let resource = resource.and_then(|name| name.parse().ok()).unwrap_or(Resource::All);
    tenant.places.forget(&resource);
}
