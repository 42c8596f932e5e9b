//! CloudEvents mapped onto events of ours.

use protocol::{CloudEventsMode, EventInput, InvalidBody, ProblemCode, parse_cloudevents};
use serde_json::value::RawValue;

use crate::publish::limits;

fn read(body: &str) -> Result<EventInput, InvalidBody> {
    parse_cloudevents(body.as_bytes(), CloudEventsMode::Structured, &limits()).map(|mut events| events.remove(0))
}

fn with(members: &str) -> String {
    format!(r#"{{"specversion":"1.0","type":"a","source":"/s","id":"1"{members}}}"#)
}

fn payload(event: &EventInput) -> Option<&str> {
    event.payload.as_deref().map(RawValue::get)
}

#[test]
fn attributes_are_mapped_as_documented() {
    let event = read(
        r#"{"specversion":"1.0","type":"com.Example.Object_Created","source":"https://example.com/storage","id":"A234-1234","subject":"new.pdf",
            "time":"2026-07-12T16:22:03.123Z","datacontenttype":"application/json","dataschema":"https://example.com/schema",
            "channel":"support/general","audience":"agent_alpha, sam","traceparent":"00-abc","retries":3,"sampled":true,
            "data":{"size": 7}}"#,
    )
    .unwrap();
    assert_eq!(event.event_type.as_str(), "com.example.object_created");
    assert_eq!(event.source.as_ref().map(protocol::Label::as_str), Some("https://example.com/storage"));
    assert_eq!(event.deduplication_key.as_ref().map(domain::DeduplicationKey::as_str), Some("ce:https://example.com/storage:A234-1234"));
    assert_eq!(event.channel.as_ref().map(domain::ChannelRef::as_str), Some("support/general"));
    assert_eq!(event.audience.iter().flatten().map(domain::PrincipalId::as_str).collect::<Vec<_>>(), ["agent_alpha", "sam"]);
    assert_eq!(payload(&event), Some(r#"{"size": 7}"#));
    let correlation = event.correlation.unwrap();
    assert_eq!(
        correlation.iter().collect::<Vec<_>>(),
        [
            ("dataschema", "https://example.com/schema"),
            ("retries", "3"),
            ("sampled", "true"),
            ("subject", "new.pdf"),
            ("time", "2026-07-12T16:22:03.123Z"),
            ("traceparent", "00-abc"),
        ]
    );
}

#[test]
fn data_that_is_no_object_is_put_into_one() {
    for (members, expected) in [
        ("", None),
        (r#","data":null"#, None),
        (r#","data":[1, 2]"#, Some(r#"{"data":[1, 2]}"#)),
        (r#","datacontenttype":"text/plain","data":"hi""#, Some(r#"{"data":"hi"}"#)),
        (r#","data_base64":"aGk=""#, Some(r#"{"data_base64":"aGk="}"#)),
    ] {
        assert_eq!(payload(&read(&with(members)).unwrap()), expected, "{members}");
    }
}

#[test]
fn one_source_and_id_is_one_key_and_no_other_pair_shares_it() {
    let key = |source: &str, id: &str| {
        let body = serde_json::json!({"specversion": "1.0", "type": "a", "source": source, "id": id}).to_string();
        read(&body).map(|event| event.deduplication_key.unwrap().to_string())
    };
    assert_eq!(key("s", "1"), Ok("ce:s:1".to_owned()));
    assert_ne!(key("a:b", "c"), key("a", "b:c"));
    assert_ne!(key("a", "b:c"), key("a", "b%3Ac"));
    let long = "x".repeat(300);
    let digest = key("s", &long).unwrap();
    assert!(digest.starts_with("ce:sha256:") && digest.len() == 74, "{digest}");
    assert_ne!(key("s", &format!("{long}y")), Ok(digest));
    assert!(key("s", "a\u{1}").unwrap().starts_with("ce:sha256:"));
}

#[test]
fn a_refusal_points_at_the_attribute() {
    for (body, pointer) in [
        ("nonsense".to_owned(), ""),
        ("[]".to_owned(), ""),
        ("{}".to_owned(), "/specversion"),
        (r#"{"specversion":"0.3","type":"a","source":"s","id":"1"}"#.to_owned(), "/specversion"),
        (r#"{"specversion":"1.0","source":"s","id":"1"}"#.to_owned(), "/type"),
        (r#"{"specversion":"1.0","type":"a b","source":"s","id":"1"}"#.to_owned(), "/type"),
        (r#"{"specversion":"1.0","type":"a","source":"","id":"1"}"#.to_owned(), "/source"),
        (r#"{"specversion":"1.0","type":"a","source":"s"}"#.to_owned(), "/id"),
        (r#"{"specversion":"1.0","type":"a","source":"s","id":1}"#.to_owned(), "/id"),
        (with(r#","id":"2""#), "/id"),
        (with(r#","channel":"x""#), "/channel"),
        (with(r#","audience":"a,,b""#), "/audience"),
        (with(r#","audience":"a,b,c,d""#), "/audience"),
        (with(r#","time":"noon""#), "/time"),
        (with(r#","Upper":"x""#), "/Upper"),
        (with(r#","ext":{}"#), "/ext"),
        (with(r#","ext":1.5"#), "/ext"),
        (with(r#","ext":"a\u0000""#), "/ext"),
        (with(r#","ext":"\ud800""#), "/ext"),
        (with(r#","data":{},"data_base64":"""#), "/data_base64"),
        (with(r#","data_base64":1"#), "/data_base64"),
        (with(r#","data":{"a":"\u0000"}"#), "/data/a"),
        (with(r#","data":[0,"\u0000"]"#), "/data/1"),
        (with(r#","data":{"n":1e999}"#), "/data/n"),
    ] {
        let refusal = read(&body).expect_err(&body);
        assert_eq!((refusal.code, refusal.pointer.as_str()), (ProblemCode::ValidationFailed, pointer), "{body}: {refusal:?}");
    }
    let refusal = read(&with(&format!(r#","data":"{}""#, "x".repeat(1100)))).unwrap_err();
    assert_eq!((refusal.code, refusal.pointer.as_str()), (ProblemCode::PayloadTooLarge, "/data"));
}

#[test]
fn a_batch_is_an_array_and_its_pointers_begin_with_the_index() {
    let batch = |body: &str| parse_cloudevents(body.as_bytes(), CloudEventsMode::Batch, &limits());
    assert_eq!(batch(&format!("[{},{}]", with(""), with(r#","data":{}"#))).unwrap().len(), 2);
    for (body, pointer) in [
        ("{".to_owned(), ""),
        (with(""), ""),
        ("[]".to_owned(), ""),
        (format!("[{0},{0},{0},{0},{0}]", with("")), ""),
        (format!("[{},7]", with("")), "/1"),
        (format!("[{},{{}}]", with("")), "/1/specversion"),
        (format!("[{},{}]", with(""), with(r#","data":{"a":"\u0000"}"#)), "/1/data/a"),
        (format!("[{},{}]", with(""), with(r#","ext":"\u0001""#)), "/1/ext"),
        (format!("[{},{}]", with(""), with(r#","id":"2""#)), "/1/id"),
    ] {
        let refusal = batch(&body).expect_err(&body);
        assert_eq!(refusal.pointer, pointer, "{body}: {refusal:?}");
    }
}

#[test]
fn media_types_say_how_many() {
    assert_eq!(CloudEventsMode::of_media_type("application/CloudEvents+json"), Some(CloudEventsMode::Structured));
    assert_eq!(CloudEventsMode::of_media_type("application/cloudevents-batch+json"), Some(CloudEventsMode::Batch));
    assert_eq!(CloudEventsMode::of_media_type("application/json"), None);
}
