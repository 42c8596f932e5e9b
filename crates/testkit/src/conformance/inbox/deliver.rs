//! An event and its items are there together, or not at all.

use authz::TenantState;
use domain::{Appended, DeduplicationKey, EventId, PrincipalId, Publication, Seq, StoreError};
use inbox::{AckState, Generation, InboxStore, Item, QueueFilter, RecipientNumber};
use intake::Schedule;

use super::{MINUTE, agent, events};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, new_seq, seq};

pub(crate) async fn an_event_leaves_one_item_for_each_recipient_with_what_it_was_published_with(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.fill(2).await;
    let mut work = fixture.work(&["alpha", "beta/urgent"]);
    work.source = Some("ci".to_owned());
    work.expires_at = Some(fixture.now().plus(MINUTE));
    let job = fixture.job_of(work.clone());
    let job = Publication { deduplication: fixture.keyed("k", "a").deduplication, ..job };
    let (id, position) = fixture.publish(job.clone()).await;
    let fixture = fixture.reopen().await;
    for (index, name) in ["alpha", "beta"].into_iter().enumerate() {
        let number = fixture.row(name).await.unwrap().number;
        let key = DeduplicationKey::parse("k").unwrap();
        let recipient = &work.recipients[index];
        let (at, bytes) = (job.created_at, job.body.len());
        let expected = Item::new(number, recipient, &work, id, position, &job.event_type, Some(&key), at, bytes);
        assert_eq!(fixture.item(name, id).await, Some(expected));
    }
    assert_eq!(fixture.item("gamma", id).await, None);
}

pub(crate) async fn the_heads_of_the_recipients_rise_with_the_events_and_no_others(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.publish_job(&["alpha", "beta"]).await;
    fixture.fill(3).await;
    fixture.append(vec![fixture.job(&["alpha"]), fixture.event("x"), fixture.job(&["alpha"]), fixture.event("y")]).await.unwrap();
    assert_eq!(fixture.row("alpha").await.unwrap().head, seq(7));
    assert_eq!(fixture.row("beta").await.unwrap().head, seq(1));
    assert_eq!(fixture.row("gamma").await, None);
    let view = fixture.store.view(&fixture.recipient("gamma")).await.unwrap();
    assert_eq!((view.head(), view.log_head, view.floor), (Seq::ZERO, seq(8), seq(1)));
}

pub(crate) async fn an_item_that_expires_has_its_inbox_looked_at_by_then(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.publish_job(&["alpha"]).await;
    assert_eq!(fixture.row("alpha").await.unwrap().next_due, None);
    for minutes in [5, 3, 9] {
        let mut work = fixture.work(&["alpha"]);
        work.expires_at = Some(fixture.now().plus(MINUTE * minutes));
        fixture.publish(fixture.job_of(work)).await;
    }
    let due = fixture.now().plus(MINUTE * 3);
    assert_eq!(fixture.row("alpha").await.unwrap().next_due, Some(due));
    assert_eq!(InboxStore::next_due(&*fixture.store).await, Ok(Some(due)));
}

pub(crate) async fn a_repeat_leaves_nothing_and_a_conflict_nothing_of_its_request(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let keyed = |text: &str| Publication { deduplication: fixture.keyed("k", text).deduplication, ..fixture.job(&["alpha"]) };
    let (first, position) = fixture.publish(keyed("a")).await;
    let repeats = fixture.append(vec![keyed("a"), fixture.job(&["beta"]), keyed("a")]).await.unwrap();
    let repeated = Appended::Duplicate { id: first, seq: Some(position) };
    assert_eq!((repeats[0], new_seq(&repeats[1]), repeats[2]), (repeated, 2, repeated));
    let refused = fixture.append(vec![fixture.job(&["gamma"]), keyed("b")]).await.unwrap();
    assert!(refused.contains(&Appended::Conflict));
    assert_eq!(fixture.count("inbox_items").await, 2);
    assert_eq!(fixture.row("gamma").await, None);
    assert_eq!(fixture.row("alpha").await.unwrap().head, position);
}

pub(crate) async fn a_unit_that_fails_leaves_neither_event_nor_items_nor_inboxes(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.publish_job(&["alpha"]).await;
    let (tenant, job) = (fixture.tenant.clone(), fixture.job(&["alpha", "beta"]));
    let failed: Result<(), StoreError> = fixture
        .publish_tx(move |tx| {
            let (tenant, job) = (tenant.clone(), job.clone());
            Box::pin(async move {
                tx.append(&tenant, &[job]).await?;
                Err(StoreError::Conflict("on purpose"))
            })
        })
        .await;
    assert!(failed.is_err());
    assert_eq!((fixture.count("inbox_items").await, fixture.count("inbox_recipients").await, fixture.head().await), (1, 1, 1));
    assert_eq!(fixture.row("alpha").await.unwrap().head, seq(1));
}

