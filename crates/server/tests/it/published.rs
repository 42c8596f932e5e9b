//! What the server sends is verified by the published Standard Webhooks packages for Python and JavaScript (tests/published).

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use testkit::{PlayedRequest, PlayedServer};

use crate::support::World;

/// Leaves this out, on machines that cannot have the packages.
const WITHOUT: &str = "DOORSTEP_TEST_WITHOUT_PUBLISHED";

/// Summaries whose bytes a receiver could get wrong.
const SUMMARIES: [&str; 5] =
    ["Buy toner", "Sam asks: \u{201e}wann?\u{201c} \u{2615}", "a \\ and a \" and a \t tab", "</script>&amp;", "1.2.3 and msg_x.17.{}"];

/// A ring as the packages are handed it.
fn ring(request: &PlayedRequest) -> Value {
    let headers = request.head.lines().skip(1).filter_map(|line| line.split_once(": "));
    let headers: Map<String, Value> = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.into())).collect();
    json!({"headers": headers, "body": request.raw})
}

/// Has the packages verify these rings with this secret; answers the exit code and what was said.
fn verify(secret: &Value, rings: &[Value]) -> (Option<i32>, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/published/run");
    let packages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("published");
    let mut command = Command::new("sh");
    command.arg(script).arg(packages).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Whoever gives up early reads nothing; its exit code tells.
    let _ = child.stdin.take().unwrap().write_all(json!({"secret": secret, "rings": rings}).to_string().as_bytes());
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[tokio::test]
async fn the_published_packages_for_python_and_javascript_verify_what_is_sent() {
    if std::env::var_os(WITHOUT).is_some() {
        eprintln!("left out by {WITHOUT}");
        return;
    }
    let mut receiver = PlayedServer::bind().await;
    let allowed = receiver.address.to_string();
    let world = World::with(&[("hooks.allow_http", "true"), ("hooks.allow_networks", &allowed)]).await;
    let hook = json!({"url": format!("http://{}/rings?a=1", receiver.address)});
    let created = world.cast.alpha.post("/v1/notify-hooks", &hook).await.expect(201);
    let mut rings = Vec::new();
    for summary in SUMMARIES {
        let event = json!({"type": "task.created", "recipients": [{"kind": "agent", "id": "alpha"}], "summary": summary, "payload": {}});
        world.cast.producer.post("/v1/events", &event).await.expect(201);
        let request = receiver.request().await;
        rings.push(ring(&request));
        request.respond(204, "text/plain", &[], "").await;
    }
    let (code, said) = verify(&created["secret"], &rings);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("python: 5 verified") && said.contains("javascript: 5 verified"), "{said}");

    // While a rotation overlaps, whoever has either secret verifies the same ring.
    let rotated =
        world.cast.alpha.post(&format!("/v1/notify-hooks/{}/rotate", created["id"].as_str().unwrap()), &json!({})).await.expect(200);
    let event = json!({"type": "task.created", "recipients": [{"kind": "agent", "id": "alpha"}], "payload": {}});
    world.cast.producer.post("/v1/events", &event).await.expect(201);
    let request = receiver.request().await;
    for secret in [&created["secret"], &rotated["secret"]] {
        let (code, said) = verify(secret, &[ring(&request)]);
        assert_eq!(code, Some(0), "{said}");
    }
    let (code, said) = verify(&json!(format!("whsec_{}", "B".repeat(32))), &[ring(&request)]);
    assert_eq!(code, Some(1), "a stranger's secret verifies nothing: {said}");
}
