//! Grants.

use domain::{GrantId, PrincipalId};
use serde::Serialize;

use super::idempotency::{Idempotent, Made, Outcome};
use super::listing::{Listing, probe};
use super::principals::target;
use super::scene::NOTHING;
use super::{Admin, AdminError, unit};
use crate::{AccessChange, Action, Caller, Change, Grant, Keyset, Permission, Resource, Target};

/// A grant to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGrant {
    /// Who.
    pub principal: PrincipalId,
    /// On what.
    pub resource: Resource,
    /// What.
    pub permission: Permission,
}

impl Admin {
    /// Creates a grant. Needs `manage` on its resource, which includes every permission that can be granted.
    ///
    /// # Errors
    /// [`AdminError`]; `NotFound` when the resource does not exist or the caller may not know of it.
    pub async fn create_grant(
        &self,
        caller: &Caller,
        new: NewGrant,
        idempotent: Option<Idempotent<Grant>>,
    ) -> Result<Outcome<Grant>, AdminError> {
        let resource = new.resource.clone();
        self.authorize(caller, Action::GrantsManage, target_of(&resource)).await?;
        let scene = self.scene(caller);
        let grant = Grant {
            id: GrantId::new(self.ids.uuid()),
            principal: new.principal,
            resource: new.resource,
            permission: new.permission,
            created_at: scene.now,
        };
        let unit_scene = scene.clone();
        let work = unit(move |tx| {
            let (scene, grant) = (unit_scene.clone(), grant.clone());
            Box::pin(async move {
                if tx.principal(&scene.tenant, &grant.principal).await?.is_none() {
                    return Err(AdminError::invalid("/principal", "there is no such principal"));
                }
                if !tx.resource_exists(&scene.tenant, &grant.resource).await? {
                    return Err(AdminError::NotFound);
                }
                if let Some(present) = tx.create_grant(&scene.tenant, &grant).await? {
                    return Ok((Made::Present(present), Vec::new()));
                }
                let after = GrantRecord::of(&grant);
                scene.audit(tx, Action::GrantsManage, target(&grant.principal), NOTHING, Some(&after)).await?;
                let changes = vec![change(Change::GrantCreated, &grant)];
                scene.announce(tx, &changes).await?;
                Ok((Made::New(grant), changes))
            })
        });
        self.create(caller, (Action::GrantsManage, target_of(&resource)), scene, idempotent, work).await
    }

    /// The grants that the caller may know of, in the order of their creation: its own, and those on what it manages. There can be fewer
    /// than asked for although more follow.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn grants(&self, caller: &Caller, principal: Option<&PrincipalId>, keyset: &Keyset) -> Result<Listing<Grant>, AdminError> {
        self.authorize(caller, Action::GrantsRead, Target::Tenant).await?;
        let view = self.authorizer.view(caller, self.clock.now()).await?;
        let manages = |resource: &Resource| view.on(resource) == Some(Permission::Manage);
        // Who manages nothing at large only ever sees its own.
        let principal = if view.manages_anything() { principal.cloned() } else { principal.cloned().or(Some(caller.principal.clone())) };
        let probe = probe(keyset, self.settings().list_max);
        let items = self.store.grants(&caller.tenant, principal.as_ref(), &probe).await?;
        let listing = Listing::of(&probe, items, |grant| grant.id.to_string());
        Ok(listing.filter(|grant| grant.principal == caller.principal || manages(&grant.resource)))
    }

    /// Revokes a grant. Needs `manage` on its resource.
    ///
    /// # Errors
    /// [`AdminError`]; `NotFound` when there is none or the caller may not know of it.
    pub async fn revoke_grant(&self, caller: &Caller, id: GrantId) -> Result<(), AdminError> {
        self.authorize(caller, Action::GrantsRead, Target::Tenant).await?;
        let view = self.authorizer.view(caller, self.clock.now()).await?;
        let (scene, own) = (self.scene(caller), caller.principal.clone());
        let work = unit(move |tx| {
            let (scene, own, view) = (scene.clone(), own.clone(), std::sync::Arc::clone(&view));
            Box::pin(async move {
                let grant = tx.grant(&scene.tenant, id).await?.ok_or(AdminError::NotFound)?;
                if view.on(&grant.resource) != Some(Permission::Manage) {
                    let hidden = AdminError::Denied(crate::Denied::NotFound);
                    return Err(if grant.principal == own { super::FORBIDDEN } else { hidden });
                }
                tx.delete_grant(&scene.tenant, id).await?;
                let before = GrantRecord::of(&grant);
                scene.audit(tx, Action::GrantsManage, target(&grant.principal), Some(&before), NOTHING).await?;
                let changes = vec![revocation(&grant)];
                scene.announce(tx, &changes).await?;
                Ok(((), changes))
            })
        });
        self.change(caller, (Action::GrantsManage, Target::Tenant), work).await
    }
}

/// What authorising a grant on `resource` is aimed at.
fn target_of(resource: &Resource) -> Target<'_> {
    match resource {
        Resource::All => Target::Tenant,
        Resource::Space(space) => Target::Space(space),
        Resource::Channel(channel) => Target::Channel(channel),
    }
}

fn change(change: Change, grant: &Grant) -> AccessChange {
    AccessChange { permission: Some(grant.permission), ..AccessChange::concerning(change, &grant.principal).at(&grant.resource) }
}

pub(super) fn revocation(grant: &Grant) -> AccessChange {
    change(Change::GrantRevoked, grant)
}

/// A grant as the audit log shows it.
#[derive(Serialize)]
struct GrantRecord {
    id: GrantId,
    resource: String,
    permission: Permission,
}

impl GrantRecord {
    fn of(grant: &Grant) -> Self {
        Self { id: grant.id, resource: grant.resource.to_string(), permission: grant.permission }
    }
}
