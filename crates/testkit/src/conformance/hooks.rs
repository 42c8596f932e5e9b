//! Hooks.

#![expect(missing_docs, reason = "the names say it; nobody but a case reads them")]

pub(crate) mod attempts;
pub(crate) mod deliveries;
pub(crate) mod dispatch;
pub(crate) mod due;
pub(crate) mod keys;
pub(crate) mod model;
pub(crate) mod registrations;
pub(crate) mod upkeep;

use std::time::Duration;

use ::hooks::{
    AttemptClass, AttemptRecord, Delivery, DueHook, DueQuery, GroupNumber, Health, Hook, HookId, HookKey, HookKind, HookState, HookStore,
    HookTx, HookUrl, KeyId, KeyMaterial, Profile, Reason, Sealed, WebhookId,
};
use authz::{PrincipalKind, TenantState};
use domain::{BoxFuture, EventId, PrincipalId, QueueName, StoreError, TenantId, Timestamp, run_tx};

use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, fresh, principal, seq};

pub const MINUTE: Duration = Duration::from_mins(1);

/// Every group that any store has.
pub const EVERY_GROUP: [GroupNumber; 16] = [
    GroupNumber(0),
    GroupNumber(1),
    GroupNumber(2),
    GroupNumber(3),
    GroupNumber(4),
    GroupNumber(5),
    GroupNumber(6),
    GroupNumber(7),
    GroupNumber(8),
    GroupNumber(9),
    GroupNumber(10),
    GroupNumber(11),
    GroupNumber(12),
    GroupNumber(13),
    GroupNumber(14),
    GroupNumber(15),
];

/// Runs one call of the writing port in a transaction of its own; what it borrows is named first.
#[macro_export]
macro_rules! hook_unit {
    ($fixture:expr, [$($name:ident),*], |$tx:ident| $call:expr) => {{
        $(let $name = $name.clone();)*
        let unit = $fixture.hook_tx(move |$tx| {
            $(let $name = $name.clone();)*
            Box::pin(async move { $call.await })
        });
        unit.await
    }};
}
pub use hook_unit as unit;

pub fn agent(name: &str) -> PrincipalId {
    PrincipalId::parse(name).unwrap()
}

pub fn key_id(name: &str) -> KeyId {
    KeyId::parse(name).unwrap()
}

pub fn ids(hooks: &[Hook]) -> Vec<HookId> {
    hooks.iter().map(|hook| hook.id).collect()
}

pub fn rings(deliveries: &[Delivery]) -> Vec<WebhookId> {
    deliveries.iter().map(|ring| ring.id.clone()).collect()
}

/// A hook of an agent that is rung for everything.
pub fn hook_of(tenant: &TenantId, name: &str, now: Timestamp) -> Hook {
    Hook {
        id: HookId::new(fresh()),
        tenant: tenant.clone(),
        agent: agent(name),
        kind: HookKind::Notify,
        profile: Profile::StandardWebhooks,
        url: HookUrl::parse("https://hooks.example.com/services/T0?token=CANARY").unwrap(),
        queues: Vec::new(),
        ignore_presence: false,
        max_rate_per_minute: None,
        state: HookState::Active,
        challenge: None,
        health: Health::default(),
        since: seq(0),
        created_at: now,
    }
}

/// A ring of `hook` for row `cause` that is due at `next_at`.
pub fn ring_at(hook: &Hook, cause: u64, next_at: Timestamp) -> Delivery {
    let event = EventId::new(uuid::Uuid::from_u128(cause.into()));
    Delivery {
        tenant: hook.tenant.clone(),
        hook: hook.id,
        id: WebhookId::of_item(hook.id, seq(cause), event),
        reason: Reason::Created,
        cause: seq(cause),
        event: Some(event),
        queue: Some(QueueName::parse("review").unwrap()),
        attempts: 0,
        next_at,
        created_at: next_at,
    }
}

pub fn secret(name: &str, bytes: &[u8], created_at: Timestamp) -> HookKey {
    HookKey { id: key_id(name), material: KeyMaterial::Secret(Sealed::from_bytes(bytes.to_vec())), created_at, expires_at: None }
}

pub fn attempt_of(ring: &Delivery, number: u32, class: AttemptClass) -> AttemptRecord {
    AttemptRecord {
        id: ring.id.clone(),
        reason: ring.reason,
        event: ring.event,
        attempt: number,
        at: ring.created_at,
        latency: Duration::from_micros(1_234),
        status: Some(503),
        class,
    }
}

impl Fixture {
    /// A store with these agents of tenant `acme`.
    pub async fn with_agents(harness: &dyn Harness, names: &[&str]) -> Self {
        let fixture = Self::new(harness).await;
        for name in names {
            fixture.create_principal(name, PrincipalKind::Agent).await;
        }
        fixture
    }

