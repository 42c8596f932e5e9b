//! Bad input at every door gets a clear error and changes nothing.

use serde_json::{Value, json};
use testkit::{Answer, Http};

use crate::support::World;

async fn send(http: &Http, body: impl Into<Vec<u8>>) -> Answer {
    http.call("POST", "/v1/events", &[("content-type", "application/json")], body.into()).await
}

async fn head(world: &World) -> Value {
    world.cast.sam.get("/v1/events?limit=1").await.expect(200)["head_seq"].clone()
}

#[tokio::test]
async fn a_bad_publish_says_where_and_publishes_nothing() {
    let world = World::new().await;
    let before = head(&world).await;
    let producer = &world.cast.producer;
    let with = |member: &str| format!(r#"{{"type":"a.b","channel":"support/general","payload":{{}},{member}}}"#);
    let cases: Vec<(String, &str)> = vec![
        (String::new(), ""),
        ("{".into(), ""),
        ("nonsense".into(), ""),
        ("[]".into(), ""),
        ("null".into(), ""),
        ("{}".into(), "/type"),
        (r#"{"type":"a.b"}"#.into(), ""),
        (r#"{"type":7,"channel":"support/general"}"#.into(), "/type"),
        (r#"{"type":"A","channel":"support/general"}"#.into(), "/type"),
        (r#"{"type":"a","channel":"support"}"#.into(), "/channel"),
        (r#"{"type":"a","channel":null}"#.into(), "/channel"),
        (with(r#""nonsense":1"#), "/nonsense"),
        (with(r#""priority":"extreme""#), "/priority"),
        (with(r#""audience":"alpha""#), "/audience"),
        (with(r#""deduplication_key":"""#), "/deduplication_key"),
        (with(r#""available_at":"yesterday""#), "/available_at"),
        (with(r#""max_attempts":-1"#), "/max_attempts"),
        (with(r#""max_attempts":99999999999999999999"#), "/max_attempts"),
        (with(r#""recipients":[{"kind":"agent","id":"nobody"}]"#), "/recipients/0"),
        (r#"{"type":"a","channel":"support/general","payload":[]}"#.into(), "/payload"),
        (r#"{"type":"a","channel":"support/general","payload":{"a":"\u0000"}}"#.into(), "/payload"),
        (r#"{"type":"a","channel":"support/general","payload":{"a":"\ud800"}}"#.into(), "/payload"),
        (format!(r#"{{"type":"a","channel":"support/general","payload":{{"a":{}{}}}}}"#, "[".repeat(5000), "]".repeat(5000)), ""),
        (r#"{"events":[]}"#.into(), "/events"),
        (r#"{"events":[{"type":"a","channel":"support/general"},{"type":"B","channel":"support/general"}]}"#.into(), "/events/1/type"),
    ];
    for (body, pointer) in cases {
        let shown = body.get(..200).unwrap_or(&body).to_owned();
        let answer = send(producer, body).await;
        assert_eq!(answer.status, 400, "{shown}: {}", String::from_utf8_lossy(&answer.body));
        let problem = answer.json();
        assert!(problem["code"] == "validation_failed" || problem["code"] == "recipient_unknown", "{shown}: {problem}");
        if !pointer.is_empty() {
            assert!(problem["pointer"].as_str().unwrap_or_default().starts_with(pointer), "{shown}: {problem}");
        }
    }
    send(producer, vec![b'{', b'"', 0xff, b'"', b':', b'1', b'}']).await.expect_problem(400, "validation_failed");
    assert_eq!(head(&world).await, before);
}

#[tokio::test]
async fn what_is_too_large_is_refused_and_the_largest_allowed_is_taken() {
    let world = World::new().await;
    let before = head(&world).await;
    let event = |size: usize| {
        let frame = r#"{"text":""}"#.len();
        json!({"type": "big", "channel": "support/general", "payload": {"text": "x".repeat(size - frame)}})
    };
    let mebibyte = 1024 * 1024;
    let problem = world.cast.producer.post("/v1/events", &event(mebibyte + 1)).await.expect_problem(413, "payload_too_large");
    assert_eq!(problem["pointer"], "/payload");
    let many: Vec<_> = (0..10_000).map(|_| json!({"type": "a", "channel": "support/general"})).collect();
    let answer = world.cast.producer.post("/v1/events", &json!({"events": many})).await;
    assert!([400, 413].contains(&answer.status), "{answer:?}");
    assert_eq!(answer.json()["pointer"], "/events");
    assert_eq!(head(&world).await, before);
    world.cast.producer.post("/v1/events", &event(mebibyte)).await.expect(201);
}

#[tokio::test]
async fn queries_are_checked_and_typos_are_not_silent() {
    let world = World::new().await;
    let sam = &world.cast.sam;
    let cases = [
        ("/v1/events?limit=0", "#query/limit"),
        ("/v1/events?limit=-1", "#query/limit"),
        ("/v1/events?limit=many", "#query/limit"),
        ("/v1/events?after=-1", "#query/after"),
        ("/v1/events?after=9007199254740992", "#query/after"),
        ("/v1/events?afer=1", "#query/afer"),
        ("/v1/events?sync_epoch=x", "#query/sync_epoch"),
    ];
    for (path, pointer) in cases {
        assert_eq!(sam.get(path).await.expect_problem(400, "validation_failed")["pointer"], pointer, "{path}");
    }
    sam.get("/v1/events?limit=100000").await.expect(200);
    let alpha = &world.cast.alpha;
    for (query, pointer) in [("limit=0", "#query/limit"), ("wait_seconds=-1", "#query/wait_seconds"), ("after=x", "#query/after")] {
        let path = format!("/v1/agents/me/consumers/default/events?{query}");
        assert_eq!(alpha.get(&path).await.expect_problem(400, "validation_failed")["pointer"], pointer, "{query}");
    }
}

#[tokio::test]
async fn every_wrong_door_answers_with_a_problem() {
    let world = World::new().await;
    let owner = &world.cast.owner;
    owner.get("/").await.expect_problem(404, "not_found");
    owner.get("/v1/nothing").await.expect_problem(404, "not_found");
    owner.get("/v1/events/../../etc/passwd").await.expect_problem(404, "not_found");
    let wrong = owner.call("PUT", "/v1/events", &[], "").await;
    wrong.expect_problem(405, "method_not_allowed");
    assert!(wrong.headers.contains_key("allow"), "{wrong:?}");
    let text = owner.call("POST", "/v1/events", &[("content-type", "text/plain")], "{}").await;
    text.expect_problem(415, "unsupported_media_type");
    let nobody = Http::anonymous(world.url());
    let refused = nobody.get("/v1/me").await;
    refused.expect_problem(401, "unauthenticated");
    assert!(refused.headers["www-authenticate"].to_str().unwrap().starts_with("Bearer"), "{refused:?}");
    for token in ["", "nonsense", "dsp_agent_", &"x".repeat(3000)] {
        owner.with_token(token).get("/v1/me").await.expect_problem(401, "unauthenticated");
    }
    owner.call("GET", "/v1/gateway", &[], "").await.expect_problem(426, "upgrade_required");
}

#[tokio::test]
async fn administration_refuses_bad_names_kinds_and_repeats() {
    let world = World::new().await;
    let owner = &world.cast.owner;
    let bad = [
        ("/v1/principals", json!({"kind": "robot", "id": "x"}), "/kind"),
        ("/v1/principals", json!({"kind": "agent", "id": "Bad Name"}), "/id"),
        ("/v1/principals", json!({"kind": "agent"}), "/id"),
        ("/v1/principals", json!({"kind": "agent", "id": "x", "rôle": "owner"}), "/rôle"),
        ("/v1/spaces", json!({"id": "a/b"}), "/id"),
        ("/v1/grants", json!({"principal": "alpha", "resource": "a/b/c", "permission": "read"}), "/resource"),
        ("/v1/grants", json!({"principal": "alpha", "resource": "*", "permission": "everything"}), "/permission"),
        ("/v1/principals/alpha/tokens", json!({"scopes": ["everything"]}), "/scopes/0"),
        ("/v1/principals/alpha/tokens", json!({"expires_in_seconds": 0}), "/expires_in_seconds"),
    ];
    for (path, body, pointer) in bad {
        let problem = owner.post(path, &body).await.expect_problem(400, "validation_failed");
        assert_eq!(problem["pointer"], pointer, "{path} {body}: {problem}");
    }
    owner.post("/v1/principals", &json!({"kind": "agent", "id": "alpha"})).await.expect_problem(409, "already_exists");
    owner.post("/v1/spaces", &json!({"id": "support"})).await.expect_problem(409, "already_exists");
    owner.post("/v1/spaces/nowhere/channels", &json!({"id": "x"})).await.expect_problem(404, "not_found");
    let grant = json!({"principal": "nobody", "resource": "*", "permission": "read"});
    assert_eq!(owner.post("/v1/grants", &grant).await.expect_problem(400, "validation_failed")["pointer"], "/principal");
    owner.delete("/v1/principals/nobody").await.expect_problem(404, "not_found");
    owner.delete("/v1/grants/not-a-uuid").await.expect_problem(400, "validation_failed");
}

#[tokio::test]
async fn creating_twice_under_one_idempotency_key_creates_once() {
    let world = World::new().await;
    let headers = [("content-type", "application/json"), ("idempotency-key", "key-1")];
    let create = async |body: Value| world.cast.owner.call("POST", "/v1/principals/alpha/tokens", &headers, body.to_string()).await;
    let first = create(json!({})).await.expect(201);
    let replay = create(json!({})).await.json();
    assert_eq!(replay["token_id"], first["token_id"]);
    assert!(replay.get("token").is_none(), "the secret is shown once");
    assert_eq!(replay["secret_shown"], true);
    create(json!({"expires_in_seconds": 60})).await.expect_problem(409, "idempotency_conflict");
    let tokens = world.cast.owner.get("/v1/principals/alpha/tokens").await.expect(200);
    assert_eq!(tokens["items"].as_array().unwrap().len(), 2);
}
