//! Commands that make one call, or a few of one kind.

use serde_json::{Value, json};

use crate::http::Http;
use crate::support::{EPOCH, Ended, alone, event, id, start};

const AT: &str = "2026-07-12T16:22:03.123Z";

/// Runs a command that makes one call, which has to be `line` with `body`, and is answered with `answer`.
async fn call(arguments: &[&str], line: &str, body: Value, answer: Value) -> Ended {
    let mut http = Http::bind().await;
    let running = start(http.address, arguments, std::io::empty());
    let request = http.request().await;
    assert_eq!((request.line.as_str(), &request.body), (line, &body), "{arguments:?}");
    request.answer(answer).await;
    let ended = running.ended().await;
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err.text());
    ended
}

fn principal(id: &str) -> Value {
    json!({"id": id, "kind": "agent", "role": "member", "display_name": "A\u{1b}[31m", "enabled": true, "created_at": AT})
}

#[tokio::test]
async fn every_command_makes_the_call_it_stands_for() {
    let space = json!({"id": "support", "created_at": AT});
    let channel = json!({"channel": "support/general", "space": "support", "id": "general", "created_at": AT});
    let grant = json!({"grant_id": id(1), "principal": "a", "resource": "support/general", "permission": "read", "created_at": AT});
    let tenant = json!({"id": "acme", "state": "active", "head_seq": 0, "sync_epoch": EPOCH, "created_at": AT});
    let consumer = json!({"consumer": "work", "acked_seq": 5, "head_seq": 9, "lag": 4, "in_flight": 2, "holder": {"kind": "rest"}});
    let page = |item: &Value| json!({"items": [item]});
    let none = Value::Null;
    let uuid = id(1);
    let cases = [
        (
            vec!["principal", "create", "agent", "a", "--name", "A", "--role", "operator"],
            "POST /v1/principals".to_owned(),
            json!({"kind": "agent", "id": "a", "display_name": "A", "role": "operator"}),
            principal("a"),
        ),
        (vec!["principal", "ls"], "GET /v1/principals".to_owned(), none.clone(), page(&principal("a"))),
        (vec!["principal", "show", "a"], "GET /v1/principals/a".to_owned(), none.clone(), principal("a")),
        (
            vec!["principal", "update", "a", "--role", "member"],
            "PATCH /v1/principals/a".to_owned(),
            json!({"role": "member"}),
            principal("a"),
        ),
        (vec!["principal", "enable", "a"], "PATCH /v1/principals/a".to_owned(), json!({"enabled": true}), principal("a")),
        (vec!["principal", "disable", "a"], "PATCH /v1/principals/a".to_owned(), json!({"enabled": false}), principal("a")),
        (vec!["principal", "rm", "a"], "DELETE /v1/principals/a".to_owned(), none.clone(), json!({})),
        (
            vec!["token", "ls", "a"],
            "GET /v1/principals/a/tokens".to_owned(),
            none.clone(),
            page(&json!({"token_id": uuid, "prefix": "dsp_agent_4fQz", "scopes": ["consume"], "created_at": AT})),
        ),
        (vec!["token", "revoke", "a", &uuid], format!("DELETE /v1/principals/a/tokens/{uuid}"), none.clone(), json!({})),
        (vec!["space", "create", "support"], "POST /v1/spaces".to_owned(), json!({"id": "support"}), space.clone()),
        (vec!["space", "ls"], "GET /v1/spaces".to_owned(), none.clone(), page(&space)),
        (vec!["space", "rm", "support"], "DELETE /v1/spaces/support".to_owned(), none.clone(), json!({})),
        (
            vec!["channel", "create", "support/general"],
            "POST /v1/spaces/support/channels".to_owned(),
            json!({"id": "general"}),
            channel.clone(),
        ),
        (vec!["channel", "ls", "support"], "GET /v1/spaces/support/channels".to_owned(), none.clone(), page(&channel)),
        (vec!["channel", "rm", "support/general"], "DELETE /v1/spaces/support/channels/general".to_owned(), none.clone(), json!({})),
        (
            vec!["grant", "create", "a", "support/general", "read"],
            "POST /v1/grants".to_owned(),
            json!({"principal": "a", "resource": "support/general", "permission": "read"}),
            grant.clone(),
        ),
        (vec!["grant", "ls", "--principal", "a"], "GET /v1/grants?principal=a".to_owned(), none.clone(), page(&grant)),
        (vec!["grant", "rm", &uuid], format!("DELETE /v1/grants/{uuid}"), none.clone(), json!({})),
        (vec!["tenant", "ls"], "GET /v1/tenants".to_owned(), none.clone(), page(&tenant)),
        (vec!["tenant", "suspend", "acme"], "PATCH /v1/tenants/acme".to_owned(), json!({"state": "suspended"}), tenant.clone()),
        (vec!["tenant", "activate", "acme"], "PATCH /v1/tenants/acme".to_owned(), json!({"state": "active"}), tenant.clone()),
        (vec!["consumer", "show", "work"], "GET /v1/agents/me/consumers/work".to_owned(), none.clone(), consumer.clone()),
        (
            vec!["consumer", "ack", "work", "5", "--sync-epoch", EPOCH],
            "POST /v1/agents/me/consumers/work/ack".to_owned(),
            json!({"seq": 5, "sync_epoch": EPOCH}),
            consumer.clone(),
        ),
        (vec!["events", "scheduled", "ls"], "GET /v1/events/scheduled".to_owned(), none.clone(), json!({"items": []})),
        (vec!["events", "scheduled", "cancel", &uuid], format!("DELETE /v1/events/scheduled/{uuid}"), none.clone(), json!({})),
        (
            vec!["audit", "--decision", "deny", "--actor", "a", "--limit", "5"],
            "GET /v1/audit?limit=5&actor=a&decision=deny".to_owned(),
            none.clone(),
            page(
                &json!({"audit_id": "1", "at": AT, "actor": "a", "action": "events.publish", "target": "x", "decision": "deny", "count": 3}),
            ),
        ),
        (
            vec!["me"],
            "GET /v1/me".to_owned(),
            none.clone(),
            json!({"tenant": "default", "id": "a", "kind": "agent", "role": "member", "token_id": uuid, "scopes": ["consume"]}),
        ),
    ];
    for (arguments, line, body, answer) in cases {
        let ended = call(&arguments, &line, body.clone(), answer.clone()).await;
        assert!(!ended.out.text().contains('\u{1b}'), "{arguments:?}");
        let as_json: Vec<_> = arguments.iter().copied().chain(["--json"]).collect();
        let ended = call(&as_json, &line, body, answer).await;
        // Nothing but JSON for a program to read.
        ended.out.values();
        assert_eq!(ended.err.text(), "", "{arguments:?}");
    }
}

