//! Notify hooks, from the outside.

use doorstep_http::Settings;
use serde_json::{Value, json};

use crate::support::{Options, World};

const HOOKS: &str = "/v1/notify-hooks";
const NOWHERE: &str = "0197f0ab-9e45-7f99-8b62-af4c8ebf6f55";
const BODY: &str = r#"{"url":"https://agent.example/doorstep?token=CANARY","queues":["inbox"]}"#;

impl World {
    async fn a_hook(&self) -> (String, Value) {
        let created = self.post(&self.agent, HOOKS, BODY).await.expect(201);
        (format!("{HOOKS}/{}", created["id"].as_str().unwrap()), created)
    }
}

fn has_member_with(value: &Value, word: &str) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, member)| name.contains(word) || has_member_with(member, word)),
        Value::Array(elements) => elements.iter().any(|element| has_member_with(element, word)),
        _ => false,
    }
}

#[tokio::test]
async fn a_hook_is_made_and_its_secret_shown_this_once_and_its_query_never() {
    let world = World::new().await;
    let (hook, created) = world.a_hook().await;
    assert!(hooks::Secret::parse(created["secret"].as_str().unwrap()).is_ok(), "{created}");
    assert!(created.get("secret_shown").is_none());
    let shown = world.get(&world.agent, &hook).await.expect(200);
    let expected = json!({
        "id": created["id"], "agent": "alpha", "url": "https://agent.example/doorstep", "queues": ["inbox"], "ignore_presence": false,
        "state": "active", "health": {"consecutive_failures": 0}, "created_at": created["created_at"]
    });
    assert_eq!(shown, expected);
    let page = world.get(&world.agent, HOOKS).await.expect(200);
    assert_eq!(page, json!({"items": [expected]}));
    assert!(!has_member_with(&page, "secret"));
    for answer in [&created, &shown, &page] {
        assert!(!answer.to_string().contains("CANARY"), "{answer}");
    }
}

