//! Appending: order, atomicity, deduplication, bounds.

use std::sync::Arc;
use std::time::Duration;

use authz::TenantState;
use bytes::Bytes;
use domain::{Appended, Publication, StoreError};
use doorstep_store_sqlite::StoreOptions;
use sync::Append;

use crate::support::{Fixture, Gate, new_seq, seq, tenant};

#[tokio::test]
async fn events_are_numbered_from_one_without_gaps_and_answered_in_order() {
    let fixture = Fixture::new().await;
    let publications: Vec<_> = (0..5).map(|n| fixture.event(&n.to_string())).collect();
    let answer = fixture.store.append(&fixture.tenant, publications.clone()).await.unwrap();
    assert_eq!(answer.appended.iter().map(new_seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(answer.head, seq(5));
    let page = fixture.page_after(0).await.unwrap();
    let stored: Vec<_> = page.events.iter().map(|event| (event.id, event.body.clone())).collect();
    assert_eq!(stored, publications.into_iter().map(|publication| (publication.id, publication.body)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_repeat_answers_the_first_event_also_after_a_restart() {
    let fixture = Fixture::new().await;
    let first = fixture.keyed("k", "a");
    assert_eq!(new_seq(&fixture.append(vec![first.clone()]).await.unwrap()[0]), 1);
    let known = [Appended::Duplicate { id: first.id, seq: Some(seq(1)) }];
    assert_eq!(fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap(), known);
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap(), known);
    assert_eq!(fixture.head().await, 1);
}

#[tokio::test]
async fn a_key_for_another_body_is_a_conflict_and_nothing_of_the_request_is_kept() {
    let fixture = Fixture::new().await;
    fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap();
    let request = vec![fixture.event("x"), fixture.keyed("fresh", "y"), fixture.keyed("k", "b")];
    let answers = fixture.append(request).await.unwrap();
    assert_eq!(answers[2], Appended::Conflict);
    assert!(!answers[..2].contains(&Appended::Conflict), "the answers say which");
    assert_eq!(fixture.head().await, 1);
    assert_eq!(new_seq(&fixture.append(vec![fixture.keyed("fresh", "z")]).await.unwrap()[0]), 2, "its other keys are free");
}

#[tokio::test]
async fn the_same_key_twice_in_a_request_is_a_duplicate_of_the_first() {
    let fixture = Fixture::new().await;
    let (first, repeat) = (fixture.keyed("k", "a"), fixture.keyed("k", "a"));
    let answers = fixture.append(vec![first.clone(), repeat, fixture.event("x")]).await.unwrap();
    assert_eq!(answers[1], Appended::Duplicate { id: first.id, seq: Some(seq(1)) });
    assert_eq!(new_seq(&answers[2]), 2);
    let answers = fixture.append(vec![fixture.keyed("l", "a"), fixture.keyed("l", "b")]).await.unwrap();
    assert_eq!(answers[1], Appended::Conflict);
    assert_eq!(fixture.head().await, 2);
}

#[tokio::test]
async fn an_expired_key_is_as_good_as_none() {
    let fixture = Fixture::new().await;
    fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap();
    fixture.clock.advance(Duration::from_hours(1) - Duration::from_micros(1));
    assert!(matches!(fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap()[0], Appended::Duplicate { .. }));
    fixture.clock.advance(Duration::from_micros(1));
    let second = fixture.keyed("k", "b");
    assert_eq!(new_seq(&fixture.append(vec![second.clone()]).await.unwrap()[0]), 2);
    assert_eq!(fixture.append(vec![fixture.keyed("k", "b")]).await.unwrap(), [Appended::Duplicate { id: second.id, seq: Some(seq(2)) }]);
}

#[tokio::test]
async fn keys_and_numbers_belong_to_one_tenant() {
    let fixture = Fixture::new().await;
    fixture.create_tenant("other").await;
    fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap();
    let answer = fixture.store.append(&tenant("other"), vec![fixture.keyed("k", "b")]).await.unwrap();
    assert_eq!(new_seq(&answer.appended[0]), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_concurrent_publishes_with_one_key_make_one_event() {
    let fixture = Arc::new(Fixture::new().await);
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

#[tokio::test]
async fn a_tenant_that_is_not_active_takes_nothing() {
    let fixture = Fixture::new().await;
    for state in [TenantState::Suspended, TenantState::Deleting] {
        fixture.set_state(state).await;
        assert_eq!(fixture.append(vec![fixture.event("x")]).await, Err(StoreError::TenantInactive));
    }
    let absent = fixture.store.append(&tenant("absent"), vec![fixture.event("x")]).await;
    assert_eq!(absent.unwrap_err(), StoreError::TenantInactive);
    fixture.set_state(TenantState::Active).await;
    assert_eq!(new_seq(&fixture.append(vec![fixture.event("x")]).await.unwrap()[0]), 1);
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_what_waits_is_done() {
    let fixture = Arc::new(Fixture::with(StoreOptions { queue_max: 3, ..StoreOptions::default() }).await);
    let gate = Gate::close(&fixture).await;
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let fixture = Arc::clone(&fixture);
        waiting.spawn(async move { fixture.append(vec![fixture.event("x")]).await });
    }
    fixture.wait_for(|metrics| metrics.queued == 3).await;
    assert_eq!(fixture.append(vec![fixture.event("x")]).await, Err(StoreError::Overloaded));
    assert_eq!(fixture.store.metrics().snapshot().overloaded, 1);
    gate.open().await;
    assert!(waiting.join_all().await.iter().all(Result::is_ok));
    assert_eq!(fixture.head().await, 3);
}

#[tokio::test]
async fn the_queue_is_bounded_by_bytes_too() {
    let fixture = Arc::new(Fixture::with(StoreOptions { queue_max_bytes: 10_000, ..StoreOptions::default() }).await);
    let gate = Gate::close(&fixture).await;
    let large = Publication { body: Bytes::from(vec![b' '; 20_000]), ..fixture.event("x") };
    let waiting = tokio::task::JoinSet::from_iter([{
        let (fixture, large) = (Arc::clone(&fixture), large.clone());
        async move { fixture.append(vec![large]).await }
    }]);
    fixture.wait_for(|metrics| metrics.queued == 1).await;
    assert_eq!(fixture.append(vec![fixture.event("x")]).await, Err(StoreError::Overloaded));
    gate.open().await;
    assert!(waiting.join_all().await.iter().all(Result::is_ok), "a request above the bound is taken when nothing waits");
}

#[tokio::test]
async fn a_body_that_is_no_text_is_refused_and_changes_nothing() {
    let fixture = Fixture::new().await;
    let bad = Publication { body: Bytes::from_static(b"\"id\":\"\xff\"}"), ..fixture.event("x") };
    let refused = fixture.append(vec![fixture.event("x"), bad]).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(fixture.head().await, 0);
    assert_eq!(new_seq(&fixture.append(vec![fixture.event("y")]).await.unwrap()[0]), 1);
}

#[tokio::test]
async fn an_empty_request_is_answered() {
    let fixture = Fixture::new().await;
    fixture.fill(2).await;
    let answer = fixture.store.append(&fixture.tenant, Vec::new()).await.unwrap();
    assert_eq!((answer.appended.len(), answer.head), (0, seq(2)));
}

#[tokio::test]
async fn what_cannot_be_numbered_is_refused() {
    let fixture = Fixture::new().await;
    let last = (1_i64 << 43) - 2;
    fixture.raw().execute("UPDATE log_heads SET head = ?1 - 1, floor = ?1", [last]).unwrap();
    let refused = fixture.append(vec![fixture.event("x"), fixture.event("y")]).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(new_seq(&fixture.append(vec![fixture.event("x")]).await.unwrap()[0]), last.cast_unsigned());
    let refused = fixture.append(vec![fixture.event("x")]).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(fixture.head().await, last.cast_unsigned());
    assert_eq!(fixture.page_after(last.cast_unsigned() - 1).await.unwrap().events.len(), 1);
}

#[tokio::test]
async fn another_programs_lock_is_waited_for_and_then_answered_as_passing() {
    let options = StoreOptions { busy_timeout: Duration::from_millis(50), ..StoreOptions::default() };
    let fixture = Fixture::with(options).await;
    let raw = fixture.raw();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(fixture.append(vec![fixture.event("x")]).await, Err(StoreError::Transient));
    raw.execute_batch("ROLLBACK").unwrap();
    assert_eq!(new_seq(&fixture.append(vec![fixture.event("x")]).await.unwrap()[0]), 1);
}
