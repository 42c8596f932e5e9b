//! Callback registrations, and the keys that the server signs with, from the outside.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hooks::Hook;
use ring::hmac;
use serde_json::{Value, json};

use crate::support::{Options, World};

const CALLBACKS: &str = "/v1/callback-registrations";

/// The request of seed 000, with the tenant and the agent of these tests.
fn seeds() -> Value {
    json!({
        "tenant_id": "default", "recipient_id": "alpha", "callback_url": "https://agent-alpha.example.net/matm/callback?k=CANARY",
        "auth_mode": "hmac-sha256", "secret_id": "cbksec_2026_07", "delivery_scope": ["signal_only"], "max_rate_per_minute": 30
    })
}

fn with(member: &str, value: Value) -> String {
    let mut body = seeds();
    body[member] = value;
    body.to_string()
}

impl World {
    async fn a_callback(&self) -> (String, Value) {
        let registered = self.post(&self.agent, CALLBACKS, &seeds().to_string()).await.expect(201);
        (format!("{CALLBACKS}/{}", registered["registration_id"].as_str().unwrap()), registered)
    }
}

/// What a receiver with this secret answers to the open challenge.
fn proof(hook: &Hook, secret: &str) -> String {
    let challenge = hook.challenge.as_ref().unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, hooks::Secret::parse(secret).unwrap().bytes());
    let message = format!("{}.{}.{}", challenge.delivery, challenge.nonce, challenge.text);
    STANDARD.encode(hmac::sign(&key, message.as_bytes()))
}

#[tokio::test]
async fn the_seeds_registration_is_pending_until_the_receiver_proves_itself() {
    let world = World::new().await;
    let (callback, registered) = world.a_callback().await;
    assert_eq!((&registered["status"], &registered["secret_id"]), (&json!("pending_verification"), &json!("cbksec_2026_07")));
    assert!(registered["challenge_delivery_id"].is_string() && registered["expires_at_utc"].is_string(), "{registered}");
    let secret = registered["secret"].as_str().unwrap();
    let shown = world.get(&world.agent, &callback).await.expect(200);
    let expected = json!({
        "registration_id": registered["registration_id"], "status": "pending_verification",
        "challenge_delivery_id": registered["challenge_delivery_id"], "expires_at_utc": registered["expires_at_utc"],
        "tenant_id": "default", "recipient_id": "alpha", "callback_url": "https://agent-alpha.example.net/matm/callback",
        "auth_mode": "hmac-sha256", "delivery_scope": ["signal_only"], "max_rate_per_minute": 30, "ignore_presence": false,
        "health": {"consecutive_failures": 0}, "created_at_utc": registered["created_at_utc"]
    });
    assert_eq!(shown, expected);
    assert_eq!(world.get(&world.agent, CALLBACKS).await.expect(200), json!({"items": [expected]}));

    let verify = format!("{callback}/verify");
    let wrong = world.post(&world.agent, &verify, r#"{"response":"AAAA"}"#).await.expect_problem(409, "state_conflict", None);
    assert_eq!(wrong["reason"], "receiver_unverified");
    let response = json!({"response": proof(&world.hooks.only(), secret)}).to_string();
    let active = world.post(&world.agent, &verify, &response).await.expect(200);
    assert_eq!((&active["status"], active.get("challenge_delivery_id"), active.get("expires_at_utc")), (&json!("active"), None, None));
    assert_eq!(world.post(&world.agent, &verify, "{}").await.expect(200)["status"], json!("active"), "it stays as it is");
}

#[tokio::test]
async fn a_callback_is_disabled_and_enabled_and_one_that_never_proved_itself_is_asked_again() {
    let world = World::new().await;
    let (callback, registered) = world.a_callback().await;
    let response = json!({"response": proof(&world.hooks.only(), registered["secret"].as_str().unwrap())}).to_string();
    world.post(&world.agent, &format!("{callback}/verify"), &response).await.expect(200);
    let disabled = world.post(&world.agent, &format!("{callback}/disable"), "").await.expect(200);
    assert_eq!((&disabled["status"], &disabled["disabled_cause"]), (&json!("disabled"), &json!("asked")));
    world.post(&world.agent, &format!("{callback}/verify"), "{}").await.expect_problem(409, "state_conflict", None);
    let enabled = world.post(&world.agent, &format!("{callback}/enable"), "").await.expect(200);
    assert_eq!((&enabled["status"], enabled.get("disabled_cause")), (&json!("active"), None));
    let (pending, _) = world.a_callback().await;
    world.post(&world.agent, &format!("{pending}/disable"), "").await.expect(200);
    let asked = world.post(&world.owner, &format!("{pending}/enable"), "").await.expect(200);
    assert_eq!(asked["status"], json!("pending_verification"), "{asked}");
    let beta = world.memory.principal("beta", authz::PrincipalKind::Agent, authz::Role::Member);
    for what in ["enable", "disable"] {
        world.post(&beta, &format!("{callback}/{what}"), "").await.expect_problem(404, "not_found", None);
    }
}

#[tokio::test]
async fn who_asks_for_attempts_too_often_is_told_when_to_come_back() {
    let world = World::new().await;
    let registered = world.post(&world.agent, CALLBACKS, &with("max_rate_per_minute", json!(1))).await.expect(201);
    let verify = format!("{CALLBACKS}/{}/verify", registered["registration_id"].as_str().unwrap());
    world.post(&world.agent, &verify, "{}").await.expect_problem(409, "state_conflict", None);
    let refused = world.post(&world.agent, &verify, "{}").await;
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((50..=60).contains(&wait), "{wait}");
    refused.expect_problem(429, "rate_limited", None);
}

#[tokio::test]
async fn a_challenge_is_sent_on_demand_and_a_wrong_answer_proves_nothing() {
    let world = World::new().await;
    let (callback, _) = world.a_callback().await;
    let refused = world.post(&world.agent, &format!("{callback}/verify"), "{}").await.expect_problem(409, "state_conflict", None);
    assert_eq!(refused["reason"], "receiver_unverified");
    assert_eq!(world.receivers.called(), ["agent-alpha.example.net"]);
    assert_eq!(world.get(&world.agent, &callback).await.expect(200)["status"], json!("pending_verification"));
}

#[tokio::test]
async fn a_repeat_under_the_same_key_registers_no_second_callback_and_shows_no_secret() {
    let world = World::new().await;
    let first = world.post_once(&world.agent, CALLBACKS, "one", &seeds().to_string()).await.expect(201);
    let again = world.post_once(&world.agent, CALLBACKS, "one", &seeds().to_string()).await.expect(201);
    assert_eq!((&again["registration_id"], &again["secret_shown"]), (&first["registration_id"], &json!(true)));
    assert_eq!((again.get("secret"), &again["challenge_delivery_id"]), (None, &first["challenge_delivery_id"]));
    let other = world.post_once(&world.agent, CALLBACKS, "one", &with("max_rate_per_minute", json!(1))).await;
    other.expect_problem(409, "idempotency_conflict", Some("#header/idempotency-key"));
    assert_eq!(world.hooks.rows().hooks.len(), 1);
}

#[tokio::test]
async fn a_receiver_may_bring_a_public_key_and_then_gets_no_secret() {
    let world = World::new().await;
    let key = json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode([9; 32])});
    let mut body = seeds();
    (body["auth_mode"], body["public_key"]) = (json!("http-message-signatures"), key.clone());
    let registered = world.post(&world.agent, CALLBACKS, &body.to_string()).await.expect(201);
    assert_eq!((registered.get("secret"), registered.get("secret_shown")), (None, None));
    let rotate = format!("{CALLBACKS}/{}/rotate", registered["registration_id"].as_str().unwrap());
    world.post(&world.agent, &rotate, "{}").await.expect_problem(400, "validation_failed", Some("/public_key"));
    let rotated = world.post(&world.agent, &rotate, &json!({"public_key": key, "secret_id": "next"}).to_string()).await.expect(200);
    assert_eq!((&rotated["secret_id"], rotated.get("secret")), (&json!("next"), None));
}

