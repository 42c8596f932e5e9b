//! Hooks as a whole.

use ::hooks::{
    AttemptClass, Challenge, DisabledCause, Health, Hook, HookKind, HookState, HookStore, HookTotals, HookUrl, Profile, WebhookId,
};
use authz::{PrincipalKind, TenantState};
use domain::{QueueName, StoreError};

use super::{MINUTE, agent, attempt_of, hook_of, ids, ring_at, secret};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, fresh, principal, seq, tenant};

/// Hooks that together have every value that a column can have.
fn variety(fixture: &Fixture) -> Vec<Hook> {
    let plain = || hook_of(&fixture.tenant, "alpha", fixture.now());
    let challenged = plain();
    let challenge = Challenge {
        delivery: WebhookId::fresh(challenged.id, fresh()),
        nonce: "nonce".to_owned(),
        text: "challenge".to_owned(),
        expires_at: fixture.now().plus(MINUTE),
    };
    vec![
        plain(),
        Hook {
            kind: HookKind::Callback,
            profile: Profile::CallbackHmac,
            state: HookState::PendingVerification,
            challenge: Some(challenge),
            max_rate_per_minute: Some(60),
            since: seq(7),
            ..challenged
        },
        Hook {
            queues: ["review", "build"].map(|name| QueueName::parse(name).unwrap()).to_vec(),
            ignore_presence: true,
            profile: Profile::MessageHmac,
            state: HookState::Disabled(DisabledCause::Asked),
            health: Health { last_status: Some(599), last_attempt_at: Some(fixture.now()), exhausted_in_row: u32::MAX },
            ..plain()
        },
        Hook { profile: Profile::MessageEd25519, state: HookState::Disabled(DisabledCause::Exhausted), ..plain() },
        Hook { state: HookState::Disabled(DisabledCause::Gone), ..plain() },
    ]
}

pub(crate) async fn a_hook_is_answered_as_it_was_stored_and_only_to_its_tenant(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    fixture.create_tenant("other").await;
    for hook in variety(&fixture) {
        fixture.create_hook(&hook).await.unwrap();
        assert_eq!(fixture.stored(&hook).await, Some(hook.clone()));
        let foreign = Hook { tenant: tenant("other"), ..hook.clone() };
        assert_eq!(fixture.stored(&foreign).await, None);
        fixture.delete_hook(&foreign).await.unwrap();
        assert_eq!(fixture.save_hook(&foreign).await, Err(StoreError::Conflict("there is no such hook")));
        assert_eq!(fixture.stored(&hook).await, Some(hook), "another tenant changes nothing");
    }
}

pub(crate) async fn a_change_writes_everything_but_what_a_hook_is(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha", "beta"]).await;
    let made = fixture.hook_for("alpha").await;
    for wanted in variety(&fixture) {
        let url = HookUrl::parse("https://other.example.com/").unwrap();
        let written = Hook { id: made.id, agent: agent("beta"), created_at: fixture.now().plus(MINUTE), url, ..wanted };
        fixture.save_hook(&written).await.unwrap();
        let expected = Hook { agent: made.agent.clone(), kind: made.kind, created_at: made.created_at, ..written };
        assert_eq!(fixture.stored(&made).await, Some(expected));
    }
    fixture.delete_hook(&made).await.unwrap();
    assert_eq!(fixture.save_hook(&made).await, Err(StoreError::Conflict("there is no such hook")));
    fixture.delete_hook(&made).await.unwrap();
}

pub(crate) async fn a_hook_needs_its_agent_and_an_active_tenant(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let orphan = hook_of(&fixture.tenant, "nobody", fixture.now());
    assert_eq!(fixture.create_hook(&orphan).await, Err(StoreError::Conflict("there is no such agent")));
    let hook = fixture.hook_for("alpha").await;
    assert_eq!(fixture.create_hook(&hook).await, Err(StoreError::Conflict("the hook exists")));
    let strange = hook_of(&tenant("nowhere"), "alpha", fixture.now());
    assert_eq!(fixture.create_hook(&strange).await, Err(StoreError::TenantInactive));
    fixture.set_state(TenantState::Suspended).await;
    let late = hook_of(&fixture.tenant, "alpha", fixture.now());
    assert_eq!(fixture.create_hook(&late).await, Err(StoreError::TenantInactive));
    assert_eq!(fixture.save_hook(&hook).await, Ok(()), "what is there can be changed");
    assert_eq!(fixture.delete_hook(&hook).await, Ok(()));
}

