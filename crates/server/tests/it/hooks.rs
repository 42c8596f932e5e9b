//! Hooks out: signed doorbells for whoever has no session (design/hooks-and-intake.md; seed 002, "Confirmation").

use std::collections::HashSet;
use std::time::Duration;

use client::{VerifiedDelivery, WebhookChallenge, WebhookHeaders, WebhookProver, WebhookRejection, WebhookSecret, WebhookVerifier};
use serde_json::{Value, json};
use testkit::{Http, PlayedRequest, PlayedServer, eventually};

use crate::support::{QUIET, World};

/// A server that may call this receiver, and where time runs fast.
async fn world(receiver: &PlayedServer, more: &[(&str, &str)]) -> World {
    let allowed = receiver.address.to_string();
    let keys = [
        ("hooks.allow_http", "true"),
        ("hooks.allow_networks", allowed.as_str()),
        ("hooks.retry", "50ms,100ms"),
        ("inbox.sweep_interval", "50ms"),
    ];
    World::with(&keys.iter().chain(more).copied().collect::<Vec<_>>()).await
}

/// Registers a hook of this agent; answers it with its secret.
async fn register(agent: &Http, receiver: &PlayedServer, more: Value) -> Value {
    let mut hook = json!({"url": format!("http://{}/rings?token=CANARYURL", receiver.address)});
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent.post("/v1/notify-hooks", &hook).await.expect(201)
}

/// Work for an agent; answers the event's id.
async fn give(world: &World, agent: &str, queue: &str) -> String {
    let recipients = json!([{"kind": "agent", "id": agent, "queue": queue}]);
    let event = json!({"type": "task.created", "recipients": recipients, "summary": "Buy toner", "payload": {"secret": "CANARYPAYLOAD"}});
    let answer = world.cast.producer.post("/v1/events", &event).await.expect(201);
    answer["events"][0]["id"].as_str().unwrap().to_owned()
}

fn verify(request: &PlayedRequest, secret: &Value) -> Result<VerifiedDelivery, WebhookRejection> {
    let headers: Vec<(&str, &str)> = request.head.lines().skip(1).filter_map(|line| line.split_once(": ")).collect();
    let verifier = WebhookVerifier::new([WebhookSecret::parse(secret.as_str().unwrap()).unwrap()]).unwrap();
    verifier.verify(&WebhookHeaders::from_iter(headers), request.raw.as_bytes())
}

async fn ok(request: PlayedRequest) {
    request.respond(204, "text/plain", &[], "").await;
}

async fn hook(agent: &Http, id: &Value) -> Value {
    agent.get(&format!("/v1/notify-hooks/{}", id.as_str().unwrap())).await.expect(200)
}

#[tokio::test]
async fn an_item_rings_once_with_a_signature_that_verifies_and_nothing_of_the_payload() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    let created = register(&world.cast.alpha, &receiver, json!({})).await;
    assert!(created["secret"].as_str().unwrap().starts_with("whsec_"), "{created}");
    let id = give(&world, "alpha", "reviews").await;
    let ring = receiver.expect("POST /rings?token=CANARYURL").await;
    let delivery = verify(&ring, &created["secret"]).unwrap();
    assert_eq!(Some(delivery.id.as_str()), ring.header("webhook-id"));
    let body = &ring.body;
    assert_eq!((&body["type"], &body["reason"], &body["todo_id"]), (&json!("todo.ready"), &json!("created"), &json!(id)));
    assert_eq!((&body["queue"], &body["endpoint"], &body["summary"]), (&json!("reviews"), &json!("alpha"), &json!("Buy toner")));
    assert!(!ring.raw.contains("CANARY") && ring.raw.len() <= 4096, "{}", ring.raw);
    ok(ring).await;
    tokio::time::sleep(QUIET).await;
    assert!(receiver.is_quiet(), "one item, one ring");
    let listed = world.cast.alpha.get("/v1/notify-hooks").await;
    let text = String::from_utf8_lossy(&listed.body).into_owned();
    assert!(!text.contains("secret") && !text.contains("CANARYURL"), "{text}");
    let log = world.server.log();
    assert!(!log.contains("CANARYURL") && !log.contains(created["secret"].as_str().unwrap()), "{log}");
}

