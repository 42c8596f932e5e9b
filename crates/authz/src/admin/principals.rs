//! Principals, and who the caller is.

use domain::{PrincipalId, TenantId, Timestamp, TokenId};

use super::idempotency::{Idempotent, Made, Outcome};
use super::listing::{Listing, probe};
use super::scene::{NOTHING, PrincipalRecord, Scene};
use super::{Admin, AdminError, Done, FORBIDDEN, Tx, acting, outranks, unit};
use crate::{AccessChange, Action, Caller, Change, Keyset, Principal, PrincipalKind, Role, Scopes, Target};

/// Most characters of a display name.
const DISPLAY_NAME_CHARS: usize = 200;

/// A principal to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPrincipal {
    /// Its id, unique in the tenant.
    pub id: PrincipalId,
    /// What it is.
    pub kind: PrincipalKind,
    /// What it may administer.
    pub role: Role,
    /// A name for people, at most 200 characters, no control characters.
    pub display_name: Option<String>,
}

/// What to change of a principal; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrincipalPatch {
    /// A name for people, at most 200 characters, no control characters.
    pub display_name: Option<String>,
    /// What it may administer.
    pub role: Option<Role>,
    /// Whether it may act.
    pub enabled: Option<bool>,
}

/// Who a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Me {
    /// The tenant.
    pub tenant: TenantId,
    /// The principal.
    pub principal: Principal,
    /// The token.
    pub token: TokenId,
    /// What the token is narrowed to.
    pub scopes: Scopes,
    /// From when the token is refused.
    pub expires_at: Option<Timestamp>,
}

impl Admin {
    /// Creates a principal. Operators create members only.
    ///
    /// # Errors
    /// [`AdminError`]; `AlreadyExists` when the id is taken.
    pub async fn create_principal(
        &self,
        caller: &Caller,
        new: NewPrincipal,
        idempotent: Option<Idempotent<Principal>>,
    ) -> Result<Outcome<Principal>, AdminError> {
        self.authorize(caller, Action::PrincipalsManage, Target::Tenant).await?;
        check_display_name(new.display_name.as_deref())?;
        if new.id.as_str() == PrincipalId::SERVER {
            return Err(AdminError::invalid("/id", "this id is the server's own"));
        }
        let scene = self.scene(caller);
        let principal =
            Principal { id: new.id, kind: new.kind, role: new.role, display_name: new.display_name, enabled: true, created_at: scene.now };
        let (unit_scene, actor, id) = (scene.clone(), caller.principal.clone(), principal.id.clone());
        let work = unit(move |tx| {
            let (scene, actor, principal) = (unit_scene.clone(), actor.clone(), principal.clone());
            Box::pin(async move {
                let actor = acting(tx, &scene.tenant, &actor).await?;
                if actor.role <= principal.role && actor.role != Role::Owner {
                    return Err(FORBIDDEN);
                }
                tx.create_principal(&scene.tenant, &principal).await.map_err(AdminError::of_creating)?;
                let after = PrincipalRecord::of(&principal);
                scene.audit(tx, Action::PrincipalsManage, target(&principal.id), NOTHING, Some(&after)).await?;
                Ok((Made::New(principal), Vec::new()))
            })
        });
        self.create(caller, (Action::PrincipalsManage, Target::Principal(&id)), scene, idempotent, work).await
    }

    /// One principal.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn principal(&self, caller: &Caller, id: &PrincipalId) -> Result<Principal, AdminError> {
        self.authorize(caller, Action::PrincipalsRead, Target::Principal(id)).await?;
        self.store.principal(&caller.tenant, id).await?.ok_or(AdminError::NotFound)
    }

    /// Principals by id.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn principals(&self, caller: &Caller, keyset: &Keyset) -> Result<Listing<Principal>, AdminError> {
        self.authorize(caller, Action::PrincipalsRead, Target::Tenant).await?;
        let probe = probe(keyset, self.settings().list_max);
        let items = self.store.principals(&caller.tenant, &probe).await?;
        Ok(Listing::of(&probe, items, |principal| principal.id.to_string()))
    }

    /// Changes a principal. Operators touch members only; the last enabled owner stays one. Raising its role revokes its tokens.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn update_principal(&self, caller: &Caller, id: &PrincipalId, patch: PrincipalPatch) -> Result<Principal, AdminError> {
        self.authorize(caller, Action::PrincipalsManage, Target::Principal(id)).await?;
        check_display_name(patch.display_name.as_deref())?;
        let (scene, actor, subject) = (self.scene(caller), caller.principal.clone(), id.clone());
        let work = unit(move |tx| {
            let (scene, actor, subject, patch) = (scene.clone(), actor.clone(), subject.clone(), patch.clone());
            Box::pin(async move { update(tx, &scene, &actor, &subject, patch).await })
        });
        self.change(caller, (Action::PrincipalsManage, Target::Principal(id)), work).await
    }

    /// Deletes a principal with its tokens, grants and consumers. Operators touch members only; the last enabled owner stays.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn delete_principal(&self, caller: &Caller, id: &PrincipalId) -> Result<(), AdminError> {
        self.authorize(caller, Action::PrincipalsManage, Target::Principal(id)).await?;
        let (scene, actor, subject) = (self.scene(caller), caller.principal.clone(), id.clone());
        let work = unit(move |tx| {
            let (scene, actor, subject) = (scene.clone(), actor.clone(), subject.clone());
            Box::pin(async move {
                let before = touchable(tx, &scene, &actor, &subject).await?;
                keep_an_owner(tx, &scene, &before, false).await?;
                tx.delete_principal(&scene.tenant, &subject).await?;
                let record = PrincipalRecord::of(&before);
                scene.audit(tx, Action::PrincipalsManage, target(&subject), Some(&record), NOTHING).await?;
                let changes = vec![AccessChange::concerning(Change::PrincipalDeleted, &subject)];
                scene.announce(tx, &changes).await?;
                Ok(((), changes))
            })
        });
        self.change(caller, (Action::PrincipalsManage, Target::Principal(id)), work).await
    }

    /// Who the caller is.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn me(&self, caller: &Caller) -> Result<Me, AdminError> {
        self.authorize(caller, Action::MeRead, Target::Tenant).await?;
        let principal = self.store.principal(&caller.tenant, &caller.principal).await?.ok_or(AdminError::NotFound)?;
        Ok(Me { tenant: caller.tenant.clone(), principal, token: caller.token, scopes: caller.scopes, expires_at: caller.expires_at })
    }
}

