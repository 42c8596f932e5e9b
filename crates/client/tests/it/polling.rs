//! Consumers over REST.

use std::time::Duration;

use doorstep_client::{ConsumerError, ConsumerOptions, Link};
use serde_json::json;

use crate::gateway::with;
use crate::http::{Http, Request, page, state};
use crate::support::{EPOCH, OTHER_EPOCH, client_of, client_with, delivery, error, quick, within};

fn poller(http: &Http) -> doorstep_client::Consumer {
    client_of(http.address).consumer(quick()).poll()
}

/// The next poll; acknowledgements that come before it are answered. How far they went.
async fn poll(http: &mut Http) -> (Request, u64) {
    let mut acked = 0;
    loop {
        let request = http.request().await;
        if request.line.starts_with("GET /v1/agents/me/consumers/work/events?") {
            return (request, acked);
        }
        acked = ack(request).await;
    }
}

async fn ack(request: Request) -> u64 {
    assert_eq!(request.line, "POST /v1/agents/me/consumers/work/ack");
    let seq = request.body["seq"].as_u64().unwrap();
    request.answer(state(seq)).await;
    seq
}

#[tokio::test]
async fn the_first_poll_waits_and_names_no_position() {
    let mut http = Http::bind().await;
    let _consumer = poller(&http);
    let request = http.request().await;
    assert_eq!(request.line, "GET /v1/agents/me/consumers/work/events?limit=200&wait_seconds=30");
}

#[tokio::test]
async fn a_page_is_handed_out_acknowledged_and_proven_by_the_next_poll() {
    let mut http = Http::bind().await;
    let mut consumer = poller(&http);
    poll(&mut http).await.0.answer(page(&[1, 2, 4], 6)).await;
    for expected in [1, 2, 4] {
        let delivery = delivery(&mut consumer).await;
        assert_eq!(delivery.seq().get(), expected);
        delivery.ack();
    }
    let (next, acked) = poll(&mut http).await;
    assert_eq!(next.query("after").as_deref(), Some("6"));
    // 5 and 6 were not for this consumer.
    assert_eq!(acked, 6);
}

#[tokio::test]
async fn acknowledgements_are_joined_and_carry_the_epoch() {
    let mut http = Http::bind().await;
    let mut consumer = poller(&http);
    let all: Vec<_> = (1..=100).collect();
    poll(&mut http).await.0.answer(page(&all, 100)).await;
    for _ in 0..100 {
        delivery(&mut consumer).await.ack();
    }
    let (mut count, mut acked) = (0, 0);
    while acked < 100 {
        let request = http.request().await;
        assert_eq!(request.body["sync_epoch"], EPOCH);
        acked = ack(request).await;
        count += 1;
    }
    assert!(count < 20, "{count} calls for 100 acknowledgements");
}

#[tokio::test]
async fn the_cursor_of_an_unproven_answer_is_never_passed_as_after() {
    let mut http = Http::bind().await;
    let mut consumer = poller(&http);
    // A page that this process never saw is on its way.
    poll(&mut http).await.0.answer(with(page(&[], 3), "unproven", true)).await;
    let (next, _) = poll(&mut http).await;
    assert_eq!(next.query("after"), None);
    next.answer(page(&[4], 4)).await;
    let held = delivery(&mut consumer).await;
    let (next, _) = poll(&mut http).await;
    assert_eq!(next.query("after").as_deref(), Some("4"));
    next.answer(with(page(&[], 3), "unproven", true)).await;
    let (next, _) = poll(&mut http).await;
    assert_eq!(next.query("after").as_deref(), Some("4"));
    drop(held);
}

#[tokio::test]
async fn a_poll_whose_answer_was_lost_is_repeated_with_the_same_position() {
    let mut http = Http::bind().await;
    let mut consumer = poller(&http);
    poll(&mut http).await.0.answer(page(&[1], 1)).await;
    delivery(&mut consumer).await.ack();
    let (lost, _) = poll(&mut http).await;
    assert_eq!(lost.query("after").as_deref(), Some("1"));
    lost.write_and_hang_up("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"events\":[").await;
    let (again, _) = poll(&mut http).await;
    assert_eq!(again.query("after").as_deref(), Some("1"));
}

#[tokio::test]
async fn nothing_is_asked_for_while_something_waits_for_the_application() {
    let mut http = Http::bind().await;
    let mut consumer = poller(&http);
    poll(&mut http).await.0.answer(page(&[1, 2], 2)).await;
    let first = delivery(&mut consumer).await;
    first.ack();
    // 2 waits: the next call is the acknowledgement of 1, and no poll.
    assert_eq!(ack(http.request().await).await, 1);
    drop(delivery(&mut consumer).await);
    // The application has everything and has not acknowledged it: more is asked for, and not waited for long.
    let request = http.request().await;
    assert_eq!(request.query("wait_seconds").as_deref(), Some("1"));
}

