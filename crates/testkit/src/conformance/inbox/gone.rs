//! Agents that go, and what is old.

use authz::PrincipalKind;
use domain::{EventId, Publication, StoreError, Timestamp};
use inbox::{AckState, InboxStore, QueueFilter};
use uuid::Uuid;

use super::{MINUTE, agent};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, fresh, seq};

async fn delete(fixture: &Fixture, name: &'static str) {
    let tenant = fixture.tenant.clone();
    let deleted = fixture.admin(move |tx| {
        let tenant = tenant.clone();
        Box::pin(async move { tx.delete_principal(&tenant, &agent(name)).await })
    });
    assert_eq!(deleted.await, Ok(true));
}

/// How many items were discarded, of agents that are gone too.
async fn discarded(fixture: &Fixture) -> i64 {
    fixture.count("inbox_ended WHERE state = 7").await
}

pub(crate) async fn an_agent_that_is_made_again_starts_with_an_empty_inbox(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    let (id, _) = fixture.publish_job(&["alpha", "beta"]).await;
    fixture.finish("alpha", id).await;
    fixture.publish_job(&["alpha"]).await;
    let first = fixture.row("alpha").await.unwrap();
    delete(&fixture, "alpha").await;
    assert_eq!(fixture.row("alpha").await, None);
    assert_eq!(fixture.item("alpha", id).await, None);
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    let second = fixture.opened("alpha").await;
    assert!(second.number > first.number, "a number is never used again");
    assert_eq!((second.head, fixture.available("alpha", QueueFilter::default(), 9).await.len()), (seq(0), 0));
    assert_eq!(fixture.item("alpha", id).await, None);
    assert_eq!(fixture.item("beta", id).await.unwrap().state, AckState::Available, "others keep theirs");
}

pub(crate) async fn an_inbox_that_work_opened_after_its_agent_went_is_not_the_next_agents(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    delete(&fixture, "alpha").await;
    let (id, _) = fixture.publish_job(&["alpha"]).await;
    assert!(fixture.item("alpha", id).await.is_some());
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    assert_eq!(fixture.item("alpha", id).await, None);
}

pub(crate) async fn what_was_published_while_its_agent_went_is_discarded_though_nobody_of_its_name_comes(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    for name in ["alpha", "beta", "gamma"] {
        fixture.create_principal(name, PrincipalKind::Agent).await;
        fixture.publish_job(&[name]).await;
    }
    delete(&fixture, "beta").await;
    while fixture.prune(fixture.now(), 1).await {}
    let (id, _) = fixture.publish_job(&["beta", "gamma"]).await;
    assert!(fixture.item("beta", id).await.is_some(), "it was let in when the agent was there");
    let long_ago = fixture.now().minus(MINUTE * 600);
    while fixture.prune(long_ago, 1).await {}
    assert_eq!((fixture.item("beta", id).await, fixture.row("beta").await), (None, None));
    assert!(fixture.count("inbox_ended WHERE state = 7").await > 0, "it has an end like what its agent left");
    for (name, count) in [("alpha", 1), ("gamma", 2)] {
        assert_eq!(fixture.available(name, QueueFilter::default(), 9).await.len(), count, "{name} keeps its inbox");
    }
}

pub(crate) async fn a_deletion_that_is_rolled_back_closes_nothing(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    let (id, _) = fixture.publish_job(&["alpha"]).await;
    let tenant = fixture.tenant.clone();
    let failed: Result<(), StoreError> = fixture
        .admin(move |tx| {
            let tenant = tenant.clone();
            Box::pin(async move {
                tx.delete_principal(&tenant, &agent("alpha")).await?;
                Err(StoreError::Conflict("on purpose"))
            })
        })
        .await;
    assert!(failed.is_err());
    assert!(fixture.item("alpha", id).await.is_some());
}