pub(crate) async fn listings_go_by_id_within_kind_and_agent(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha", "beta"]).await;
    let other = fixture.agent_in("other", "alpha").await;
    fixture.create_hook(&hook_of(&other, "alpha", fixture.now())).await.unwrap();
    let mut all = Vec::new();
    for (number, name) in ["alpha", "beta", "alpha", "beta", "alpha", "alpha"].into_iter().enumerate() {
        let kind = if number == 2 { HookKind::Callback } else { HookKind::Notify };
        let hook = Hook { kind, ..hook_of(&fixture.tenant, name, fixture.now()) };
        fixture.create_hook(&hook).await.unwrap();
        all.push(hook.id);
    }
    let list = async |name: Option<&str>, kind, after: Option<usize>, limit| {
        let (name, after) = (name.map(agent), after.map(|place: usize| all[place]));
        ids(&fixture.store.hooks(&fixture.tenant, name.as_ref(), kind, after, limit).await.unwrap())
    };
    let places = |places: &[usize]| places.iter().map(|place| all[*place]).collect::<Vec<_>>();
    assert_eq!(list(None, HookKind::Notify, None, 99).await, places(&[0, 1, 3, 4, 5]));
    assert_eq!(list(None, HookKind::Callback, None, 99).await, places(&[2]));
    assert_eq!(list(Some("alpha"), HookKind::Notify, None, 99).await, places(&[0, 4, 5]));
    assert_eq!(list(Some("alpha"), HookKind::Notify, Some(0), 1).await, places(&[4]), "strictly after, at most so many");
    assert_eq!(list(Some("alpha"), HookKind::Notify, Some(5), 99).await, []);
    assert_eq!(list(None, HookKind::Notify, Some(0), 2).await, places(&[1, 3]), "the limit counts what is listed");
    assert_eq!(list(Some("nobody"), HookKind::Notify, None, 99).await, []);
    assert_eq!(list(None, HookKind::Notify, None, 0).await, []);
}

pub(crate) async fn active_hooks_are_those_that_are_rung(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha", "beta", "gamma"]).await;
    let mut active = Vec::new();
    for mut hook in variety(&fixture) {
        for name in ["alpha", "beta", "gamma"] {
            hook = Hook { id: ::hooks::HookId::new(fresh()), agent: agent(name), ..hook };
            fixture.create_hook(&hook).await.unwrap();
            if hook.state == HookState::Active {
                active.push(hook.clone());
            }
        }
    }
    let (wanted, repeated) = ([agent("alpha"), agent("gamma")], [agent("gamma"), agent("alpha"), agent("gamma"), agent("nobody")]);
    for agents in [&wanted[..], &repeated[..]] {
        let found = fixture.store.active_hooks(&fixture.tenant, agents).await.unwrap();
        assert_eq!(found, [active[0].clone(), active[2].clone()]);
    }
    assert_eq!(fixture.store.active_hooks(&fixture.tenant, &[]).await.unwrap(), []);
    let all = async |after, limit| ids(&fixture.store.all_active_hooks(&fixture.tenant, after, limit).await.unwrap());
    assert_eq!(all(None, 99).await, ids(&active));
    assert_eq!(all(Some(active[0].id), 1).await, [active[1].id]);
    let totals = HookTotals { active: 3, pending: 3, disabled: 9, outstanding: 0 };
    assert_eq!(HookStore::totals(&*fixture.store).await, Ok(totals));
}

