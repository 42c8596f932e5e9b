//! Publishing: who may, what is written, and repeats.

use std::sync::atomic::Ordering;
use std::time::Duration;

use authz::{Denied, DeniedReason, Permission, PrincipalKind};
use domain::{EventOrigin, PayloadRef, Priority, Seq, StoreError};
use intake::{NewEvent, NewRecipient, PublishError, PublishedEvent};
use serde_json::json;

use crate::world::{World, channel, event, id, keyed, raw};

const MISSING: PublishError = PublishError::Denied(Denied::Forbidden(DeniedReason::PermissionMissing));
const HIDDEN: PublishError = PublishError::Denied(Denied::NotFound);

fn seq(number: u64) -> Option<Seq> {
    Seq::new(number)
}

#[tokio::test(start_paused = true)]
async fn events_are_answered_in_the_order_of_the_request() {
    let world = World::new().await;
    let published = world.publish((0..5).map(event).collect()).await.unwrap();
    let seqs: Vec<_> = published.events.iter().map(|event| event.seq.unwrap().get()).collect();
    assert_eq!((seqs, published.head), (vec![1, 2, 3, 4, 5], Seq::new(5).unwrap()));
    assert_eq!(world.numbers(), [0, 1, 2, 3, 4]);
    let ids: Vec<_> = published.events.iter().map(|event| event.id.to_string()).collect();
    assert_eq!(ids, world.log().iter().map(|envelope| envelope["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>());
    assert_eq!(world.publisher.metrics().published.get(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_envelope_carries_what_was_published() {
    let world = World::new().await;
    world.principal("alpha", PrincipalKind::Agent).await;
    let full = NewEvent {
        audience: vec![id("bob"), id("alpha"), id("bob")],
        recipients: vec![NewRecipient { id: id("alpha"), queue: Some(domain::QueueName::default()) }],
        priority: Some(Priority::High),
        expires_at: Some(world.now().plus(Duration::from_hours(1))),
        max_attempts: std::num::NonZeroU32::new(3),
        kind: Some("review".into()),
        source: Some("github".into()),
        summary: Some("  two\r\nlines\t of\u{7}text ".into()),
        deduplication_key: Some("key".parse().unwrap()),
        correlation: Some([("room".to_owned(), "7".to_owned())].into()),
        payload_ref: Some(PayloadRef { kind: "message".into(), id: "9".into() }),
        payload: Some(raw(r#"{ "b": 1.0, "a": "ä" }"#)),
        ..event(0)
    };
    world.publish(vec![full]).await.unwrap();
    let row = world.store.state.lock().unwrap().log[0].1.clone();
    let text = String::from_utf8(row.body.to_vec()).unwrap();
    assert!(text.ends_with(r#""payload":{ "b": 1.0, "a": "ä" }}"#), "verbatim: {text}");
    let mut envelope = world.log().remove(0);
    envelope.as_object_mut().unwrap().remove("id");
    let expected = json!({
        "type": "message.created", "created_at": "2023-11-14T22:13:20.000Z", "actor": {"kind": "person", "id": "owner"},
        "channel": "support/general", "audience": ["bob", "alpha"], "priority": "high", "deduplication_key": "key",
        "correlation": {"room": "7"}, "payload_ref": {"kind": "message", "id": "9"}, "kind": "review", "source": "github",
        "summary": "two lines of text", "expires_at": "2023-11-14T23:13:20.000Z", "payload": {"b": 1.0, "a": "ä"},
    });
    assert_eq!(envelope, expected);
    assert_eq!((row.channel, row.origin), (Some(channel("support/general")), EventOrigin::Work));
    assert_eq!(row.audience.as_slice(), [id("bob"), id("alpha")]);
}

#[tokio::test(start_paused = true)]
async fn recipients_get_work_with_what_was_published_or_the_defaults() {
    let world = World::new().await;
    world.principal("alpha", PrincipalKind::Agent).await;
    world.principal("beta", PrincipalKind::Agent).await;
    let queue: domain::QueueName = "reviews".parse().unwrap();
    let to = |name: &str, queue: Option<domain::QueueName>| NewRecipient { id: id(name), queue };
    let recipients = vec![to("alpha", Some(queue.clone())), to("beta", None)];
    let urgent = NewEvent { recipients, priority: Some(Priority::Urgent), summary: Some("two\nlines".into()), ..event(0) };
    let plain = NewEvent { recipients: vec![to("beta", None)], max_attempts: std::num::NonZeroU32::new(2), ..event(1) };
    let published = world.publish(vec![urgent, plain, event(2)]).await.unwrap();
    assert_eq!(published.events.iter().map(|event| event.delivered).collect::<Vec<_>>(), [true, true, false]);
    let rows: Vec<_> = world.store.state.lock().unwrap().log.iter().map(|(_, row)| row.clone()).collect();
    let rules = inbox::Rules::default();
    let work = rows[0].work.clone().unwrap();
    let names: Vec<_> = work.recipients.iter().map(|to| (to.agent.as_str(), to.queue.as_str())).collect();
    assert_eq!(names, [("alpha", "reviews"), ("beta", "inbox")]);
    assert_eq!((work.priority, work.summary.as_str(), work.max_attempts), (Priority::Urgent, "two lines", rules.max_attempts));
    assert_eq!((work.available_at, work.claim_key), (world.now(), rules.claim_key(world.now(), Priority::Urgent)));
    let work = rows[1].work.clone().unwrap();
    assert_eq!((work.priority, work.summary.as_str(), work.max_attempts), (Priority::Normal, "message.created", 2));
    assert!(rows[2].work.is_none());
    assert_eq!(rows[2].origin, EventOrigin::Published);
}

#[tokio::test(start_paused = true)]
async fn publishing_needs_post_on_the_channel_and_on_everything_without_one() {
    let world = World::new().await;
    let ann = world.principal("ann", PrincipalKind::App).await;
    let addressed = || NewEvent { channel: None, audience: vec![id("bob")], ..event(0) };
    let publish = async |event: NewEvent| {
        tokio::time::advance(Duration::from_secs(1)).await;
        world.publisher.publish(&ann, vec![event]).await.map(|published| published.events.len())
    };
    assert_eq!(publish(event(0)).await, Err(HIDDEN), "what one may not see does not exist");
    assert_eq!(publish(addressed()).await, Err(MISSING));
    world.grant("ann", "support", Permission::Read);
    assert_eq!(publish(event(0)).await, Err(MISSING));
    world.grant("ann", "support", Permission::Post);
    assert_eq!(publish(event(0)).await, Ok(1));
    assert_eq!(publish(addressed()).await, Err(MISSING));
    let gone = NewEvent { channel: Some(channel("support/gone")), ..event(0) };
    assert_eq!(publish(gone).await, Err(HIDDEN));
    world.grant("ann", "*", Permission::Post);
    assert_eq!(publish(addressed()).await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn one_forbidden_event_refuses_the_whole_request() {
    let world = World::new().await;
    let ann = world.principal("ann", PrincipalKind::Agent).await;
    world.grant("ann", "support", Permission::Post);
    let elsewhere = NewEvent { channel: Some(channel("ops/general")), ..event(1) };
    let error = world.publisher.publish(&ann, vec![event(0), elsewhere, event(2)]).await.unwrap_err();
    assert_eq!(error, HIDDEN);
    assert!(world.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn recipients_are_enabled_agents() {
    let world = World::new().await;
    world.principal("alpha", PrincipalKind::Agent).await;
    world.principal("ann", PrincipalKind::App).await;
    let to = |names: &[&str]| NewEvent {
        channel: None,
        recipients: names.iter().map(|name| NewRecipient { id: id(name), queue: None }).collect(),
        ..event(0)
    };
    world.publish(vec![to(&["alpha"])]).await.unwrap();
    assert_eq!(world.log()[0]["audience"], json!(["alpha"]));
    for unknown in ["ann", "nobody"] {
        let error = world.publish(vec![event(0), to(&["alpha", unknown])]).await.unwrap_err();
        assert!(matches!(error, PublishError::RecipientUnknown { .. }), "{error:?}");
        assert_eq!(error.place().unwrap().pointer(false), "/events/1/recipients/1");
    }
    world.store.state.lock().unwrap().credentials[1].principal.enabled = false;
    let error = world.publish(vec![to(&["alpha"])]).await.unwrap_err();
    assert_eq!(error.place().unwrap().pointer(true), "/recipients/0");
    assert_eq!(world.log().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_answered_with_the_first_event() {
    let world = World::new().await;
    let first = world.publish(vec![keyed(1, "k")]).await.unwrap().events[0];
    assert_eq!(first, PublishedEvent { id: first.id, seq: seq(1), deduplicated: false, delivered: false });
    tokio::time::advance(Duration::from_mins(5)).await;
    let again = world.publish(vec![event(0), keyed(1, "k")]).await.unwrap();
    assert_eq!(again.events[1], PublishedEvent { id: first.id, seq: seq(1), deduplicated: true, delivered: false });
    assert_eq!((again.head, world.numbers()), (Seq::new(2).unwrap(), vec![1, 0]));
    assert_eq!(world.publisher.metrics().deduplicated.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_key_twice_in_one_request_is_one_event() {
    let world = World::new().await;
    let published = world.publish(vec![keyed(1, "k"), keyed(1, "k")]).await.unwrap();
    assert_eq!(published.events[0].id, published.events[1].id);
    assert!(published.events[1].deduplicated);
    assert_eq!(world.log().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_body_under_a_known_key_refuses_the_whole_request() {
    let world = World::new().await;
    world.publish(vec![keyed(1, "k")]).await.unwrap();
    for request in [vec![event(7), keyed(2, "k")], vec![event(7), world.later(keyed(1, "k"), Duration::from_hours(1)), event(8)]] {
        let error = world.publish(request).await.unwrap_err();
        assert!(matches!(error, PublishError::DeduplicationConflict { .. }), "{error:?}");
        assert_eq!(error.place().unwrap().pointer(false), "/events/1/deduplication_key");
    }
    assert_eq!(world.numbers(), [1]);
    assert_eq!(world.publisher.metrics().conflicts.get(), 2);
    assert!(world.store.state.lock().unwrap().scheduled.is_empty());
}

#[tokio::test(start_paused = true)]
async fn immediate_events_take_the_hot_path() {
    let world = World::new().await;
    let past = NewEvent { available_at: Some(world.now()), ..event(1) };
    world.publish(vec![event(0), past]).await.unwrap();
    assert_eq!(world.store.appends.load(Ordering::SeqCst), 1);
    assert_eq!(world.store.transactions.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn the_stores_failure_is_handed_on() {
    let world = World::new().await;
    world.store.broken.store(true, Ordering::SeqCst);
    assert_eq!(world.publish(vec![event(0)]).await.unwrap_err(), PublishError::Store(StoreError::Unavailable));
    let scheduled = world.later(event(0), Duration::from_secs(1));
    assert_eq!(world.publish(vec![scheduled]).await.unwrap_err(), PublishError::Store(StoreError::Unavailable));
}