pub(crate) async fn items_of_agents_that_are_gone_are_discarded_in_bounded_steps(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_principal("beta", PrincipalKind::Agent).await;
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    for _ in 0..5 {
        fixture.publish_job(&["alpha", "beta"]).await;
    }
    fixture.retire_log().await;
    assert_eq!(fixture.count("inbox_payloads").await, 5);
    delete(&fixture, "alpha").await;
    assert_eq!(InboxStore::next_due(&*fixture.store).await, Ok(None));
    let long_ago = fixture.now().minus(MINUTE * 600);
    assert!(fixture.prune(long_ago, 2).await);
    assert_eq!((fixture.count("inbox_items").await, discarded(&fixture).await), (8, 2));
    while fixture.prune(long_ago, 2).await {}
    assert_eq!((fixture.count("inbox_items").await, discarded(&fixture).await), (5, 5));
    assert_eq!((fixture.count("inbox_payloads").await, fixture.count("inbox_recipients").await), (5, 2), "beta still needs the envelopes");
    fixture.clock.advance(MINUTE);
    while fixture.prune(fixture.now(), 2).await {}
    assert_eq!((fixture.count("inbox_ended").await, fixture.count("inbox_recipients").await), (0, 1), "nothing is left of it");
    let beta = fixture.available("beta", QueueFilter::default(), 9).await;
    for item in &beta {
        fixture.finish("beta", item.facts.event_id).await;
    }
    assert_eq!((beta.len(), fixture.count("inbox_payloads").await), (5, 0));
}

pub(crate) async fn ended_items_go_when_their_making_and_their_end_are_long_past(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    fixture.create_principal("beta", PrincipalKind::Agent).await;
    let (early, _) = fixture.publish_job(&["alpha"]).await;
    let (lingering, _) = fixture.publish_job(&["alpha"]).await;
    let (open, _) = fixture.publish_job(&["alpha", "beta"]).await;
    fixture.finish("alpha", early).await;
    fixture.finish("beta", open).await;
    fixture.clock.advance(MINUTE);
    let boundary = fixture.now();
    fixture.finish("alpha", lingering).await;
    let (young, _) = fixture.publish_job(&["alpha"]).await;
    fixture.finish("alpha", young).await;
    let there = async |id| fixture.item("alpha", id).await.is_some();
    while fixture.prune(boundary, 1).await {}
    assert_eq!((there(early).await, there(lingering).await, there(young).await, there(open).await), (false, true, true, true));
    assert_eq!(fixture.item("beta", open).await, None);
    fixture.clock.advance(MINUTE);
    while fixture.prune(fixture.now(), 1).await {}
    assert_eq!((there(lingering).await, there(young).await, there(open).await), (false, false, true));
    assert!(!fixture.prune(fixture.now(), 1).await);
}

/// An id that says when it was made, as those of events do.
fn made(at: Timestamp, number: u64) -> EventId {
    let millis = u64::try_from(at.as_micros()).unwrap() / 1_000;
    EventId::new(Uuid::from_u64_pair(millis << 16 | 0x7000, 0x8000_0000_0000_0000 | number))
}

/// Publishes with that id and acknowledges; answers the id.
async fn ended(fixture: &Fixture, name: &str, id: EventId) -> EventId {
    let (id, _) = fixture.publish(Publication { id, ..fixture.job(&[name]) }).await;
    fixture.finish(name, id).await;
    id
}

pub(crate) async fn an_event_that_was_scheduled_long_ago_hides_no_old_item(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    let scheduled = made(fixture.now(), 1);
    fixture.clock.advance(MINUTE);
    let old = ended(&fixture, "alpha", made(fixture.now(), 2)).await;
    fixture.clock.advance(MINUTE);
    let boundary = fixture.now();
    // It comes about now, under the id that it was accepted with.
    let scheduled = ended(&fixture, "alpha", scheduled).await;
    while fixture.prune(boundary, 1).await {}
    assert_eq!(fixture.item("alpha", old).await, None);
    assert!(fixture.item("alpha", scheduled).await.is_some());
}

pub(crate) async fn a_step_counts_every_row_that_it_reads(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    let boundary = fixture.now();
    fixture.clock.advance(MINUTE);
    // Nothing is known of the age of these ids: each row has to be read.
    for _ in 0..9 {
        ended(&fixture, "alpha", EventId::new(fresh())).await;
    }
    let mut steps = 0;
    while fixture.prune(boundary, 1).await {
        steps += 1;
    }
    assert_eq!((steps, fixture.count("inbox_ended").await), (2, 9), "four rows in a step");
}

pub(crate) async fn the_young_rest_of_an_inbox_is_skipped_and_the_next_inbox_is_not(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let names = ["alpha", "beta", "gamma"];
    for (number, name) in (0..).zip(names) {
        fixture.create_principal(name, PrincipalKind::Agent).await;
        ended(&fixture, name, made(fixture.now(), number)).await;
    }
    fixture.clock.advance(MINUTE);
    let boundary = fixture.now();
    for number in 10..40 {
        ended(&fixture, names[number % 3], made(fixture.now(), number as u64)).await;
    }
    assert!(!fixture.prune(boundary, 9).await, "one step is enough: at each inbox one young row is looked at");
    assert_eq!(fixture.count("inbox_ended").await, 30);
}
