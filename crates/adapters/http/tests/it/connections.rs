//! The bounds of connections.

use std::time::Duration;

use doorstep_http::Settings;
use tokio::time::{Instant, timeout};

use crate::support::{Options, PATIENCE, World, eventually};

fn short() -> Settings {
    Settings { header_read_timeout: Duration::from_millis(200), keep_alive_timeout: Duration::from_secs(2), ..Settings::default() }
}

async fn world(http: Settings) -> World {
    World::with(Options { http, ..Options::default() }).await
}

#[tokio::test]
async fn a_head_that_drips_in_is_cut_off() {
    let world = world(short()).await;
    let mut wire = world.wire().await;
    let began = Instant::now();
    wire.send(b"GET /healthz HTTP/1.1\r\n").await;
    let dripping = async {
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if tokio::io::AsyncWriteExt::write_all(wire.stream.get_mut(), b"x: y\r\n").await.is_err() {
                return;
            }
        }
        panic!("the server took it all");
    };
    dripping.await;
    assert!(began.elapsed() < Duration::from_millis(1_900), "{:?}: the head's own timeout", began.elapsed());
}

#[tokio::test]
async fn a_connection_that_sends_nothing_is_cut_off() {
    let world = world(short()).await;
    assert!(world.wire().await.is_closed_within(Duration::from_millis(1_900)).await);
}

