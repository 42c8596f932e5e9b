//! What is refused, and where the answer points.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::{EventType, PayloadRef};
use intake::{NewEvent, NewRecipient, PublishError, Settings};

use crate::world::{World, event, id, raw};

fn typed(event_type: &str) -> NewEvent {
    NewEvent { event_type: EventType::parse(event_type).unwrap(), ..event(0) }
}

fn to(name: &str) -> NewRecipient {
    NewRecipient { id: id(name), queue: None }
}

fn correlated(name: &str, value: &str) -> NewEvent {
    NewEvent { correlation: Some(BTreeMap::from([(name.to_owned(), value.to_owned())])), ..event(0) }
}

fn many(count: usize) -> Vec<domain::PrincipalId> {
    (0..count).map(|number| id(&format!("p{number}"))).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_not_valid_is_refused_with_a_pointer_and_leaves_nothing() {
    let world = World::new().await;
    let now = world.now();
    let hour = Duration::from_hours(1);
    let without_place = NewEvent { channel: None, ..event(0) };
    let reference = |kind: &str, id: &str| NewEvent { payload_ref: Some(PayloadRef { kind: kind.into(), id: id.into() }), ..event(0) };
    let bad: Vec<(NewEvent, &str)> = vec![
        (without_place, ""),
        (typed("access.changed"), "/type"),
        (typed("inbox.requeued"), "/type"),
        (NewEvent { audience: many(101), ..event(0) }, "/audience"),
        (NewEvent { audience: many(100), recipients: vec![to("one-more")], ..event(0) }, "/audience"),
        (NewEvent { recipients: many(101).iter().map(|p| to(p.as_str())).collect(), ..event(0) }, "/recipients"),
        (NewEvent { recipients: vec![to("a"), to("b"), to("a")], ..event(0) }, "/recipients/2"),
        (NewEvent { expires_at: Some(now), ..event(0) }, "/expires_at"),
        (NewEvent { available_at: Some(now.plus(hour)), expires_at: Some(now.plus(hour)), ..event(0) }, "/expires_at"),
        (NewEvent { available_at: Some(now.plus(hour * 24 * 367)), ..event(0) }, "/available_at"),
        (NewEvent { kind: Some(String::new()), ..event(0) }, "/kind"),
        (NewEvent { source: Some("x".repeat(257)), ..event(0) }, "/source"),
        (NewEvent { source: Some("a\u{0}b".into()), ..event(0) }, "/source"),
        (NewEvent { summary: Some(" \n ".into()), ..event(0) }, "/summary"),
        (NewEvent { summary: Some("x".repeat(201)), ..event(0) }, "/summary"),
        (reference("", "1"), "/payload_ref/kind"),
        (reference("room", "\u{1}"), "/payload_ref/id"),
        (correlated("", "x"), "/correlation/"),
        (correlated("a/b~", "\u{0}"), "/correlation/a~1b~0"),
        (correlated("room", &"x".repeat(257)), "/correlation/room"),
        (NewEvent { correlation: Some((0..33).map(|n| (n.to_string(), String::new())).collect()), ..event(0) }, "/correlation"),
        (NewEvent { payload: Some(raw("[]")), ..event(0) }, "/payload"),
        (NewEvent { payload: Some(raw("null")), ..event(0) }, "/payload"),
        (NewEvent { payload: Some(raw(r#"{"a":"\u0000"}"#)), ..event(0) }, "/payload"),
        (NewEvent { payload: Some(raw(r#"{"a":"\ud800"}"#)), ..event(0) }, "/payload"),
        (NewEvent { payload: Some(raw(&format!("{}1{}", r#"{"a":"#.repeat(65), "}".repeat(65)))), ..event(0) }, "/payload"),
        (NewEvent { payload: Some(raw(r#"{"a":1e999}"#)), deduplication_key: Some("k".parse().unwrap()), ..event(0) }, "/payload"),
    ];
    for (event, member) in bad {
        let shown = format!("{event:?}");
        let error = world.publish(vec![crate::world::event(1), event]).await.unwrap_err();
        let place = error.place().unwrap_or_else(|| panic!("{error:?} for {shown}"));
        assert!(matches!(error, PublishError::Invalid { .. }), "{error:?}");
        assert_eq!((place.event, place.member.as_str()), (Some(1), member), "{shown}");
        assert_eq!(place.pointer(false), format!("/events/1{member}"));
        assert_eq!(place.pointer(true), member);
    }
    assert!(world.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_payload_up_to_the_bound_is_taken_and_one_byte_more_is_not() {
    let world = World::with_settings(Settings { max_payload_bytes: 100, ..Settings::default() }).await;
    let sized = |bytes: usize| NewEvent { payload: Some(raw(&format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8)))), ..event(0) };
    world.publish(vec![sized(100)]).await.unwrap();
    let error = world.publish(vec![sized(101)]).await.unwrap_err();
    assert!(matches!(&error, PublishError::PayloadTooLarge { size: 101, max: 100, .. }), "{error:?}");
    assert_eq!(error.place().unwrap().pointer(true), "/payload");
}

#[tokio::test(start_paused = true)]
async fn a_request_has_at_least_one_and_at_most_so_many_events() {
    let world = World::with_settings(Settings { max_events: 3, ..Settings::default() }).await;
    world.publish((0..3).map(event).collect()).await.unwrap();
    for count in [0, 4, 10_000] {
        let error = world.publish((0..count).map(event).collect()).await.unwrap_err();
        assert_eq!(error.place().unwrap().pointer(false), "/events", "{count}");
    }
    assert_eq!(world.log().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn bounds_are_inclusive() {
    let world = World::new().await;
    let fullest = NewEvent {
        audience: many(100),
        summary: Some("x".repeat(200)),
        source: Some("ä".repeat(256)),
        correlation: Some((0..32).map(|n| (n.to_string(), "v".repeat(256))).collect()),
        available_at: Some(world.now()),
        payload: Some(raw(&format!("{}1{}", r#"{"a":"#.repeat(64), "}".repeat(64)))),
        ..event(0)
    };
    assert!(!world.publish(vec![fullest]).await.unwrap().events[0].is_scheduled());
}
