//! The listener of commits: everything, in order, durable, and before anybody is answered.

use std::sync::Arc;

use domain::Event;

use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, Recorder, new_seq, tenant};

pub(crate) async fn commit_order_is_sequence_order_is_listener_order(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    fixture.create_tenant("other").await;
    let recorder = Recorder::listen(&fixture);
    let mut publishers = tokio::task::JoinSet::new();
    for publisher in 0..32 {
        let (fixture, recorder) = (Arc::clone(&fixture), Arc::clone(&recorder));
        publishers.spawn(async move {
            let name = if publisher % 4 == 0 { "other" } else { "acme" };
            for turn in 0..25 {
                let request = (0..=turn % 3).map(|_| fixture.event("x")).collect();
                let answer = fixture.store.append(&tenant(name), request).await.unwrap();
                let last = answer.appended.last().map(new_seq).unwrap();
                assert!(answer.head.get() >= last);
                assert!(recorder.last(name) >= last, "told before the publisher was answered");
            }
        });
    }
    publishers.join_all().await;
    for name in ["acme", "other"] {
        let told = recorder.seqs(name);
        assert_eq!(told, (1..=told.len() as u64).collect::<Vec<_>>(), "{name}");
    }
    assert_eq!(recorder.seqs("acme").len() as u64, fixture.head().await);
    let page = fixture.page_after(0).await.unwrap();
    assert_eq!(recorder.ids("acme"), page.events.iter().map(|event| event.id).collect::<Vec<_>>());
}

pub(crate) async fn the_listener_gets_the_events_and_the_epoch_as_readers_see_them(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let recorder = Recorder::listen(&fixture);
    let request = vec![fixture.event("a"), fixture.keyed("k", "b"), fixture.keyed("k", "b")];
    fixture.append(request).await.unwrap();
    let page = fixture.page_after(0).await.unwrap();
    let (epoch, told) = recorder.commits("acme").remove(0);
    assert_eq!(epoch, page.head.epoch);
    let columns = |event: &Arc<Event>| {
        let id = (event.seq, event.id, event.event_type.clone(), event.channel.clone());
        (id, event.audience.clone(), event.origin, event.created_at, event.body.clone())
    };
    assert_eq!(told.iter().map(columns).collect::<Vec<_>>(), page.events.iter().map(columns).collect::<Vec<_>>());
}
