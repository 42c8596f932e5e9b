//! Rings for whoever is connected, and what happens when they are lost.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Frame, Peer};

use super::{ack, claim, claim_one, claim_soon, fast, give, head, poll, release, subscribe};
use crate::support::{QUIET, World};

/// The signals in the text of a stream.
fn signals(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| line.strip_prefix("data: ")).map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The last id in the text of a stream.
fn last_id(text: &str) -> String {
    text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap().to_owned()
}

#[tokio::test]
async fn a_waiting_claim_is_woken_by_the_publish() {
    let world = World::new().await;
    let alpha = world.cast.alpha.clone();
    let waiting = tokio::spawn(async move { (claim_one(&alpha, json!({"wait_seconds": 20})).await, Instant::now()) });
    tokio::time::sleep(QUIET).await;
    let since = Instant::now();
    let id = give(&world.cast, json!({})).await;
    let (claimed, at) = waiting.await.unwrap();
    assert_eq!(claimed["event_id"], json!(id));
    assert!(at.duration_since(since) < Duration::from_secs(2), "{:?}", at.duration_since(since));
}

#[tokio::test]
async fn a_waiting_poll_is_woken_by_the_publish_and_ends_empty_in_time() {
    let world = World::new().await;
    let alpha = world.cast.alpha.clone();
    let since = Instant::now();
    let empty = poll(&alpha, json!({"after_seq": 0, "wait_seconds": 1})).await;
    assert_eq!((empty["events"].as_array().unwrap().len(), &empty["next_cursor"]), (0, &json!(0)));
    assert!((Duration::from_millis(900)..Duration::from_secs(5)).contains(&since.elapsed()), "{:?}", since.elapsed());
    let waiting = tokio::spawn(async move { poll(&alpha, json!({"after_seq": 0, "wait_seconds": 20})).await });
    tokio::time::sleep(QUIET).await;
    let id = give(&world.cast, json!({})).await;
    assert_eq!(waiting.await.unwrap()["events"][0]["event_id"], json!(id));
}

#[tokio::test]
async fn the_head_is_cheap_to_ask_for_and_says_when_nothing_moved() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    give(&world.cast, json!({})).await;
    let head = alpha.get("/v1/inbox/head").await;
    let tag = head.headers["etag"].to_str().unwrap().to_owned();
    assert!(tag.starts_with("\"default:alpha:"), "{tag}");
    let again = alpha.call("GET", "/v1/inbox/head", &[("if-none-match", &tag)], "").await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let claimed = claim_soon(alpha, 60).await;
    assert_eq!(alpha.call("GET", "/v1/inbox/head", &[("if-none-match", &tag)], "").await.status, 304, "a claim brings nothing new");
    release(alpha, &claimed, json!({})).await.expect(200);
    let moved = alpha.call("GET", "/v1/inbox/head", &[("if-none-match", &tag)], "").await;
    assert_eq!(moved.status, 200, "what became claimable again is news");
    assert_ne!(moved.headers["etag"].to_str().unwrap(), tag);
}

#[tokio::test]
async fn a_stream_rings_for_what_is_there_and_for_what_comes_and_its_id_is_where_to_go_on() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    let first = give(&world.cast, json!({})).await;
    let (url, at) = (subscribe(alpha).await, head(alpha).await);
    let text = alpha.read_stream(&url, &[], |text| text.contains("\n\n") && text.contains("data:")).await;
    let ring = &signals(&text)[0];
    assert_eq!((&ring["signal_type"], &ring["head_seq"], &ring["approximate_unacked"]), (&json!("inbox.updated"), &json!(at), &json!(1)));
    assert_eq!((&ring["recipient_id"], &ring["tenant_id"]), (&json!("alpha"), &json!("default")));
    assert!(text.contains("event: inbox.updated"), "{text}");
    let id = last_id(&text);
    // Two tabs, from where the first one stood: silence until something comes, then both are rung.
    let tabs = [(); 2].map(|()| {
        let (alpha, url, id) = (alpha.clone(), url.clone(), id.clone());
        tokio::spawn(async move { alpha.read_stream(&url, &[("last-event-id", &id)], |text| text.contains("data:")).await })
    });
    tokio::time::sleep(QUIET).await;
    assert!(tabs.iter().all(|tab| !tab.is_finished()), "nothing is new");
    give(&world.cast, json!({})).await;
    for tab in tabs {
        assert_eq!(signals(&tab.await.unwrap())[0]["head_seq"], at + 1);
    }
    assert_eq!(claim_one(alpha, json!({})).await["event_id"], json!(first));
}

