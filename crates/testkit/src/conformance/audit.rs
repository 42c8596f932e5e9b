//! The audit log and the stored answers.

use std::time::Duration;

use authz::{AuditDecision, AuditEntry, AuditFilter, IdempotentAnswer, Keyset, PrincipalKind};
use domain::{PrincipalId, StoreError, Timestamp};

use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, START, tenant};

const MINUTE: Duration = Duration::from_mins(1);

fn entry(at: Timestamp, actor: Option<&str>, action: &str, decision: AuditDecision) -> AuditEntry {
    let actor = actor.map(|id| PrincipalId::parse(id).unwrap());
    let (action, target) = (action.to_owned(), "support/general".to_owned());
    AuditEntry { id: 0, at, actor, action, target, decision, count: 1, before: None, after: None }
}

fn denial(at: Timestamp, actor: &str) -> AuditEntry {
    entry(at, Some(actor), "events.publish", AuditDecision::Deny)
}

async fn add(fixture: &Fixture, entry: AuditEntry) -> Result<(), StoreError> {
    let tenant = fixture.tenant.clone();
    fixture
        .admin(move |tx| {
            let (tenant, entry) = (tenant.clone(), entry.clone());
            Box::pin(async move { tx.audit(&tenant, &entry).await })
        })
        .await
}

async fn listed(fixture: &Fixture, filter: AuditFilter, after: Option<u64>, limit: usize) -> Vec<AuditEntry> {
    let keyset = Keyset { after: after.map(|id| id.to_string()), limit };
    fixture.store.audit(&fixture.tenant, &filter, &keyset).await.unwrap()
}

async fn everything(fixture: &Fixture) -> Vec<AuditEntry> {
    listed(fixture, AuditFilter::default(), None, 1000).await
}

