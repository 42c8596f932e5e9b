//! Scheduled events: kept aside with their keys, promoted in one transaction.

use std::time::Duration;

use authz::{Channel, Space, TenantState};
use domain::{Appended, Audience, ChannelId, ChannelRef, EventId, PrincipalId, Publication, SpaceId, StoreError, Timestamp};
use intake::{Schedule, ScheduleStore, Scheduled, ScheduledState};

use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, new_seq, seq, tenant};

const MINUTE: Duration = Duration::from_mins(1);

fn in_minutes(fixture: &Fixture, minutes: u32, publication: Publication) -> Schedule {
    let publisher = PrincipalId::parse("sam").unwrap();
    Schedule { publication, publisher, available_at: fixture.now().plus(MINUTE * minutes) }
}

async fn schedule(fixture: &Fixture, schedule: Schedule) -> Result<Option<Appended>, StoreError> {
    let tenant = fixture.tenant.clone();
    fixture
        .publish_tx(move |tx| {
            let (tenant, schedule) = (tenant.clone(), schedule.clone());
            Box::pin(async move { tx.schedule(&tenant, &schedule).await })
        })
        .await
}

async fn cancel(fixture: &Fixture, id: EventId) -> Option<Scheduled> {
    let tenant = fixture.tenant.clone();
    let cancelled = fixture.publish_tx(move |tx| {
        let tenant = tenant.clone();
        Box::pin(async move { tx.cancel(&tenant, id).await })
    });
    cancelled.await.unwrap()
}

async fn fail(fixture: &Fixture, id: EventId) -> bool {
    let tenant = fixture.tenant.clone();
    let failed = fixture.publish_tx(move |tx| {
        let tenant = tenant.clone();
        Box::pin(async move { tx.fail(&tenant, id, "its channel is gone").await })
    });
    failed.await.unwrap()
}

async fn promote(fixture: &Fixture, id: EventId) -> Option<Vec<Appended>> {
    let tenant = fixture.tenant.clone();
    let promoted = fixture.publish_tx(move |tx| {
        let tenant = tenant.clone();
        Box::pin(async move {
            let Some(schedule) = tx.promote(&tenant, id).await? else { return Ok(None) };
            tx.append(&tenant, &[schedule.publication]).await.map(Some)
        })
    });
    promoted.await.unwrap()
}

fn ids(scheduled: &[Scheduled]) -> Vec<EventId> {
    scheduled.iter().map(|scheduled| scheduled.schedule.publication.id).collect()
}

pub(crate) async fn a_scheduled_event_is_stored_whole(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let audience = Audience::new(&[PrincipalId::parse("robin").unwrap()]);
    let wanted = in_minutes(&fixture, 3, Publication { audience, channel: None, ..fixture.keyed("k", "a") });
    assert_eq!(schedule(&fixture, wanted.clone()).await, Ok(None));
    let fixture = fixture.reopen().await;
    let id = wanted.publication.id;
    let stored = fixture.store.scheduled_event(&fixture.tenant, id).await.unwrap().unwrap();
    assert_eq!((stored.state, stored.failure), (ScheduledState::Waiting, None));
    assert_eq!((&stored.schedule.publisher, stored.schedule.available_at), (&wanted.publisher, wanted.available_at));
    let (stored, wanted) = (stored.schedule.publication, wanted.publication);
    assert_eq!((&stored.event_type, &stored.channel, &stored.audience), (&wanted.event_type, &wanted.channel, &wanted.audience));
    assert_eq!((stored.origin, stored.created_at, &stored.body), (wanted.origin, wanted.created_at, &wanted.body));
    assert_eq!(stored.deduplication, wanted.deduplication);
    assert_eq!(fixture.head().await, 0);
    assert!(fixture.store.scheduled_event(&tenant("other"), id).await.unwrap().is_none());
    let again = schedule(&fixture, in_minutes(&fixture, 3, Publication { id, ..fixture.event("x") })).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
}

pub(crate) async fn the_listing_is_by_time_then_id_and_continues_behind_a_position(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut waiting = Vec::new();
    for minutes in [5, 2, 2, 9] {
        let mut one = in_minutes(&fixture, minutes, fixture.event("x"));
        if minutes == 9 {
            one.publisher = PrincipalId::parse("robin").unwrap();
        }
        schedule(&fixture, one.clone()).await.unwrap();
        waiting.push((one.available_at, one.publication.id));
    }
    waiting.sort();
    let order: Vec<_> = waiting.iter().map(|(_, id)| *id).collect();
    let list = |publisher: Option<&'static str>, after, limit| {
        let (store, publisher) = (&fixture.store, publisher.map(|id| PrincipalId::parse(id).unwrap()));
        async move { ids(&store.scheduled(&tenant("acme"), publisher.as_ref(), after, limit).await.unwrap()) }
    };
    assert_eq!(list(None, None, 100).await, order);
    assert_eq!(list(None, None, 2).await, order[..2]);
    assert_eq!(list(None, Some(waiting[0]), 2).await, order[1..3]);
    assert_eq!(list(None, Some(waiting[3]), 2).await, []);
    assert_eq!(list(Some("robin"), None, 9).await, order[3..]);
    assert_eq!(list(Some("alex"), None, 9).await, []);
}

