//! What a consumer acknowledges, when, and how often.

use std::time::Duration;

use doorstep_client::{ConsumerError, ConsumerOptions, Link, Seq};
use serde_json::json;

use crate::gateway::{Gateway, ready, with};
use crate::support::{OTHER_EPOCH, client_of, delivery, error, quick, within};

fn seq(number: u64) -> Seq {
    Seq::new(number).unwrap()
}

#[tokio::test]
async fn a_single_acknowledgement_reaches_the_server_in_bounded_time() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1]).await;
    delivery(&mut consumer).await.ack();
    assert_eq!(peer.ack().await, 1);
}

#[tokio::test]
async fn acknowledgements_are_joined_while_many_are_made() {
    let gateway = Gateway::bind().await;
    let options = ConsumerOptions { ack_interval: Duration::from_millis(200), ..quick() };
    let mut consumer = client_of(gateway.address).consumer(options).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch(1..=400).await;
    for _ in 0..400 {
        delivery(&mut consumer).await.ack();
    }
    let frames = peer.acks_until(400).await;
    assert!(frames < 40, "{frames} frames for 400 acknowledgements");
}

#[tokio::test]
async fn half_a_window_is_acknowledged_without_waiting_for_more() {
    let gateway = Gateway::bind().await;
    let options = ConsumerOptions { ack_interval: Duration::from_hours(1), ..quick() };
    let mut consumer = client_of(gateway.address).consumer(options).connect();
    let (mut peer, _) = gateway.greeted().await;
    peer.say(with(ready(0), "max_inflight_events", 4)).await;
    peer.dispatch([1]).await;
    delivery(&mut consumer).await.ack();
    assert_eq!(peer.ack().await, 1);
    peer.dispatch([2, 3]).await;
    for _ in 0..2 {
        delivery(&mut consumer).await.ack();
    }
    assert_eq!(peer.ack().await, 3);
}

#[tokio::test]
async fn a_cursor_is_acknowledged_once_nothing_before_it_is_in_hand() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(10).await;
    peer.dispatch([15]).await;
    peer.say(json!({"op": "cursor", "seq": 40})).await;
    let held = delivery(&mut consumer).await;
    // What lies before the delivery was not for this consumer.
    assert_eq!(peer.ack().await, 14);
    held.ack();
    assert_eq!(peer.ack().await, 40);
}

#[tokio::test]
async fn acknowledging_by_position_is_cumulative_and_refuses_what_was_not_handed_out() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1, 2, 3]).await;
    let held = [delivery(&mut consumer).await, delivery(&mut consumer).await];
    assert!(consumer.ack(seq(3)).is_err(), "3 waits or has not arrived");
    consumer.ack(seq(2)).unwrap();
    assert_eq!(peer.ack().await, 2);
    held[1].ack();
    let third = delivery(&mut consumer).await;
    assert!(consumer.ack(seq(4)).is_err());
    third.ack();
    assert_eq!(peer.ack().await, 3);
}

#[tokio::test]
async fn flush_returns_when_the_server_has_read_the_acknowledgement() {
    let gateway = Gateway::bind().await;
    let options = ConsumerOptions { ack_interval: Duration::from_hours(1), ..quick() };
    let mut consumer = client_of(gateway.address).consumer(options).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1, 2]).await;
    delivery(&mut consumer).await.ack();
    assert_eq!(peer.ack().await, 1);
    delivery(&mut consumer).await.ack();
    let flushing = async {
        consumer.flush().await.unwrap();
        consumer
    };
    let answering = async {
        assert_eq!(peer.hear().await, json!({"op": "ack", "seq": 2}));
        assert_eq!(peer.hear().await, json!({"op": "heartbeat"}));
        peer.say(json!({"op": "heartbeat_ack"})).await;
    };
    within(async { tokio::join!(flushing, answering) }).await;
}

#[tokio::test]
async fn a_flush_is_settled_by_the_servers_account_after_a_reconnect() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1]).await;
    delivery(&mut consumer).await.ack();
    assert_eq!(peer.ack().await, 1);
    drop(peer);
    let answering = async {
        let (mut peer, _) = gateway.greeted().await;
        peer.say(json!({"op": "resumed", "head_seq": 9, "acked_seq": 1})).await;
        peer
    };
    let (flushed, _peer) = within(async { tokio::join!(consumer.flush(), answering) }).await;
    flushed.unwrap();
}

#[tokio::test]
async fn closing_brings_the_acknowledgements_first() {
    let gateway = Gateway::bind().await;
    let options = ConsumerOptions { ack_interval: Duration::from_hours(1), ..quick() };
    let mut consumer = client_of(gateway.address).consumer(options).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1, 2]).await;
    delivery(&mut consumer).await.ack();
    assert_eq!(peer.ack().await, 1);
    delivery(&mut consumer).await.ack();
    let answering = async {
        assert_eq!(peer.ack().await, 2);
        while let Some(frame) = peer.hear_or_end().await {
            assert_eq!(frame["op"], "heartbeat");
            peer.say(json!({"op": "heartbeat_ack"})).await;
        }
    };
    let (closed, ()) = within(async { tokio::join!(consumer.close(), answering) }).await;
    closed.unwrap();
}

