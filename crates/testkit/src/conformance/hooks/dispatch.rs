//! Who dispatches, and how far.

use ::hooks::{Generation, GroupNumber, Hook, HookStore, LogPosition, TenantHooks};
use authz::TenantState;
use domain::{Appended, StoreError, SyncEpoch, TenantId};

use super::{EVERY_GROUP, hook_of, ring_at, unit};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, fresh, seq, tenant};

const GROUP: GroupNumber = GroupNumber(0);

async fn take(fixture: &Fixture) -> Generation {
    unit!(fixture, [], |tx| tx.take_group(GROUP)).unwrap()
}

async fn advance(fixture: &Fixture, tenant: &TenantId, generation: Generation, position: LogPosition) -> Result<bool, StoreError> {
    unit!(fixture, [tenant], |tx| tx.advance(&tenant, GROUP, generation, position))
}

fn at(value: u64) -> LogPosition {
    LogPosition { epoch: SyncEpoch::new(uuid::Uuid::from_u128(7)), seq: seq(value) }
}

/// The groups that the store has: one when it is embedded, several when it is shared.
async fn groups(fixture: &Fixture) -> Vec<GroupNumber> {
    let groups = fixture.store.groups().await.unwrap();
    assert!(groups.contains(&GROUP) && groups.is_sorted_by(|one, next| one < next), "{groups:?}");
    groups
}

async fn tenants(fixture: &Fixture) -> Vec<TenantHooks> {
    HookStore::tenants(&*fixture.store, &EVERY_GROUP, None, 99).await.unwrap()
}

pub(crate) async fn whoever_takes_the_group_fences_off_whoever_had_it(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    fixture.hook_for("alpha").await;
    let groups = groups(&fixture).await;
    assert!(groups.contains(&tenants(&fixture).await[0].group));
    let absent = GroupNumber(groups.last().unwrap().0 + 1);
    let first = take(&fixture).await;
    assert_eq!(advance(&fixture, &fixture.tenant, first, at(1)).await, Ok(true));
    let second = take(&fixture).await;
    assert!(second > first);
    assert_eq!(advance(&fixture, &fixture.tenant, first, at(9)).await, Ok(false));
    assert_eq!(tenants(&fixture).await[0].position, Some(at(1)), "nothing is moved");
    assert_eq!(advance(&fixture, &fixture.tenant, second, at(5)).await, Ok(true));
    assert_eq!(advance(&fixture, &fixture.tenant, second, at(3)).await, Ok(true), "a lost position may go back");
    assert_eq!(tenants(&fixture).await[0].position, Some(at(3)));
    let fixture = fixture.reopen().await;
    assert!(take(&fixture).await > second, "also over a restart");
    assert_eq!(advance(&fixture, &fixture.tenant, second, at(9)).await, Ok(false));
    let none = unit!(fixture, [], |tx| tx.take_group(absent));
    assert_eq!(none, Err(StoreError::Conflict("there is no such group")));
    let tenant = fixture.tenant.clone();
    assert_eq!(unit!(fixture, [tenant], |tx| tx.advance(&tenant, absent, Generation(0), at(9))), Ok(false));
}

pub(crate) async fn a_position_and_its_rings_are_stored_together_or_not_at_all(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let hook = fixture.hook_for("alpha").await;
    let stale = take(&fixture).await;
    let step = async |hook: &Hook, generation, cause| {
        let (tenant, ring) = (fixture.tenant.clone(), ring_at(hook, cause, fixture.now()));
        let unit = fixture.hook_tx(move |tx| {
            let (tenant, ring) = (tenant.clone(), ring.clone());
            Box::pin(async move {
                tx.add_deliveries(&[ring]).await?;
                if tx.advance(&tenant, GROUP, generation, at(cause)).await? { Ok(()) } else { Err(StoreError::RolledBack) }
            })
        });
        unit.await
    };
    assert_eq!(step(&hook, stale, 1).await, Ok(()));
    let mine = take(&fixture).await;
    assert_eq!(step(&hook, stale, 2).await, Err(StoreError::RolledBack));
    assert_eq!((tenants(&fixture).await[0].position, fixture.outstanding(&[hook.id]).await), (Some(at(1)), vec![(hook.id, 1)]));
    assert_eq!(step(&hook, mine, 2).await, Ok(()));
    assert_eq!(step(&hook, mine, 2).await, Ok(()), "what was done is not done twice");
    assert_eq!((tenants(&fixture).await[0].position, fixture.outstanding(&[hook.id]).await), (Some(at(2)), vec![(hook.id, 2)]));
}