pub(crate) async fn the_key_is_taken_at_scheduling_and_freed_by_cancelling(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let first = in_minutes(&fixture, 3, fixture.keyed("k", "a"));
    let id = first.publication.id;
    schedule(&fixture, first).await.unwrap();
    let duplicate = Appended::Duplicate { id, seq: None };
    assert_eq!(schedule(&fixture, in_minutes(&fixture, 9, fixture.keyed("k", "a"))).await, Ok(Some(duplicate)));
    assert_eq!(schedule(&fixture, in_minutes(&fixture, 9, fixture.keyed("k", "b"))).await, Ok(Some(Appended::Conflict)));
    assert_eq!(fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap(), [duplicate]);
    assert_eq!(fixture.append(vec![fixture.keyed("k", "b")]).await.unwrap(), [Appended::Conflict]);
    let listed = fixture.store.scheduled(&fixture.tenant, None, None, 9).await.unwrap();
    assert_eq!(ids(&listed), [id], "a repeat stores nothing");
    assert_eq!(cancel(&fixture, id).await.map(|cancelled| cancelled.schedule.publication.id), Some(id));
    assert!(cancel(&fixture, id).await.is_none());
    assert_eq!(new_seq(&fixture.append(vec![fixture.keyed("k", "b")]).await.unwrap()[0]), 1);
}

pub(crate) async fn a_key_of_an_appended_event_is_known_to_scheduling(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let first = fixture.keyed("k", "a");
    fixture.append(vec![first.clone()]).await.unwrap();
    let known = schedule(&fixture, in_minutes(&fixture, 3, fixture.keyed("k", "a"))).await;
    assert_eq!(known, Ok(Some(Appended::Duplicate { id: first.id, seq: Some(seq(1)) })));
}

pub(crate) async fn a_waiting_events_key_stands_however_long_it_waits(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let first = in_minutes(&fixture, 600, fixture.keyed("k", "a"));
    let id = first.publication.id;
    schedule(&fixture, first).await.unwrap();
    fixture.clock.advance(MINUTE * 120);
    assert_eq!(fixture.store.expire_keys(fixture.now(), 10).await, Ok(0));
    assert_eq!(fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap(), [Appended::Duplicate { id, seq: None }]);
    assert_eq!(promote(&fixture, id).await, Some(vec![Appended::New { seq: seq(1), id }]));
}

pub(crate) async fn a_promotion_is_appended_as_new_and_its_key_learns_the_seq(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let first = in_minutes(&fixture, 3, fixture.keyed("k", "a"));
    let (id, body) = (first.publication.id, first.publication.body.clone());
    schedule(&fixture, first).await.unwrap();
    fixture.fill(1).await;
    assert_eq!(promote(&fixture, id).await, Some(vec![Appended::New { seq: seq(2), id }]));
    assert_eq!(promote(&fixture, id).await, None, "it is there once");
    assert!(fixture.store.scheduled_event(&fixture.tenant, id).await.unwrap().is_none());
    assert_eq!(fixture.page_after(1).await.unwrap().events[0].body, body);
    assert_eq!(fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap(), [Appended::Duplicate { id, seq: Some(seq(2)) }]);
}

pub(crate) async fn a_promotion_that_fails_leaves_the_event_waiting(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let first = in_minutes(&fixture, 3, fixture.keyed("k", "a"));
    let id = first.publication.id;
    schedule(&fixture, first).await.unwrap();
    let tenant = fixture.tenant.clone();
    let failed: Result<(), StoreError> = fixture
        .publish_tx(move |tx| {
            let tenant = tenant.clone();
            Box::pin(async move {
                let schedule = tx.promote(&tenant, id).await?.unwrap();
                tx.append(&tenant, &[schedule.publication]).await?;
                Err(StoreError::Conflict("on purpose"))
            })
        })
        .await;
    assert!(failed.is_err());
    assert_eq!(fixture.head().await, 0);
    assert_eq!(promote(&fixture, id).await, Some(vec![Appended::New { seq: seq(1), id }]));
}