pub(crate) async fn entries_are_kept_whole_and_listed_newest_first(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut first = entry(START, Some("sam"), "grants.manage", AuditDecision::Allow);
    (first.before, first.after) = (Some("{}".to_owned()), Some(r#"{"a":1}"#.to_owned()));
    add(&fixture, first.clone()).await.unwrap();
    add(&fixture, entry(START, None, "me.read", AuditDecision::Deny)).await.unwrap();
    let entries = everything(&fixture).await;
    assert_eq!(entries.iter().map(|entry| entry.action.as_str()).collect::<Vec<_>>(), ["me.read", "grants.manage"]);
    assert!(entries[0].id > entries[1].id);
    assert_eq!(AuditEntry { id: 0, ..entries[1].clone() }, first);
    assert_eq!(listed(&fixture, AuditFilter::default(), Some(entries[0].id), 9).await, entries[1..]);
    assert_eq!(listed(&fixture, AuditFilter::default(), None, 1).await, entries[..1]);
}

pub(crate) async fn entries_are_filtered_by_actor_action_and_decision(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    for (actor, action, decision) in [
        (Some("sam"), "a", AuditDecision::Allow),
        (Some("sam"), "b", AuditDecision::Deny),
        (Some("robin"), "a", AuditDecision::Deny),
        (None, "a", AuditDecision::Deny),
    ] {
        add(&fixture, entry(START, actor, action, decision)).await.unwrap();
    }
    let count = async |actor: Option<&str>, action: Option<&str>, decision| {
        let actor = actor.map(|id| PrincipalId::parse(id).unwrap());
        let filter = AuditFilter { actor, action: action.map(str::to_owned), decision };
        listed(&fixture, filter, None, 9).await.len()
    };
    assert_eq!(count(None, None, None).await, 4);
    assert_eq!(count(Some("sam"), None, None).await, 2);
    assert_eq!(count(None, Some("a"), None).await, 3);
    assert_eq!(count(None, Some("a"), Some(AuditDecision::Deny)).await, 2);
    assert_eq!(count(Some("sam"), Some("b"), Some(AuditDecision::Allow)).await, 0);
}

pub(crate) async fn denials_add_up_per_actor_action_target_and_minute(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let acme = &fixture.tenant;
    let second = START.plus(Duration::from_secs(59));
    let one = (acme.clone(), denial(START, "sam"));
    let two = (acme.clone(), AuditEntry { count: 4, ..denial(second, "sam") });
    let other_minute = (acme.clone(), denial(START.plus(MINUTE), "sam"));
    let other_actor = (acme.clone(), denial(START, "robin"));
    let nobody = (acme.clone(), AuditEntry { actor: None, ..denial(START, "sam") });
    let other_target = (acme.clone(), AuditEntry { target: "*".to_owned(), ..denial(START, "sam") });
    fixture.store.record_denials(&[one.clone(), other_minute, other_actor, nobody.clone()]).await.unwrap();
    fixture.store.record_denials(&[two, nobody, other_target]).await.unwrap();
    let mut counts: Vec<_> = everything(&fixture)
        .await
        .into_iter()
        .map(|entry| (entry.actor.map(|actor| actor.to_string()), entry.target, entry.at.since(START).as_secs(), entry.count))
        .collect();
    counts.sort();
    let line = |actor: Option<&str>, target: &str, at, count| (actor.map(str::to_owned), target.to_owned(), at, count);
    let expected = [
        line(None, "support/general", 0, 2),
        line(Some("robin"), "support/general", 0, 1),
        line(Some("sam"), "*", 0, 1),
        line(Some("sam"), "support/general", 0, 5),
        line(Some("sam"), "support/general", 60, 1),
    ];
    assert_eq!(counts, expected);
}

pub(crate) async fn an_aggregated_line_bears_the_start_of_its_minute(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let at = START.plus(Duration::from_millis(12_345));
    fixture.store.record_denials(&[(fixture.tenant.clone(), denial(at, "sam"))]).await.unwrap();
    assert_eq!(everything(&fixture).await[0].at, START);
    assert_eq!(START.as_micros() % 60_000_000, 0);
}

pub(crate) async fn denials_of_an_unknown_tenant_are_left_out(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let denials = [(tenant("absent"), denial(START, "sam")), (fixture.tenant.clone(), denial(START, "sam"))];
    fixture.store.record_denials(&denials).await.unwrap();
    assert_eq!(everything(&fixture).await.len(), 1);
}

fn answer(text: &str) -> IdempotentAnswer {
    IdempotentAnswer { request_hash: [9; 32], status: 201, body: text.to_owned() }
}

async fn store_answer(fixture: &Fixture, principal: &PrincipalId, text: &str, not_before: Timestamp) -> Result<(), StoreError> {
    let (tenant, principal, answer, now) = (fixture.tenant.clone(), principal.clone(), answer(text), fixture.now());
    fixture
        .admin(move |tx| {
            let (tenant, principal, answer) = (tenant.clone(), principal.clone(), answer.clone());
            Box::pin(async move { tx.store_answer(&tenant, &principal, "key", &answer, now, not_before).await })
        })
        .await
}

pub(crate) async fn an_answer_is_found_while_it_is_young_and_its_key_is_taken_as_long(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let sam = fixture.create_principal("sam", PrincipalKind::Person).await;
    let robin = fixture.create_principal("robin", PrincipalKind::Person).await;
    let find = async |of: &PrincipalId, not_before| fixture.store.idempotent_answer(&fixture.tenant, of, "key", not_before).await.unwrap();
    assert_eq!(find(&sam, START).await, None);
    store_answer(&fixture, &sam, "one", START).await.unwrap();
    assert_eq!(find(&sam, START).await, Some(answer("one")));
    assert_eq!(find(&robin, START).await, None, "a key is its principal's");
    let later = START.plus(Duration::from_micros(1));
    assert_eq!(find(&sam, later).await, None);
    let taken = store_answer(&fixture, &sam, "two", START).await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    assert_eq!(find(&sam, START).await, Some(answer("one")));
    fixture.clock.advance(MINUTE);
    store_answer(&fixture, &sam, "three", later).await.unwrap();
    assert_eq!(find(&sam, later).await, Some(answer("three")));
}

pub(crate) async fn pruning_removes_what_is_older_and_is_bounded(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let sam = fixture.create_principal("sam", PrincipalKind::Person).await;
    for minute in 0..4 {
        add(&fixture, entry(START.plus(MINUTE * minute), Some("sam"), "a", AuditDecision::Allow)).await.unwrap();
    }
    store_answer(&fixture, &sam, "one", START).await.unwrap();
    let third = START.plus(MINUTE * 2);
    assert_eq!(fixture.store.prune(third, START, 1).await, Ok(1));
    assert_eq!(fixture.store.prune(third, third, 10).await, Ok(2), "one line and the answer");
    assert_eq!(fixture.store.prune(third, third, 10).await, Ok(0));
    assert_eq!(everything(&fixture).await.len(), 2);
    assert_eq!(fixture.store.idempotent_answer(&fixture.tenant, &sam, "key", START).await, Ok(None));
}