#[tokio::test]
async fn a_hook_rings_for_its_own_agent_and_its_own_queues_only() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    let beta = world.cast.add("agent", "beta").await;
    register(&beta, &receiver, json!({"queues": ["reviews"]})).await;
    give(&world, "alpha", "reviews").await;
    give(&world, "beta", "mail").await;
    let id = give(&world, "beta", "reviews").await;
    let ring = receiver.request().await;
    assert_eq!((&ring.body["todo_id"], &ring.body["endpoint"]), (&json!(id), &json!("beta")));
    ok(ring).await;
    tokio::time::sleep(QUIET).await;
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn a_foreign_hook_is_not_found_and_the_ceiling_holds() {
    let receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    let beta = world.cast.add("agent", "beta").await;
    let created = register(&world.cast.alpha, &receiver, json!({})).await;
    let path = format!("/v1/notify-hooks/{}", created["id"].as_str().unwrap());
    beta.get(&path).await.expect_problem(404, "not_found");
    beta.delete(&path).await.expect_problem(404, "not_found");
    beta.post(&format!("{path}/rotate"), &json!({})).await.expect_problem(404, "not_found");
    let url = format!("http://{}/x", receiver.address);
    let creates = (0..50).map(|_| {
        let (beta, body) = (beta.clone(), json!({"url": url}));
        tokio::spawn(async move { beta.post("/v1/notify-hooks", &body).await })
    });
    let mut created = 0;
    for create in creates.collect::<Vec<_>>() {
        let answer = create.await.unwrap();
        created += usize::from(answer.status == 201);
        if answer.status != 201 {
            answer.expect_problem(409, "limit_reached");
        }
    }
    assert_eq!(created, 5);
}

#[tokio::test]
async fn a_url_that_reaches_inside_is_refused_and_nothing_is_kept() {
    let receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    let own = world.url().replace("127.0.0.1", "localhost");
    let urls = [
        "http://127.0.0.1:1/",
        "https://10.0.0.1/",
        "https://169.254.169.254/",
        "https://[::1]/",
        "ftp://example.com/",
        "https://user:pw@example.com/",
        &own,
    ];
    for url in urls {
        let problem = world.cast.alpha.post("/v1/notify-hooks", &json!({"url": url})).await.expect_problem(400, "url_refused");
        assert_eq!(problem["pointer"], "/url", "{problem}");
        let callback = json!({"callback_url": url, "auth_mode": "hmac-sha256"});
        let problem = world.cast.alpha.post("/v1/callback-registrations", &callback).await.expect_problem(400, "url_refused");
        assert_eq!(problem["pointer"], "/callback_url", "{problem}");
    }
    for kind in ["notify-hooks", "callback-registrations"] {
        assert_eq!(world.cast.alpha.get(&format!("/v1/{kind}")).await.expect(200)["items"], json!([]));
    }
}

