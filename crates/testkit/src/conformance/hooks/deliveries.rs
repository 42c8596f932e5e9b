//! Outstanding rings.

use ::hooks::{Delivery, HookId, Reason, WebhookId};
use authz::TenantState;
use domain::StoreError;

use super::{MINUTE, ring_at, rings, unit};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, fresh, seq, tenant};

pub(crate) async fn a_ring_is_answered_as_it_was_stored(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let hook = fixture.hook_for("alpha").await;
    let plain = ring_at(&hook, 3, fixture.now());
    let stored = [
        plain.clone(),
        Delivery { id: WebhookId::fresh(hook.id, fresh()), reason: Reason::Backlog, event: None, queue: None, ..plain.clone() },
        Delivery { id: WebhookId::fresh(hook.id, fresh()), reason: Reason::Signal, cause: seq(0), attempts: u32::MAX, ..plain.clone() },
        Delivery { id: WebhookId::fresh(hook.id, fresh()), reason: Reason::Challenge, created_at: fixture.now().minus(MINUTE), ..plain },
    ];
    assert_eq!(fixture.add(&stored).await, Ok(4));
    for ring in &stored {
        let found = unit!(fixture, [ring], |tx| tx.delivery(ring.hook, &ring.id));
        assert_eq!(found, Ok(Some(ring.clone())));
    }
    let unknown = WebhookId::fresh(hook.id, fresh());
    assert_eq!(unit!(fixture, [unknown, hook], |tx| tx.delivery(hook.id, &unknown)), Ok(None));
    let elsewhere = (HookId::new(fresh()), stored[0].id.clone());
    assert_eq!(unit!(fixture, [elsewhere], |tx| tx.delivery(elsewhere.0, &elsewhere.1)), Ok(None));
}

pub(crate) async fn a_ring_that_is_there_stays_and_one_of_a_hook_that_is_gone_is_left_out(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let (hook, gone) = (fixture.hook_for("alpha").await, fixture.hook_for("alpha").await);
    fixture.delete_hook(&gone).await.unwrap();
    let first = ring_at(&hook, 1, fixture.now());
    let changed = Delivery { attempts: 2, next_at: fixture.now().plus(MINUTE), ..first.clone() };
    let foreign = Delivery { tenant: tenant("other"), ..ring_at(&hook, 7, fixture.now()) };
    assert_eq!(fixture.add(std::slice::from_ref(&first)).await, Ok(1));
    let second = ring_at(&hook, 2, fixture.now());
    let batch = [ring_at(&gone, 1, fixture.now()), changed, second.clone(), second.clone(), foreign];
    assert_eq!(fixture.add(&batch).await, Ok(1), "one is new");
    assert_eq!(fixture.deliveries(hook.id, 9).await, [first, second]);
    assert_eq!(fixture.outstanding(&[gone.id, hook.id, hook.id]).await, [(hook.id, 2)]);
    assert_eq!(fixture.deliveries(gone.id, 9).await, []);
}

pub(crate) async fn a_ring_needs_an_active_tenant(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let hook = fixture.hook_for("alpha").await;
    let ring = ring_at(&hook, 1, fixture.now());
    fixture.add(std::slice::from_ref(&ring)).await.unwrap();
    fixture.set_state(TenantState::Suspended).await;
    assert_eq!(fixture.add(&[ring_at(&hook, 2, fixture.now())]).await, Err(StoreError::TenantInactive));
    fixture.save(&[Delivery { attempts: 1, ..ring.clone() }]).await;
    assert_eq!(fixture.deliveries(hook.id, 9).await[0].attempts, 1, "what is there can be changed");
    fixture.remove(hook.id, &[ring.id]).await;
    assert_eq!(fixture.outstanding(&[hook.id]).await, []);
}

pub(crate) async fn the_longest_due_come_first_and_those_of_the_same_instant_in_the_order_of_their_causes(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let (hook, other) = (fixture.hook_for("alpha").await, fixture.hook_for("alpha").await);
    let now = fixture.now();
    let stored =
        [ring_at(&hook, 9, now), ring_at(&hook, 2, now), ring_at(&hook, 5, now.minus(MINUTE)), ring_at(&hook, 1, now.plus(MINUTE))];
    fixture.add(&stored).await.unwrap();
    fixture.add(&[ring_at(&other, 1, now)]).await.unwrap();
    let causes = async |limit| fixture.deliveries(hook.id, limit).await.iter().map(|ring| ring.cause.get()).collect::<Vec<_>>();
    assert_eq!(causes(9).await, [5, 2, 9, 1]);
    assert_eq!(causes(2).await, [5, 2]);
    assert_eq!(causes(0).await, [] as [u64; 0]);
}

pub(crate) async fn a_change_writes_cause_attempts_and_time_and_brings_nothing_back(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let hook = fixture.hook_for("alpha").await;
    let (ring, gone) = (ring_at(&hook, 1, fixture.now()), ring_at(&hook, 2, fixture.now()));
    fixture.add(&[ring.clone(), gone.clone()]).await.unwrap();
    fixture.remove(hook.id, std::slice::from_ref(&gone.id)).await;
    let written = Delivery {
        cause: seq(8),
        attempts: 2,
        next_at: fixture.now().plus(MINUTE),
        reason: Reason::Requeued,
        event: None,
        queue: None,
        created_at: fixture.now().plus(MINUTE),
        ..ring.clone()
    };
    fixture.save(&[written.clone(), gone]).await;
    let expected = Delivery { cause: seq(8), attempts: 2, next_at: written.next_at, ..ring };
    assert_eq!(fixture.deliveries(hook.id, 9).await, [expected]);
    assert_eq!(fixture.next_due().await, Some(written.next_at));
}

pub(crate) async fn named_rings_are_removed_and_all_of_one_hook_cleared(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let (hook, other) = (fixture.hook_for("alpha").await, fixture.hook_for("alpha").await);
    let stored: Vec<Delivery> = (1..=4).map(|cause| ring_at(&hook, cause, fixture.now())).collect();
    fixture.add(&stored).await.unwrap();
    fixture.add(&[ring_at(&other, 1, fixture.now())]).await.unwrap();
    fixture.remove(hook.id, &[stored[0].id.clone(), stored[2].id.clone(), ring_at(&other, 1, fixture.now()).id]).await;
    assert_eq!(rings(&fixture.deliveries(hook.id, 9).await), rings(&[stored[1].clone(), stored[3].clone()]));
    assert_eq!(fixture.outstanding(&[hook.id, other.id]).await.len(), 2, "another hook's stay");
    let cleared = unit!(fixture, [hook], |tx| tx.clear_deliveries(hook.id));
    assert_eq!((cleared, fixture.outstanding(&[hook.id, other.id]).await), (Ok(2), vec![(other.id, 1)]));
    assert_eq!(unit!(fixture, [hook], |tx| tx.clear_deliveries(hook.id)), Ok(0));
    assert_eq!(fixture.all_due().await.len(), 1);
}

pub(crate) async fn rings_of_a_unit_that_fails_are_not_there(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let hook = fixture.hook_for("alpha").await;
    let ring = ring_at(&hook, 1, fixture.now());
    let failed: Result<(), StoreError> = fixture
        .hook_tx(move |tx| {
            let ring = ring.clone();
            Box::pin(async move {
                assert_eq!(tx.add_deliveries(&[ring]).await?, 1);
                Err(StoreError::RolledBack)
            })
        })
        .await;
    assert_eq!(failed, Err(StoreError::RolledBack));
    assert_eq!((fixture.next_due().await, fixture.outstanding(&[hook.id]).await), (None, vec![]));
}