#[tokio::test]
async fn what_is_in_hand_is_not_handed_out_twice() {
    let mut http = Http::bind().await;
    let mut consumer = poller(&http);
    poll(&mut http).await.0.answer(page(&[1], 1)).await;
    let held = delivery(&mut consumer).await;
    poll(&mut http).await.0.answer(page(&[1, 2], 2)).await;
    assert_eq!(delivery(&mut consumer).await.seq().get(), 2);
    drop(held);
}

#[tokio::test]
async fn missed_events_are_told_and_the_next_poll_begins_anew() {
    let mut http = Http::bind().await;
    let mut consumer = poller(&http);
    poll(&mut http).await.0.answer(page(&[], 3)).await;
    let gone = json!({"code": "resync_required", "reason": "retention", "head_seq": 90, "floor_seq": 60, "sync_epoch": EPOCH});
    poll(&mut http).await.0.problem(410, gone).await;
    let told = error(&mut consumer).await;
    assert!(matches!(told, ConsumerError::ResyncRequired { head_seq, .. } if head_seq.get() == 90), "{told}");
    let (next, _) = poll(&mut http).await;
    assert_eq!(next.query("after"), None);
}

#[tokio::test]
async fn an_acknowledgement_of_another_epoch_is_not_made() {
    let mut http = Http::bind().await;
    let mut consumer = poller(&http);
    poll(&mut http).await.0.answer(page(&[500], 500)).await;
    let before = delivery(&mut consumer).await;
    poll(&mut http).await.0.answer(with(page(&[41], 41), "sync_epoch", OTHER_EPOCH)).await;
    assert!(matches!(error(&mut consumer).await, ConsumerError::ResyncRequired { .. }));
    before.ack();
    delivery(&mut consumer).await.ack();
    let mut http = http;
    loop {
        let request = http.request().await;
        if request.line.starts_with("POST") {
            assert_eq!(request.body, json!({"seq": 41, "sync_epoch": OTHER_EPOCH}));
            return;
        }
        request.answer(with(page(&[], 41), "sync_epoch", OTHER_EPOCH)).await;
    }
}

#[tokio::test]
async fn a_refusal_for_good_ends_the_stream_and_one_that_passes_does_not() {
    let mut http = Http::bind().await;
    let mut consumer = poller(&http);
    poll(&mut http).await.0.problem(503, json!({"code": "unavailable"})).await;
    drop(poll(&mut http).await.0);
    let mut link = consumer.link();
    within(link.wait_for(|link| matches!(link, Link::Waiting { .. }))).await.unwrap();
    poll(&mut http).await.0.answer(page(&[1], 1)).await;
    assert_eq!(delivery(&mut consumer).await.seq().get(), 1);
    poll(&mut http).await.0.problem(401, json!({"code": "unauthenticated"})).await;
    assert!(error(&mut consumer).await.is_terminal());
    assert!(within(consumer.next()).await.is_none());
}

#[tokio::test]
async fn a_server_that_asks_to_come_back_later_is_left_alone_so_long() {
    let mut http = Http::bind().await;
    let _consumer = poller(&http);
    let (request, _) = poll(&mut http).await;
    let problem = json!({"type": "x", "title": "x", "status": 429, "code": "rate_limited", "detail": "x", "request_id": "r"});
    let before = tokio::time::Instant::now();
    request.respond(429, "application/problem+json", &[("retry-after", "1")], &problem.to_string()).await;
    poll(&mut http).await;
    assert!(before.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn closing_brings_the_acknowledgements_also_over_a_failure() {
    let mut http = Http::bind().await;
    let mut consumer = poller(&http);
    poll(&mut http).await.0.answer(page(&[1], 1)).await;
    let held = delivery(&mut consumer).await;
    let (_open, _) = poll(&mut http).await;
    held.ack();
    let answering = async {
        http.expect("/ack").await.problem(503, json!({"code": "overloaded"})).await;
        assert_eq!(ack(http.expect("/ack").await).await, 1);
    };
    let (closed, ()) = within(async { tokio::join!(consumer.close(), answering) }).await;
    closed.unwrap();
}

#[tokio::test]
async fn flush_returns_when_the_server_has_answered_the_acknowledgement() {
    let mut http = Http::bind().await;
    let options = ConsumerOptions { ack_interval: Duration::from_millis(1), ..quick() };
    let mut consumer = client_of(http.address).consumer(options).poll();
    poll(&mut http).await.0.answer(page(&[1], 1)).await;
    delivery(&mut consumer).await.ack();
    let answering = async { ack(http.expect("/ack").await).await };
    let (flushed, acked) = within(async { tokio::join!(consumer.flush(), answering) }).await;
    flushed.unwrap();
    assert_eq!(acked, 1);
}

#[tokio::test]
async fn a_long_poll_may_take_its_wait_on_top_of_a_calls_time() {
    let mut http = Http::bind().await;
    let client = client_with(http.address, |options| options.request_timeout = Duration::from_millis(200));
    let options = ConsumerOptions { poll_wait: Duration::from_secs(2), ..quick() };
    let mut consumer = client.consumer(options).poll();
    let (request, _) = poll(&mut http).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    request.answer(page(&[1], 1)).await;
    assert_eq!(delivery(&mut consumer).await.seq().get(), 1);
}