#[tokio::test]
async fn a_redirect_is_final_and_not_followed() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    let created = register(&world.cast.alpha, &receiver, json!({})).await;
    give(&world, "alpha", "inbox").await;
    let elsewhere = format!("http://{}/elsewhere", receiver.address);
    receiver.request().await.respond(302, "text/plain", &[("location", &elsewhere)], "").await;
    eventually("the ring has failed", async || {
        (hook(&world.cast.alpha, &created["id"]).await["health"]["consecutive_failures"] == 1).then_some(())
    })
    .await;
    tokio::time::sleep(QUIET).await;
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn what_fails_is_tried_again_with_the_same_id_and_a_gone_receiver_disables_its_hook() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    let created = register(&world.cast.alpha, &receiver, json!({})).await;
    give(&world, "alpha", "inbox").await;
    let mut ids = HashSet::new();
    for status in [500, 503, 204] {
        let ring = receiver.request().await;
        ids.insert(verify(&ring, &created["secret"]).unwrap().id);
        ring.respond(status, "text/plain", &[], "").await;
    }
    assert_eq!(ids.len(), 1);
    give(&world, "alpha", "inbox").await;
    let ring = receiver.request().await;
    assert!(ids.insert(verify(&ring, &created["secret"]).unwrap().id), "another transition, another id");
    ring.respond(410, "text/plain", &[], "").await;
    eventually("the hook is disabled", async || (hook(&world.cast.alpha, &created["id"]).await["state"] == "disabled").then_some(())).await;
    let log = world.cast.owner.get("/v1/events?after=0&limit=1000").await.expect(200);
    let notices = log["events"].as_array().unwrap().iter().filter(|event| event["type"] == "hook.disabled").count();
    assert_eq!(notices, 1);
    give(&world, "alpha", "inbox").await;
    tokio::time::sleep(QUIET).await;
    assert!(receiver.is_quiet());
    let path = format!("/v1/notify-hooks/{}/enable", created["id"].as_str().unwrap());
    world.cast.alpha.post(&path, &json!({})).await.expect(200);
    let ring = receiver.request().await;
    assert_eq!((&ring.body["reason"], ring.body.get("todo_id")), (&json!("backlog"), None), "{}", ring.raw);
    ok(ring).await;
}

#[tokio::test]
async fn a_receiver_that_hangs_costs_publishing_nothing_and_the_item_is_claimable() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    register(&world.cast.alpha, &receiver, json!({})).await;
    let id = give(&world, "alpha", "inbox").await;
    let hanging = receiver.request().await;
    let since = std::time::Instant::now();
    give(&world, "alpha", "inbox").await;
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    let claims = world.cast.alpha.post("/v1/inbox/claim-next", &json!({})).await.expect(200);
    assert_eq!(claims["claims"][0]["event_id"], json!(id));
    drop(hanging);
}

#[tokio::test]
async fn what_was_claimed_meanwhile_does_not_ring() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[("hooks.retry", "1s,1s")]).await;
    register(&world.cast.alpha, &receiver, json!({})).await;
    give(&world, "alpha", "inbox").await;
    receiver.request().await.respond(500, "text/plain", &[], "").await;
    world.cast.alpha.post("/v1/inbox/claim-next", &json!({})).await.expect(200);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert!(receiver.is_quiet(), "the state is read again before each attempt");
}

#[tokio::test]
async fn a_crash_between_commit_and_ring_loses_no_ring_and_keeps_its_id() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[("hooks.attempt_timeout", "30s")]).await;
    let created = register(&world.cast.alpha, &receiver, json!({})).await;
    let id = give(&world, "alpha", "inbox").await;
    let first = receiver.request().await;
    let before = verify(&first, &created["secret"]).unwrap().id;
    let world = world.crash();
    drop(first);
    let again = receiver.request().await;
    assert_eq!((verify(&again, &created["secret"]).unwrap().id, &again.body["todo_id"]), (before, &json!(id)));
    ok(again).await;
    let next = give(&world, "alpha", "inbox").await;
    let ring = receiver.request().await;
    assert_eq!(ring.body["todo_id"], json!(next));
    ok(ring).await;
}

#[tokio::test]
async fn both_keys_sign_while_a_rotation_overlaps() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    let created = register(&world.cast.alpha, &receiver, json!({})).await;
    let path = format!("/v1/notify-hooks/{}/rotate", created["id"].as_str().unwrap());
    let rotated = world.cast.alpha.post(&path, &json!({})).await.expect(200);
    assert_ne!(rotated["secret"], created["secret"]);
    give(&world, "alpha", "inbox").await;
    let ring = receiver.request().await;
    verify(&ring, &created["secret"]).unwrap();
    verify(&ring, &rotated["secret"]).unwrap();
    assert!(verify(&ring, &json!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).is_err());
    ok(ring).await;
}

