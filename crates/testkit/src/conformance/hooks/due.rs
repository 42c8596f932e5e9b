//! What is due, and whose turn it is.

use ::hooks::{DisabledCause, DueHook, DueQuery, Hook, HookState};
use authz::TenantState;
use domain::Timestamp;

use super::{EVERY_GROUP, MINUTE, hook_of, ring_at, secret};
use crate::conformance::harness::Harness;
use crate::conformance::support::Fixture;

/// `tenant/place` of each hook, where `place` is that among the tenant's hooks.
fn places(found: &[DueHook], hooks: &[Hook]) -> Vec<String> {
    let place = |hook: &Hook| hooks.iter().filter(|other| other.tenant == hook.tenant).position(|other| other.id == hook.id);
    found.iter().map(|due| format!("{}/{}", due.hook.tenant, place(&due.hook).unwrap())).collect()
}

fn query(now: Timestamp, hooks: usize) -> DueQuery<'static> {
    DueQuery { now, hooks, per_hook: 9, groups: &EVERY_GROUP, except: &[], except_tenants: &[] }
}

/// `acme` with four hooks whose rings wait for long, `beta` with two and `core` with one that wait for less.
async fn busy(harness: &dyn Harness) -> (Fixture, Vec<Hook>) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let mut hooks = Vec::new();
    for (name, count, waits) in [("acme", 4, 50), ("beta", 2, 10), ("core", 1, 20)] {
        let tenant = if name == "acme" { fixture.tenant.clone() } else { fixture.agent_in(name, "alpha").await };
        for number in 0..count {
            let hook = hook_of(&tenant, "alpha", fixture.now());
            fixture.create_hook(&hook).await.unwrap();
            let longest = fixture.now().minus(MINUTE * (waits - number));
            fixture.add(&[ring_at(&hook, 1, longest), ring_at(&hook, 2, fixture.now())]).await.unwrap();
            hooks.push(hook);
        }
    }
    (fixture, hooks)
}

pub(crate) async fn tenants_take_turns_and_within_one_the_longest_due_comes_first(harness: &dyn Harness) {
    let (fixture, hooks) = busy(harness).await;
    let due = async |limit| places(&fixture.due(query(fixture.now(), limit)).await, &hooks);
    let all = ["acme/0", "core/0", "beta/0", "acme/1", "beta/1", "acme/2", "acme/3"];
    for limit in 0..=all.len() {
        assert_eq!(due(limit).await, all[..limit]);
    }
    assert_eq!(due(99).await, all);
}

pub(crate) async fn hooks_and_tenants_that_are_excepted_give_their_turn_away(harness: &dyn Harness) {
    let (fixture, hooks) = busy(harness).await;
    let except = [hooks[0].id, hooks[4].id];
    let found = fixture.due(DueQuery { except: &except, ..query(fixture.now(), 3) }).await;
    assert_eq!(places(&found, &hooks), ["acme/1", "core/0", "beta/1"]);
    let tenants = [fixture.tenant.clone(), hooks[6].tenant.clone()];
    let found = fixture.due(DueQuery { except_tenants: &tenants, ..query(fixture.now(), 99) }).await;
    assert_eq!(places(&found, &hooks), ["beta/0", "beta/1"]);
}

pub(crate) async fn a_due_hook_comes_with_its_keys_and_its_longest_due_rings(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let hook = fixture.hook_for("alpha").await;
    fixture.put_key(hook.id, &secret("old", b"1", fixture.now())).await.unwrap();
    fixture.put_key(hook.id, &secret("new", b"2", fixture.now().plus(MINUTE))).await.unwrap();
    let now = fixture.now();
    let rings: Vec<_> =
        [(4, now), (3, now.minus(MINUTE)), (2, now.plus(MINUTE)), (1, now)].map(|(cause, at)| ring_at(&hook, cause, at)).to_vec();
    fixture.add(&rings).await.unwrap();
    let found = fixture.due(query(now, 9)).await.remove(0);
    assert_eq!((found.hook, found.keys), (hook.clone(), fixture.keys(hook.id).await));
    assert_eq!(found.deliveries, [rings[1].clone(), rings[3].clone(), rings[0].clone()], "at its moment it is due");
    let found = fixture.due(DueQuery { per_hook: 2, ..query(now, 9) }).await.remove(0);
    assert_eq!(found.deliveries, [rings[1].clone(), rings[3].clone()]);
    assert_eq!(fixture.due(DueQuery { per_hook: 0, ..query(now, 9) }).await.len(), 0, "never one without rings");
    assert_eq!(fixture.due(query(now.minus(MINUTE * 2), 9)).await.len(), 0);
}