pub(crate) async fn a_failed_event_is_listed_and_neither_due_nor_promoted(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let first = in_minutes(&fixture, 3, fixture.keyed("k", "a"));
    let id = first.publication.id;
    schedule(&fixture, first).await.unwrap();
    assert!(fail(&fixture, id).await);
    assert!(!fail(&fixture, id).await, "only what waits can fail");
    let listed = fixture.store.scheduled(&fixture.tenant, None, None, 9).await.unwrap();
    assert_eq!((listed[0].state, listed[0].failure.as_deref()), (ScheduledState::Failed, Some("its channel is gone")));
    assert_eq!(promote(&fixture, id).await, None);
    fixture.clock.advance(MINUTE * 9);
    assert_eq!(ScheduleStore::due(&*fixture.store, fixture.now(), 9).await, Ok(Vec::new()));
    assert_eq!(ScheduleStore::next_due(&*fixture.store).await, Ok(None));
    assert_eq!(cancel(&fixture, id).await.map(|cancelled| cancelled.state), Some(ScheduledState::Failed));
    assert_eq!(new_seq(&fixture.append(vec![fixture.keyed("k", "z")]).await.unwrap()[0]), 1, "its key is free");
}

pub(crate) async fn due_are_waiting_events_of_active_tenants_oldest_first(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut waiting = Vec::new();
    for minutes in [4, 1, 3] {
        let one = in_minutes(&fixture, minutes, fixture.event("x"));
        schedule(&fixture, one.clone()).await.unwrap();
        waiting.push((one.available_at, one.publication.id));
    }
    waiting.sort();
    let due = |now: Timestamp, limit| {
        let store = &fixture.store;
        async move { ScheduleStore::due(&**store, now, limit).await.unwrap().into_iter().map(|(_, id)| id).collect::<Vec<_>>() }
    };
    assert_eq!(ScheduleStore::next_due(&*fixture.store).await, Ok(Some(waiting[0].0)));
    assert_eq!(due(waiting[1].0, 9).await, [waiting[0].1, waiting[1].1], "at its moment it is due");
    assert_eq!(due(waiting[1].0.minus(Duration::from_micros(1)), 9).await, [waiting[0].1]);
    assert_eq!(due(waiting[2].0, 2).await.len(), 2);
    fixture.set_state(TenantState::Suspended).await;
    assert_eq!(due(waiting[2].0, 9).await, []);
    assert_eq!(ScheduleStore::next_due(&*fixture.store).await, Ok(None));
    let refused = schedule(&fixture, in_minutes(&fixture, 1, fixture.event("x"))).await;
    assert_eq!(refused, Err(StoreError::TenantInactive));
}

pub(crate) async fn a_channel_exists_as_the_transaction_sees_it(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let has = |name: &'static str| {
        let tenant = fixture.tenant.clone();
        fixture.publish_tx(move |tx| {
            let tenant = tenant.clone();
            Box::pin(async move { tx.has_channel(&tenant, &ChannelRef::parse(name).unwrap()).await })
        })
    };
    assert_eq!(has("s/c").await, Ok(false));
    let (tenant, created_at) = (fixture.tenant.clone(), fixture.now());
    let space = SpaceId::parse("s").unwrap();
    fixture
        .admin(move |tx| {
            let (tenant, space) = (tenant.clone(), space.clone());
            Box::pin(async move {
                tx.create_space(&tenant, &Space { id: space.clone(), created_at }).await?;
                tx.create_channel(&tenant, &Channel { space, id: ChannelId::parse("c").unwrap(), created_at }).await
            })
        })
        .await
        .unwrap();
    assert_eq!(has("s/c").await, Ok(true));
    assert_eq!(has("s/d").await, Ok(false));
}

pub(crate) async fn an_agent_exists_while_it_is_enabled(harness: &dyn Harness) {
    let fixture = Fixture::with_agents(harness, &["alpha", "beta"]).await;
    fixture.create_principal("sam", authz::PrincipalKind::Person).await;
    let has = |name: &'static str| {
        let tenant = fixture.tenant.clone();
        fixture.publish_tx(move |tx| {
            let tenant = tenant.clone();
            Box::pin(async move { tx.has_agent(&tenant, &PrincipalId::parse(name).unwrap()).await })
        })
    };
    assert_eq!((has("alpha").await, has("sam").await, has("nobody").await), (Ok(true), Ok(false), Ok(false)));
    fixture.set_enabled(&fixture.tenant, "alpha", false).await;
    assert_eq!((has("alpha").await, has("beta").await), (Ok(false), Ok(true)));
}