#[tokio::test]
async fn an_absent_agent_is_not_rung_until_it_is_back_unless_its_hook_says_so() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    let put = async |body: Value| {
        world.cast.alpha.call("PUT", "/v1/agents/me/presence", &[("content-type", "application/json")], body.to_string()).await
    };
    let quiet = register(&world.cast.alpha, &receiver, json!({})).await;
    put(json!({"state": "out"})).await.expect(200);
    give(&world, "alpha", "inbox").await;
    tokio::time::sleep(QUIET).await;
    assert!(receiver.is_quiet());
    put(json!({"state": "in"})).await.expect(200);
    let ring = receiver.request().await;
    assert_eq!(ring.body["reason"], "backlog");
    ok(ring).await;
    world.cast.alpha.delete(&format!("/v1/notify-hooks/{}", quiet["id"].as_str().unwrap())).await.expect(204);
    register(&world.cast.alpha, &receiver, json!({"ignore_presence": true})).await;
    put(json!({"state": "out"})).await.expect(200);
    let id = give(&world, "alpha", "inbox").await;
    let ring = receiver.request().await;
    assert_eq!(ring.body["todo_id"], json!(id));
    ok(ring).await;
}

#[tokio::test]
async fn a_callback_is_rung_only_after_its_receiver_has_proven_itself() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    let body = json!({
        "tenant_id": "default", "recipient_id": "alpha", "callback_url": format!("http://{}/matm/callback", receiver.address),
        "auth_mode": "hmac-sha256", "secret_id": "cbksec_2026_07", "delivery_scope": ["signal_only"], "max_rate_per_minute": 60,
    });
    let registered = world.cast.alpha.post("/v1/callback-registrations", &body).await.expect(201);
    assert_eq!(registered["status"], "pending_verification");
    let secret = WebhookSecret::parse(registered["secret"].as_str().unwrap()).unwrap();
    let challenge = receiver.expect("POST /matm/callback").await;
    assert_eq!(challenge.body["type"], "callback.challenge");
    for header in ["matm-delivery-id", "matm-timestamp", "matm-nonce", "matm-key-id", "content-digest"] {
        assert!(challenge.header(header).is_some(), "{header} in {}", challenge.head);
    }
    verify(&challenge, &registered["secret"]).unwrap();
    give(&world, "alpha", "inbox").await;
    let answer = WebhookChallenge::read(challenge.raw.as_bytes()).unwrap().answer(&WebhookProver::from(&secret));
    challenge.respond(200, "application/json", &[], &answer).await;
    give(&world, "alpha", "inbox").await;
    let signal = receiver.request().await;
    assert_eq!((&signal.body["signal_type"], &signal.body["recipient_id"]), (&json!("inbox.updated"), &json!("alpha")));
    verify(&signal, &registered["secret"]).unwrap();
    ok(signal).await;
}

#[tokio::test]
async fn secrets_survive_a_change_of_the_master_key_and_are_sealed_on_the_disk() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    let created = register(&world.cast.alpha, &receiver, json!({})).await;
    let options = world.server.options().clone();
    world.server.ask_to_stop();
    assert!(world.server.wait().success());
    let secret = created["secret"].as_str().unwrap().trim_start_matches("whsec_").to_owned();
    let store = std::fs::read(options.data.join("doorstep.sqlite")).unwrap();
    assert!(!store.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()));
    let before = std::fs::read_to_string(options.data.join("master-key")).unwrap();
    let mut rotate = std::process::Command::new(env!("CARGO_BIN_EXE_doorstep"));
    let rotated = rotate.args(["keys", "rotate", "--data-dir"]).arg(&options.data).output().unwrap();
    assert!(rotated.status.success(), "{rotated:?}");
    assert_ne!(std::fs::read_to_string(options.data.join("master-key")).unwrap(), before);
    let world = World::on(testkit::ServerProcess::start(options), world.cast, world.directory);
    give(&world, "alpha", "inbox").await;
    let ring = receiver.request().await;
    verify(&ring, &created["secret"]).unwrap();
    ok(ring).await;
}