pub(crate) async fn fifty_creates_at_once_never_exceed_a_ceiling(harness: &dyn Harness) {
    let fixture = std::sync::Arc::new(Fixture::with_agents(harness, &["alpha", "beta"]).await);
    for _ in 0..2 {
        fixture.hook_for("beta").await;
    }
    let mut creates = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (fixture, hook) = (std::sync::Arc::clone(&fixture), hook_of(&fixture.tenant, "alpha", fixture.now()));
        creates.spawn(async move {
            let unit = fixture.hook_tx(move |tx| {
                let hook = hook.clone();
                Box::pin(async move {
                    let (of_agent, of_tenant) = tx.count_hooks(&hook.tenant, &hook.agent).await?;
                    assert_eq!(of_tenant, of_agent + 2);
                    if of_agent >= 5 {
                        return Err(StoreError::Conflict("no more"));
                    }
                    tx.create_hook(&hook).await
                })
            });
            unit.await
        });
    }
    let outcomes = creates.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 5);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(()) | Err(StoreError::Conflict("no more")))));
    assert_eq!(fixture.count("hooks").await, 7);
}

pub(crate) async fn a_hook_goes_with_its_keys_rings_and_attempts(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let (kept, gone) = (fixture.hook_for("alpha").await, fixture.hook_for("alpha").await);
    for hook in [&kept, &gone] {
        furnish(&fixture, hook).await;
    }
    fixture.delete_hook(&gone).await.unwrap();
    assert_eq!(fixture.stored(&gone).await, None);
    assert_eq!(fixture.stored(&kept).await, Some(kept.clone()));
    assert_eq!(belongings(&fixture).await, [1, 1, 1]);
    assert_eq!(fixture.keys(kept.id).await.len(), 1);
}

/// Gives a hook a key, a ring and an attempt.
async fn furnish(fixture: &Fixture, hook: &Hook) {
    let ring = ring_at(hook, 1, fixture.now());
    fixture.put_key(hook.id, &secret("k", b"sealed", fixture.now())).await.unwrap();
    fixture.add(std::slice::from_ref(&ring)).await.unwrap();
    fixture.log_attempts(vec![(hook.id, attempt_of(&ring, 1, AttemptClass::Timeout))], 9).await.unwrap();
}

async fn belongings(fixture: &Fixture) -> [i64; 3] {
    [fixture.count("hook_keys").await, fixture.count("hook_deliveries").await, fixture.count("hook_attempts").await]
}

pub(crate) async fn an_agent_goes_with_its_hooks_and_one_of_its_name_has_none(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha", "beta"]).await;
    let (gone, kept) = (fixture.hook_for("alpha").await, fixture.hook_for("beta").await);
    for hook in [&gone, &kept] {
        furnish(&fixture, hook).await;
    }
    fixture.delete_agent("alpha").await;
    assert_eq!((fixture.count("hooks").await, belongings(&fixture).await), (1, [1, 1, 1]));
    assert_eq!(fixture.all_due().await.len(), 1);
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    assert_eq!(fixture.store.hooks(&fixture.tenant, Some(&agent("alpha")), HookKind::Notify, None, 9).await, Ok(Vec::new()));
    assert_eq!(fixture.stored(&kept).await, Some(kept));
    assert_eq!(fixture.add(&[ring_at(&gone, 2, fixture.now())]).await, Ok(0));
}

pub(crate) async fn a_deletion_of_an_agent_that_is_rolled_back_takes_no_hook(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let hook = fixture.hook_for("alpha").await;
    furnish(&fixture, &hook).await;
    let tenant = fixture.tenant.clone();
    let failed: Result<(), StoreError> = fixture
        .admin(move |tx| {
            let tenant = tenant.clone();
            Box::pin(async move {
                tx.delete_principal(&tenant, &agent("alpha")).await?;
                tx.create_principal(&tenant, &principal("alpha", PrincipalKind::Agent, domain::Timestamp::from_micros(0))).await?;
                Err(StoreError::Conflict("on purpose"))
            })
        })
        .await;
    assert!(failed.is_err());
    assert_eq!((fixture.count("hooks").await, belongings(&fixture).await, fixture.all_due().await.len()), (1, [1, 1, 1], 1));
}
