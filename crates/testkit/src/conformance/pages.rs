//! Reading the log: heads and pages.

use std::sync::Arc;

use authz::TenantState;
use bytes::Bytes;
use domain::{Audience, ChannelRef, Event, EventOrigin, EventType, PrincipalId, Publication, StoreError, Timestamp};
use sync::PageRange;

use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, range, seq, tenant};

fn seqs(events: &[Arc<Event>]) -> Vec<u64> {
    events.iter().map(|event| event.seq.get()).collect()
}

pub(crate) async fn heads_are_those_of_the_tenants_that_are_there(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let other = fixture.create_tenant("other").await;
    fixture.fill(3).await;
    assert_eq!(fixture.store.head(&tenant("absent")).await, Ok(None));
    let head = fixture.store.head(&fixture.tenant).await.unwrap().unwrap();
    assert_eq!((head.seq, head.floor), (seq(3), seq(1)));
    let asked = [tenant("other"), tenant("absent"), tenant("acme")];
    let mut heads = fixture.store.heads(&asked).await.unwrap();
    heads.sort_by_key(|(_, head)| head.seq);
    assert_eq!(heads.len(), 2);
    assert_eq!((&heads[0].0, heads[0].1.epoch, heads[0].1.floor), (&tenant("other"), other.epoch, seq(1)));
    assert_eq!(heads[1], (tenant("acme"), head));
    assert_eq!(fixture.store.heads(&[]).await, Ok(Vec::new()));
}

pub(crate) async fn a_page_starts_behind_after_and_keeps_its_bounds(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.fill(10).await;
    let page = |after, up_to: Option<u64>, max_events| {
        let range = PageRange { after: seq(after), up_to: up_to.map(seq), max_events, max_bytes: usize::MAX };
        let (store, tenant) = (Arc::clone(&fixture.store), fixture.tenant.clone());
        async move { store.page(&tenant, range).await.unwrap() }
    };
    assert_eq!(seqs(&page(3, None, 4).await.events), [4, 5, 6, 7]);
    assert_eq!(seqs(&page(7, None, 100).await.events), [8, 9, 10]);
    assert_eq!(seqs(&page(3, Some(5), 100).await.events), [4, 5]);
    assert_eq!(seqs(&page(8, Some(99), 100).await.events), [9, 10]);
    assert_eq!(seqs(&page(3, None, 0).await.events), [4], "at least one");
    assert_eq!(seqs(&page(10, None, 9).await.events), [0; 0]);
    assert_eq!(seqs(&page(99, None, 9).await.events), [0; 0], "above the head there is nothing");
    assert_eq!(page(99, None, 9).await.head.seq, seq(10));
    assert_eq!(seqs(&page(5, Some(3), 9).await.events), [0; 0]);
}

pub(crate) async fn a_page_is_bounded_by_bytes_and_a_larger_first_row_comes_alone(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let large = Publication { body: Bytes::from(vec![b' '; 100_000]), ..fixture.event("x") };
    fixture.append(vec![fixture.event("a"), fixture.event("b"), large, fixture.event("c")]).await.unwrap();
    let small = fixture.page_after(0).await.unwrap().events[0].size();
    let page = |after, max_bytes| {
        let range = PageRange { after: seq(after), up_to: None, max_events: 100, max_bytes };
        let (store, tenant) = (Arc::clone(&fixture.store), fixture.tenant.clone());
        async move { seqs(&store.page(&tenant, range).await.unwrap().events) }
    };
    assert_eq!(page(0, 2 * small).await, [1, 2]);
    assert_eq!(page(0, 2 * small - 1).await, [1]);
    assert_eq!(page(0, 0).await, [1]);
    assert_eq!(page(2, 2 * small).await, [3], "larger than the bound, alone");
    assert_eq!(page(0, 50_000).await, [1, 2], "not behind others");
}

pub(crate) async fn every_column_is_read_as_it_was_written(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let audience = Audience::new(&["agent_alpha", "agent-beta", "c.d"].map(|id| PrincipalId::parse(id).unwrap()));
    let odd = Publication {
        event_type: EventType::parse("access.changed").unwrap(),
        channel: None,
        audience,
        origin: EventOrigin::Server,
        created_at: Timestamp::from_micros(-5),
        body: Bytes::from("\"id\":\"\u{1F980} \\u0001\",\"payload\":{}}"),
        ..fixture.event("x")
    };
    let plain = Publication { channel: Some(ChannelRef::parse("support/general").unwrap()), ..fixture.event("y") };
    fixture.append(vec![odd.clone(), plain.clone()]).await.unwrap();
    let fixture = fixture.reopen().await;
    let page = fixture.page_after(0).await.unwrap();
    for (event, publication) in page.events.iter().zip([odd, plain]) {
        assert_eq!(event.id, publication.id);
        assert_eq!(event.event_type, publication.event_type);
        assert_eq!(event.channel, publication.channel);
        assert_eq!(event.audience, publication.audience);
        assert_eq!(event.origin, publication.origin);
        assert_eq!(event.created_at, publication.created_at);
        assert_eq!(event.body, publication.body);
    }
}

pub(crate) async fn only_a_tenant_that_is_there_has_pages(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.fill(1).await;
    assert_eq!(fixture.store.page(&tenant("absent"), range(0)).await.unwrap_err(), StoreError::TenantInactive);
    fixture.set_state(TenantState::Suspended).await;
    assert_eq!(fixture.page_after(0).await.unwrap().events.len(), 1);
}

pub(crate) async fn logs_of_tenants_do_not_touch(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_tenant("other").await;
    fixture.fill(3).await;
    sync::Append::append(&*fixture.store, &tenant("other"), vec![fixture.event("theirs")]).await.unwrap();
    fixture.fill(1).await;
    assert_eq!(seqs(&fixture.page_after(0).await.unwrap().events), [1, 2, 3, 4]);
    let theirs = fixture.store.page(&tenant("other"), range(0)).await.unwrap();
    assert_eq!(seqs(&theirs.events), [1]);
}

pub(crate) async fn a_page_and_its_head_are_of_one_snapshot(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    let writing = {
        let fixture = Arc::clone(&fixture);
        tokio::task::JoinSet::from_iter([async move {
            for _ in 0..200 {
                fixture.append(vec![fixture.event("x"), fixture.event("y")]).await.unwrap();
            }
        }])
    };
    let mut seen = 0;
    while seen < 400 {
        let page = fixture.page_after(0).await.unwrap();
        assert_eq!(page.events.last().map_or(0, |event| event.seq.get()), page.head.seq.get());
        assert_eq!(page.head.seq.get() % 2, 0, "no half of a request is seen");
        assert!(page.head.seq.get() >= seen, "what was seen is never unseen");
        seen = page.head.seq.get();
    }
    writing.join_all().await;
}