pub(crate) async fn a_scheduled_event_leaves_its_items_when_it_is_promoted(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut work = fixture.work(&["alpha/q"]);
    work.available_at = fixture.now().plus(MINUTE);
    work.claim_key = fixture.now();
    let publication = fixture.job_of(work.clone());
    let (id, publisher) = (publication.id, PrincipalId::parse("sam").unwrap());
    let schedule = Schedule { publication, publisher, available_at: work.available_at };
    let (tenant, aside) = (fixture.tenant.clone(), schedule.clone());
    let scheduled = fixture.publish_tx(move |tx| {
        let (tenant, aside) = (tenant.clone(), aside.clone());
        Box::pin(async move { tx.schedule(&tenant, &aside).await })
    });
    assert_eq!(scheduled.await, Ok(None));
    let fixture = fixture.reopen().await;
    let stored = fixture.store.scheduled_event(&fixture.tenant, id).await.unwrap().unwrap();
    assert_eq!(stored.schedule.publication.work.as_deref(), Some(&work));
    assert_eq!(fixture.count("inbox_items").await, 0, "it is no item yet");
    let tenant = fixture.tenant.clone();
    let promoted = fixture.publish_tx(move |tx| {
        let tenant = tenant.clone();
        Box::pin(async move {
            let schedule = tx.promote(&tenant, id).await?.unwrap();
            tx.append(&tenant, &[schedule.publication]).await
        })
    });
    promoted.await.unwrap();
    let item = fixture.item("alpha", id).await.unwrap();
    assert_eq!((item.state, item.claim_key, item.facts.queue.as_str()), (AckState::Available, work.claim_key, "q"));
}

pub(crate) async fn two_recipients_of_one_event_go_their_own_ways(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (id, _) = fixture.publish_job(&["alpha", "beta"]).await;
    fixture.finish("alpha", id).await;
    assert_eq!(fixture.item("alpha", id).await.unwrap().state, AckState::Acked);
    let beta = fixture.item("beta", id).await.unwrap();
    assert_eq!((beta.state, beta.generation), (AckState::Available, Generation::default()));
    assert_eq!(events(&fixture.available("beta", QueueFilter::default(), 9).await), [id]);
    assert_eq!(fixture.available("alpha", QueueFilter::default(), 9).await, []);
}

pub(crate) async fn inboxes_of_other_tenants_are_others(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_tenant("other").await;
    let (id, _) = fixture.publish_job(&["alpha"]).await;
    let strange = inbox::Recipient { tenant: crate::conformance::support::tenant("other"), agent: agent("alpha") };
    assert_eq!(fixture.store.view(&strange).await.unwrap().row, None);
    assert_eq!(fixture.store.item(&strange, id).await, Ok(None));
    assert_eq!(fixture.store.envelopes(&strange.tenant, &[(seq(1), id)]).await, Ok(vec![None]));
}

pub(crate) async fn an_inbox_of_a_tenant_that_is_not_served_is_not_changed_and_one_that_is_not_there_not_read(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.publish_job(&["alpha"]).await;
    fixture.set_state(TenantState::Deleting).await;
    let recipient = fixture.recipient("alpha");
    let asked = recipient.clone();
    let locked = fixture.inbox(move |tx| {
        let asked = asked.clone();
        Box::pin(async move { tx.recipient(&asked).await })
    });
    assert_eq!(locked.await, Err(StoreError::TenantInactive));
    let asked = recipient.clone();
    let opened = fixture.inbox(move |tx| {
        let asked = asked.clone();
        Box::pin(async move { tx.open_recipient(&asked).await })
    });
    assert_eq!(opened.await, Err(StoreError::TenantInactive));
    let absent = inbox::Recipient { tenant: crate::conformance::support::tenant("absent"), ..recipient };
    assert_eq!(fixture.store.view(&absent).await, Err(StoreError::TenantInactive));
    assert_eq!(fixture.store.item(&absent, EventId::new(uuid::Uuid::nil())).await, Err(StoreError::TenantInactive));
}

pub(crate) async fn a_row_is_opened_once_and_saved_as_a_whole(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let recipient = fixture.recipient("alpha");
    let first = fixture.opened("alpha").await;
    assert_eq!(fixture.opened("alpha").await, first);
    assert_ne!(fixture.opened("beta").await.number, first.number);
    let wanted = inbox::RecipientRow {
        head: seq(0),
        next_due: Some(fixture.now()),
        presence: inbox::Presence::Out { until: Some(fixture.now().plus(MINUTE)) },
        paused: true,
        paused_queues: [super::queue("q"), super::queue("r")].into(),
        policy: inbox::Policy { max_in_flight: Some(7), concurrency: inbox::Concurrency::SingleActiveSession },
        active_session: Some(domain::AgentSessionId::parse("sess_1").unwrap()),
        ..first
    };
    let saved = wanted.clone();
    fixture
        .inbox(move |tx| {
            let saved = saved.clone();
            Box::pin(async move { tx.save_recipient(&saved).await })
        })
        .await
        .unwrap();
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.store.view(&recipient).await.unwrap().row, Some(wanted.clone()));
    let strange = inbox::RecipientRow { number: RecipientNumber::new(77), ..wanted };
    let refused = fixture.inbox(move |tx| {
        let strange = strange.clone();
        Box::pin(async move { tx.save_recipient(&strange).await })
    });
    assert!(matches!(refused.await, Err(StoreError::Conflict(_))));
}
