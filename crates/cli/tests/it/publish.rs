//! `doorstep publish`.

use std::io::Read;
use std::sync::mpsc;

use serde_json::{Value, json};
use testkit::PlayedRequest as Request;

use crate::http::Http;
use crate::support::{Captured, Closed, Ended, alone, id, start, start_on};

const TWO_LINES: &str = "{\"type\":\"a\",\"channel\":\"s/c\"}\n{\"type\":\"b\",\"channel\":\"s/c\",\"deduplication_key\":\"own\"}\n";

/// Answers a request as a log whose first free position is `from` would.
async fn accept(request: Request, from: u64) -> Vec<Value> {
    assert_eq!(request.line, "POST /v1/events");
    let events = request.body["events"].as_array().unwrap().clone();
    let published: Vec<_> = (from..).zip(&events).map(|(seq, _)| json!({"id": id(seq), "seq": seq, "deduplicated": false})).collect();
    let head = from + events.len() as u64 - 1;
    request.respond(201, "application/json", &[], &json!({"events": published, "head_seq": head}).to_string()).await;
    events
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

/// Lines of as many events, numbered.
fn lines(count: usize) -> String {
    (1..=count).flat_map(|number| [r#"{"type":"e"#.to_owned(), number.to_string(), "\",\"channel\":\"s/c\"}\n".to_owned()]).collect()
}

#[tokio::test]
async fn every_form_of_input_is_published_in_order_and_told_line_by_line() {
    let forms = [TWO_LINES.to_owned(), format!("[{}]", TWO_LINES.trim().replace('\n', ",")), format!("\u{feff}{TWO_LINES}")];
    for text in forms {
        let mut http = Http::bind().await;
        let file = file(&text);
        let running = start(http.address, &["publish", file.path().to_str().unwrap()], std::io::empty());
        let events = accept(http.request().await, 7).await;
        assert_eq!(types(&events), ["a", "b"]);
        let ended = running.ended().await;
        assert_eq!(ended.code, 0, "{}", ended.err.text());
        let expected = [json!({"id": id(7), "seq": 7, "deduplicated": false}), json!({"id": id(8), "seq": 8, "deduplicated": false})];
        assert_eq!(ended.out.values(), expected);
        assert_eq!(ended.err.text(), "");
    }
}

#[tokio::test]
async fn events_without_a_key_get_one_that_a_later_run_can_make_again() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["publish", "--key-prefix", "import-7", "--quiet"], TWO_LINES.as_bytes());
    let events = accept(http.request().await, 1).await;
    assert_eq!((&events[0]["deduplication_key"], &events[1]["deduplication_key"]), (&json!("import-7:1"), &json!("own")));
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.out.text()), (0, String::new()));
    let mut prefixes = Vec::new();
    for _ in 0..2 {
        let running = start(http.address, &["publish"], TWO_LINES.as_bytes());
        let events = accept(http.request().await, 1).await;
        prefixes.push(events[0]["deduplication_key"].as_str().unwrap().to_owned());
        running.ended().await;
    }
    assert_ne!(prefixes[0], prefixes[1]);
}

#[tokio::test]
async fn requests_hold_no_more_events_than_asked_for() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["publish", "--batch", "2"], std::io::Cursor::new(lines(5)));
    for (from, expected) in [(1, vec!["e1", "e2"]), (3, vec!["e3", "e4"]), (5, vec!["e5"])] {
        assert_eq!(types(&accept(http.request().await, from).await), expected);
    }
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.out.lines().len()), (0, 5));
}

#[tokio::test]
async fn a_file_that_is_broken_anywhere_publishes_nothing() {
    let mut http = Http::bind().await;
    let file = file(&format!("{}nonsense\n", lines(2_000)));
    let ended = start(http.address, &["publish", file.path().to_str().unwrap()], std::io::empty()).ended().await;
    assert_eq!(ended.code, 2);
    assert!(ended.err.text().contains("line 2001, column 1"), "{}", ended.err.text());
    assert!(http.is_quiet());
}

#[tokio::test]
async fn a_stream_that_breaks_says_how_much_was_published_and_how_to_go_on() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["publish", "--batch", "2"], std::io::Cursor::new(format!("{}{{\"typ\":1}}\n", lines(3))));
    accept(http.request().await, 1).await;
    accept(http.request().await, 3).await;
    let ended = running.ended().await;
    assert_eq!(ended.code, 1);
    let text = ended.err.text();
    assert!(text.contains("line 4") && text.contains("unknown field `typ`") && text.contains("--skip 3"), "{text}");
    let running = start(http.address, &["publish", "--skip", "2"], std::io::Cursor::new(lines(3)));
    assert_eq!(types(&accept(http.request().await, 3).await), ["e3"]);
    assert_eq!(running.ended().await.code, 0);
}

#[tokio::test]
async fn an_event_is_published_while_the_stream_goes_on() {
    struct Stream(mpsc::Receiver<&'static str>);

    impl Read for Stream {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let Ok(text) = self.0.recv() else { return Ok(0) };
            out[..text.len()].copy_from_slice(text.as_bytes());
            Ok(text.len())
        }
    }

    let mut http = Http::bind().await;
    let (producer, stream) = mpsc::channel();
    let running = start(http.address, &["publish"], Stream(stream));
    for (seq, text) in [(1, "{\"type\":\"a\"}\n"), (2, "{\"type\":\"b\"}\n")] {
        producer.send(text).unwrap();
        assert_eq!(accept(http.request().await, seq).await.len(), 1);
    }
    drop(producer);
    assert_eq!(running.ended().await.code, 0);
}

