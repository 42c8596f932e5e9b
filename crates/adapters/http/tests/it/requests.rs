//! What is refused, and how, whatever the operation.

use std::time::Duration;

use domain::PrincipalId;
use doorstep_http::{Settings, openapi};
use serde_json::Value;

use crate::support::{Options, World};

/// Every operation as method and a target with its names filled in, and whether it is public.
fn operations() -> Vec<(String, String, bool)> {
    let document = serde_json::to_value(openapi()).unwrap();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let uuid = "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70";
        let target = path.replace("{event}", uuid).replace("{token}", uuid).replace("{grant}", uuid);
        let target = target.replace("{hook}", uuid).replace("{registration}", uuid);
        let target = target.split('/').map(|part| if part.starts_with('{') { "alpha" } else { part }).collect::<Vec<_>>().join("/");
        for (method, operation) in item.as_object().unwrap() {
            if operation.get("operationId").is_some() {
                all.push((method.to_uppercase(), target.clone(), operation.get("x-action").is_none()));
            }
        }
    }
    assert!(all.len() > 30);
    all
}

#[tokio::test]
async fn an_unknown_path_and_a_wrong_method_are_problems() {
    let world = World::new().await;
    world.get(&world.owner, "/v1/nothing").await.expect_problem(404, "not_found", None);
    world.get(&world.owner, "/").await.expect_problem(404, "not_found", None);
    let answer = world.call("DELETE", "/v1/events", &[], b"").await;
    answer.expect_problem(405, "method_not_allowed", None);
    let mut allowed: Vec<_> = answer.header("allow").unwrap().split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
}

#[tokio::test]
async fn every_operation_but_the_public_ones_asks_for_a_credential() {
    let world = World::new().await;
    for (method, target, public) in operations() {
        let answer = world.call(&method, &target, &[("content-type", "application/json")], b"").await;
        if public {
            assert_ne!(answer.status, 401, "{method} {target}");
        } else {
            answer.expect_problem(401, "unauthenticated", None);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{method} {target}");
        }
    }
}

#[tokio::test]
async fn a_bad_credential_does_not_say_what_is_wrong_with_it() {
    let world = World::new().await;
    let mut unknown = world.owner.clone();
    unknown.replace_range(12..14, "zz");
    for credential in ["Bearer x", "Bearer", "Basic c2FtOnNlY3JldA==", &format!("Bearer {unknown}"), &format!("Token {}", world.owner)] {
        let answer = world.call("GET", "/v1/me", &[("authorization", credential)], b"").await;
        let problem = answer.expect_problem(401, "unauthenticated", None);
        assert_eq!(problem["detail"], "the credential is missing, unknown, expired or revoked", "{credential}");
    }
}

#[tokio::test]
async fn a_credential_in_the_address_is_refused_everywhere() {
    let world = World::new().await;
    for (method, target, _) in operations() {
        for parameter in ["token", "access_token", "api_key"] {
            let target = format!("{target}?{parameter}={}", world.owner);
            let answer = world.call(&method, &target, &[("authorization", &format!("Bearer {}", world.owner))], b"").await;
            let problem = answer.expect_problem(400, "validation_failed", Some(&format!("#query/{parameter}")));
            assert_eq!(problem["reason"], "credential_in_url");
            assert!(!problem.to_string().contains(&world.owner));
        }
    }
    let nowhere = format!("/nowhere?limit=1&TOKEN={}", world.owner);
    world.get(&world.owner, &nowhere).await.expect_problem(400, "validation_failed", Some("#query/TOKEN"));
}

#[tokio::test]
async fn an_unknown_parameter_is_refused_by_every_operation() {
    let world = World::new().await;
    for (method, target, _) in operations() {
        let token = if target.contains("/agents/me/") { &world.agent } else { &world.owner };
        let headers = [("authorization", format!("Bearer {token}"))];
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).chain([("content-type", "application/json")]).collect();
        let answer = world.call(&method, &format!("{target}?limt=1"), &headers, b"{}").await;
        answer.expect_problem(400, "validation_failed", Some("#query/limt"));
    }
}