#[tokio::test]
async fn the_whole_chain_runs_on_one_machine_from_the_publish_to_the_command() {
    let placeholder = PlayedServer::bind().await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    drop(placeholder);
    let allowed = port.to_string();
    let world = World::with(&[("hooks.allow_http", "true"), ("hooks.allow_networks", &allowed)]).await;
    let hook = json!({"url": format!("http://{port}/")});
    let created = world.cast.alpha.post("/v1/notify-hooks", &hook).await.expect(201);
    let secret = world.directory.path().join("secret");
    std::fs::write(&secret, created["secret"].as_str().unwrap()).unwrap();
    let worked = world.directory.path().join("worked");
    let sweep =
        format!("{} work --idle-timeout 0s -- sh -c 'echo $DOORSTEP_EVENT_ID >> {}'", env!("CARGO_BIN_EXE_doorstep"), worked.display());
    let mut listening = std::process::Command::new(env!("CARGO_BIN_EXE_doorstep"))
        .args(["listen", "--listen", &allowed, "--secret-file"])
        .arg(&secret)
        .args(["--exec", &sweep])
        .env("DOORSTEP_URL", world.url())
        .env("DOORSTEP_TOKEN", world.cast.alpha.token())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the receiver listens", async || std::net::TcpStream::connect(port).ok().map(drop)).await;
    let given = [give(&world, "alpha", "inbox").await, give(&world, "alpha", "inbox").await];
    eventually("both are worked on", async || {
        let text = std::fs::read_to_string(&worked).unwrap_or_default();
        given.iter().all(|id| text.contains(id)).then_some(())
    })
    .await;
    // Asked to stop, it lets the command of the last ring finish: nothing outlives it.
    let asked = std::process::Command::new("kill").args(["-TERM", &listening.id().to_string()]).status().unwrap();
    assert!(asked.success());
    let ended = eventually("the receiver stops", async || listening.try_wait().unwrap()).await;
    assert!(ended.success(), "{ended}");
}

/// A callback of `alpha` whose receiver has answered the challenge.
async fn callback(world: &World, receiver: &mut PlayedServer, rate: u32) -> Value {
    let url = format!("http://{}/callback?token=CANARYURL", receiver.address);
    let body = json!({"callback_url": url, "auth_mode": "hmac-sha256", "max_rate_per_minute": rate});
    let registered = world.cast.alpha.post("/v1/callback-registrations", &body).await.expect(201);
    let secret = WebhookSecret::parse(registered["secret"].as_str().unwrap()).unwrap();
    let challenge = receiver.request().await;
    let answer = WebhookChallenge::read(challenge.raw.as_bytes()).unwrap().answer(&WebhookProver::from(&secret));
    challenge.respond(200, "application/json", &[], &answer).await;
    let path = format!("/v1/callback-registrations/{}", registered["registration_id"].as_str().unwrap());
    eventually("it is active", async || (world.cast.alpha.get(&path).await.expect(200)["status"] == "active").then_some(())).await;
    registered
}

