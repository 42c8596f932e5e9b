//! `streamSignals` from the outside.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Options, Wire, World, eventually};

struct Signals {
    wire: Wire,
    text: String,
}

impl Signals {
    async fn open(world: &World, headers: &[(&str, &str)]) -> Self {
        let body = json!({"supported_transports": ["sse"]}).to_string();
        let url = world.post(&world.agent, "/v1/agent-sessions/subscribe", &body).await.expect(201)["sse_url"].as_str().unwrap().to_owned();
        Self::follow(world, &world.agent, &url, headers).await
    }

    async fn follow(world: &World, token: &str, url: &str, headers: &[(&str, &str)]) -> Self {
        let mut wire = world.wire().await;
        let bearer = format!("Bearer {token}");
        let headers: Vec<_> = headers.iter().copied().chain([("authorization", bearer.as_str())]).collect();
        wire.request("GET", url, &headers, b"").await;
        let (status, headers) = wire.head().await.unwrap();
        let header = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        assert_eq!((status, header("content-type"), header("cache-control")), (200, Some("text/event-stream"), Some("no-store")));
        Self { wire, text: String::new() }
    }

    async fn block(&mut self) -> Option<String> {
        while !self.text.contains("\n\n") {
            self.text.push_str(std::str::from_utf8(&self.wire.chunk().await?).unwrap());
        }
        let (block, rest) = self.text.split_once("\n\n").map(|(block, rest)| (block.to_owned(), rest.to_owned()))?;
        self.text = rest;
        Some(block)
    }

    /// The next signal with its id; `None` when the stream is over.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            let block = self.block().await?;
            let lines: Vec<_> = block.lines().collect();
            if let [id, "event: inbox.updated", data] = lines.as_slice() {
                let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                return Some((id.strip_prefix("id: ").unwrap().to_owned(), data));
            }
            assert!(block == "retry: 3000" || block == ": heartbeat" || block.starts_with("event: end"), "{block}");
        }
    }
}

#[tokio::test]
async fn a_publish_rings_a_stream_with_the_head_as_its_id() {
    let world = World::new().await;
    let mut signals = Signals::open(&world, &[]).await;
    eventually("the stream is open", || world.inbox.metrics().streams.get() == 1).await;
    world.inboxes.publish("inbox", "{}").await;
    let (id, signal) = signals.next().await.unwrap();
    assert_eq!(
        (&signal["signal_type"], &signal["tenant_id"], &signal["recipient_id"]),
        (&json!("inbox.updated"), &json!("default"), &json!("alpha"))
    );
    assert_eq!((&signal["head_seq"], &signal["approximate_unacked"]), (&json!(1), &json!(1)));
    assert_eq!(id, format!("{}:1", signal["sync_epoch"].as_str().unwrap()));
    assert!(signal["sent_at_utc"].is_string() && signal["delivery_id"].is_string() && signal.get("resync").is_none(), "{signal}");
    world.inboxes.publish("inbox", "{}").await;
    assert_eq!(signals.next().await.unwrap().1["head_seq"], json!(2));
    drop(signals);
    eventually("the stream is gone", || world.inbox.metrics().streams.get() == 0).await;
}

#[tokio::test]
async fn who_comes_back_is_rung_at_once_if_the_inbox_has_moved_since() {
    let world = World::new().await;
    world.inboxes.publish("inbox", "{}").await;
    let mut signals = Signals::open(&world, &[]).await;
    let (id, first) = signals.next().await.unwrap();
    assert_eq!(first["head_seq"], json!(1), "what waits already rings");
    drop(signals);
    world.inboxes.publish("inbox", "{}").await;
    let mut resumed = Signals::open(&world, &[("last-event-id", &id)]).await;
    assert_eq!(resumed.next().await.unwrap().1["head_seq"], json!(2));
    let foreign = "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10:9007199254740991";
    let mut foreign = Signals::open(&world, &[("last-event-id", foreign)]).await;
    assert_eq!(foreign.next().await.unwrap().1["head_seq"], json!(2), "a head of another history counts as none");
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive_by_comments_and_loses_no_signal() {
    let inbox = inbox::Settings { sse_heartbeat: Duration::from_millis(30), ..inbox::Settings::default() };
    let world = World::with(Options { inbox, ..Options::default() }).await;
    let mut signals = Signals::open(&world, &[]).await;
    let mut comments = 0;
    while comments < 4 {
        comments += usize::from(signals.block().await.unwrap() == ": heartbeat");
    }
    world.inboxes.publish("inbox", "{}").await;
    assert_eq!(signals.next().await.unwrap().1["head_seq"], json!(1));
}

#[tokio::test]
async fn a_stream_ends_with_its_callers_standing_and_with_the_process() {
    let world = World::new().await;
    let mut signals = Signals::open(&world, &[]).await;
    world.inbox.drain();
    assert_eq!(signals.next().await, None);

    let world = World::new().await;
    let url = world.post(&world.agent, "/v1/agent-sessions/subscribe", "{}").await.expect(201)["sse_url"].as_str().unwrap().to_owned();
    let brief = world.memory.principal_until("alpha", domain::Clock::now(&domain::SystemClock::new()).plus(Duration::from_millis(400)));
    let mut signals = Signals::follow(&world, &brief, &url, &[]).await;
    assert_eq!(signals.next().await, None, "a token that expires ends what was opened with it");
}

#[tokio::test]
async fn a_stream_belongs_to_a_session_of_its_agent() {
    let world = World::new().await;
    for (token, target, status, code, pointer) in [
        (&world.agent, "/v1/streams/sse", 400, "validation_failed", Some("#query/session_id")),
        (&world.agent, "/v1/streams/sse?session_id=x", 400, "validation_failed", Some("#query/session_id")),
        (&world.agent, "/v1/streams/sse?session_id=sess_nobody", 404, "not_found", None),
        (&world.owner, "/v1/streams/sse?session_id=sess_nobody", 403, "forbidden", None),
    ] {
        world.get(token, target).await.expect_problem(status, code, pointer);
    }
    let bearer = format!("Bearer {}", world.agent);
    let answer = world.call("GET", "/v1/streams/sse?session_id=sess_a", &[("authorization", &bearer), ("last-event-id", "17")], b"").await;
    answer.expect_problem(400, "validation_failed", Some("#header/last-event-id"));
}
