//! Events that come twice.

use serde_json::json;

use crate::gateway::{Gateway, Peer, dispatch, ready, with};
use crate::support::{client_of, delivery, event, quick};

async fn again(gateway: &Gateway, acked: u64) -> Peer {
    let (mut peer, greeting) = gateway.greeted().await;
    assert_eq!(greeting["op"], "resume");
    peer.say(json!({"op": "resumed", "head_seq": 1_000, "acked_seq": acked})).await;
    peer
}

#[tokio::test]
async fn what_is_in_hand_is_not_handed_out_twice_over_a_reconnect() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1, 2]).await;
    let first = delivery(&mut consumer).await;
    drop(peer);
    let mut peer = again(&gateway, 0).await;
    peer.dispatch([1, 2, 3]).await;
    // 2 waited in the queue all the time; neither it nor 1 comes again.
    let second = delivery(&mut consumer).await;
    let third = delivery(&mut consumer).await;
    assert_eq!([first.seq().get(), second.seq().get(), third.seq().get()], [1, 2, 3]);
    third.ack();
    assert_eq!(peer.ack().await, 3);
}

#[tokio::test]
async fn what_is_in_hand_is_not_handed_out_twice_when_the_server_redelivers() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1]).await;
    let held = delivery(&mut consumer).await;
    peer.say(dispatch(with(event(1), "redelivered", true))).await;
    peer.dispatch([2]).await;
    assert_eq!(delivery(&mut consumer).await.seq().get(), 2);
    held.ack();
    assert_eq!(peer.ack().await, 1);
}

#[tokio::test]
async fn what_was_acknowledged_and_comes_again_is_acknowledged_again_without_being_handed_out() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1]).await;
    delivery(&mut consumer).await.ack();
    assert_eq!(peer.ack().await, 1);
    // The server crashed before it stored the acknowledgement.
    drop(peer);
    let mut peer = again(&gateway, 0).await;
    assert_eq!(peer.ack().await, 1);
    peer.dispatch([1, 2]).await;
    assert_eq!(delivery(&mut consumer).await.seq().get(), 2);
}

#[tokio::test]
async fn what_was_let_go_without_an_acknowledgement_is_handed_out_again() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1]).await;
    drop(delivery(&mut consumer).await);
    peer.say(dispatch(with(event(1), "redelivered", true))).await;
    let again = delivery(&mut consumer).await;
    assert_eq!(again.seq().get(), 1);
    assert!(again.redelivered());
}

#[tokio::test]
async fn an_event_of_another_history_is_recognised_by_its_id() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    peer.dispatch([1, 2]).await;
    for _ in 0..2 {
        delivery(&mut consumer).await.ack();
    }
    peer.acks_until(2).await;
    peer.close(4013).await;
    let (mut peer, _) = gateway.greeted().await;
    peer.say(with(ready(1), "sync_epoch", crate::support::OTHER_EPOCH)).await;
    crate::support::error(&mut consumer).await;
    peer.dispatch([2]).await;
    peer.say(dispatch(with(event(3), "id", crate::support::id(33)))).await;
    assert_eq!(delivery(&mut consumer).await.seq().get(), 3);
    assert_eq!(peer.ack().await, 2);
}

#[tokio::test]
async fn the_raw_text_is_what_came() {
    let gateway = Gateway::bind().await;
    let mut consumer = client_of(gateway.address).consumer(quick()).connect();
    let mut peer = gateway.session(0).await;
    let text = event(1).to_string().replace("\"n\":1", "\"n\": 1.50e0, \"unknown\" :[ ]");
    peer.text(format!(r#"{{"op":"dispatch","event":{text}}}"#)).await;
    let delivery = delivery(&mut consumer).await;
    assert_eq!(delivery.raw.get(), text);
    assert_eq!(delivery.event.payload.as_ref().unwrap().get(), r#"{"n": 1.50e0, "unknown" :[ ]}"#);
}