#[tokio::test]
async fn a_list_is_a_table_and_with_json_one_object_a_line() {
    let answer = json!({"items": [principal("a"), principal("agent_beta")]});
    let ended = call(&["principal", "ls"], "GET /v1/principals", Value::Null, answer.clone()).await;
    let expected = [
        "ID          KIND   ROLE    ENABLED  CREATED               NAME",
        "a           agent  member  yes      2026-07-12 16:22:03Z  A [31m",
        "agent_beta  agent  member  yes      2026-07-12 16:22:03Z  A [31m",
    ];
    assert_eq!(ended.out.lines(), expected);
    let ended = call(&["principal", "ls", "--json"], "GET /v1/principals", Value::Null, answer).await;
    assert_eq!(ended.out.values(), [principal("a"), principal("agent_beta")]);
}

#[tokio::test]
async fn a_new_token_stands_alone_on_standard_output() {
    let created = json!({
        "token_id": id(1), "token": "dsp_agent_new", "principal": "a", "prefix": "dsp_agent_n", "scopes": ["consume"], "created_at": AT
    });
    let body = json!({"scopes": ["consume", "publish"], "expires_in_seconds": 7_776_000});
    let arguments = ["token", "create", "a", "--scopes", "consume,publish", "--expires-in", "90d"];
    let ended = call(&arguments, "POST /v1/principals/a/tokens", body, created.clone()).await;
    assert_eq!(ended.out.text(), "dsp_agent_new\n");
    assert!(ended.err.text().contains("shown this once") && !ended.err.text().contains("dsp_agent_new"));
    let ended = call(&["token", "create", "a", "--json"], "POST /v1/principals/a/tokens", json!({}), created).await;
    assert_eq!(ended.out.values()[0]["token"], "dsp_agent_new");
}

#[tokio::test]
async fn the_last_events_are_listed_as_far_as_they_are_kept() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["events", "ls", "--last", "3", "--json"], std::io::empty());
    let page = |events: &[u64]| {
        let events: Vec<_> = events.iter().map(|seq| event(*seq)).collect();
        json!({"events": events, "next_cursor": 10, "head_seq": 10, "sync_epoch": EPOCH})
    };
    let bounds = http.request().await;
    assert_eq!(bounds.line, "GET /v1/events?limit=1");
    bounds.answer(page(&[9])).await;
    let list = http.request().await;
    assert_eq!(list.line, format!("GET /v1/events?after=7&limit=200&sync_epoch={EPOCH}"));
    let gone = json!({"code": "resync_required", "reason": "retention", "head_seq": 10, "floor_seq": 9, "sync_epoch": EPOCH});
    list.problem(410, gone).await;
    let list = http.request().await;
    assert_eq!(list.line, format!("GET /v1/events?limit=200&sync_epoch={EPOCH}"));
    list.answer(page(&[9, 10])).await;
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.out.values()), (0, vec![event(9), event(10)]));
}