pub(crate) async fn rings_of_hooks_in_any_state_are_answered(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    for state in [HookState::Active, HookState::PendingVerification, HookState::Disabled(DisabledCause::Gone)] {
        let hook = Hook { state, ..hook_of(&fixture.tenant, "alpha", fixture.now()) };
        fixture.create_hook(&hook).await.unwrap();
        fixture.add(&[ring_at(&hook, 1, fixture.now())]).await.unwrap();
    }
    let states: Vec<_> = fixture.all_due().await.iter().map(|due| due.hook.state).collect();
    assert_eq!(states, [HookState::Active, HookState::PendingVerification, HookState::Disabled(DisabledCause::Gone)]);
}

pub(crate) async fn nothing_is_due_of_a_disabled_agent_or_an_inactive_tenant(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha", "beta"]).await;
    let other = fixture.agent_in("other", "alpha").await;
    let now = fixture.now();
    let (first, second) = (fixture.hook_for("alpha").await, fixture.hook_for("beta").await);
    let third = hook_of(&other, "alpha", now);
    fixture.create_hook(&third).await.unwrap();
    let hooks = [first, second, third];
    for (hook, minutes) in hooks.iter().zip([3, 2, 1]) {
        fixture.add(&[ring_at(hook, 1, now.minus(MINUTE * minutes))]).await.unwrap();
    }
    let due = async || places(&fixture.all_due().await, &hooks);
    assert_eq!(
        (due().await, fixture.next_due().await),
        (vec!["acme/0".into(), "other/0".into(), "acme/1".into()], Some(now.minus(MINUTE * 3)))
    );
    fixture.set_enabled(&fixture.tenant, "alpha", false).await;
    assert_eq!(due().await, ["acme/1", "other/0"]);
    fixture.set_state(TenantState::Suspended).await;
    assert_eq!((due().await, fixture.next_due().await), (vec!["other/0".into()], Some(now.minus(MINUTE))));
    fixture.set_state_of(&other, TenantState::Deleting).await;
    assert_eq!((due().await, fixture.next_due().await), (vec![], None));
    fixture.set_state(TenantState::Active).await;
    fixture.set_enabled(&fixture.tenant, "alpha", true).await;
    assert_eq!(due().await, ["acme/0", "acme/1"]);
}

pub(crate) async fn the_next_due_follows_the_rings(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let (hook, other) = (fixture.hook_for("alpha").await, fixture.hook_for("alpha").await);
    let at = |minutes: u32| fixture.now().plus(MINUTE * minutes);
    assert_eq!(fixture.next_due().await, None);
    let (early, late) = (ring_at(&hook, 1, at(1)), ring_at(&hook, 2, at(5)));
    fixture.add(&[late.clone(), early.clone(), ring_at(&other, 1, at(3))]).await.unwrap();
    assert_eq!(fixture.next_due().await, Some(at(1)));
    fixture.save(&[::hooks::Delivery { next_at: at(9), ..early.clone() }]).await;
    assert_eq!(fixture.next_due().await, Some(at(3)));
    fixture.delete_hook(&other).await.unwrap();
    assert_eq!(fixture.next_due().await, Some(at(5)));
    fixture.remove(hook.id, &[late.id]).await;
    assert_eq!(fixture.next_due().await, Some(at(9)));
    fixture.remove(hook.id, &[early.id]).await;
    assert_eq!(fixture.next_due().await, None);
}

pub(crate) async fn a_tenant_with_very_many_rings_does_not_delay_another(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let other = fixture.agent_in("other", "alpha").await;
    let mut crowd = Vec::new();
    for _ in 0..100 {
        let hook = fixture.hook_for("alpha").await;
        let rings: Vec<_> = (1..=20).map(|cause| ring_at(&hook, cause, fixture.now().minus(MINUTE * 60))).collect();
        assert_eq!(fixture.add(&rings).await, Ok(20));
        crowd.push(hook.id);
    }
    let late = hook_of(&other, "alpha", fixture.now());
    fixture.create_hook(&late).await.unwrap();
    fixture.add(&[ring_at(&late, 1, fixture.now())]).await.unwrap();
    let found = fixture.due(DueQuery { per_hook: 1, ..query(fixture.now(), 2) }).await;
    assert_eq!(found.iter().map(|due| due.hook.id).collect::<Vec<_>>(), [crowd[0], late.id]);
    let found = fixture.due(DueQuery { except: &crowd, ..query(fixture.now(), 2) }).await;
    assert_eq!(found.len(), 1);
}
