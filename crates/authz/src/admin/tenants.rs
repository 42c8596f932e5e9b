//! Tenants: the instance operator's, and the first start of an empty store.

use domain::{Audience, PrincipalId, Seq, SyncEpoch, TenantId, run_tx};
use serde::Serialize;

use super::idempotency::{Idempotent, Made, Outcome};
use super::listing::{Listing, probe};
use super::scene::{NOTHING, PrincipalRecord, Scene};
use super::tokens::{IssuedToken, add_token, token};
use super::{Admin, AdminError, Tx, unit};
use crate::{
    AccessChange, Action, Caller, Change, DEFAULT_TENANT, Keyset, Principal, PrincipalKind, Role, Scopes, Target, Tenant, TenantState,
    TokenSecret,
};

/// The id of a tenant's first owner, unless another is asked for.
const OWNER: &str = "owner";
/// Owners that are told when their tenant is suspended or resumed, at most.
const OWNERS_TOLD: usize = 16;
/// Principals looked at in one step for finding the owners.
const OWNER_PAGE: usize = 500;

/// A tenant to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTenant {
    /// Its id.
    pub id: TenantId,
    /// The id of its first owner, a person; `owner` when absent.
    pub owner: Option<PrincipalId>,
}

/// A tenant that was created, with its first owner and the owner's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTenant {
    /// The tenant.
    pub tenant: Tenant,
    /// Its first owner.
    pub owner: Principal,
    /// The owner's token.
    pub token: IssuedToken,
}

impl Admin {
    /// Makes what an empty store needs: tenant `default` with the principal `owner` (a person) and its token, in one transaction. Answers
    /// whether it was needed: not when the store holds a tenant already.
    ///
    /// `keep` is handed the token before the store has it, so that a crash in between leaves a token that opens nothing and never an owner
    /// without a token.
    ///
    /// # Errors
    /// What `keep` answers, the store's, or that the random source failed.
    pub async fn bootstrap<E: From<AdminError>>(&self, keep: impl FnOnce(&TokenSecret) -> Result<(), E>) -> Result<bool, E> {
        let present = self.store.tenants(&Keyset { after: None, limit: 1 }).await.map_err(AdminError::from)?;
        if !present.is_empty() {
            return Ok(false);
        }
        let id = TenantId::parse(DEFAULT_TENANT).map_err(|error| AdminError::invalid("/id", error.expectation))?;
        let scene = Scene { tenant: id.clone(), actor: None, now: self.clock.now(), ids: std::sync::Arc::clone(&self.ids) };
        let created = found(&scene, NewTenant { id, owner: None })?;
        keep(&created.token.secret)?;
        let work = unit(move |tx| {
            let (scene, created) = (scene.clone(), created.clone());
            Box::pin(async move { settle(tx, &scene, &created).await })
        });
        match run_tx(&*self.transactions, "bootstrap", work).await {
            Ok(()) => Ok(true),
            Err(AdminError::AlreadyExists) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a tenant with its first owner.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn create_tenant(
        &self,
        caller: &Caller,
        new: NewTenant,
        idempotent: Option<Idempotent<CreatedTenant>>,
    ) -> Result<Outcome<CreatedTenant>, AdminError> {
        self.authorize(caller, Action::TenantsManage, Target::Instance).await?;
        if new.owner.as_ref().is_some_and(|owner| owner.as_str() == PrincipalId::SERVER) {
            return Err(AdminError::invalid("/owner", "this id is the server's own"));
        }
        let scene = self.scene(caller);
        let created = found(&scene, new)?;
        let unit_scene = scene.clone();
        let work = unit(move |tx| {
            let (scene, created) = (unit_scene.clone(), created.clone());
            Box::pin(async move {
                let inside = Scene { tenant: created.tenant.id.clone(), actor: None, ..scene.clone() };
                settle(tx, &inside, &created).await?;
                let after = TenantRecord::of(&created.tenant);
                scene.audit(tx, Action::TenantsManage, target(&created.tenant.id), NOTHING, Some(&after)).await?;
                Ok((Made::New(created), Vec::new()))
            })
        });
        self.create(caller, (Action::TenantsManage, Target::Instance), scene, idempotent, work).await
    }

    /// All tenants by id.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn tenants(&self, caller: &Caller, keyset: &Keyset) -> Result<Listing<Tenant>, AdminError> {
        self.authorize(caller, Action::TenantsManage, Target::Instance).await?;
        let probe = probe(keyset, self.settings().list_max);
        let items = self.store.tenants(&probe).await?;
        Ok(Listing::of(&probe, items, |tenant| tenant.id.to_string()))
    }

    /// One tenant.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn tenant(&self, caller: &Caller, id: &TenantId) -> Result<Tenant, AdminError> {
        self.authorize(caller, Action::TenantsManage, Target::Instance).await?;
        self.store.tenant(id).await?.ok_or(AdminError::NotFound)
    }