#[tokio::test]
async fn the_key_of_a_callback_is_rotated_under_another_name() {
    let world = World::new().await;
    let (callback, registered) = world.a_callback().await;
    let rotate = format!("{callback}/rotate");
    let rotated = world.post(&world.agent, &rotate, r#"{"secret_id":"cbksec_2026_08"}"#).await.expect(200);
    assert_eq!((&rotated["registration_id"], &rotated["secret_id"]), (&registered["registration_id"], &json!("cbksec_2026_08")));
    assert!(rotated["previous_until_utc"].is_string() && rotated["secret"] != registered["secret"]);
    world.post(&world.agent, &rotate, r#"{"secret_id":"cbksec_2026_08"}"#).await.expect_problem(
        400,
        "validation_failed",
        Some("/secret_id"),
    );
    let key = json!({"public_key": {"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode([9; 32])}}).to_string();
    world.post(&world.agent, &rotate, &key).await.expect_problem(400, "validation_failed", Some("/public_key"));
    world.post(&world.agent, &rotate, r#"{"key":"x"}"#).await.expect_problem(400, "validation_failed", Some("/key"));
}

#[tokio::test]
async fn a_wrong_member_is_refused_where_it_stands() {
    let world = World::new().await;
    for (member, value, pointer) in [
        ("callback_url", json!(1), "/callback_url"),
        ("auth_mode", json!("none"), "/auth_mode"),
        ("secret_id", json!("a b"), "/secret_id"),
        ("delivery_scope", json!(["everything"]), "/delivery_scope/0"),
        ("delivery_scope", json!([]), "/delivery_scope"),
        ("max_rate_per_minute", json!(0), "/max_rate_per_minute"),
        ("ignore_presence", json!(1), "/ignore_presence"),
        ("public_key", json!({"kty": "OKP", "crv": "Ed25519"}), "/public_key/x"),
        ("public_key", json!({"kty": "RSA", "crv": "Ed25519", "x": "AAAA"}), "/public_key"),
        ("public_key", json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode([9; 32])}), "/public_key"),
        ("queues", json!(["inbox"]), "/queues"),
    ] {
        let answer = world.post(&world.agent, CALLBACKS, &with(member, value)).await;
        answer.expect_problem(400, "validation_failed", Some(pointer));
    }
    for (url, reason) in [("/relative", "malformed"), ("gopher://agent.example/", "scheme"), ("https://private.example/CANARY", "network")]
    {
        let answer = world.post(&world.agent, CALLBACKS, &with("callback_url", json!(url))).await;
        let problem = answer.expect_problem(400, "url_refused", Some("/callback_url"));
        assert!(problem["reason"] == reason && !problem.to_string().contains("CANARY"), "{problem}");
    }
    let (callback, _) = world.a_callback().await;
    world.post(&world.agent, &format!("{callback}/verify"), r#"{"answer":"x"}"#).await.expect_problem(
        400,
        "validation_failed",
        Some("/answer"),
    );
    world.get(&world.agent, &format!("{CALLBACKS}/x")).await.expect_problem(400, "validation_failed", Some("#path/registration"));
    for query in ["limit=0", "cursor=x", "agent=A"] {
        let member = query.split('=').next().unwrap();
        let answer = world.get(&world.agent, &format!("{CALLBACKS}?{query}")).await;
        answer.expect_problem(400, "validation_failed", Some(&format!("#query/{member}")));
    }
    assert_eq!(world.hooks.rows().hooks.len(), 1);
}

#[tokio::test]
async fn a_callback_is_its_agents_own_and_operators_see_and_remove_it() {
    let world = World::new().await;
    let (callback, registered) = world.a_callback().await;
    let beta = world.memory.principal("beta", authz::PrincipalKind::Agent, authz::Role::Member);
    for (member, value) in [("recipient_id", "beta"), ("tenant_id", "other")] {
        world.post(&world.agent, CALLBACKS, &with(member, json!(value))).await.expect_problem(404, "not_found", None);
    }
    for target in [callback.clone(), callback.replace("callback-registrations", "notify-hooks")] {
        world.get(&beta, &target).await.expect_problem(404, "not_found", None);
        world.delete(&beta, &target).await.expect_problem(404, "not_found", None);
    }
    for what in ["verify", "rotate"] {
        world.post(&beta, &format!("{callback}/{what}"), "{}").await.expect_problem(404, "not_found", None);
    }
    let body = json!({"callback_url": "https://agent.example/", "auth_mode": "hmac-sha256"}).to_string();
    for token in [&world.owner, &world.app] {
        let refused = world.post(token, CALLBACKS, &body).await.expect_problem(403, "forbidden", None);
        assert_eq!(refused["reason"], "subject_kind_not_allowed");
    }
    let listed = world.get(&world.owner, &format!("{CALLBACKS}?agent=alpha")).await.expect(200);
    assert_eq!(listed["items"][0]["registration_id"], registered["registration_id"]);
    assert_eq!(world.delete(&world.owner, &callback).await.status, 204);
    world.get(&world.agent, &callback).await.expect_problem(404, "not_found", None);
}

#[tokio::test]
async fn the_ceiling_is_told_by_its_key() {
    let world = World::with(Options { hooks: hooks::Settings { max_per_agent: 0, ..Default::default() }, ..Options::default() }).await;
    let answer = world.post(&world.agent, CALLBACKS, &seeds().to_string()).await.expect_problem(409, "limit_reached", None);
    assert!(answer["detail"].as_str().unwrap().contains("hooks.max_per_agent"), "{answer}");
}

#[tokio::test]
async fn the_servers_public_keys_are_for_everybody_the_present_and_the_next() {
    let world = World::new().await;
    let keys = world.call("GET", "/.well-known/doorstep-keys", &[], b"").await.expect(200);
    let keys = keys["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 2, "{keys:?}");
    for key in keys {
        assert_eq!((&key["kty"], &key["crv"], &key["use"]), (&json!("OKP"), &json!("Ed25519"), &json!("sig")));
        assert_eq!(URL_SAFE_NO_PAD.decode(key["x"].as_str().unwrap()).unwrap().len(), 32);
        assert!(key["kid"].is_string() && key["signs_from"].is_string() && key.as_object().unwrap().len() == 6, "{key}");
    }
    let again = world.call("GET", "/.well-known/doorstep-keys", &[], b"").await.expect(200);
    assert_eq!(again["keys"].as_array().unwrap(), keys);
}
