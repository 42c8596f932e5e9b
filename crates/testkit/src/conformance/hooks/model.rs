//! Everything that can be asked about rings, against a list of them.

use std::collections::BTreeMap;
use std::time::Duration;

use ::hooks::{Delivery, DueQuery, Hook, HookId};
use authz::TenantState;
use domain::{TenantId, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::conformance::waiting;

use super::{EVERY_GROUP, hook_of, ring_at, rings, unit};
use crate::conformance::harness::Harness;
use crate::conformance::support::Fixture;

const TENANTS: usize = 3;
const HOOKS: usize = 3;

#[derive(Clone, Debug)]
enum Change {
    Add { tenant: usize, hook: usize, causes: Vec<u64>, after: i8 },
    Save { tenant: usize, hook: usize, nth: usize, after: i8 },
    Remove { tenant: usize, hook: usize, nth: usize },
    Clear { tenant: usize, hook: usize },
    Replace { tenant: usize, hook: usize },
    Enable { tenant: usize, enabled: bool },
    Serve { tenant: usize, served: bool },
    Wait { seconds: u8 },
}

fn change() -> impl Strategy<Value = Change> {
    let (tenant, hook) = (0..TENANTS, 0..HOOKS);
    prop_oneof![
        6 => (tenant.clone(), hook.clone(), proptest::collection::vec(1..9_u64, 1..4), any::<i8>())
            .prop_map(|(tenant, hook, causes, after)| Change::Add { tenant, hook, causes, after }),
        3 => (tenant.clone(), hook.clone(), 0..9_usize, any::<i8>())
            .prop_map(|(tenant, hook, nth, after)| Change::Save { tenant, hook, nth, after }),
        3 => (tenant.clone(), hook.clone(), 0..9_usize).prop_map(|(tenant, hook, nth)| Change::Remove { tenant, hook, nth }),
        1 => (tenant.clone(), hook.clone()).prop_map(|(tenant, hook)| Change::Clear { tenant, hook }),
        1 => (tenant.clone(), hook).prop_map(|(tenant, hook)| Change::Replace { tenant, hook }),
        1 => (tenant.clone(), any::<bool>()).prop_map(|(tenant, enabled)| Change::Enable { tenant, enabled }),
        1 => (tenant, any::<bool>()).prop_map(|(tenant, served)| Change::Serve { tenant, served }),
        2 => (1..90_u8).prop_map(|seconds| Change::Wait { seconds }),
    ]
}

/// A tenant as it should be: its hooks with their rings, in the order of their making.
struct Tenant {
    id: TenantId,
    served: bool,
    enabled: bool,
    hooks: Vec<(Hook, Vec<Delivery>)>,
}

impl Tenant {
    /// The hooks that are due: the longest due first, each with what is due of it.
    fn due(&self, now: Timestamp, except: &[HookId]) -> Vec<(HookId, Vec<Delivery>)> {
        let mut due = Vec::new();
        for (hook, rings) in self.hooks.iter().filter(|(hook, _)| self.served && self.enabled && !except.contains(&hook.id)) {
            let rings: Vec<Delivery> = sorted(rings).into_iter().filter(|ring| ring.next_at <= now).collect();
            if let Some(first) = rings.first() {
                due.push((first.next_at, hook.id, rings));
            }
        }
        due.sort_by_key(|(at, id, _)| (*at, *id));
        due.into_iter().map(|(_, id, rings)| (id, rings)).collect()
    }
}

fn sorted(rings: &[Delivery]) -> Vec<Delivery> {
    let mut rings = rings.to_vec();
    rings.sort_by_key(|ring| (ring.next_at, ring.cause, ring.id.clone()));
    rings
}

struct Model<'a> {
    fixture: &'a Fixture,
    tenants: Vec<Tenant>,
}

impl<'a> Model<'a> {
    async fn new(fixture: &'a Fixture) -> Self {
        let mut tenants = Vec::new();
        for name in ["a", "b", "c"] {
            let id = fixture.agent_in(name, "alpha").await;
            let mut tenant = Tenant { id, served: true, enabled: true, hooks: Vec::new() };
            for _ in 0..HOOKS {
                tenant.hooks.push((made(fixture, &tenant.id).await, Vec::new()));
            }
            tenants.push(tenant);
        }
        Self { fixture, tenants }
    }

    fn at(&self, after: i8) -> Timestamp {
        let by = Duration::from_secs(u64::from(after.unsigned_abs()));
        if after < 0 { self.fixture.now().minus(by) } else { self.fixture.now().plus(by) }
    }

    async fn apply(&mut self, change: Change) {
        let fixture = self.fixture;
        match change {
            Change::Wait { seconds } => fixture.clock.advance(Duration::from_secs(u64::from(seconds))),
            Change::Add { tenant, hook, causes, after } => self.add(tenant, hook, &causes, after).await,
            Change::Save { tenant, hook, nth, after } => {
                let next_at = self.at(after);
                let rings = &mut self.tenants[tenant].hooks[hook].1;
                let Some(place) = nth.checked_rem(rings.len()) else { return };
                rings[place].next_at = next_at;
                rings[place].attempts += 1;
                fixture.save(&rings[place..=place]).await;
            }
            Change::Remove { tenant, hook, nth } => {
                let (hook, rings) = &mut self.tenants[tenant].hooks[hook];
                let Some(place) = nth.checked_rem(rings.len()) else { return };
                let ring = rings.remove(place);
                fixture.remove(hook.id, &[ring.id]).await;
            }
            Change::Clear { tenant, hook } => {
                let (hook, rings) = &mut self.tenants[tenant].hooks[hook];
                let cleared = unit!(fixture, [hook], |tx| tx.clear_deliveries(hook.id));
                assert_eq!(cleared, Ok(std::mem::take(rings).len() as u64));
            }
            Change::Replace { tenant, hook } => {
                let tenant = &mut self.tenants[tenant];
                if tenant.served {
                    fixture.delete_hook(&tenant.hooks.remove(hook).0).await.unwrap();
                    tenant.hooks.push((made(fixture, &tenant.id).await, Vec::new()));
                }
            }
            Change::Enable { tenant, enabled } => {
                self.tenants[tenant].enabled = enabled;
                fixture.set_enabled(&self.tenants[tenant].id, "alpha", enabled).await;
            }
            Change::Serve { tenant, served } => {
                self.tenants[tenant].served = served;
                let state = if served { TenantState::Active } else { TenantState::Suspended };
                fixture.set_state_of(&self.tenants[tenant].id, state).await;
            }
        }
    }

