//! Publishing later: what waits, who sees it, and cancelling.

use std::time::Duration;

use authz::{Denied, Permission, PrincipalKind};
use domain::Seq;
use intake::{PublishError, ScheduleError};

use crate::world::{World, channel, event, keyed};

const HOUR: Duration = Duration::from_hours(1);

#[tokio::test(start_paused = true)]
async fn an_event_of_the_future_waits_without_a_seq() {
    let world = World::new().await;
    let published = world.publish(vec![event(0), world.later(event(1), HOUR), event(2)]).await.unwrap();
    let seqs: Vec<_> = published.events.iter().map(|event| event.seq.map(Seq::get)).collect();
    assert_eq!((seqs, published.head), (vec![Some(1), None, Some(2)], Seq::new(2).unwrap()));
    assert!(published.events[1].is_scheduled());
    assert_eq!(world.numbers(), [0, 2]);
    assert_eq!(world.publisher.metrics().scheduled.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_schedules_asks_the_transaction_for_its_channels() {
    let world = World::new().await;
    world.publish(vec![event(0)]).await.unwrap();
    world.store.state.lock().unwrap().channels.remove(&channel("support/general"));
    let error = world.publish(vec![event(1), world.later(event(2), HOUR)]).await.unwrap_err();
    assert_eq!(error, PublishError::Denied(Denied::NotFound));
    assert_eq!(world.numbers(), [0]);
}

#[tokio::test(start_paused = true)]
async fn the_key_is_taken_at_scheduling_and_freed_by_cancelling() {
    let world = World::new().await;
    let later = world.later(keyed(1, "k"), HOUR);
    let first = world.publish(vec![later.clone()]).await.unwrap().events[0];
    let again = world.publish(vec![later.clone(), event(2)]).await.unwrap().events[0];
    assert_eq!((again.id, again.deduplicated, again.is_scheduled()), (first.id, true, true));
    let conflict = world.publish(vec![keyed(1, "k")]).await.unwrap_err();
    assert!(matches!(conflict, PublishError::DeduplicationConflict { .. }), "another time is another body");
    world.publisher.cancel_scheduled(&world.owner, first.id).await.unwrap();
    let anew = world.publish(vec![keyed(9, "k")]).await.unwrap().events[0];
    assert!(!anew.deduplicated);
    assert_eq!(world.numbers(), [2, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_remembered_for_the_window_from_when_the_event_is_due() {
    let world = World::new().await;
    let window = world.parts.settings.deduplication_window;
    world.publish(vec![keyed(1, "a"), world.later(keyed(2, "b"), HOUR)]).await.unwrap();
    let state = world.store.state.lock().unwrap().clone();
    let expiry = |publication: &domain::Publication| publication.deduplication.clone().unwrap().expires_at;
    assert_eq!(expiry(&state.log[0].1), world.now().plus(window));
    assert_eq!(expiry(&state.scheduled[0].1.schedule.publication), world.now().plus(HOUR).plus(window));
}

#[tokio::test(start_paused = true)]
async fn the_second_of_two_equal_keys_is_the_repeat_whatever_waits() {
    let world = World::new().await;
    let later = world.later(keyed(1, "k"), HOUR);
    let published = world.publish(vec![event(0), later.clone(), later, event(2)]).await.unwrap();
    assert_eq!(published.events[1].id, published.events[2].id);
    assert_eq!(published.events.iter().map(|event| event.deduplicated).collect::<Vec<_>>(), [false, false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn everybody_lists_and_cancels_its_own_and_operators_all() {
    let world = World::new().await;
    let (ann, bob) = (world.principal("ann", PrincipalKind::App).await, world.principal("bob", PrincipalKind::Agent).await);
    for name in ["ann", "bob"] {
        world.grant(name, "support", Permission::Post);
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    let mut ids = Vec::new();
    for (caller, hours) in [(&ann, 3), (&bob, 2), (&ann, 1)] {
        let later = world.later(event(0), HOUR * hours);
        ids.push(world.publisher.publish(caller, vec![later]).await.unwrap().events[0].id);
    }
    let list = async |caller| {
        let page = world.publisher.scheduled(caller, None, 10).await.unwrap();
        assert!(page.next.is_none());
        page.items.iter().map(|event| event.schedule.publication.id).collect::<Vec<_>>()
    };
    assert_eq!(list(&ann).await, [ids[2], ids[0]]);
    assert_eq!(list(&bob).await, [ids[1]]);
    assert_eq!(list(&world.owner).await, [ids[2], ids[1], ids[0]]);
    let hidden = world.publisher.cancel_scheduled(&ann, ids[1]).await.unwrap_err();
    assert_eq!(hidden, ScheduleError::Denied(Denied::NotFound));
    world.publisher.cancel_scheduled(&ann, ids[0]).await.unwrap();
    assert_eq!(world.publisher.cancel_scheduled(&ann, ids[0]).await.unwrap_err(), ScheduleError::NotFound);
    world.publisher.cancel_scheduled(&world.owner, ids[1]).await.unwrap();
    assert_eq!(list(&world.owner).await, [ids[2]]);
}

#[tokio::test(start_paused = true)]
async fn scheduled_events_come_in_pages_without_gaps_or_repeats() {
    let world = World::new().await;
    let later: Vec<_> = (0..7).map(|number| world.later(event(number), HOUR * u32::try_from(number / 2 + 1).unwrap())).collect();
    world.publish(later).await.unwrap();
    for limit in 1..9 {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = world.publisher.scheduled(&world.owner, after, limit).await.unwrap();
            seen.extend(page.items.iter().map(|event| (event.schedule.available_at, event.schedule.publication.id)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen.len(), 7, "limit {limit}");
        assert!(seen.is_sorted());
    }
}