#[tokio::test]
async fn between_requests_the_keep_alive_timeout_holds() {
    let world = world(short()).await;
    let mut wire = world.wire().await;
    for _ in 0..3 {
        wire.request("GET", "/healthz", &[], b"").await;
        wire.answer().await.expect(200);
        // Longer than a head may take, shorter than a connection may idle.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(wire.is_closed_within(PATIENCE).await);
}

#[tokio::test]
async fn a_long_poll_is_longer_than_any_of_them() {
    let http = Settings { keep_alive_timeout: Duration::from_millis(200), ..short() };
    let world = world(http).await;
    let mut wire = world.wire().await;
    let bearer = format!("Bearer {}", world.agent);
    wire.request("GET", "/v1/agents/me/consumers/default/events?wait_seconds=1", &[("authorization", &bearer)], b"").await;
    wire.answer().await.expect(200);
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_and_a_free_place_is_used_again() {
    let world = world(Settings { max_connections: 2, ..Settings::default() }).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut wire = world.wire().await;
        wire.request("GET", "/healthz", &[], b"").await;
        wire.answer().await.expect(200);
        open.push(wire);
    }
    let mut refused = world.wire().await;
    let answer = refused.answer().await;
    assert_eq!(answer.expect(503)["code"], "overloaded");
    assert_eq!((answer.header("retry-after"), answer.header("content-type")), (Some("1"), Some("application/problem+json")));
    assert!(refused.is_closed_within(PATIENCE).await);
    drop(open);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut wire = world.wire().await;
        wire.request("GET", "/healthz", &[], b"").await;
        if wire.try_answer().await.is_some_and(|answer| answer.status == 200) {
            break;
        }
        assert!(Instant::now() < deadline, "the places stay taken");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_head_above_its_limit_is_refused() {
    let world = world(Settings { max_header_bytes: 8 * 1024, ..Settings::default() }).await;
    let answer = world.call("GET", "/healthz", &[("x-large", &"x".repeat(20_000))], b"").await;
    assert_eq!(answer.status, 431);
    world.call("GET", "/healthz", &[("x-large", &"x".repeat(4_000))], b"").await.expect(200);
}

#[tokio::test]
async fn nonsense_costs_the_connection_and_nothing_else() {
    let world = world(Settings::default()).await;
    for nonsense in [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n\r\n\x00", b"GET /\x01 HTTP/1.1\r\n\r\n"] {
        let mut wire = world.wire().await;
        wire.send(nonsense).await;
        let answer = wire.try_answer().await;
        assert!(answer.is_none_or(|answer| (400..500).contains(&answer.status)), "{nonsense:?}");
    }
    world.call("GET", "/healthz", &[], b"").await.expect(200);
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_dropped() {
    let http = Settings { write_timeout: Duration::from_millis(200), max_page_size: 10_000, ..Settings::default() };
    let world = world(http).await;
    let payload = format!(r#"{{"text":"{}"}}"#, "x".repeat(100_000));
    for _ in 0..200 {
        world.memory.publish(&payload);
    }
    let mut wire = world.wire().await;
    let bearer = format!("Bearer {}", world.owner);
    for _ in 0..50 {
        wire.request("GET", "/v1/events?after=0&limit=1000", &[("authorization", &bearer)], b"").await;
    }
    let connections = async || {
        let text = String::from_utf8(world.call("GET", "/metrics", &[], b"").await.body).unwrap();
        text.lines().find_map(|line| line.strip_prefix("doorstep_http_connections ").map(str::to_owned)).unwrap()
    };
    let deadline = Instant::now() + PATIENCE;
    while connections().await != "1.0" {
        assert!(Instant::now() < deadline, "the connection stays");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_shutdown_finishes_what_was_asked_and_closes_the_rest() {
    let world = world(Settings::default()).await;
    let mut idle = world.wire().await;
    idle.request("GET", "/healthz", &[], b"").await;
    idle.answer().await.expect(200);
    let mut busy = world.wire().await;
    let bearer = format!("Bearer {}", world.agent);
    busy.request("GET", "/v1/agents/me/consumers/default/events", &[("authorization", &bearer)], b"").await;
    busy.answer().await.expect(200);
    busy.request("GET", "/v1/agents/me/consumers/default/events?wait_seconds=20", &[("authorization", &bearer)], b"").await;
    eventually("the poll waits", || world.gateway.metrics().waiting_polls.get() == 1).await;
    world.shutdown.cancel();
    assert!(idle.is_closed_within(PATIENCE).await);
    world.memory.publish("{}");
    let page = busy.answer().await.expect(200);
    assert_eq!(page["events"].as_array().unwrap().len(), 1);
    assert!(busy.is_closed_within(PATIENCE).await);
    world.tasks.close();
    timeout(PATIENCE, world.tasks.wait()).await.expect("no task is left");
    assert!(tokio::net::TcpStream::connect(world.address).await.is_err(), "nothing accepts any more");
}

#[tokio::test]
async fn a_request_with_two_lengths_is_the_last_of_its_connection() {
    let world = World::with(Options::default()).await;
    let bearer = format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", world.agent);
    let (length, chunked) = ("content-length: 2\r\n", "transfer-encoding: chunked\r\n");
    let smuggled = "GET /healthz HTTP/1.1\r\nhost: doorstep\r\n\r\n";
    // The chunks count, and what another reader of the same bytes takes for the next request is not read (RFC 9112, section 6.1).
    for lengths in [format!("{length}{chunked}"), format!("{chunked}{length}"), format!("{length}{chunked}{length}")] {
        let mut wire = world.wire().await;
        let head = format!("POST /v1/inbox/claim-next HTTP/1.1\r\nhost: doorstep\r\n{bearer}{lengths}\r\n");
        wire.send(format!("{head}2\r\n{{}}\r\n0\r\n\r\n{smuggled}").as_bytes()).await;
        assert_eq!(wire.answer().await.expect(200)["empty"], true, "{lengths}");
        assert!(wire.is_closed_within(PATIENCE).await, "nothing behind it is a request: {lengths}");
    }
    let mut wire = world.wire().await;
    let head = format!("POST /v1/inbox/claim-next HTTP/1.1\r\nhost: doorstep\r\n{bearer}{chunked}\r\n");
    wire.send(format!("{head}2\r\n{{}}\r\n0\r\n\r\n{smuggled}").as_bytes()).await;
    wire.answer().await.expect(200);
    wire.answer().await.expect(200);
    for lengths in ["content-length: 2\r\ncontent-length: 3\r\n", "transfer-encoding: chunked, gzip\r\n"] {
        let mut wire = world.wire().await;
        wire.send(format!("POST /v1/inbox/claim-next HTTP/1.1\r\nhost: doorstep\r\n{bearer}{lengths}\r\n{{}}{smuggled}").as_bytes()).await;
        assert!(wire.try_answer().await.is_none_or(|answer| answer.status == 400), "{lengths}");
        assert!(wire.is_closed_within(PATIENCE).await, "{lengths}");
    }
}