#[tokio::test]
async fn numbers_of_queries_have_bounds() {
    let world = World::new().await;
    for (target, pointer) in [
        ("/v1/events?limit=0", "#query/limit"),
        ("/v1/events?limit=-1", "#query/limit"),
        ("/v1/events?limit=1&limit=2", "#query/limit"),
        ("/v1/events?after=9007199254740992", "#query/after"),
        ("/v1/events?after=-1", "#query/after"),
        ("/v1/events?sync_epoch=x", "#query/sync_epoch"),
        ("/v1/principals?cursor=A%20b", "#query/cursor"),
        ("/v1/audit?decision=maybe", "#query/decision"),
        ("/v1/audit?cursor=x", "#query/cursor"),
        ("/v1/events/scheduled?cursor=x", "#query/cursor"),
    ] {
        world.get(&world.owner, target).await.expect_problem(400, "validation_failed", Some(pointer));
    }
    world.get(&world.owner, "/v1/events?limit=99999999999999999999").await.expect(200);
}

#[tokio::test]
async fn names_in_paths_are_checked() {
    let world = World::new().await;
    for name in ["Default", "-x", "a.b", "%20", "a%2Fb", &"x".repeat(65)] {
        let target = format!("/v1/agents/me/consumers/{name}");
        world.get(&world.agent, &target).await.expect_problem(400, "validation_failed", Some("#path/consumer"));
    }
    world.get(&world.owner, "/v1/principals/A").await.expect_problem(400, "validation_failed", Some("#path/principal"));
    world.get(&world.owner, "/v1/principals/%FF").await.expect_problem(400, "validation_failed", Some("#path"));
}

