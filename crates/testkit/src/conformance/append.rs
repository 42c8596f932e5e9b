//! Appending: order, atomicity, deduplication, bounds.

use std::sync::Arc;
use std::time::Duration;

use authz::TenantState;
use bytes::Bytes;
use domain::{Appended, Publication, StoreError};

use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, new_seq, seq, tenant};

pub(crate) async fn events_are_numbered_from_one_without_gaps_and_answered_in_order(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let publications: Vec<_> = (0..5).map(|n| fixture.event(&n.to_string())).collect();
    let answer = fixture.store.append(&fixture.tenant, publications.clone()).await.unwrap();
    assert_eq!(answer.appended.iter().map(new_seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(answer.head, seq(5));
    let page = fixture.page_after(0).await.unwrap();
    let stored: Vec<_> = page.events.iter().map(|event| (event.id, event.body.clone())).collect();
    assert_eq!(stored, publications.into_iter().map(|publication| (publication.id, publication.body)).collect::<Vec<_>>());
}

pub(crate) async fn a_repeat_answers_the_first_event_also_after_a_restart(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let first = fixture.keyed("k", "a");
    assert_eq!(new_seq(&fixture.append(vec![first.clone()]).await.unwrap()[0]), 1);
    let known = [Appended::Duplicate { id: first.id, seq: Some(seq(1)) }];
    assert_eq!(fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap(), known);
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap(), known);
    assert_eq!(fixture.head().await, 1);
}

pub(crate) async fn a_key_for_another_body_is_a_conflict_and_nothing_of_the_request_is_kept(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap();
    let request = vec![fixture.event("x"), fixture.keyed("fresh", "y"), fixture.keyed("k", "b")];
    let answers = fixture.append(request).await.unwrap();
    assert_eq!(answers[2], Appended::Conflict);
    assert!(!answers[..2].contains(&Appended::Conflict), "the answers say which");
    assert_eq!(fixture.head().await, 1);
    assert_eq!(new_seq(&fixture.append(vec![fixture.keyed("fresh", "z")]).await.unwrap()[0]), 2, "its other keys are free");
}

pub(crate) async fn the_same_key_twice_in_a_request_is_a_duplicate_of_the_first(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (first, repeat) = (fixture.keyed("k", "a"), fixture.keyed("k", "a"));
    let answers = fixture.append(vec![first.clone(), repeat, fixture.event("x")]).await.unwrap();
    assert_eq!(answers[1], Appended::Duplicate { id: first.id, seq: Some(seq(1)) });
    assert_eq!(new_seq(&answers[2]), 2);
    let answers = fixture.append(vec![fixture.keyed("l", "a"), fixture.keyed("l", "b")]).await.unwrap();
    assert_eq!(answers[1], Appended::Conflict);
    assert_eq!(fixture.head().await, 2);
}

pub(crate) async fn an_expired_key_is_as_good_as_none(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap();
    fixture.clock.advance(Duration::from_hours(1) - Duration::from_micros(1));
    assert!(matches!(fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap()[0], Appended::Duplicate { .. }));
    fixture.clock.advance(Duration::from_micros(1));
    let second = fixture.keyed("k", "b");
    assert_eq!(new_seq(&fixture.append(vec![second.clone()]).await.unwrap()[0]), 2);
    assert_eq!(fixture.append(vec![fixture.keyed("k", "b")]).await.unwrap(), [Appended::Duplicate { id: second.id, seq: Some(seq(2)) }]);
}

pub(crate) async fn keys_and_numbers_belong_to_one_tenant(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_tenant("other").await;
    fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap();
    let answer = fixture.store.append(&tenant("other"), vec![fixture.keyed("k", "b")]).await.unwrap();
    assert_eq!(new_seq(&answer.appended[0]), 1);
}

pub(crate) async fn five_hundred_concurrent_publishes_with_one_key_make_one_event(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    let mut publishes = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let fixture = Arc::clone(&fixture);
        publishes.spawn(async move { fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap()[0] });
    }
    let answers = publishes.join_all().await;
    let first: Vec<_> = answers.iter().filter(|answer| matches!(answer, Appended::New { .. })).collect();
    let [Appended::New { seq: one, id }] = first[..] else { panic!("{first:?}") };
    let repeats = answers.iter().filter(|answer| **answer == Appended::Duplicate { id: *id, seq: Some(*one) }).count();
    assert_eq!(repeats, 499);
    assert_eq!(fixture.page_after(0).await.unwrap().events.len(), 1);
}

pub(crate) async fn a_tenant_that_is_not_active_takes_nothing(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    for state in [TenantState::Suspended, TenantState::Deleting] {
        fixture.set_state(state).await;
        assert_eq!(fixture.append(vec![fixture.event("x")]).await, Err(StoreError::TenantInactive));
    }
    let absent = fixture.store.append(&tenant("absent"), vec![fixture.event("x")]).await;
    assert_eq!(absent.unwrap_err(), StoreError::TenantInactive);
    fixture.set_state(TenantState::Active).await;
    assert_eq!(new_seq(&fixture.append(vec![fixture.event("x")]).await.unwrap()[0]), 1);
}

pub(crate) async fn a_body_that_is_no_text_is_refused_and_changes_nothing(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let bad = Publication { body: Bytes::from_static(b"\"id\":\"\xff\"}"), ..fixture.event("x") };
    let refused = fixture.append(vec![fixture.event("x"), bad]).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(fixture.head().await, 0);
    assert_eq!(new_seq(&fixture.append(vec![fixture.event("y")]).await.unwrap()[0]), 1);
}

pub(crate) async fn an_empty_request_is_answered(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.fill(2).await;
    let answer = fixture.store.append(&fixture.tenant, Vec::new()).await.unwrap();
    assert_eq!((answer.appended.len(), answer.head), (0, seq(2)));
}
