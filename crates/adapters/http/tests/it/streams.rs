//! `streamEvents` from the outside.

use std::time::Duration;

use doorstep_http::Settings;
use protocol::CloseCode;
use serde_json::{Value, json};

use crate::support::{Options, PATIENCE, Wire, World, eventually};

/// One server-sent event.
#[derive(Debug, Default)]
struct Sent {
    id: Option<String>,
    event: Option<String>,
    data: Option<Value>,
    comment: Option<String>,
}

struct Stream {
    wire: Wire,
    text: String,
}

impl Stream {
    async fn open(world: &World, target: &str, headers: &[(&str, &str)]) -> Self {
        let mut wire = world.wire().await;
        let bearer = format!("Bearer {}", world.owner);
        let headers: Vec<_> = headers.iter().copied().chain([("authorization", bearer.as_str())]).collect();
        wire.request("GET", target, &headers, b"").await;
        let (status, headers) = wire.head().await.unwrap();
        let header = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        assert_eq!((status, header("content-type")), (200, Some("text/event-stream")));
        assert_eq!((header("cache-control"), header("x-accel-buffering")), (Some("no-store"), Some("no")));
        Self { wire, text: String::new() }
    }

    /// The next block but `retry` and comments; `None` when the stream is over.
    async fn next(&mut self) -> Option<Sent> {
        loop {
            let block = self.block().await?;
            let sent = parse(&block);
            if sent.data.is_some() {
                return Some(sent);
            }
        }
    }

    async fn block(&mut self) -> Option<String> {
        while !self.text.contains("\n\n") {
            self.text.push_str(std::str::from_utf8(&self.wire.chunk().await?).unwrap());
        }
        let (block, rest) = self.text.split_once("\n\n").map(|(block, rest)| (block.to_owned(), rest.to_owned()))?;
        self.text = rest;
        Some(block)
    }
}

fn parse(block: &str) -> Sent {
    let mut sent = Sent::default();
    let mut data = Vec::new();
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => sent.id = Some(id.to_owned()),
            Some(("event", event)) => sent.event = Some(event.to_owned()),
            Some(("data", text)) => data.push(text),
            Some(("", comment)) => sent.comment = Some(comment.to_owned()),
            _ => {}
        }
    }
    sent.data = (!data.is_empty()).then(|| serde_json::from_str(&data.join("\n")).unwrap());
    sent
}

#[tokio::test]
async fn what_is_published_arrives_with_a_position_to_resume_from() {
    let world = World::new().await;
    for n in 1..=3 {
        world.memory.publish(&json!({"n": n}).to_string());
    }
    let mut stream = Stream::open(&world, "/v1/events/stream?after=1", &[]).await;
    let (second, third) = (stream.next().await.unwrap(), stream.next().await.unwrap());
    assert_eq!((second.event, second.data.unwrap()["payload"].clone()), (None, json!({"n": 2})));
    let id = third.id.unwrap();
    assert!(id.ends_with(":3"), "{id}");
    world.memory.publish(r#"{"n":4}"#);
    drop(stream);
    let mut resumed = Stream::open(&world, "/v1/events/stream?after=0", &[("last-event-id", &id)]).await;
    assert_eq!(resumed.next().await.unwrap().data.unwrap()["payload"], json!({"n": 4}), "the id wins over after");
    world.memory.publish(r#"{"n":5}"#);
    assert_eq!(resumed.next().await.unwrap().data.unwrap()["payload"], json!({"n": 5}), "live");
}

#[tokio::test]
async fn a_position_of_another_epoch_is_told_and_the_stream_goes_on_at_the_head() {
    let world = World::new().await;
    world.memory.publish("{}");
    let foreign = "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10:1";
    let mut stream = Stream::open(&world, "/v1/events/stream", &[("last-event-id", foreign)]).await;
    let resync = stream.next().await.unwrap();
    assert_eq!(resync.event.as_deref(), Some("resync_required"));
    let data = resync.data.unwrap();
    assert_eq!((&data["reason"], &data["head_seq"]), (&json!("epoch_changed"), &json!(1)));
    assert_eq!(resync.id.unwrap(), format!("{}:1", data["sync_epoch"].as_str().unwrap()));
    world.memory.publish(r#"{"n":2}"#);
    assert_eq!(stream.next().await.unwrap().data.unwrap()["payload"], json!({"n": 2}));
}

#[tokio::test]
async fn an_id_that_is_none_is_refused() {
    let world = World::new().await;
    let bearer = format!("Bearer {}", world.owner);
    let answer = world.call("GET", "/v1/events/stream", &[("authorization", &bearer), ("last-event-id", "17")], b"").await;
    answer.expect_problem(400, "validation_failed", Some("#header/last-event-id"));
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive_by_comments() {
    let gateway = gateway::Settings { heartbeat_interval: Duration::from_millis(50), ..gateway::Settings::default() };
    let world = World::with(Options { gateway, ..Options::default() }).await;
    let mut stream = Stream::open(&world, "/v1/events/stream", &[]).await;
    let mut comments = 0;
    while comments < 3 {
        let sent = parse(&stream.block().await.unwrap());
        assert!(sent.data.is_none() || sent.event.as_deref() == Some("cursor"), "{sent:?}");
        comments += usize::from(sent.comment.is_some());
    }
}

#[tokio::test]
async fn a_stream_says_why_it_ends() {
    let world = World::new().await;
    let mut stream = Stream::open(&world, "/v1/events/stream", &[]).await;
    eventually("the stream is open", || world.gateway.metrics().streams.get() == 1).await;
    assert!(world.gateway.close_all(CloseCode::ShuttingDown, PATIENCE).await);
    let mut last = None;
    while let Some(sent) = stream.next().await {
        last = Some(sent);
    }
    let last = last.unwrap();
    assert_eq!((last.event.as_deref(), last.data.unwrap()), (Some("end"), json!({"code": 4013, "name": "shutting_down"})));
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_stream() {
    let world = World::new().await;
    let stream = Stream::open(&world, "/v1/events/stream", &[]).await;
    eventually("the stream is open", || world.gateway.metrics().streams.get() == 1).await;
    drop(stream);
    eventually("the stream is gone", || world.gateway.metrics().streams.get() == 0).await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_dropped() {
    let http = Settings { write_timeout: Duration::from_millis(200), ..Settings::default() };
    let world = World::with(Options { http, ..Options::default() }).await;
    let stream = Stream::open(&world, "/v1/events/stream?after=0", &[]).await;
    eventually("the stream is open", || world.gateway.metrics().streams.get() == 1).await;
    // More than the system's buffers hold, and nobody reads it.
    let payload = json!({"text": "x".repeat(200_000)}).to_string();
    for _ in 0..100 {
        world.memory.publish(&payload);
    }
    eventually("the stream is dropped", || world.gateway.metrics().streams.get() == 0).await;
    drop(stream);
}