    async fn add(&mut self, tenant: usize, hook: usize, causes: &[u64], after: i8) {
        let next_at = self.at(after);
        let tenant = &mut self.tenants[tenant];
        let (hook, rings) = &mut tenant.hooks[hook];
        let batch: Vec<Delivery> = causes.iter().map(|cause| ring_at(hook, *cause, next_at)).collect();
        let added = self.fixture.add(&batch).await;
        if !tenant.served {
            assert_eq!(added, Err(domain::StoreError::TenantInactive));
            return;
        }
        let before = rings.len();
        for ring in batch {
            if rings.iter().all(|other| other.id != ring.id) {
                rings.push(ring);
            }
        }
        assert_eq!(added, Ok((rings.len() - before) as u64));
    }

    async fn check(&self) {
        let hooks = || self.tenants.iter().flat_map(|tenant| &tenant.hooks);
        for (hook, expected) in hooks() {
            let expected = sorted(expected);
            assert_eq!(self.fixture.deliveries(hook.id, 99).await, expected);
            assert_eq!(rings(&self.fixture.deliveries(hook.id, 2).await), rings(&expected[..expected.len().min(2)]));
        }
        let mut counts: Vec<_> = hooks().map(|(hook, rings)| (hook.id, rings.len() as u64)).filter(|(_, count)| *count > 0).collect();
        counts.sort_unstable();
        assert_eq!(self.fixture.outstanding(&hooks().map(|(hook, _)| hook.id).collect::<Vec<_>>()).await, counts);
        let served = self.tenants.iter().filter(|tenant| tenant.served).flat_map(|tenant| &tenant.hooks);
        assert_eq!(self.fixture.next_due().await, served.flat_map(|(_, rings)| rings).map(|ring| ring.next_at).min());
        let excepted = hooks().map(|(hook, _)| hook.id).step_by(4).collect::<Vec<_>>();
        for (limit, except, without) in
            [(99, &[][..], None), (4, &[], None), (2, &excepted, None), (99, &excepted, Some(1)), (0, &[], None)]
        {
            self.check_due(limit, except, without).await;
        }
    }

    async fn check_due(&self, limit: usize, except: &[HookId], without: Option<usize>) {
        let now = self.fixture.now();
        let except_tenants: Vec<TenantId> = without.map(|place| self.tenants[place].id.clone()).into_iter().collect();
        let query = DueQuery { now, hooks: limit, per_hook: 2, groups: &EVERY_GROUP, except, except_tenants: &except_tenants };
        let found = self.fixture.due(query).await;
        let mut waiting: BTreeMap<&TenantId, Vec<(HookId, Vec<Delivery>)>> = BTreeMap::new();
        for tenant in self.tenants.iter().filter(|tenant| !except_tenants.contains(&tenant.id)) {
            waiting.insert(&tenant.id, tenant.due(now, except));
        }
        let possible: usize = waiting.values().map(Vec::len).sum();
        assert_eq!(found.len(), possible.min(limit));
        let mut turns: BTreeMap<&TenantId, usize> = BTreeMap::new();
        let mut round = 0;
        for due in &found {
            let turn = turns.entry(&due.hook.tenant).or_default();
            assert!(*turn >= round, "a tenant that has had its turn comes after those that have not");
            round = *turn;
            let (id, rings) = &waiting[&due.hook.tenant][*turn];
            assert_eq!((due.hook.id, &due.deliveries[..]), (*id, &rings[..rings.len().min(2)]), "within a tenant the longest due is next");
            *turn += 1;
        }
        let had = |tenant: &TenantId| turns.get(tenant).copied().unwrap_or(0);
        let most = turns.values().copied().max().unwrap_or(0);
        let is_fair = |(tenant, due): (&&TenantId, &Vec<_>)| had(tenant) + 1 >= most || had(tenant) == due.len();
        assert!(waiting.iter().all(is_fair), "nobody waits while another comes a second time");
    }
}

async fn made(fixture: &Fixture, tenant: &TenantId) -> Hook {
    let hook = hook_of(tenant, "alpha", fixture.now());
    fixture.create_hook(&hook).await.unwrap();
    hook
}

pub(crate) async fn rings_are_answered_as_a_list_of_them_would(harness: &dyn Harness) {
    let wanted = harness.cases(32);
    let config = ProptestConfig { cases: wanted, failure_persistence: None, ..ProptestConfig::default() };
    let mut cases = std::sync::atomic::AtomicU64::new(0);
    let outcome = TestRunner::new(config).run(&proptest::collection::vec(change(), 1..30), |changes| {
        cases.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        waiting(async {
            let fixture = Fixture::empty(harness).await;
            let mut model = Model::new(&fixture).await;
            for change in changes {
                model.apply(change).await;
                model.check().await;
            }
        });
        Ok(())
    });
    outcome.unwrap();
    assert!(*cases.get_mut() >= u64::from(wanted));
}