async fn update(tx: &mut Tx, scene: &Scene, actor: &PrincipalId, subject: &PrincipalId, patch: PrincipalPatch) -> Done<Principal> {
    let actor = acting(tx, &scene.tenant, actor).await?;
    let before = touchable(tx, scene, &actor.id, subject).await?;
    let mut after = before.clone();
    after.display_name = patch.display_name.or(after.display_name);
    after.enabled = patch.enabled.unwrap_or(after.enabled);
    after.role = patch.role.unwrap_or(after.role);
    if after == before {
        return Ok((before, Vec::new()));
    }
    // Nobody raises anybody, itself included, to what it does not stand above; owners do.
    if after.role > before.role && after.role >= actor.role && actor.role != Role::Owner {
        return Err(FORBIDDEN);
    }
    keep_an_owner(tx, scene, &before, after.enabled && after.role == Role::Owner).await?;
    tx.update_principal(&scene.tenant, &after).await?;
    let (old, new) = (PrincipalRecord::of(&before), PrincipalRecord::of(&after));
    scene.audit(tx, Action::PrincipalsManage, target(subject), Some(&old), Some(&new)).await?;
    let mut changes = Vec::new();
    if after.role != before.role {
        changes.push(AccessChange::concerning(Change::PrincipalRole, subject));
    }
    if after.role > before.role {
        // Whoever made or found a token of the lesser principal must not rise with it.
        let revoked = tx.revoke_tokens(&scene.tenant, subject, scene.now).await?;
        changes.extend(
            revoked.into_iter().map(|id| AccessChange { token_id: Some(id), ..AccessChange::concerning(Change::TokenRevoked, subject) }),
        );
    }
    if after.enabled != before.enabled {
        let change = if after.enabled { Change::PrincipalEnabled } else { Change::PrincipalDisabled };
        changes.push(AccessChange::concerning(change, subject));
    }
    scene.announce(tx, &changes).await?;
    scene.announce_agent(tx, &after).await?;
    Ok((after, changes))
}

/// The principal `subject`, if `actor` may touch it.
pub(super) async fn touchable(tx: &mut Tx, scene: &Scene, actor: &PrincipalId, subject: &PrincipalId) -> Result<Principal, AdminError> {
    let actor = acting(tx, &scene.tenant, actor).await?;
    let subject = tx.principal(&scene.tenant, subject).await?.ok_or(AdminError::NotFound)?;
    if outranks(&actor, &subject) { Ok(subject) } else { Err(FORBIDDEN) }
}

/// Refuses what would leave the tenant without an enabled owner.
async fn keep_an_owner(tx: &mut Tx, scene: &Scene, before: &Principal, stays_owner: bool) -> Result<(), AdminError> {
    let is_owner = before.enabled && before.role == Role::Owner;
    if is_owner && !stays_owner && tx.owners(&scene.tenant).await? <= 1 { Err(AdminError::LastOwner) } else { Ok(()) }
}

pub(super) fn target(principal: &PrincipalId) -> String {
    Target::Principal(principal).to_string()
}

fn check_display_name(name: Option<&str>) -> Result<(), AdminError> {
    let valid = |name: &str| !name.is_empty() && name.chars().count() <= DISPLAY_NAME_CHARS && !name.chars().any(char::is_control);
    match name {
        Some(name) if !valid(name) => {
            let detail = format!("1 to {DISPLAY_NAME_CHARS} characters without control characters");
            Err(AdminError::invalid("/display_name", detail))
        }
        _ => Ok(()),
    }
}