#[tokio::test]
async fn a_body_that_is_not_what_it_must_be_is_refused_with_a_pointer() {
    let world = World::new().await;
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    for (body, pointer) in [
        ("", ""),
        ("{", ""),
        ("[]", ""),
        ("null", ""),
        (&deep, ""),
        (r#"{"kind":"agent"}"#, "/id"),
        (r#"{"kind":"robot","id":"x"}"#, "/kind"),
        (r#"{"kind":"agent","id":"X"}"#, "/id"),
        (r#"{"kind":"agent","id":"x","rolle":"owner"}"#, "/rolle"),
        (r#"{"kind":"agent","id":"x","role":null}"#, "/role"),
        ("{\"kind\":\"agent\",\"id\":\"x\"} {}", ""),
    ] {
        world.post(&world.owner, "/v1/principals", body).await.expect_problem(400, "validation_failed", Some(pointer));
    }
}

#[tokio::test]
async fn a_body_of_another_media_type_is_refused() {
    let world = World::new().await;
    let bearer = format!("Bearer {}", world.owner);
    for (headers, pointer) in [
        (vec![], "#header/content-type"),
        (vec![("content-type", "text/plain")], "#header/content-type"),
        (vec![("content-type", "application/x-www-form-urlencoded")], "#header/content-type"),
        (vec![("content-type", "application/json"), ("content-encoding", "gzip")], "#header/content-encoding"),
    ] {
        for target in ["/v1/events", "/v1/spaces"] {
            let headers: Vec<_> = headers.iter().copied().chain([("authorization", bearer.as_str())]).collect();
            world.call("POST", target, &headers, b"{}").await.expect_problem(415, "unsupported_media_type", Some(pointer));
        }
    }
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/cloudevents+json")];
    world.call("POST", "/v1/spaces", &headers, b"{}").await.expect_problem(415, "unsupported_media_type", Some("#header/content-type"));
}

#[tokio::test]
async fn one_byte_above_the_limit_is_too_large_and_the_answer_arrives() {
    let http = Settings { max_body_bytes: 1_000, max_publish_bytes: 300_000, ..Settings::default() };
    let world = World::with(Options { http, ..Options::default() }).await;
    for (target, limit) in [("/v1/spaces", 1_000), ("/v1/events", 300_000)] {
        let body = format!("{{\"id\":\"{}\"}}", "x".repeat(limit - 8));
        assert_eq!(body.len(), limit + 1);
        world.post(&world.owner, target, &body).await.expect_problem(413, "payload_too_large", None);
        world.post(&world.owner, target, &body[1..]).await.expect(400);
    }
    // Far above, sent whole before anything is read.
    world.post(&world.owner, "/v1/spaces", &"x".repeat(4_000_000)).await.expect_problem(413, "payload_too_large", None);
}

#[tokio::test]
async fn a_chunked_body_above_the_limit_is_too_large() {
    let http = Settings { max_body_bytes: 10, ..Settings::default() };
    let world = World::with(Options { http, ..Options::default() }).await;
    let mut wire = world.wire().await;
    let head = format!(
        "POST /v1/spaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        world.owner
    );
    wire.send(head.as_bytes()).await;
    wire.send(b"8\r\n{\"id\":\"a\r\n8\r\naaaaaaa\"\r\n0\r\n\r\n").await;
    wire.answer().await.expect_problem(413, "payload_too_large", None);
}

#[tokio::test]
async fn a_body_that_does_not_come_times_out() {
    let http = Settings { request_timeout: Duration::from_millis(100), ..Settings::default() };
    let world = World::with(Options { http, ..Options::default() }).await;
    let mut wire = world.wire().await;
    let head = format!(
        "POST /v1/spaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{{",
        world.owner
    );
    wire.send(head.as_bytes()).await;
    wire.answer().await.expect_problem(408, "request_timeout", None);
}

#[tokio::test]
async fn a_sane_request_id_is_kept_and_a_forged_one_replaced() {
    let world = World::new().await;
    let id_of = async |own: &str| {
        let answer = world.call("GET", "/v1/me", &[("x-request-id", own)], b"").await;
        answer.expect_problem(401, "unauthenticated", None)["request_id"].as_str().unwrap().to_owned()
    };
    assert_eq!(id_of("job-17").await, "job-17");
    for forged in ["a b", "\"x\"", &"x".repeat(200)] {
        assert_ne!(id_of(forged).await, forged);
    }
    let healthy = world.call("GET", "/healthz", &[("x-request-id", "probe")], b"").await;
    assert_eq!(healthy.header("x-request-id"), Some("probe"));
}

#[tokio::test]
async fn the_wrong_kind_of_principal_is_forbidden_with_its_reason() {
    let world = World::new().await;
    for (method, target, body) in [
        ("GET", "/v1/agents/me/consumers/default", ""),
        ("GET", "/v1/agents/me/consumers/default/events", ""),
        ("POST", "/v1/agents/me/consumers/default/ack", r#"{"seq":0}"#),
    ] {
        for token in [&world.owner, &world.app] {
            let bearer = format!("Bearer {token}");
            let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
            let answer = world.call(method, target, &headers, body.as_bytes()).await;
            assert_eq!(answer.expect_problem(403, "forbidden", None)["reason"], "subject_kind_not_allowed", "{target}");
        }
    }
    let refused = world.get(&world.agent, "/v1/events").await.expect_problem(403, "forbidden", None);
    assert_eq!(refused["reason"], "subject_kind_not_allowed");
    assert!(world.memory.state().rows.is_empty(), "a refused request creates nothing");
}

#[tokio::test]
async fn a_suspended_tenant_is_forbidden() {
    let world = World::new().await;
    world.memory.state().served = authz::TenantState::Suspended;
    let problem = world.get(&world.owner, "/v1/me").await.expect_problem(403, "forbidden", None);
    assert_eq!(problem["reason"], "tenant_suspended");
}

#[tokio::test]
async fn a_panic_is_an_internal_problem_and_the_server_goes_on() {
    let world = World::new().await;
    world.memory.state().cursed = Some(PrincipalId::parse("shop").unwrap());
    let answer = world.post(&world.app, "/v1/events", r#"{"type":"a","channel":"support/general"}"#).await;
    let problem = answer.expect_problem(500, "internal", None);
    assert!(!problem.to_string().contains("fault of ours"), "{problem}");
    world.post(&world.agent, "/v1/events", r#"{"type":"a","channel":"support/general"}"#).await.expect(201);
}

#[tokio::test]
async fn answers_are_not_to_be_stored() {
    let world = World::new().await;
    for target in ["/v1/me", "/v1/events", "/v1/nothing"] {
        assert_eq!(world.get(&world.owner, target).await.header("cache-control"), Some("no-store"), "{target}");
    }
}

#[tokio::test]
async fn a_listing_hands_out_a_cursor_as_long_as_more_follows() {
    let world = World::new().await;
    let (mut seen, mut target) = (Vec::new(), "/v1/principals?limit=2".to_owned());
    loop {
        let page = world.get(&world.owner, &target).await.expect(200);
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Value::String(cursor) = &page["next_cursor"] else { break };
        target = format!("/v1/principals?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, ["alpha", "sam", "shop"]);
}

#[tokio::test]
async fn who_one_is() {
    let world = World::new().await;
    let me = world.get(&world.agent, "/v1/me").await.expect(200);
    assert_eq!(
        (&me["id"], &me["kind"], &me["role"], &me["tenant"]),
        (&"alpha".into(), &"agent".into(), &"member".into(), &"default".into())
    );
    assert!(me.get("expires_at").is_none() && me["token_id"].is_string(), "{me}");
}