#[tokio::test]
async fn a_repeat_under_the_same_key_makes_no_second_hook_and_shows_no_secret() {
    let world = World::with(Options { hooks: hooks::Settings { max_per_agent: 1, ..Default::default() }, ..Options::default() }).await;
    let first = world.post_once(&world.agent, HOOKS, "one", BODY).await.expect(201);
    let again = world.post_once(&world.agent, HOOKS, "one", BODY).await.expect(201);
    assert_eq!((&again["id"], &again["secret_shown"], again.get("secret")), (&first["id"], &json!(true), None));
    assert_eq!(world.hooks.rows().hooks.len(), 1);
    let other = world.post_once(&world.agent, HOOKS, "one", r#"{"url":"https://agent.example/2"}"#).await;
    other.expect_problem(409, "idempotency_conflict", Some("#header/idempotency-key"));
    let second = world.post_once(&world.agent, HOOKS, "two", BODY).await.expect_problem(409, "limit_reached", None);
    assert!(second["detail"].as_str().unwrap().contains("hooks.max_per_agent"), "{second}");
    world.post_once(&world.agent, HOOKS, "", BODY).await.expect_problem(400, "validation_failed", Some("#header/idempotency-key"));
}

#[tokio::test]
async fn operators_name_an_agent_and_agents_only_themselves() {
    let world = World::new().await;
    let beta = world.memory.principal("beta", authz::PrincipalKind::Agent, authz::Role::Member);
    let named = r#"{"url":"https://agent.example/","agent":"alpha"}"#;
    let of_operator = world.post(&world.owner, HOOKS, named).await.expect(201);
    assert_eq!(of_operator["agent"], "alpha");
    world.post(&world.agent, HOOKS, named).await.expect(201);
    world.post(&beta, HOOKS, named).await.expect_problem(404, "not_found", None);
    world.post(&world.owner, HOOKS, r#"{"url":"https://agent.example/","agent":"nobody"}"#).await.expect_problem(404, "not_found", None);
    let own = world.post(&world.owner, HOOKS, r#"{"url":"https://agent.example/"}"#).await.expect_problem(403, "forbidden", None);
    assert_eq!(own["reason"], "subject_kind_not_allowed");
    let page = world.get(&world.owner, &format!("{HOOKS}?agent=alpha&limit=1")).await.expect(200);
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    let next = format!("{HOOKS}?agent=alpha&cursor={}", page["next_cursor"].as_str().unwrap());
    assert_eq!(world.get(&world.owner, &next).await.expect(200)["items"].as_array().unwrap().len(), 1);
    world.get(&beta, &format!("{HOOKS}?agent=alpha")).await.expect_problem(404, "not_found", None);
    assert_eq!(world.get(&beta, HOOKS).await.expect(200), json!({"items": []}));
}

#[tokio::test]
async fn a_foreign_hook_and_one_of_another_kind_are_not_found_by_any_operation() {
    let world = World::new().await;
    let (hook, _) = world.a_hook().await;
    let beta = world.memory.principal("beta", authz::PrincipalKind::Agent, authz::Role::Member);
    let callback = hook.replace("notify-hooks", "callback-registrations");
    let nowhere = format!("{HOOKS}/{NOWHERE}");
    for (token, target) in
        [(&beta, &hook), (&world.app, &hook), (&world.agent, &nowhere), (&world.owner, &nowhere), (&world.agent, &callback)]
    {
        world.get(token, target).await.expect_problem(404, "not_found", None);
        world.delete(token, target).await.expect_problem(404, "not_found", None);
    }
    for (token, target) in [(&beta, &hook), (&world.agent, &nowhere)] {
        world.patch(token, target, "{}").await.expect_problem(404, "not_found", None);
        world.get(token, &format!("{target}/deliveries")).await.expect_problem(404, "not_found", None);
        for what in ["rotate", "enable", "disable", "test"] {
            world.post(token, &format!("{target}/{what}"), "").await.expect_problem(404, "not_found", None);
        }
    }
    for target in [format!("{HOOKS}/x"), format!("{HOOKS}/x/deliveries")] {
        world.get(&world.agent, &target).await.expect_problem(400, "validation_failed", Some("#path/hook"));
    }
    world.get(&world.owner, &hook).await.expect(200);
}

#[tokio::test]
async fn a_url_that_is_not_called_is_refused_with_its_class_and_what_was_found_stays_untold() {
    let world = World::new().await;
    let (hook, _) = world.a_hook().await;
    for (url, reason) in [
        ("/relative", "malformed"),
        ("https://agent.example/#x", "malformed"),
        ("ftp://agent.example/", "scheme"),
        ("https://sam:CANARY@agent.example/", "userinfo"),
        ("https://agent.example:22/", "port"),
        ("https://private.example/CANARY", "network"),
        ("https://nowhere.example/", "unresolvable"),
    ] {
        let body = json!({"url": url}).to_string();
        for answer in [world.post(&world.agent, HOOKS, &body).await, world.patch(&world.agent, &hook, &body).await] {
            let problem = answer.expect_problem(400, "url_refused", Some("/url"));
            assert_eq!(problem["reason"], reason, "{url}");
            assert!(!problem.to_string().contains("CANARY"), "{problem}");
        }
    }
    assert_eq!(world.hooks.rows().hooks.len(), 1, "nothing was stored");
    assert!(world.receivers.called().is_empty(), "nobody was called");
}

#[tokio::test]
async fn a_wrong_member_or_parameter_is_refused_where_it_stands() {
    let world = World::new().await;
    let (hook, _) = world.a_hook().await;
    for (body, pointer) in [
        ("{}", "/url"),
        (r#"{"url":1}"#, "/url"),
        (r#"{"url":"https://agent.example/","agent":"A"}"#, "/agent"),
        (r#"{"url":"https://agent.example/","queues":["A"]}"#, "/queues/0"),
        (r#"{"url":"https://agent.example/","queues":["a","a"]}"#, "/queues/1"),
        (r#"{"url":"https://agent.example/","ignore_presence":"no"}"#, "/ignore_presence"),
        (r#"{"url":"https://agent.example/","secret":"whsec_x"}"#, "/secret"),
    ] {
        world.post(&world.agent, HOOKS, body).await.expect_problem(400, "validation_failed", Some(pointer));
    }
    for (body, pointer) in [(r#"{"url":null}"#, "/url"), (r#"{"queues":[""]}"#, "/queues/0"), (r#"{"state":"active"}"#, "/state")] {
        world.patch(&world.agent, &hook, body).await.expect_problem(400, "validation_failed", Some(pointer));
    }
    for (query, pointer) in [("limit=0", "limit"), ("cursor=x", "cursor"), ("agent=A", "agent"), ("state=active", "state")] {
        let answer = world.get(&world.agent, &format!("{HOOKS}?{query}")).await;
        answer.expect_problem(400, "validation_failed", Some(&format!("#query/{pointer}")));
    }
}

#[tokio::test]
async fn what_is_absent_from_a_change_stays() {
    let world = World::new().await;
    let (hook, _) = world.a_hook().await;
    let changed = world.patch(&world.agent, &hook, r#"{"ignore_presence":true}"#).await.expect(200);
    assert_eq!((&changed["ignore_presence"], &changed["queues"]), (&json!(true), &json!(["inbox"])));
    let changed = world.patch(&world.agent, &hook, r#"{"url":"https://agent.example/2?k=CANARY","queues":[]}"#).await.expect(200);
    assert_eq!((&changed["url"], &changed["queues"]), (&json!("https://agent.example/2"), &json!([])));
    assert_eq!(changed["ignore_presence"], json!(true));
}

#[tokio::test]
async fn a_hook_is_disabled_enabled_rotated_and_removed() {
    let world = World::new().await;
    let (hook, created) = world.a_hook().await;
    let disabled = world.post(&world.agent, &format!("{hook}/disable"), "").await.expect(200);
    assert_eq!((&disabled["state"], &disabled["disabled_cause"]), (&json!("disabled"), &json!("asked")));
    let enabled = world.post(&world.agent, &format!("{hook}/enable"), "").await.expect(200);
    assert_eq!((&enabled["state"], enabled.get("disabled_cause")), (&json!("active"), None));
    let rotated = world.post(&world.agent, &format!("{hook}/rotate"), "").await.expect(200);
    assert_eq!(rotated["id"], created["id"]);
    assert!(rotated["key_id"].is_string() && rotated["previous_until"].is_string(), "{rotated}");
    assert!(hooks::Secret::parse(rotated["secret"].as_str().unwrap()).is_ok() && rotated["secret"] != created["secret"]);
    let twice = world.post(&world.agent, &format!("{hook}/rotate"), "").await.expect(200);
    assert_ne!(twice["secret"], rotated["secret"]);
    assert_eq!(world.delete(&world.agent, &hook).await.status, 204);
    world.get(&world.agent, &hook).await.expect_problem(404, "not_found", None);
    assert!(world.hooks.rows().audit.len() >= 5);
}

#[tokio::test]
async fn a_test_answers_what_the_attempt_brought_and_the_log_keeps_it() {
    let world = World::new().await;
    let (hook, _) = world.a_hook().await;
    let good = world.post(&world.agent, &format!("{hook}/test"), "").await.expect(200);
    assert_eq!(
        (&good["result"], &good["status"], &good["reason"], &good["attempt"]),
        (&json!("delivered"), &json!(200), &json!("test"), &json!(1))
    );
    assert!(good["webhook_id"].as_str().unwrap().starts_with("msg_") && good["latency_ms"].is_u64(), "{good}");
    world.patch(&world.agent, &hook, r#"{"url":"https://down.example/"}"#).await.expect(200);
    let bad = world.post(&world.agent, &format!("{hook}/test"), "").await.expect(200);
    assert_eq!((&bad["result"], bad.get("status")), (&json!("connect"), None));
    let log = world.get(&world.agent, &format!("{hook}/deliveries")).await.expect(200);
    assert_eq!(log, json!({"items": [bad, good]}), "the newest first");
    assert_eq!(world.receivers.called(), ["agent.example", "down.example"]);
    assert_eq!(world.get(&world.agent, &hook).await.expect(200)["state"], json!("active"), "a failed test changes nothing");
}

#[tokio::test]
async fn without_a_master_key_secrets_are_unavailable_and_the_rest_works() {
    let world = World::with(Options { is_without_vault: true, ..Options::default() }).await;
    let answer = world.post(&world.agent, HOOKS, BODY).await;
    let problem = answer.expect_problem(503, "secrets_unavailable", None);
    assert_eq!(answer.header("retry-after"), Some("30"));
    assert!(!problem.to_string().contains("CANARY"));
    world.call("GET", "/.well-known/doorstep-keys", &[], b"").await.expect_problem(503, "secrets_unavailable", None);
    assert_eq!(world.get(&world.agent, HOOKS).await.expect(200), json!({"items": []}));
    assert!(world.hooks.rows().hooks.is_empty());
}

#[tokio::test]
async fn a_page_has_at_most_as_many_hooks_as_a_page_may_have() {
    let http = Settings { max_page_size: 2, ..Settings::default() };
    let world = World::with(Options { http, ..Options::default() }).await;
    for _ in 0..3 {
        world.a_hook().await;
    }
    let page = world.get(&world.agent, &format!("{HOOKS}?limit=1000")).await.expect(200);
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let rest = world.get(&world.agent, &format!("{HOOKS}?cursor={}", page["next_cursor"].as_str().unwrap())).await.expect(200);
    assert_eq!((rest["items"].as_array().unwrap().len(), rest.get("next_cursor")), (1, None));
}