    /// Suspends a tenant, or resumes it. Suspending closes its connections with 4016; tenant `default` cannot be suspended, or nobody could
    /// resume it. Nothing is removed here: `deleting` is refused.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn set_tenant_state(&self, caller: &Caller, id: &TenantId, state: TenantState) -> Result<Tenant, AdminError> {
        self.authorize(caller, Action::TenantsManage, Target::Instance).await?;
        let change = match state {
            TenantState::Active => Change::TenantResumed,
            TenantState::Suspended if id.as_str() == DEFAULT_TENANT => {
                return Err(AdminError::invalid("/state", "the tenant `default` operates the instance and cannot be suspended"));
            }
            TenantState::Suspended => Change::TenantSuspended,
            TenantState::Deleting => return Err(AdminError::invalid("/state", "`active` or `suspended`")),
        };
        let before = self.store.tenant(id).await?.ok_or(AdminError::NotFound)?;
        if before.state == state {
            return Ok(before);
        }
        if before.state == TenantState::Deleting {
            return Err(AdminError::NotFound);
        }
        let audience = self.owners(id).await?;
        let switch = Switch { scene: self.scene(caller), before: before.clone(), state, change, audience };
        let work = unit(move |tx| {
            let switch = switch.clone();
            Box::pin(async move { Ok((switch.turn(tx).await?, Vec::new())) })
        });
        self.change(caller, (Action::TenantsManage, Target::Instance), work).await?;
        self.learn(id, &[AccessChange::of(change)]).await;
        Ok(Tenant { state, ..before })
    }

    /// The owners of a tenant, as the audience of what concerns it as a whole.
    async fn owners(&self, tenant: &TenantId) -> Result<Audience, AdminError> {
        let mut owners = Vec::new();
        let mut keyset = Keyset { after: None, limit: OWNER_PAGE };
        loop {
            let page = self.store.principals(tenant, &keyset).await?;
            keyset.after = page.last().map(|principal| principal.id.to_string());
            let full = page.len() >= OWNER_PAGE;
            owners.extend(page.into_iter().filter(|principal| principal.role == Role::Owner).map(|principal| principal.id));
            if !full || owners.len() >= OWNERS_TOLD {
                owners.truncate(OWNERS_TOLD);
                return Ok(Audience::new(&owners));
            }
        }
    }
}

/// The change of a tenant's state.
#[derive(Clone)]
struct Switch {
    scene: Scene,
    before: Tenant,
    state: TenantState,
    change: Change,
    audience: Audience,
}

impl Switch {
    async fn turn(self, tx: &mut Tx) -> Result<(), AdminError> {
        let id = &self.before.id;
        let inside = Scene { tenant: id.clone(), actor: None, ..self.scene.clone() };
        // Only the log of an active tenant takes events: before it is suspended, after it is resumed.
        if self.state == TenantState::Active {
            self.set(tx).await?;
            inside.announce_to(tx, self.audience.clone(), &AccessChange::of(self.change)).await?;
        } else {
            inside.announce_to(tx, self.audience.clone(), &AccessChange::of(self.change)).await?;
            self.set(tx).await?;
        }
        let (old, new) = (TenantRecord::of(&self.before), TenantRecord { id, state: self.state });
        self.scene.audit(tx, Action::TenantsManage, target(id), Some(&old), Some(&new)).await?;
        Ok(())
    }

    async fn set(&self, tx: &mut Tx) -> Result<(), AdminError> {
        if tx.set_tenant_state(&self.before.id, self.state).await? { Ok(()) } else { Err(AdminError::NotFound) }
    }
}

/// A tenant with its first owner and the owner's token, to be written.
fn found(scene: &Scene, new: NewTenant) -> Result<CreatedTenant, AdminError> {
    let epoch = SyncEpoch::new(scene.ids.uuid());
    let tenant = Tenant { id: new.id, state: TenantState::Active, head: Seq::ZERO, epoch, created_at: scene.now };
    let id = match new.owner {
        Some(owner) => owner,
        None => PrincipalId::parse(OWNER).map_err(|error| AdminError::invalid("/owner", error.expectation))?,
    };
    let kind = PrincipalKind::Person;
    let owner = Principal { id, kind, role: Role::Owner, display_name: None, enabled: true, created_at: scene.now };
    let token = token(scene, &owner, Scopes::of_kind(kind), None)?;
    Ok(CreatedTenant { tenant, owner, token })
}

/// Writes a new tenant. Nobody remembers anything of it yet, so its log begins empty.
async fn settle(tx: &mut Tx, scene: &Scene, created: &CreatedTenant) -> Result<(), AdminError> {
    tx.create_tenant(&created.tenant).await.map_err(AdminError::of_creating)?;
    tx.create_principal(&scene.tenant, &created.owner).await?;
    let owner = PrincipalRecord::of(&created.owner);
    scene.audit(tx, Action::PrincipalsManage, super::principals::target(&created.owner.id), NOTHING, Some(&owner)).await?;
    add_token(tx, scene, &created.token.record).await?;
    Ok(())
}

fn target(tenant: &TenantId) -> String {
    format!("tenant/{tenant}")
}

/// A tenant as the audit log shows it.
#[derive(Serialize)]
struct TenantRecord<'a> {
    id: &'a TenantId,
    state: TenantState,
}

impl<'a> TenantRecord<'a> {
    fn of(tenant: &'a Tenant) -> Self {
        Self { id: &tenant.id, state: tenant.state }
    }
}