#[tokio::test]
async fn closing_without_a_connection_brings_the_acknowledgements_over_rest_and_takes_nothing_over() {
    let gateway = Gateway::bind().await;
    let backoff = doorstep_client::BackoffOptions { base: Duration::from_hours(1), ..quick().backoff };
    let mut consumer = client_of(gateway.address).consumer(ConsumerOptions { backoff, ..quick() }).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1]).await;
    let held = delivery(&mut consumer).await;
    drop(peer);
    within(consumer.link().wait_for(|link| matches!(link, Link::Waiting { .. }))).await.unwrap();
    held.ack();
    let answering = async {
        let mut stream = gateway.tcp().await;
        let (line, body) = crate::support::http_request(&mut stream).await;
        assert_eq!(line, "POST /v1/agents/me/consumers/work/ack HTTP/1.1");
        assert_eq!(body, json!({"seq": 1, "sync_epoch": crate::support::EPOCH}));
        crate::support::http_answer(&mut stream, &crate::http::state(1)).await;
    };
    let (closed, ()) = within(async { tokio::join!(consumer.close(), answering) }).await;
    closed.unwrap();
    assert!(gateway.is_quiet());
}

#[tokio::test]
async fn closing_says_when_acknowledgements_could_not_be_brought() {
    let gateway = Gateway::bind().await;
    let options = ConsumerOptions { close_timeout: Duration::from_millis(50), ..quick() };
    let mut consumer = client_of(gateway.address).consumer(options).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1]).await;
    delivery(&mut consumer).await.ack();
    // The peer answers nothing.
    let closed = within(consumer.close()).await;
    assert!(matches!(closed, Err(ConsumerError::Unconfirmed { confirmed: Seq::ZERO })), "{closed:?}");
}

#[tokio::test]
async fn an_acknowledgement_that_came_too_fast_is_sent_again() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1]).await;
    delivery(&mut consumer).await.ack();
    assert_eq!(peer.ack().await, 1);
    peer.say(json!({"op": "error", "refused_op": "ack", "code": "rate_limited", "detail": "too many frames"})).await;
    assert_eq!(peer.ack().await, 1);
}

#[tokio::test]
async fn a_refused_op_is_told_and_the_stream_goes_on() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.say(json!({"op": "error", "refused_op": "ack", "code": "forbidden", "detail": "agents only"})).await;
    let refused = error(&mut consumer).await;
    assert_eq!(refused.code(), Some(protocol::ProblemCode::Forbidden));
    assert!(!refused.is_terminal());
    peer.dispatch([1]).await;
    assert_eq!(delivery(&mut consumer).await.seq().get(), 1);
}

#[tokio::test]
async fn a_resync_is_told_and_earlier_deliveries_are_not_acknowledged_after_it() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1]).await;
    let before = delivery(&mut consumer).await;
    peer.say(json!({"op": "resync_required", "reason": "retention", "head_seq": 70, "sync_epoch": crate::support::EPOCH, "floor_seq": 50}))
        .await;
    let told = error(&mut consumer).await;
    let ConsumerError::ResyncRequired { reason: Some(reason), head_seq, floor_seq: Some(floor) } = told else { panic!("{told}") };
    assert_eq!((reason.as_str(), head_seq.get(), floor.get()), ("retention", 70, 50));
    before.ack();
    peer.dispatch([71]).await;
    delivery(&mut consumer).await.ack();
    assert_eq!(peer.ack().await, 71);
}

#[tokio::test]
async fn another_epoch_is_told_once_and_positions_of_the_old_one_are_not_acknowledged() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(100).await;
    peer.dispatch([101, 102]).await;
    let before = delivery(&mut consumer).await;
    peer.close(4013).await;
    let (mut peer, _) = gateway.greeted().await;
    peer.say(with(ready(40), "sync_epoch", OTHER_EPOCH)).await;
    peer.say(json!({"op": "resync_required", "reason": "epoch_changed", "head_seq": 40, "sync_epoch": OTHER_EPOCH, "floor_seq": 1})).await;
    let connected = |link: &Link| matches!(link, Link::Connected(connected) if connected.acked_seq.get() == 40);
    within(consumer.link().wait_for(connected)).await.unwrap();
    // 102 waited and belongs to a history that is gone.
    let told = error(&mut consumer).await;
    assert!(matches!(told, ConsumerError::ResyncRequired { head_seq, .. } if head_seq.get() == 40), "{told}");
    before.ack();
    peer.dispatch([41]).await;
    delivery(&mut consumer).await.ack();
    assert_eq!(peer.ack().await, 41);
}