    pub async fn hook_tx<T, F>(&self, unit: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnMut(&'t mut (dyn HookTx + 'static)) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        run_tx::<dyn HookTx, _, StoreError, _>(&*self.store, "test_hooks", unit).await
    }

    /// An agent of a tenant, which is made when it is not there.
    pub async fn agent_in(&self, name: &str, agent: &str) -> TenantId {
        let id = crate::conformance::support::tenant(name);
        if authz::IdentityStore::tenant(&*self.store, &id).await.unwrap().is_none() {
            self.create_tenant(name).await;
        }
        let (tenant, made) = (id.clone(), principal(agent, PrincipalKind::Agent, self.now()));
        let created = self.admin(move |tx| {
            let (tenant, made) = (tenant.clone(), made.clone());
            Box::pin(async move { tx.create_principal(&tenant, &made).await })
        });
        created.await.unwrap();
        id
    }

    pub async fn set_enabled(&self, tenant: &TenantId, name: &str, enabled: bool) {
        let (tenant, changed) = (tenant.clone(), authz::Principal { enabled, ..principal(name, PrincipalKind::Agent, self.now()) });
        let updated = self.admin(move |tx| {
            let (tenant, changed) = (tenant.clone(), changed.clone());
            Box::pin(async move { tx.update_principal(&tenant, &changed).await })
        });
        assert_eq!(updated.await, Ok(true));
    }

    pub async fn set_state_of(&self, tenant: &TenantId, state: TenantState) {
        let tenant = tenant.clone();
        let changed = self.admin(move |tx| {
            let tenant = tenant.clone();
            Box::pin(async move { tx.set_tenant_state(&tenant, state).await })
        });
        assert_eq!(changed.await, Ok(true));
    }

    pub async fn delete_agent(&self, name: &'static str) {
        let tenant = self.tenant.clone();
        let deleted = self.admin(move |tx| {
            let tenant = tenant.clone();
            Box::pin(async move { tx.delete_principal(&tenant, &agent(name)).await })
        });
        assert_eq!(deleted.await, Ok(true));
    }

    pub async fn create_hook(&self, hook: &Hook) -> Result<(), StoreError> {
        unit!(self, [hook], |tx| tx.create_hook(&hook))
    }

    /// A stored hook of an agent of tenant `acme`.
    pub async fn hook_for(&self, name: &str) -> Hook {
        let hook = hook_of(&self.tenant, name, self.now());
        self.create_hook(&hook).await.unwrap();
        hook
    }

    pub async fn save_hook(&self, hook: &Hook) -> Result<(), StoreError> {
        unit!(self, [hook], |tx| tx.save_hook(&hook))
    }

    pub async fn delete_hook(&self, hook: &Hook) -> Result<(), StoreError> {
        unit!(self, [hook], |tx| tx.delete_hook(&hook.tenant, hook.id))
    }

    pub async fn stored(&self, hook: &Hook) -> Option<Hook> {
        let read = self.store.hook(&hook.tenant, hook.id).await.unwrap();
        let locked = unit!(self, [hook], |tx| tx.hook(&hook.tenant, hook.id)).unwrap();
        assert_eq!(read, locked, "both ports see the same");
        read
    }

    pub async fn put_key(&self, hook: HookId, key: &HookKey) -> Result<(), StoreError> {
        unit!(self, [key], |tx| tx.put_key(hook, &key))
    }

    pub async fn keys(&self, hook: HookId) -> Vec<HookKey> {
        let read = self.store.keys(hook).await.unwrap();
        let locked = unit!(self, [], |tx| tx.keys(hook)).unwrap();
        assert_eq!(read, locked, "both ports see the same");
        read
    }

    pub async fn add(&self, rings: &[Delivery]) -> Result<u64, StoreError> {
        let rings = rings.to_vec();
        unit!(self, [rings], |tx| tx.add_deliveries(&rings))
    }

    pub async fn save(&self, rings: &[Delivery]) {
        let rings = rings.to_vec();
        unit!(self, [rings], |tx| tx.save_deliveries(&rings)).unwrap();
    }

    pub async fn remove(&self, hook: HookId, ids: &[WebhookId]) {
        let ids = ids.to_vec();
        unit!(self, [ids], |tx| tx.remove_deliveries(hook, &ids)).unwrap();
    }

    pub async fn deliveries(&self, hook: HookId, limit: usize) -> Vec<Delivery> {
        unit!(self, [], |tx| tx.deliveries(hook, limit)).unwrap()
    }

    pub async fn outstanding(&self, hooks: &[HookId]) -> Vec<(HookId, u64)> {
        let hooks = hooks.to_vec();
        unit!(self, [hooks], |tx| tx.outstanding(&hooks)).unwrap()
    }

    pub async fn log_attempts(&self, attempts: Vec<(HookId, AttemptRecord)>, keep: usize) -> Result<(), StoreError> {
        unit!(self, [attempts], |tx| tx.log_attempts(&attempts, keep))
    }

    pub async fn due(&self, query: DueQuery<'_>) -> Vec<DueHook> {
        HookStore::due(&*self.store, query).await.unwrap()
    }

    /// Everything that is due now.
    pub async fn all_due(&self) -> Vec<DueHook> {
        self.due(DueQuery { now: self.now(), hooks: 99, per_hook: 99, groups: &EVERY_GROUP, except: &[], except_tenants: &[] }).await
    }

    pub async fn next_due(&self) -> Option<Timestamp> {
        HookStore::next_due(&*self.store, &EVERY_GROUP).await.unwrap()
    }
}