#[tokio::test]
async fn every_window_of_a_browser_is_rung_and_one_of_them_gets_the_work() {
    // A browser keeps six connections to a host over HTTP/1.1, each with a request at a time: as many windows as that, each with a stream that
    // stays open, and every other request over connections of its own.
    const WINDOWS: usize = 6;
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    let mut windows = Vec::new();
    for _ in 0..WINDOWS {
        let (alpha, url) = (alpha.clone(), subscribe(alpha).await);
        windows.push(tokio::spawn(async move { alpha.read_stream(&url, &[], |text| text.contains("data:")).await }));
    }
    tokio::time::sleep(QUIET).await;
    assert!(windows.iter().all(|window| !window.is_finished()), "nothing is there");
    let id = give(&world.cast, json!({})).await;
    let mut claims = Vec::new();
    for window in windows {
        assert_eq!(signals(&window.await.unwrap())[0]["approximate_unacked"], 1);
        let alpha = alpha.clone();
        claims.push(tokio::spawn(async move { claim(&alpha, json!({})).await }));
    }
    let mut got = Vec::new();
    for claim in claims {
        got.extend(claim.await.unwrap());
    }
    assert_eq!((got.len(), &got[0]["event_id"]), (1, &json!(id)));
}

#[tokio::test]
async fn the_gateway_passes_rings_on() {
    let world = World::new().await;
    let identify = json!({"op": "identify", "consumer": "rung", "inbox_hints": true});
    let mut peer = Peer::identify(world.url(), world.cast.alpha.token(), identify).await;
    give(&world.cast, json!({})).await;
    let deadline = testkit::Deadline::usual();
    let hint = loop {
        let frame = peer.try_next(deadline.left()).await.expect("a hint in time");
        if let Frame::Json(frame) = frame
            && frame["op"] == "inbox.updated"
        {
            break frame;
        }
    };
    assert_eq!((&hint["head_seq"], &hint["recipient_id"]), (&json!(head(&world.cast.alpha).await), &json!("alpha")));
}

#[tokio::test]
async fn while_work_stays_unclaimed_the_ring_is_repeated() {
    let world = World::with(&[("inbox.ring_again", "200ms,300ms")]).await;
    give(&world.cast, json!({})).await;
    let (url, at) = (subscribe(&world.cast.alpha).await, head(&world.cast.alpha).await);
    let text = world.cast.alpha.read_stream(&url, &[], |text| text.matches("data:").count() >= 3).await;
    let rings = signals(&text);
    assert!(rings.iter().all(|ring| ring["head_seq"] == at), "{rings:?}");
    let ids: std::collections::HashSet<_> = rings.iter().map(|ring| ring["delivery_id"].to_string()).collect();
    assert_eq!(ids.len(), rings.len());
}

#[tokio::test]
async fn what_came_back_by_itself_rings_like_what_is_new() {
    let world = fast(&[]).await;
    let alpha = &world.cast.alpha;
    give(&world.cast, json!({})).await;
    let url = subscribe(alpha).await;
    let before = last_id(&alpha.read_stream(&url, &[], |text| text.contains("data:")).await);
    claim_soon(alpha, 1).await;
    let head = head(alpha).await;
    let text = alpha.read_stream(&url, &[("last-event-id", &before)], |text| text.contains("data:")).await;
    assert!(signals(&text)[0]["head_seq"].as_u64() > Some(head));
    let page = poll(alpha, json!({"after_seq": head})).await;
    assert_eq!(page["events"][0]["ack_state"], "available");
    let log = world.cast.owner.get(&format!("/v1/events?after={head}")).await.expect(200);
    let requeued = log["events"].as_array().unwrap().iter().find(|event| event["type"] == "inbox.requeued").unwrap().clone();
    assert!(["lease_expired", "retry_due"].contains(&requeued["payload"]["reason"].as_str().unwrap()), "{requeued}");
    assert_eq!(requeued["audience"], json!(["alpha"]));
}

#[tokio::test]
async fn without_any_ring_the_item_arrives_by_the_next_poll() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    assert_eq!(claim(alpha, json!({})).await.len(), 0);
    let id = give(&world.cast, json!({})).await;
    assert_eq!(claim_one(alpha, json!({})).await["event_id"], json!(id));
}

#[tokio::test]
async fn broken_connections_in_the_middle_lose_nothing() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    let (mut after, mut seen, url) = (json!(0), Vec::new(), subscribe(alpha).await);
    for round in 0..10_u64 {
        // A WebSocket that is gone before or after it rang, without a close.
        let identify = json!({"op": "identify", "consumer": "rung", "inbox_hints": true});
        let peer = Peer::identify(world.url(), alpha.token(), identify).await;
        // A stream that is cut as soon as it rang, whatever it had to say.
        let reading = {
            let (alpha, url) = (alpha.clone(), url.clone());
            tokio::spawn(async move { alpha.read_stream(&url, &[], |text| text.contains("data:")).await })
        };
        let mut peer = Some(peer).filter(|_| round % 3 != 0);
        super::give_many(&world.cast, 3).await;
        if round % 2 == 0 {
            reading.abort();
        } else {
            reading.await.unwrap();
        }
        if let Some(peer) = peer.as_mut() {
            peer.try_next(Duration::from_secs(10)).await.expect("a frame");
        }
        drop(peer);
        let page = poll(alpha, json!({"after_seq": after})).await;
        seen.extend(super::ids(&page, "events"));
        after = page["next_cursor"].clone();
    }
    let distinct: std::collections::HashSet<_> = seen.iter().collect();
    assert_eq!((seen.len(), distinct.len()), (30, 30));
}

