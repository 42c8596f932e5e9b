//! People and apps: they hold their cursor themselves, over the gateway, in pages and in streams.

use std::time::Duration;

use authz::{Denied, DeniedReason, PrincipalKind};
use domain::PrincipalId;
use doorstep_gateway::{EventStream, PageRequest, ReadError, Settings, StreamItem, StreamStart};
use protocol::{CloseCode, ResyncReason};
use serde_json::{Value, json};

use crate::support::{HIDDEN, World, WorldSettings, person, seq};

const SECOND: Duration = Duration::from_secs(1);

fn numbers(dispatches: &[(u64, bool)]) -> Vec<u64> {
    dispatches.iter().map(|(number, _)| *number).collect()
}

#[tokio::test(start_paused = true)]
async fn a_person_without_a_cursor_starts_at_the_head_and_has_no_row() {
    let world = World::new();
    world.publish();
    let (mut peer, ready) = world.identify(&world.person_token, json!({"consumer": "ignored"})).await;
    assert_eq!(ready["head_seq"], 1);
    assert!(["consumer", "acked_seq", "max_inflight_events", "ack_timeout_ms"].iter().all(|member| ready.get(member).is_none()), "{ready}");
    peer.expect("catchup.complete").await;
    world.publish();
    assert_eq!(numbers(&peer.dispatches(1).await), [2]);
    assert!(world.memory.state().rows.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_app_is_served_like_a_person() {
    let world = World::new();
    let token = world.principal(&PrincipalId::parse("app").unwrap(), PrincipalKind::App);
    world.publish_many(2);
    let (mut peer, ready) = world.identify(&token, json!({"cursor": 0, "consumer": "x"})).await;
    assert_eq!(ready["principal"]["kind"], "app");
    assert_eq!(numbers(&peer.dispatches(2).await), [1, 2]);
    assert!(world.memory.state().rows.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_person_catches_up_from_its_cursor_and_goes_on_live_without_any_window() {
    let world = World::new();
    world.publish_many(600);
    world.publish_to(HIDDEN);
    let (mut peer, ready) = world.identify(&world.person_token, json!({"cursor": 100})).await;
    let epoch = ready["sync_epoch"].clone();
    assert_eq!(numbers(&peer.dispatches(500).await), (101..=600).collect::<Vec<_>>());
    assert_eq!(peer.expect("cursor").await["seq"], 601);
    assert_eq!(peer.expect("catchup.complete").await["head_seq"], 601);
    world.publish();
    assert_eq!(numbers(&peer.dispatches(1).await), [602]);
    peer.silence(Duration::from_mins(5)).await;
    let (mut again, _) = world.identify(&world.person_token, json!({"cursor": 602, "sync_epoch": epoch})).await;
    again.expect("catchup.complete").await;
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_cannot_be_served_is_answered_with_its_reason_and_goes_on_live() {
    let gateway = Settings { max_catchup_events: 10, ..Settings::default() };
    let world = World::with(WorldSettings { gateway, ..WorldSettings::default() });
    world.publish_many(30);
    world.retire(4);
    let other = "00000000-0000-0000-0000-0000000000ff";
    let cases = [
        (json!({"cursor": 30, "sync_epoch": other}), "epoch_changed"),
        (json!({"cursor": 99}), "cursor_ahead"),
        (json!({"cursor": 3}), "retention"),
        (json!({"cursor": 19}), "too_far_behind"),
    ];
    for (start, reason) in cases {
        let (mut peer, ready) = world.identify(&world.person_token, start).await;
        let resync = peer.expect("resync_required").await;
        assert_eq!((&resync["reason"], &resync["head_seq"], &resync["floor_seq"]), (&json!(reason), &ready["head_seq"], &json!(5)));
        let number = world.publish();
        assert_eq!(numbers(&peer.dispatches(1).await), [number], "live, and no catchup.complete");
        peer.vanish();
    }
}

#[tokio::test(start_paused = true)]
async fn the_acknowledgement_of_a_person_is_refused_and_audited_and_the_connection_stays() {
    let world = World::new();
    let (mut peer, _) = world.identify(&world.person_token, json!({})).await;
    peer.expect("catchup.complete").await;
    world.publish();
    peer.dispatches(1).await;
    peer.ack(1);
    let error = peer.expect("error").await;
    assert_eq!(
        (&error["refused_op"], &error["code"], &error["reason"]),
        (&json!("ack"), &json!("forbidden"), &json!("subject_kind_not_allowed"))
    );
    world.publish();
    assert_eq!(numbers(&peer.dispatches(1).await), [2]);
    assert!(world.memory.state().rows.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_resumed_person_continues_from_its_cursor_or_from_what_was_sent_last() {
    let world = World::new();
    let (mut peer, ready) = world.identify(&world.person_token, json!({})).await;
    peer.expect("catchup.complete").await;
    world.publish_many(3);
    peer.dispatches(3).await;
    peer.vanish();
    world.publish();
    let session = &ready["gateway_session_id"];
    let mut peer = world.resume(&world.person_token, session).await;
    let resumed = peer.expect("resumed").await;
    assert_eq!((&resumed["head_seq"], resumed.get("acked_seq")), (&json!(4), None));
    assert_eq!(numbers(&peer.dispatches(1).await), [4]);
    peer.vanish();
    let mut peer = world.dial();
    peer.expect("hello").await;
    peer.send(&json!({"op": "resume", "token": world.person_token, "gateway_session_id": session, "cursor": 1}));
    peer.expect("resumed").await;
    assert_eq!(numbers(&peer.dispatches(3).await), [2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn what_a_person_may_see_follows_its_rights() {
    let world = World::new();
    let (mut peer, _) = world.identify(&world.person_token, json!({})).await;
    peer.expect("catchup.complete").await;
    let report = world.revoke_grant(&person());
    world.publish();
    assert_eq!(numbers(&peer.dispatches(1).await), [report]);
    peer.silence(SECOND).await;
}

fn after(position: u64, limit: usize) -> PageRequest {
    PageRequest { after: seq_or_none(position), limit, epoch: None }
}

fn seq_or_none(position: u64) -> Option<domain::Seq> {
    (position != u64::MAX).then(|| seq(position))
}

fn positions(events: &[bytes::Bytes]) -> Vec<u64> {
    events.iter().map(|event| serde_json::from_slice::<Value>(event).unwrap()["seq"].as_u64().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_page_holds_what_may_be_seen_and_tells_the_last_position_checked() {
    let world = World::new();
    let caller = world.caller(&world.person_token).await;
    world.publish_many(3);
    world.publish_to(HIDDEN);
    world.publish();
    world.publish_to(HIDDEN);
    world.publish_to(HIDDEN);
    let page = world.reader.page(&caller, after(0, 2)).await.unwrap();
    assert_eq!((positions(&page.events), page.next_cursor, page.head), (vec![1, 2], seq(2), seq(7)));
    let page = world.reader.page(&caller, after(2, 100)).await.unwrap();
    assert_eq!((positions(&page.events), page.next_cursor, page.unproven), (vec![3, 5], seq(7), false));
    let page = world.reader.page(&caller, after(7, 100)).await.unwrap();
    assert_eq!((page.events.len(), page.next_cursor), (0, seq(7)));
}

#[tokio::test(start_paused = true)]
async fn pages_walk_through_everything_once_whatever_their_size() {
    let world = World::new();
    let caller = world.caller(&world.person_token).await;
    for number in 0..400 {
        world.publish_to(if number % 3 == 0 { HIDDEN } else { crate::support::OPEN });
    }
    for limit in [1, 7, 50, 1_000] {
        let (mut seen, mut cursor) = (Vec::new(), seq(0));
        loop {
            let page = world.reader.page(&caller, PageRequest { after: Some(cursor), limit, epoch: None }).await.unwrap();
            assert!(page.events.len() <= limit);
            seen.extend(positions(&page.events));
            if page.next_cursor == cursor {
                break;
            }
            cursor = page.next_cursor;
        }
        assert_eq!(seen, (1..=400).filter(|number| (number - 1) % 3 != 0).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_without_a_position_begins_at_the_floor_and_one_that_cannot_be_served_is_refused() {
    let world = World::new();
    let caller = world.caller(&world.person_token).await;
    world.publish_many(9);
    world.retire(4);
    let page = world.reader.page(&caller, after(u64::MAX, 2)).await.unwrap();
    assert_eq!(positions(&page.events), [5, 6]);
    for (request, reason) in [(after(3, 2), ResyncReason::Retention), (after(10, 2), ResyncReason::CursorAhead)] {
        match world.reader.page(&caller, request).await {
            Err(ReadError::Resync(resync)) => assert_eq!((resync.reason, resync.head, resync.floor), (reason, seq(9), seq(5))),
            other => panic!("{other:?}"),
        }
    }
    let foreign = PageRequest { epoch: Some(domain::SyncEpoch::new(uuid::Uuid::from_u128(9))), ..after(5, 2) };
    assert!(
        matches!(world.reader.page(&caller, foreign).await, Err(ReadError::Resync(resync)) if resync.reason == ResyncReason::EpochChanged)
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_shows_what_was_published_before_it_was_asked_for() {
    let world = World::new();
    let caller = world.caller(&world.person_token).await;
    world.reader.page(&caller, after(0, 1)).await.unwrap();
    world.publish_unannounced();
    assert_eq!(positions(&world.reader.page(&caller, after(0, 1)).await.unwrap().events), [1]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_reads_neither_pages_nor_streams() {
    let world = World::new();
    let caller = world.caller(&world.agent_token).await;
    let denied = Denied::Forbidden(DeniedReason::SubjectKindNotAllowed);
    assert!(matches!(world.reader.page(&caller, after(0, 1)).await, Err(ReadError::Denied(reason)) if reason == denied));
    assert!(matches!(world.reader.stream(&caller, StreamStart::default()).await, Err(ReadError::Denied(reason)) if reason == denied));
}

async fn stream(world: &World, from: Option<u64>) -> EventStream {
    let caller = world.caller(&world.person_token).await;
    let mut stream = world.reader.stream(&caller, StreamStart { after: from.map(seq), epoch: None }).await.unwrap();
    if from.is_none() {
        let begin = stream.next().await;
        assert!(matches!(begin, StreamItem::Cursor(_)), "{begin:?}");
    }
    stream
}

async fn event(stream: &mut EventStream) -> u64 {
    match stream.next().await {
        StreamItem::Event { seq, envelope } => {
            assert_eq!(positions(&[envelope]), [seq.get()]);
            seq.get()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_catches_up_and_stays_live() {
    let world = World::new();
    world.publish_many(300);
    world.publish_to(HIDDEN);
    let mut stream = stream(&world, Some(0)).await;
    for number in 1..=300 {
        assert_eq!(event(&mut stream).await, number);
    }
    assert!(matches!(stream.next().await, StreamItem::Cursor(at) if at == seq(301)));
    let (item, _) = tokio::join!(stream.next(), async {
        tokio::time::sleep(SECOND).await;
        world.publish()
    });
    assert!(matches!(item, StreamItem::Event { seq: at, .. } if at == seq(302)), "{item:?}");
    assert_eq!(world.gateway.metrics().streams.get(), 1);
    drop(stream);
    assert_eq!(world.gateway.metrics().streams.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_position_starts_at_the_head_says_where_that_is_and_when_nothing_happens() {
    let world = World::new();
    world.publish();
    let caller = world.caller(&world.person_token).await;
    let mut stream = world.reader.stream(&caller, StreamStart::default()).await.unwrap();
    assert!(matches!(stream.next().await, StreamItem::Cursor(at) if at == seq(1)));
    let before = tokio::time::Instant::now();
    assert!(matches!(stream.next().await, StreamItem::Heartbeat));
    assert_eq!(before.elapsed().as_secs(), 30);
    assert!(matches!(stream.next().await, StreamItem::Heartbeat));
    world.publish();
    assert_eq!(event(&mut stream).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_reader_gives_up_waiting_loses_nothing() {
    let world = World::new();
    let mut stream = stream(&world, None).await;
    let mut seen = Vec::new();
    for round in 0..200_u64 {
        world.publish();
        // Sometimes the reader gives up before anything can have come.
        let patience = Duration::from_micros(round % 3);
        if let Ok(StreamItem::Event { seq, .. }) = tokio::time::timeout(patience, stream.next()).await {
            seen.push(seq.get());
        }
    }
    while seen.len() < 200 {
        seen.push(event(&mut stream).await);
    }
    assert_eq!(seen, (1..=200).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_stream_from_a_position_that_cannot_be_served_begins_with_the_reason() {
    let world = World::new();
    world.publish_many(5);
    world.retire(2);
    let mut stream = stream(&world, Some(1)).await;
    assert!(matches!(stream.next().await, StreamItem::Resync(resync) if resync.reason == ResyncReason::Retention && resync.head == seq(5)));
    world.publish();
    assert_eq!(event(&mut stream).await, 6);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_the_server_closes_and_when_its_token_loses_its_standing() {
    let world = World::new();
    let mut ending = stream(&world, None).await;
    let (item, ()) = tokio::join!(ending.next(), async {
        tokio::time::sleep(SECOND).await;
        world.disable(&person());
    });
    assert!(matches!(item, StreamItem::End(CloseCode::Unauthenticated)), "{item:?}");
    assert!(matches!(ending.next().await, StreamItem::End(CloseCode::Unauthenticated)));
    drop(ending);

    let world = World::new();
    let mut ending = stream(&world, None).await;
    let (item, closed) = tokio::join!(
        async {
            let item = ending.next().await;
            drop(ending);
            item
        },
        async {
            tokio::time::sleep(SECOND).await;
            world.gateway.close_all(CloseCode::ShuttingDown, SECOND).await
        }
    );
    assert!(matches!(item, StreamItem::End(CloseCode::ShuttingDown)) && closed, "{item:?}");
    let caller = world.caller(&world.person_token).await;
    assert!(matches!(world.reader.stream(&caller, StreamStart::default()).await, Err(ReadError::ShuttingDown)));
}

#[tokio::test(start_paused = true)]
async fn streams_count_as_connections_of_their_principal() {
    let gateway = Settings { max_connections_per_principal: 2, ..Settings::default() };
    let world = World::with(WorldSettings { gateway, ..WorldSettings::default() });
    let first = stream(&world, None).await;
    let (_peer, _) = world.identify(&world.person_token, json!({})).await;
    let caller = world.caller(&world.person_token).await;
    assert!(matches!(world.reader.stream(&caller, StreamStart::default()).await, Err(ReadError::TooMany)));
    drop(first);
    stream(&world, None).await;
}