pub(crate) async fn tenants_with_hooks_come_by_id(harness: &dyn Harness) {
    let fixture = Fixture::empty(harness).await;
    for name in ["d", "a", "c", "b", "none"] {
        let tenant = fixture.agent_in(name, "alpha").await;
        for _ in 0..3 {
            if name != "none" {
                fixture.create_hook(&hook_of(&tenant, "alpha", fixture.now())).await.unwrap();
            }
        }
    }
    let generation = take(&fixture).await;
    assert_eq!(advance(&fixture, &tenant("b"), generation, at(4)).await, Ok(true));
    assert_eq!(advance(&fixture, &tenant("none"), generation, at(4)).await, Ok(true));
    fixture.set_state_of(&tenant("c"), TenantState::Suspended).await;
    let row = |name: &str, position| (tenant(name), position);
    let told = |found: &[TenantHooks]| found.iter().map(|each| (each.tenant.clone(), each.position)).collect::<Vec<_>>();
    let all = tenants(&fixture).await;
    assert_eq!(told(&all), [row("a", None), row("b", Some(at(4))), row("d", None)]);
    let page =
        async |after: &str, limit| told(&HookStore::tenants(&*fixture.store, &EVERY_GROUP, Some(&tenant(after)), limit).await.unwrap());
    assert_eq!(page("a", 1).await, [row("b", Some(at(4)))]);
    assert_eq!(page("b", 9).await, [row("d", None)]);
    assert_eq!(page("d", 9).await, []);
    // Each is in one group, and found by that one alone.
    for group in groups(&fixture).await {
        let expected: Vec<_> = all.iter().filter(|each| each.group == group).cloned().collect();
        assert_eq!(HookStore::tenants(&*fixture.store, &[group], None, 99).await, Ok(expected));
    }
    assert_eq!(HookStore::tenants(&*fixture.store, &[], None, 99).await, Ok(vec![]));
}

pub(crate) async fn a_position_needs_an_active_tenant(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let generation = take(&fixture).await;
    assert_eq!(advance(&fixture, &tenant("nowhere"), generation, at(1)).await, Err(StoreError::TenantInactive));
    fixture.set_state(TenantState::Suspended).await;
    assert_eq!(advance(&fixture, &fixture.tenant, generation, at(1)).await, Err(StoreError::TenantInactive));
    let stale = Generation(generation.0 - 1);
    assert_eq!(advance(&fixture, &fixture.tenant, stale, at(1)).await, Ok(false), "the fence comes first");
}

pub(crate) async fn the_first_hook_after_none_finds_no_position_of_earlier_times(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha", "beta"]).await;
    let generation = take(&fixture).await;
    let first = fixture.hook_for("alpha").await;
    advance(&fixture, &fixture.tenant, generation, at(3)).await.unwrap();
    let second = fixture.hook_for("alpha").await;
    assert_eq!(tenants(&fixture).await[0].position, Some(at(3)), "a second one does not change it");
    for hook in [first, second] {
        fixture.delete_hook(&hook).await.unwrap();
    }
    assert_eq!(tenants(&fixture).await, []);
    fixture.hook_for("beta").await;
    assert_eq!(tenants(&fixture).await[0].position, None);
}

pub(crate) async fn the_head_is_the_transactions_and_events_about_hooks_are_appended_in_order(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    fixture.fill(2).await;
    let (tenant, events) = (fixture.tenant.clone(), vec![fixture.event("a"), fixture.event("b")]);
    let appended = fixture
        .hook_tx(move |tx| {
            let (tenant, events) = (tenant.clone(), events.clone());
            Box::pin(async move {
                let before = tx.head_of_log(&tenant).await?;
                let seqs = tx.append_hooks(&tenant, &events).await?;
                Ok((before.seq, seqs, tx.head_of_log(&tenant).await?))
            })
        })
        .await
        .unwrap();
    let head = fixture.store.head(&fixture.tenant).await.unwrap().unwrap();
    assert_eq!(appended, (seq(2), vec![seq(3), seq(4)], head));
    let (tenant, keyed) = (fixture.tenant.clone(), fixture.keyed("k", "a"));
    assert!(matches!(fixture.append(vec![keyed.clone()]).await.unwrap()[0], Appended::New { .. }));
    let again = vec![domain::Publication { id: domain::EventId::new(fresh()), ..keyed }];
    let refused = unit!(fixture, [tenant, again], |tx| tx.append_hooks(&tenant, &again));
    assert_eq!(refused, Err(StoreError::Conflict("an event about a hook is not new")));
    let now = fixture.hook_tx(|tx| Box::pin(async move { Ok(tx.now()) })).await;
    assert_eq!(now, Ok(fixture.now()), "the store's clock");
}
