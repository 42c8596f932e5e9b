//! Health, metrics, backup and nodes from the outside.

use doorstep_http::NotReady;

use crate::support::World;

#[tokio::test]
async fn health_asks_nobody_and_readiness_names_what_is_missing() {
    let world = World::new().await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(world.call("GET", path, &[], b"").await.expect(200)["status"], "ok");
    }
    *world.readiness.0.lock().unwrap() = vec![NotReady { part: "draining" }, NotReady { part: "store" }];
    world.call("GET", "/healthz", &[], b"").await.expect(200);
    let answer = world.call("GET", "/readyz", &[], b"").await;
    let problem = answer.expect_problem(503, "unavailable", None);
    assert_eq!(problem["detail"], "not ready: draining, store");
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn metrics_count_requests_by_route_and_never_by_what_somebody_sends() {
    let world = World::new().await;
    world.get(&world.owner, "/v1/principals/alpha").await.expect(200);
    world.get(&world.owner, "/v1/secrets/of/acme").await.expect_problem(404, "not_found", None);
    world.post(&world.app, "/v1/events", r#"{"type":"a","channel":"support/general"}"#).await.expect(201);
    let answer = world.call("GET", "/metrics", &[], b"").await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let text = String::from_utf8(answer.body).unwrap();
    for line in [
        r#"doorstep_http_requests_total{method="GET",route="/v1/principals/{principal}",status="2xx"} 1"#,
        r#"doorstep_http_requests_total{method="GET",route="none",status="4xx"} 1"#,
        "doorstep_publish_commit_seconds_count 1",
        "# TYPE doorstep_http_connections gauge",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    for word in ["alpha", "acme", "secrets", "support"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[tokio::test]
async fn a_backup_is_the_instance_operators_and_names_what_is_wrong() {
    let world = World::new().await;
    world.post(&world.app, "/v1/admin/backup", r#"{"path":"/tmp/x.db"}"#).await.expect_problem(403, "forbidden", None);
    world.post(&world.owner, "/v1/admin/backup", r#"{"file":"x"}"#).await.expect_problem(400, "validation_failed", Some("/file"));
}

#[tokio::test]
async fn nodes_are_listed_for_the_instance_operator_alone() {
    let world = World::new().await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let node = loop {
        let listed = world.get(&world.owner, "/v1/nodes").await.expect(200);
        match listed["items"].as_array().unwrap().as_slice() {
            // It takes its work once it has shown itself.
            [node] if node["work"] == serde_json::json!(["inbox.sweeper"]) => break node.clone(),
            _ => assert!(std::time::Instant::now() < deadline, "{listed}"),
        }
    };
    assert_eq!((&node["name"], &node["state"], &node["is_self"]), (&"here".into(), &"serving".into(), &true.into()));
    assert_eq!((&node["version"], &node["address"]), (&"1.2.3".into(), &"127.0.0.1:7420".into()));
    for token in [&world.app, &world.agent] {
        world.get(token, "/v1/nodes").await.expect_problem(403, "forbidden", None);
    }
    world.get(&world.owner, "/v1/nodes?limit=1").await.expect_problem(400, "validation_failed", Some("#query/limit"));
}
