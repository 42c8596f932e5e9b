//! The log for people and apps, who keep their own cursor.

use doorstep_client::{ConsumerError, EventReader, ReaderOptions, Seq};
use serde_json::{Value, json};

use crate::gateway::{Gateway, ready};
use crate::support::{EPOCH, client_of, http_answer, http_request, quick, within};

fn reader_of(gateway: &Gateway, cursor: Option<u64>) -> EventReader {
    let cursor = cursor.map(|seq| Seq::new(seq).unwrap());
    client_of(gateway.address).reader(ReaderOptions { cursor, sync_epoch: None, consumer: quick() })
}

fn ready_for_reader(head: u64) -> Value {
    let mut frame = ready(0);
    for member in ["consumer", "acked_seq", "max_inflight_events", "ack_timeout_ms"] {
        frame.as_object_mut().unwrap().remove(member);
    }
    frame["head_seq"] = head.into();
    frame
}

async fn next(reader: &mut EventReader) -> u64 {
    within(reader.next()).await.unwrap().unwrap().seq().get()
}

#[tokio::test]
async fn a_reader_names_its_cursor_and_goes_on_from_what_arrived() {
    let gateway = Gateway::bind().await;
    let mut reader = reader_of(&gateway, Some(5));
    let (mut peer, greeting) = gateway.greeted().await;
    assert_eq!(greeting, json!({"op": "identify", "protocol": 1, "cursor": 5}));
    peer.say(ready_for_reader(20)).await;
    peer.dispatch([6, 9]).await;
    peer.say(json!({"op": "cursor", "seq": 12})).await;
    assert_eq!((next(&mut reader).await, next(&mut reader).await), (6, 9));
    assert_eq!(reader.position().unwrap().get(), 9);
    peer.close(4013).await;
    let (mut peer, greeting) = gateway.greeted().await;
    assert_eq!(greeting, json!({"op": "identify", "protocol": 1, "cursor": 12, "sync_epoch": EPOCH}));
    peer.say(ready_for_reader(20)).await;
    // What comes twice is handed out once.
    peer.dispatch([9, 13]).await;
    assert_eq!(next(&mut reader).await, 13);
}

#[tokio::test]
async fn a_reader_without_a_cursor_begins_at_the_head() {
    let gateway = Gateway::bind().await;
    let mut reader = reader_of(&gateway, None);
    let (mut peer, greeting) = gateway.greeted().await;
    assert_eq!(greeting, json!({"op": "identify", "protocol": 1}));
    peer.say(ready_for_reader(20)).await;
    drop(peer);
    let (mut peer, greeting) = gateway.greeted().await;
    assert_eq!(greeting["op"], "resume");
    assert_eq!(greeting["cursor"], 20);
    peer.say(json!({"op": "resumed", "head_seq": 21})).await;
    peer.dispatch([21]).await;
    assert_eq!(next(&mut reader).await, 21);
}

#[tokio::test]
async fn a_reader_acknowledges_nothing() {
    let gateway = Gateway::bind().await;
    let mut reader = reader_of(&gateway, Some(0));
    let (mut peer, _) = gateway.greeted_every(50).await;
    peer.say(ready_for_reader(20)).await;
    peer.dispatch([1]).await;
    within(reader.next()).await.unwrap().unwrap().ack();
    for _ in 0..3 {
        assert_eq!(peer.hear().await["op"], "heartbeat");
        peer.say(json!({"op": "heartbeat_ack"})).await;
    }
}

#[tokio::test]
async fn a_reader_that_is_too_far_behind_reads_pages_and_then_goes_live() {
    let gateway = Gateway::bind().await;
    let mut reader = reader_of(&gateway, Some(1));
    let (mut peer, _) = gateway.greeted().await;
    peer.say(ready_for_reader(9)).await;
    peer.say(json!({"op": "resync_required", "reason": "too_far_behind", "head_seq": 9, "sync_epoch": EPOCH, "floor_seq": 1})).await;
    let mut stream = gateway.tcp().await;
    page(&mut stream, "GET /v1/events?after=1&limit=500&sync_epoch=", &[2, 5], 6).await;
    page(&mut stream, "GET /v1/events?after=6&limit=500&sync_epoch=", &[9], 9).await;
    let (mut peer, greeting) = gateway.greeted().await;
    assert_eq!((&greeting["op"], &greeting["cursor"]), (&json!("identify"), &json!(9)));
    peer.say(ready_for_reader(9)).await;
    peer.dispatch([10]).await;
    for expected in [2, 5, 9, 10] {
        assert_eq!(next(&mut reader).await, expected);
    }
}

#[tokio::test]
async fn missed_events_are_told_to_a_reader() {
    let gateway = Gateway::bind().await;
    let mut reader = reader_of(&gateway, Some(1));
    let (mut peer, _) = gateway.greeted().await;
    peer.say(ready_for_reader(90)).await;
    peer.say(json!({"op": "resync_required", "reason": "retention", "head_seq": 90, "sync_epoch": EPOCH, "floor_seq": 60})).await;
    let told = within(reader.next()).await.unwrap().unwrap_err();
    assert!(matches!(told, ConsumerError::ResyncRequired { head_seq, .. } if head_seq.get() == 90), "{told}");
    assert_eq!(reader.position().unwrap().get(), 90);
    peer.dispatch([91]).await;
    assert_eq!(next(&mut reader).await, 91);
}

/// Answers one page on a connection that stays.
async fn page(stream: &mut tokio::net::TcpStream, line: &str, events: &[u64], next_cursor: u64) {
    let (found, _) = http_request(stream).await;
    assert!(found.starts_with(line), "{found}");
    let events: Vec<_> = events.iter().map(|seq| crate::support::event(*seq)).collect();
    http_answer(stream, &json!({"events": events, "next_cursor": next_cursor, "head_seq": 9, "sync_epoch": EPOCH})).await;
}
