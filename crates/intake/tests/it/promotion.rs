//! The promoter: scheduled events enter the log when they are due.

use std::sync::atomic::Ordering;
use std::time::Duration;

use authz::PrincipalKind;
use domain::{EventId, PrincipalId, TenantId, Timestamp};
use intake::{NewEvent, NewRecipient, ScheduledState, Settings};

use crate::world::{World, channel, event, keyed, raw};

const HOUR: Duration = Duration::from_hours(1);

fn states(world: &World) -> Vec<(EventId, ScheduledState, Option<String>)> {
    let scheduled = world.store.state.lock().unwrap().scheduled.clone();
    scheduled.into_iter().map(|(_, event)| (event.schedule.publication.id, event.state, event.failure)).collect()
}

#[tokio::test(start_paused = true)]
async fn an_event_is_in_the_log_when_it_is_due_and_not_before() {
    let world = World::new().await;
    world.promote();
    world.publish(vec![world.later(event(1), HOUR)]).await.unwrap();
    tokio::time::sleep(HOUR.checked_sub(Duration::from_millis(1)).unwrap()).await;
    assert!(world.log().is_empty());
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(world.numbers(), [1]);
    assert!(states(&world).is_empty());
    assert_eq!(world.publisher.metrics().promoted.get(), 1);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_scheduled_for_sooner_wakes_the_promoter() {
    let settings = Settings { promote_interval: HOUR * 10, ..Settings::default() };
    let world = World::with_settings(settings).await;
    world.promote();
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.publish(vec![world.later(event(1), HOUR)]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.publish(vec![world.later(event(2), Duration::from_secs(1))]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_001)).await;
    assert_eq!(world.numbers(), [2]);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn availability_order_is_log_order_over_many_batches() {
    let world = World::with_settings(Settings { promote_batch: 3, ..Settings::default() }).await;
    let later = (0..20_usize).rev().map(|number| world.later(event(number), HOUR + Duration::from_secs(number as u64))).collect();
    world.publish(later).await.unwrap();
    tokio::time::advance(HOUR * 2).await;
    world.promote();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(world.numbers(), (0..20).collect::<Vec<_>>());
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_enters_the_log_was_accepted_when_it_entered() {
    let world = World::new().await;
    let payload = raw(r#"{"created_at":"untouched","n":1}"#);
    let later = NewEvent { payload: Some(payload), ..world.later(event(1), HOUR) };
    world.publish(vec![later]).await.unwrap();
    world.promote();
    tokio::time::sleep(HOUR * 2).await;
    let row = world.store.state.lock().unwrap().log[0].1.clone();
    let envelope = &world.log()[0];
    let created_at = Timestamp::parse(envelope["created_at"].as_str().unwrap()).unwrap();
    assert_eq!(created_at.as_micros() / 1_000, row.created_at.as_micros() / 1_000);
    assert!(row.created_at >= Timestamp::from_micros(1_700_000_000_000_000).plus(HOUR));
    assert_eq!(envelope["payload"]["created_at"], "untouched");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_vanished_recipient_marks_the_event_as_failed_and_blocks_nobody() {
    let world = World::new().await;
    world.principal("alpha", PrincipalKind::Agent).await;
    let recipients = vec![NewRecipient { id: PrincipalId::parse("alpha").unwrap(), queue: None }];
    let lost = NewEvent { recipients, ..world.later(event(1), HOUR) };
    let published = world.publish(vec![lost, world.later(event(2), HOUR)]).await.unwrap();
    assert!(published.events.iter().all(|event| event.is_scheduled() && !event.delivered));
    world.store.state.lock().unwrap().credentials[1].principal.enabled = false;
    world.promote();
    tokio::time::sleep(HOUR * 2).await;
    assert_eq!(world.numbers(), [2]);
    let failure = Some("A recipient does not exist any more, or is disabled.".to_owned());
    assert_eq!(states(&world), [(published.events[0].id, ScheduledState::Failed, failure)]);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_vanished_channel_marks_the_event_as_failed_and_blocks_nobody() {
    let world = World::new().await;
    let lost = NewEvent { channel: Some(channel("ops/general")), ..world.later(event(1), HOUR) };
    let published = world.publish(vec![lost, world.later(event(2), HOUR)]).await.unwrap();
    world.store.state.lock().unwrap().channels.remove(&channel("ops/general"));
    world.promote();
    tokio::time::sleep(HOUR * 2).await;
    assert_eq!(world.numbers(), [2]);
    let failed = states(&world);
    assert_eq!(failed, [(published.events[0].id, ScheduledState::Failed, Some("The channel does not exist any more.".to_owned()))]);
    assert_eq!(world.publisher.metrics().failed.get(), 1);
    world.publisher.cancel_scheduled(&world.owner, published.events[0].id).await.unwrap();
    assert!(states(&world).is_empty(), "a failed one can be removed");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_log_refuses_for_good_blocks_nobody() {
    let world = World::new().await;
    let later = (0..5).map(|number| world.later(event(number), HOUR)).collect();
    let published = world.publish(later).await.unwrap();
    world.store.state.lock().unwrap().poison.insert(published.events[2].id);
    world.promote();
    tokio::time::sleep(HOUR * 2).await;
    assert_eq!(world.numbers(), [0, 1, 3, 4]);
    let failed = states(&world);
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].0, failed[0].1), (published.events[2].id, ScheduledState::Failed));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_tried_again_until_it_works() {
    let world = World::new().await;
    world.publish(vec![world.later(event(1), HOUR)]).await.unwrap();
    world.promote();
    world.store.broken.store(true, Ordering::SeqCst);
    tokio::time::sleep(HOUR * 2).await;
    assert!(world.publisher.metrics().promotion_errors.get() > 100);
    assert!(world.log().is_empty());
    world.store.broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.numbers(), [1]);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn several_promoters_append_an_event_once() {
    let world = World::new().await;
    world.publish((0..50).map(|number| world.later(event(number), HOUR)).collect()).await.unwrap();
    for _ in 0..4 {
        world.promote();
    }
    tokio::time::sleep(HOUR * 2).await;
    let mut numbers = world.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_repeat_after_promotion_is_answered_with_the_position() {
    let world = World::new().await;
    let later = world.later(keyed(1, "k"), HOUR);
    let first = world.publish(vec![later.clone()]).await.unwrap().events[0];
    world.promote();
    tokio::time::sleep(HOUR * 2).await;
    let again = world.publish(vec![later]).await.unwrap().events[0];
    assert_eq!((again.id, again.deduplicated, again.seq.map(domain::Seq::get)), (first.id, true, Some(1)));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_tenants_events_enter_its_own_log() {
    let world = World::new().await;
    world.publish((0..4).map(|number| world.later(event(number), HOUR)).collect()).await.unwrap();
    let acme = TenantId::parse("acme").unwrap();
    for (tenant, _) in world.store.state.lock().unwrap().scheduled.iter_mut().skip(2) {
        *tenant = acme.clone();
    }
    world.promote();
    tokio::time::sleep(HOUR * 2).await;
    let log = world.store.state.lock().unwrap().log.clone();
    assert_eq!(log.iter().filter(|(tenant, _)| *tenant == acme).count(), 2);
    assert_eq!(log.len(), 4);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_due_costs_a_look_now_and_then() {
    let world = World::with_settings(Settings { promote_interval: Duration::from_secs(10), ..Settings::default() }).await;
    world.promote();
    tokio::time::sleep(HOUR).await;
    world.stop().await;
    assert_eq!(world.store.transactions.load(Ordering::SeqCst), 0);
}