#[tokio::test]
async fn every_page_of_the_log_is_read_up_to_the_limit() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["events", "ls", "--after", "1", "--limit", "3"], std::io::empty());
    let first = http.request().await;
    assert_eq!(first.line, "GET /v1/events?after=1&limit=3");
    first.answer(json!({"events": [event(2)], "next_cursor": 5, "head_seq": 99, "sync_epoch": EPOCH})).await;
    let second = http.request().await;
    assert_eq!(second.line, format!("GET /v1/events?after=5&limit=2&sync_epoch={EPOCH}"));
    second.answer(json!({"events": [event(6), event(7)], "next_cursor": 7, "head_seq": 99, "sync_epoch": EPOCH})).await;
    let ended = running.ended().await;
    assert_eq!(ended.code, 0);
    let lines = ended.out.lines();
    assert!(lines[0].starts_with("     SEQ  TIME ") && lines[0].ends_with("ABOUT"), "{}", lines[0]);
    let words: Vec<_> = lines[1].split_whitespace().collect();
    assert_eq!(words, ["2", "2026-07-12", "16:22:03Z", "test.happened", "support/general", "tester", r#"{"n":2}"#]);
}

#[tokio::test]
async fn a_refusal_is_a_sentence_with_code_and_request_on_standard_error() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["consumer", "show", "work"], std::io::empty());
    http.request().await.problem(404, json!({"code": "not_found", "detail": "no such consumer"})).await;
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.out.text()), (1, String::new()));
    assert_eq!(ended.err.text(), "doorstep: consumer work: no such consumer [not_found, request r-1]\n");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_with_what_may_help() {
    let ended = alone(&["me"], "").await;
    assert_eq!(ended.code, 1);
    assert!(ended.err.text().contains("cannot be reached") && ended.err.text().contains("DOORSTEP_URL"), "{}", ended.err.text());
}

#[tokio::test]
async fn a_channel_can_be_created_with_its_space() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["channel", "create", "support/general", "--with-space"], std::io::empty());
    http.request().await.problem(409, json!({"code": "already_exists"})).await;
    let request = http.request().await;
    assert_eq!(request.line, "POST /v1/spaces/support/channels");
    request.answer(json!({"channel": "support/general", "space": "support", "id": "general", "created_at": AT})).await;
    assert_eq!(running.ended().await.code, 0);
}

#[tokio::test]
async fn a_refusal_names_what_was_asked_for() {
    for (arguments, status, code, named) in [
        (vec!["principal", "show", "bob"], 404, "not_found", "principal bob: "),
        (vec!["principal", "create", "agent", "bob"], 409, "already_exists", "principal bob: "),
        (vec!["channel", "create", "support/general"], 409, "already_exists", "channel support/general: "),
        (vec!["consumer", "show", "nightly"], 404, "not_found", "consumer nightly: "),
        (vec!["inbox", "pause", "alpha"], 404, "not_found", "agent alpha: "),
        (vec!["principal", "show", "bob"], 403, "forbidden", ""),
    ] {
        let mut http = Http::bind().await;
        let running = start(http.address, &arguments, std::io::empty());
        http.request().await.problem(status, json!({"code": code, "detail": "it is so"})).await;
        let ended = running.ended().await;
        assert_eq!(ended.code, 1, "{arguments:?}");
        assert!(ended.err.text().starts_with(&format!("doorstep: {named}it is so [{code}")), "{arguments:?}: {}", ended.err.text());
    }
}

#[tokio::test]
async fn a_missing_right_is_named() {
    let scope = json!({"code": "forbidden", "reason": "scope_missing"});
    let permission = json!({"code": "forbidden", "reason": "permission_missing"});
    for (arguments, problem, named) in [
        (vec!["publish", "--type", "a.b"], &permission, "`post` on the channel, or on `*`"),
        (vec!["publish", "--type", "a.b"], &scope, "the scope publish"),
        (vec!["inbox", "ls"], &scope, "the scope inbox.poll"),
        (vec!["inbox", "claim"], &scope, "the scope inbox.claim"),
        (vec!["tenant", "ls"], &scope, "the scope instance"),
    ] {
        let mut http = Http::bind().await;
        let running = start(http.address, &arguments, std::io::empty());
        http.request().await.problem(403, problem.clone()).await;
        let ended = running.ended().await;
        assert_eq!(ended.code, 1, "{arguments:?}");
        assert!(ended.err.text().contains(named), "{arguments:?}: {}", ended.err.text());
    }
}
