//! The delivery log.

use ::hooks::{AttemptClass, AttemptRecord};
use authz::TenantState;
use domain::StoreError;

use super::{attempt_of, ring_at};
use crate::conformance::harness::Harness;
use crate::conformance::support::Fixture;

pub(crate) async fn the_last_attempts_of_each_hook_are_kept_newest_first(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let (hook, other) = (fixture.hook_for("alpha").await, fixture.hook_for("alpha").await);
    let attempt = |number| attempt_of(&ring_at(&hook, 1, fixture.now()), number, AttemptClass::ServerError);
    let numbers = async |id, limit| {
        let attempts = fixture.store.attempts(id, limit).await.unwrap();
        attempts.iter().map(|attempt: &AttemptRecord| attempt.attempt).collect::<Vec<_>>()
    };
    fixture.log_attempts((1..=3).map(|number| (hook.id, attempt(number))).collect(), 5).await.unwrap();
    fixture.log_attempts((4..=7).flat_map(|number| [(hook.id, attempt(number)), (other.id, attempt(number))]).collect(), 5).await.unwrap();
    assert_eq!(numbers(hook.id, 99).await, [7, 6, 5, 4, 3]);
    assert_eq!(numbers(hook.id, 2).await, [7, 6]);
    assert_eq!(numbers(other.id, 99).await, [7, 6, 5, 4]);
    fixture.log_attempts(vec![(hook.id, attempt(8))], 2).await.unwrap();
    assert_eq!(numbers(hook.id, 99).await, [8, 7], "fewer are kept from now on");
    fixture.log_attempts(vec![(hook.id, attempt(9))], 0).await.unwrap();
    assert_eq!((numbers(hook.id, 99).await, numbers(other.id, 99).await.len()), (vec![], 4));
    fixture.log_attempts(vec![(hook.id, attempt(10))], 5).await.unwrap();
    assert_eq!(numbers(hook.id, 99).await, [10]);
}

pub(crate) async fn an_attempt_is_answered_as_it_was_noted(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let hook = fixture.hook_for("alpha").await;
    let ring = ring_at(&hook, 1, fixture.now());
    let noted: Vec<AttemptRecord> = AttemptClass::ALL
        .into_iter()
        .map(|class| {
            let event = ring.event.filter(|_| class != AttemptClass::Unproven);
            let status = Some(204).filter(|_| class == AttemptClass::Delivered);
            AttemptRecord { event, status, ..attempt_of(&ring, 1, class) }
        })
        .collect();
    fixture.log_attempts(noted.iter().cloned().map(|attempt| (hook.id, attempt)).collect(), 99).await.unwrap();
    let expected: Vec<_> = noted.into_iter().rev().collect();
    assert_eq!(fixture.store.attempts(hook.id, 99).await, Ok(expected));
}

pub(crate) async fn attempts_of_a_hook_that_is_gone_are_left_out_and_others_need_an_active_tenant(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha"]).await;
    let (hook, gone) = (fixture.hook_for("alpha").await, fixture.hook_for("alpha").await);
    fixture.delete_hook(&gone).await.unwrap();
    let attempt = attempt_of(&ring_at(&hook, 1, fixture.now()), 1, AttemptClass::Delivered);
    fixture.log_attempts(vec![(gone.id, attempt.clone()), (hook.id, attempt.clone())], 9).await.unwrap();
    assert_eq!((fixture.count("hook_attempts").await, fixture.store.attempts(gone.id, 9).await), (1, Ok(vec![])));
    fixture.set_state(TenantState::Suspended).await;
    assert_eq!(fixture.log_attempts(vec![(hook.id, attempt)], 9).await, Err(StoreError::TenantInactive));
}