#[tokio::test]
async fn a_lost_answer_is_repeated_with_the_same_keys() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["publish"], TWO_LINES.as_bytes());
    let lost = http.request().await;
    let first = lost.body.clone();
    drop(lost);
    let again = http.request().await;
    assert_eq!(again.body, first);
    accept(again, 1).await;
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.out.lines().len()), (0, 2));
    assert!(ended.err.text().contains("trying again"), "{}", ended.err.text());
}

#[tokio::test]
async fn a_lost_answer_without_keys_is_never_repeated() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["publish", "--no-keys"], TWO_LINES.as_bytes());
    drop(http.request().await);
    let ended = running.ended().await;
    assert_eq!(ended.code, 1);
    assert!(ended.err.text().contains("whether 2 events were published is unknown"), "{}", ended.err.text());
    assert!(http.is_quiet());
}

#[tokio::test]
async fn an_unknown_outcome_says_how_to_go_on_without_publishing_twice() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["publish", "--key-prefix", "p", "--batch", "1", "--retry-for", "0s"], TWO_LINES.as_bytes());
    accept(http.request().await, 1).await;
    drop(http.request().await);
    let ended = running.ended().await;
    assert_eq!(ended.code, 1);
    assert!(ended.err.text().contains("--skip 1 --key-prefix p"), "{}", ended.err.text());
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again_also_without_keys() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["publish", "--no-keys"], TWO_LINES.as_bytes());
    http.request().await.problem(503, json!({"code": "overloaded"})).await;
    accept(http.request().await, 1).await;
    assert_eq!(running.ended().await.code, 0);
}

#[tokio::test]
async fn a_refused_event_is_named_by_its_line() {
    let mut http = Http::bind().await;
    let file = file(&format!("\n{TWO_LINES}"));
    let running = start(http.address, &["publish", file.path().to_str().unwrap()], std::io::empty());
    http.request().await.problem(404, json!({"code": "not_found", "detail": "no such channel", "pointer": "/events/1/channel"})).await;
    let ended = running.ended().await;
    assert_eq!(ended.code, 1);
    let text = ended.err.text();
    assert!(text.contains("the event on line 3: no such channel (at /events/1/channel) [not_found, request r-1]"), "{text}");
    assert!(text.contains("none of the 2 events"), "{text}");
}

#[tokio::test]
async fn a_request_that_is_too_large_is_split() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["publish"], std::io::Cursor::new(lines(5)));
    let first = http.request().await;
    assert_eq!(first.body["events"].as_array().unwrap().len(), 5);
    first.problem(413, json!({"code": "payload_too_large"})).await;
    let second = http.request().await;
    second.problem(400, json!({"code": "validation_failed", "pointer": "/events"})).await;
    for (from, expected) in [(1, vec!["e1"]), (2, vec!["e2"]), (3, vec!["e3", "e4", "e5"])] {
        assert_eq!(types(&accept(http.request().await, from).await), expected);
    }
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.out.lines().len()), (0, 5));
}

#[tokio::test]
async fn nobody_to_read_the_answers_is_no_reason_not_to_publish() {
    let mut http = Http::bind().await;
    let running = start_on(http.address, &["publish", "--batch", "1"], TWO_LINES.as_bytes(), Closed, Captured::default());
    accept(http.request().await, 1).await;
    accept(http.request().await, 2).await;
    assert_eq!(running.ended().await.code, 0);
}

#[tokio::test]
async fn an_event_can_be_given_by_flags() {
    let mut http = Http::bind().await;
    let arguments = [
        "publish",
        "--type",
        "message.created",
        "--channel",
        "support/general",
        "--audience",
        "a,b",
        "--recipient",
        "c:urgent",
        "--payload",
        "{\"text\": 1.0}",
        "--key",
        "k",
        "--priority",
        "high",
        "--at",
        "2030-01-02T03:04:05Z",
        "--summary",
        "Hello",
        "--correlation",
        "room=7",
        "--payload-ref",
        "message=9",
        "--kind",
        "answer",
        "--source",
        "mail",
        "--max-attempts",
        "3",
    ];
    let running = start(http.address, &arguments, std::io::empty());
    let request = http.request().await;
    let expected = json!({
        "type": "message.created", "channel": "support/general", "audience": ["a", "b"],
        "recipients": [{"kind": "agent", "id": "c", "queue": "urgent"}], "payload": {"text": 1.0}, "deduplication_key": "k",
        "priority": "high", "available_at": "2030-01-02T03:04:05.000Z", "summary": "Hello", "correlation": {"room": "7"},
        "payload_ref": {"kind": "message", "id": "9"}, "kind": "answer", "source": "mail", "max_attempts": 3
    });
    assert_eq!(request.body["events"], json!([expected]));
    request.answer(json!({"events": [{"id": id(1), "deduplicated": false, "scheduled": true}], "head_seq": 0})).await;
    let ended = running.ended().await;
    assert_eq!(ended.out.values(), [json!({"id": id(1), "deduplicated": false, "scheduled": true})]);
}

#[tokio::test]
async fn bad_input_is_a_usage_error_and_calls_nobody() {
    for (arguments, input, part) in [
        (vec!["publish"], "", "the input is empty"),
        (vec!["publish", "-"], "7", "line 1, column 1"),
        (vec!["publish", "/nowhere/at/all"], "", "/nowhere/at/all"),
        (vec!["publish", "--type", "a", "--payload", "[]"], "", "--payload is a JSON object"),
    ] {
        let Ended { code, err, .. } = alone(&arguments, input).await;
        assert_eq!(code, 2, "{arguments:?}");
        assert!(err.text().contains(part), "{arguments:?}: {}", err.text());
    }
}

#[tokio::test]
async fn an_empty_array_is_nothing_to_publish_and_no_fault() {
    let ended = alone(&["publish"], "[]").await;
    assert_eq!(ended.code, 0);
    assert!(ended.err.text().contains("nothing to publish"));
}