#[tokio::test]
async fn a_callback_whose_rate_is_used_up_leaves_everything_to_polling() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    callback(&world, &mut receiver, 1).await;
    let mut given = Vec::new();
    for _ in 0..5 {
        given.push(give(&world, "alpha", "inbox").await);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(receiver.is_quiet(), "the challenge was this minute's request");
    let page = world.cast.alpha.post("/v1/inbox/poll-after-cursor", &json!({"after_seq": 0})).await.expect(200);
    let polled: Vec<_> = page["events"].as_array().unwrap().iter().map(|item| item["event_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(polled, given, "a poll has them all, at once and in order");
    let claims = world.cast.alpha.post("/v1/inbox/claim-next", &json!({"limit": 10})).await.expect(200);
    assert_eq!(claims["claims"].as_array().unwrap().len(), 5);
    let metrics = world.cast.owner.get("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(metrics.contains("doorstep_hook_outstanding_rings"), "{metrics}");
}

/// The value of a line of the metrics, which is there.
async fn metric(world: &World, line: &str) -> f64 {
    let text = String::from_utf8(world.cast.owner.get("/metrics").await.body.to_vec()).unwrap();
    let value = text.lines().find_map(|each| each.strip_prefix(line)?.strip_prefix(' '));
    assert!(value.is_some(), "no {line} in:\n{text}");
    value.unwrap().parse().unwrap()
}

#[tokio::test]
async fn what_hooks_do_is_counted() {
    let mut receiver = PlayedServer::bind().await;
    let more = [("hooks.outstanding_max", "2"), ("hooks.retry", "500ms,30s"), ("inbox.totals_interval", "200ms")];
    let world = world(&receiver, &more).await;
    let alpha = &world.cast.alpha;
    let registered = callback(&world, &mut receiver, 60).await;
    let path = format!("/v1/callback-registrations/{}", registered["registration_id"].as_str().unwrap());
    alpha.delete(&path).await.expect(204);
    register(alpha, &receiver, json!({})).await;
    give(&world, "alpha", "inbox").await;
    ok(receiver.request().await).await;
    // It fails now, waits for its next attempt, and what comes meanwhile is more than is kept for it.
    give(&world, "alpha", "inbox").await;
    receiver.request().await.respond(503, "text/plain", &[], "").await;
    for _ in 0..4 {
        give(&world, "alpha", "inbox").await;
    }
    // A callback whose receiver does not know its secret.
    let body = json!({"callback_url": format!("http://{}/callback", receiver.address), "auth_mode": "hmac-sha256"});
    let stranger = alpha.post("/v1/callback-registrations", &body).await.expect(201);
    let verify = format!("/v1/callback-registrations/{}/verify", stranger["registration_id"].as_str().unwrap());
    alpha.post(&verify, &json!({"response": "AAAA"})).await.expect_problem(409, "state_conflict");
    alpha.post("/v1/notify-hooks", &json!({"url": "https://10.0.0.1/"})).await.expect_problem(400, "url_refused");
    let counted = async |line: &str, at_least: f64| {
        eventually(line, async || (metric(&world, line).await >= at_least).then_some(())).await;
    };
    counted(r#"doorstep_hook_attempts_total{class="delivered"}"#, 2.0).await;
    counted(r#"doorstep_hook_attempts_total{class="server_error"}"#, 1.0).await;
    counted("doorstep_hook_ring_seconds_count", 1.0).await;
    counted("doorstep_hook_rings_total", 2.0).await;
    counted("doorstep_hook_outstanding_rings", 1.0).await;
    counted(r#"doorstep_hook_rings_dropped_total{cause="collapsed"}"#, 1.0).await;
    counted(r#"doorstep_hook_verifications_total{outcome="verified"}"#, 1.0).await;
    counted(r#"doorstep_hook_verifications_total{outcome="failed"}"#, 1.0).await;
    counted("doorstep_hook_urls_refused_total", 1.0).await;
    assert!(metric(&world, "doorstep_hook_replays_rejected_total").await.abs() < 0.5);
}

#[tokio::test]
async fn a_hook_that_cannot_be_read_is_left_out_and_told_by_the_check_and_the_metrics() {
    const MARKER: &[u8] = b"/a-marker-that-is-easy-to-find";
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[]).await;
    let alpha = world.cast.alpha.clone();
    let whole = register(&alpha, &receiver, json!({})).await;
    let url = format!("http://{}{}", receiver.address, String::from_utf8_lossy(MARKER));
    alpha.post("/v1/notify-hooks", &json!({"url": url})).await.expect(201);
    let options = world.server.options().clone();
    world.server.ask_to_stop();
    assert!(world.server.wait().success());
    let check = || {
        let mut check = std::process::Command::new(env!("CARGO_BIN_EXE_doorstep"));
        let output = check.args(["check", "--data-dir"]).arg(&options.data).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = check();
    assert!(code == Some(0) && said.contains("0 inbox items, 2 hooks read"), "{code:?} {said}");
    let path = options.data.join("doorstep.sqlite");
    let mut bytes = std::fs::read(&path).unwrap();
    while let Some(at) = bytes.windows(MARKER.len()).position(|window| window == MARKER) {
        bytes[at] = b' ';
    }
    std::fs::write(&path, bytes).unwrap();
    let (code, said) = check();
    assert!(code == Some(1) && said.contains("1 hook read") && said.contains("damaged"), "{code:?} {said}");
    let world = World::on(testkit::ServerProcess::start(options), world.cast, world.directory);
    let listed = world.cast.alpha.get("/v1/notify-hooks").await.expect(200);
    assert_eq!((listed["items"].as_array().unwrap().len(), &listed["items"][0]["id"]), (1, &whole["id"]));
    give(&world, "alpha", "inbox").await;
    ok(receiver.request().await).await;
    assert!((metric(&world, r#"doorstep_store_unreadable_rows_total{kind="hook"}"#).await - 1.0).abs() < 0.5);
}

#[tokio::test]
async fn nothing_is_logged_at_any_level_that_shows_a_url_or_a_secret() {
    let mut receiver = PlayedServer::bind().await;
    let world = world(&receiver, &[("log.filter", "trace"), ("hooks.disable_after", "1")]).await;
    let alpha = &world.cast.alpha;
    let created = register(alpha, &receiver, json!({})).await;
    let path = format!("/v1/notify-hooks/{}", created["id"].as_str().unwrap());
    // A ring that is delivered, one that fails and disables, refusals, a rotation, a test, a callback with its challenge.
    give(&world, "alpha", "inbox").await;
    ok(receiver.request().await).await;
    give(&world, "alpha", "inbox").await;
    receiver.request().await.respond(404, "text/plain", &[], "CANARYANSWER").await;
    eventually("the hook is disabled", async || (hook(alpha, &created["id"]).await["state"] == "disabled").then_some(())).await;
    for url in ["https://10.0.0.1/CANARYURL", "https://sam:CANARYURL@example.com/", "https://nowhere.invalid/CANARYURL?CANARYURL"] {
        alpha.post("/v1/notify-hooks", &json!({"url": url})).await.expect_problem(400, "url_refused");
    }
    let rotated = alpha.post(&format!("{path}/rotate"), &json!({})).await.expect(200);
    ok(receiver.request().await).await;
    let testing = {
        let (alpha, path) = (alpha.clone(), format!("{path}/test"));
        // The ring before it may still be written down: a hook is called by one attempt at a time.
        let tried = async move || Some(alpha.post(&path, &json!({})).await).filter(|answer| answer.status != 429);
        tokio::spawn(async move { eventually("it is tried", tried).await })
    };
    ok(receiver.request().await).await;
    testing.await.unwrap().expect(200);
    let registered = callback(&world, &mut receiver, 60).await;
    let log = world.server.log();
    assert!(log.contains("hook rung") && log.contains("a hook is disabled") && log.contains("127.0.0.1"), "it logs: {}", log.len());
    let key = std::fs::read_to_string(world.directory.path().join("data/master-key")).unwrap();
    let secrets = [&created["secret"], &rotated["secret"], &registered["secret"]].map(|secret| secret.as_str().unwrap().to_owned());
    for canary in ["CANARYURL", "CANARYANSWER", "CANARYPAYLOAD", key.trim()].into_iter().chain(secrets.iter().map(String::as_str)) {
        let shown = log.lines().find(|line| line.contains(canary) || line.contains(canary.trim_start_matches("whsec_")));
        assert_eq!(shown, None);
    }
}