#[tokio::test]
async fn a_revoked_token_ends_the_stream() {
    let world = World::new().await;
    let token = world.cast.owner.post("/v1/principals/alpha/tokens", &json!({})).await.expect(201);
    let narrow = world.cast.owner.with_token(token["token"].as_str().unwrap());
    let stream = narrow.open_stream(&subscribe(&narrow).await).await;
    let reading = tokio::spawn(stream.ended());
    let path = format!("/v1/principals/alpha/tokens/{}", token["token_id"].as_str().unwrap());
    world.cast.owner.delete(&path).await.expect(204);
    let ended = tokio::time::timeout(Duration::from_secs(10), reading).await;
    assert!(ended.expect("the stream ends within a second or so").unwrap(), "in order");
}

#[tokio::test]
async fn a_token_that_is_revoked_or_expires_during_a_wait_is_answered_401_at_once() {
    let world = World::new().await;
    for (life, revoked) in [(json!({}), true), (json!({"expires_in_seconds": 3}), false)] {
        let token = world.cast.owner.post("/v1/principals/alpha/tokens", &life).await.expect(201);
        let narrow = world.cast.owner.with_token(token["token"].as_str().unwrap());
        let waits = [("claim-next", json!({"wait_seconds": 30})), ("poll-after-cursor", json!({"after_seq": 0, "wait_seconds": 30}))];
        let waits = waits.map(|(call, body)| {
            let narrow = narrow.clone();
            tokio::spawn(async move { narrow.post(&format!("/v1/inbox/{call}"), &body).await })
        });
        tokio::time::sleep(QUIET).await;
        assert!(waits.iter().all(|wait| !wait.is_finished()), "they wait");
        if revoked {
            let path = format!("/v1/principals/alpha/tokens/{}", token["token_id"].as_str().unwrap());
            world.cast.owner.delete(&path).await.expect(204);
        }
        for wait in waits {
            let answer = tokio::time::timeout(Duration::from_secs(10), wait).await.expect("the wait ends with its token").unwrap();
            answer.expect_problem(401, "unauthenticated");
        }
    }
    let id = give(&world.cast, json!({})).await;
    assert_eq!(claim_one(&world.cast.alpha, json!({})).await["event_id"], json!(id), "nobody took it meanwhile");
}

#[tokio::test]
async fn stopping_ends_every_wait_at_once() {
    let world = World::new().await;
    let waits = (0..10).map(|n| {
        let alpha = world.cast.alpha.clone();
        tokio::spawn(async move {
            let path = if n % 2 == 0 { "/v1/inbox/claim-next" } else { "/v1/inbox/poll-after-cursor" };
            let body = if n % 2 == 0 { json!({"wait_seconds": 30}) } else { json!({"after_seq": 0, "wait_seconds": 30}) };
            alpha.post(path, &body).await.status
        })
    });
    let waits: Vec<_> = waits.collect();
    tokio::time::sleep(QUIET).await;
    let since = Instant::now();
    world.server.ask_to_stop();
    for wait in waits {
        let status = wait.await.unwrap();
        assert!(status == 200 || status == 503, "{status}");
    }
    assert!(world.server.wait().success());
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
}

#[tokio::test]
async fn single_active_session_lets_only_the_latest_claim() {
    let world = World::new().await;
    let alpha = &world.cast.alpha;
    let policy = r#"{"concurrency":"single_active_session"}"#;
    world.cast.owner.call("PUT", "/v1/agents/alpha/inbox-policy", &[("content-type", "application/json")], policy).await.expect(200);
    super::give_many(&world.cast, 3).await;
    let subscribe = async || {
        let body = json!({"supported_transports": ["poll"], "wants_claims": true});
        alpha.post("/v1/agent-sessions/subscribe", &body).await.expect(201)["session_id"].clone()
    };
    let (old, new) = (subscribe().await, subscribe().await);
    let claims = claim(alpha, json!({"session_id": new})).await;
    assert_eq!(claims.len(), 1);
    for refused in [json!({"session_id": old}), json!({})] {
        let problem = alpha.post("/v1/inbox/claim-next", &refused).await.expect_problem(409, "state_conflict");
        assert_eq!(problem["reason"], "session_not_active");
    }
    assert_eq!(ack(alpha, &claims[0], "completed").await["outcome"], "ok");
}
