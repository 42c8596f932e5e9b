//! REST calls: what is sent, and what an answer becomes.

use std::time::Duration;

use doorstep_client::{Client, ClientError, ClientOptions, EventType, InvalidOptions, PageRequest, Retry};
use protocol::{EventInput, ProblemCode, Secret};
use serde_json::{Value, json};

use crate::http::Http;
use crate::support::{TOKEN, client_of, client_with, within};

async fn me(client: &Client) -> Result<protocol::admin::Me, ClientError> {
    within(client.me()).await
}

fn somebody() -> Value {
    json!({
        "tenant": "default", "id": "sam", "kind": "person", "role": "owner", "token_id": "0197f0ab-6b12-7d66-8e3f-7c1f5b8e3d22",
        "scopes": ["admin", "novelty"], "novelty": {"a": 1}
    })
}

#[tokio::test]
async fn the_token_goes_in_the_header_and_nowhere_else() {
    let mut http = Http::bind().await;
    let client = client_of(http.address);
    let (answer, ()) = tokio::join!(me(&client), async {
        let request = http.request().await;
        assert_eq!(request.line, "GET /v1/me");
        assert!(request.head.contains(&format!("authorization: Bearer {TOKEN}\r\n")), "{}", request.head);
        request.answer(somebody()).await;
    });
    let me = answer.unwrap();
    assert_eq!((me.id.as_str(), me.scopes.len()), ("sam", 2));
    assert!(!format!("{client:?}").contains(TOKEN));
}

#[tokio::test]
async fn a_token_that_is_not_accepted_any_more_is_read_again_from_its_file() {
    let mut http = Http::bind().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), TOKEN).unwrap();
    let client = client_with(http.address, |options| options.token_file = Some(file.path().to_owned()));
    let revoked = json!({"code": "unauthenticated"});
    let (answer, ()) = tokio::join!(me(&client), async { http.request().await.problem(401, revoked.clone()).await });
    assert_eq!(answer.unwrap_err().code(), Some(ProblemCode::Unauthenticated), "the file has the same token: nothing is repeated");
    std::fs::write(file.path(), "dsp_agent_newnewnew\n").unwrap();
    let (answer, ()) = tokio::join!(me(&client), async {
        http.request().await.problem(401, revoked.clone()).await;
        let again = http.request().await;
        assert_eq!((again.line.as_str(), again.header("authorization")), ("GET /v1/me", Some("Bearer dsp_agent_newnewnew")));
        again.answer(somebody()).await;
    });
    answer.unwrap();
    std::fs::write(file.path(), "").unwrap();
    let (answer, ()) = tokio::join!(me(&client), async {
        let next = http.request().await;
        assert_eq!(next.header("authorization"), Some("Bearer dsp_agent_newnewnew"));
        next.problem(401, revoked.clone()).await;
    });
    assert!(answer.is_err() && http.is_quiet(), "an empty file changes nothing");
    assert!(!format!("{client:?}").contains("newnewnew"));
}

#[tokio::test]
async fn events_are_published_as_a_batch() {
    let mut http = Http::bind().await;
    let client = client_of(http.address);
    let events = [EventInput::new(EventType::parse("a.b").unwrap())];
    let (answer, ()) = tokio::join!(within(client.publish(&events)), async {
        let request = http.request().await;
        assert_eq!((request.line.as_str(), &request.body), ("POST /v1/events", &json!({"events": [{"type": "a.b"}]})));
        assert!(request.head.contains("content-type: application/json\r\n"));
        let published = json!({"id": crate::support::id(7), "seq": 7, "deduplicated": false});
        request.respond(201, "application/json", &[], &json!({"events": [published], "head_seq": 7}).to_string()).await;
    });
    assert_eq!(answer.unwrap().events[0].seq.unwrap().get(), 7);
}

#[tokio::test]
async fn a_refusal_keeps_its_problem_and_when_to_come_back() {
    let mut http = Http::bind().await;
    let client = client_of(http.address);
    let problem = json!({
        "type": "x", "title": "x", "status": 429, "code": "rate_limited", "detail": "slower", "request_id": "r-1", "novelty": true
    });
    let (answer, ()) = tokio::join!(me(&client), async {
        let request = http.request().await;
        request.respond(429, "application/problem+json; charset=utf-8", &[("retry-after", "7")], &problem.to_string()).await;
    });
    let error = answer.unwrap_err();
    assert_eq!(error.code(), Some(ProblemCode::RateLimited));
    assert_eq!((error.retry(), error.retry_after()), (Retry::Harmless, Some(Duration::from_secs(7))));
    assert_eq!(error.to_string(), "slower [rate_limited, request r-1]");
}

#[tokio::test]
async fn a_code_that_is_not_known_is_judged_by_its_status() {
    let mut http = Http::bind().await;
    let client = client_of(http.address);
    for (status, retry) in [(409, Retry::Never), (503, Retry::IfIdempotent)] {
        let (answer, ()) = tokio::join!(me(&client), async {
            http.request().await.problem(status, json!({"code": "novelty"})).await;
        });
        let error = answer.unwrap_err();
        assert_eq!((error.code(), error.retry()), (None, retry));
    }
}

#[tokio::test]
async fn what_is_not_this_server_is_told_and_a_redirect_is_not_followed() {
    let mut http = Http::bind().await;
    let client = client_of(http.address);
    for (status, headers, expected) in
        [(404, vec![], "is the address right"), (307, vec![("location", "http://127.0.0.1:1/elsewhere")], "http://127.0.0.1:1/elsewhere")]
    {
        let (answer, ()) = tokio::join!(me(&client), async {
            http.request().await.respond(status, "text/html", &headers, "<html>").await;
        });
        let error = answer.unwrap_err();
        assert!(matches!(error, ClientError::Unexpected { status: found, .. } if found == status), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn an_answer_above_the_bound_is_not_read_into_memory() {
    let mut http = Http::bind().await;
    let client = client_with(http.address, |options| options.max_response_bytes = 1_000);
    let (answer, ()) = tokio::join!(me(&client), async {
        http.request().await.respond(200, "application/json", &[], &"x".repeat(1_001)).await;
    });
    assert!(matches!(answer, Err(ClientError::TooLarge { limit: 1_000 })));
}

#[tokio::test]
async fn an_answer_that_is_not_the_operations_is_told() {
    let mut http = Http::bind().await;
    let client = client_of(http.address);
    for body in ["{}", "nonsense", "[]"] {
        let (answer, ()) = tokio::join!(me(&client), async {
            http.request().await.respond(200, "application/json", &[], body).await;
        });
        assert!(matches!(answer, Err(ClientError::Decode(_))), "{body}");
    }
}

#[tokio::test]
async fn silence_ends_in_time_and_a_lost_connection_is_not_taken_for_an_answer() {
    let mut http = Http::bind().await;
    let client = client_with(http.address, |options| options.request_timeout = Duration::from_millis(50));
    let (answer, request) = tokio::join!(me(&client), http.request());
    let error = answer.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
    assert_eq!(error.retry(), Retry::IfIdempotent);
    drop(request);
    let client = client_of(http.address);
    let (answer, ()) = tokio::join!(me(&client), async { drop(http.request().await) });
    assert_eq!(answer.unwrap_err().retry(), Retry::IfIdempotent);
}

#[tokio::test]
async fn a_server_that_is_not_there_had_no_effect() {
    let address = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let error = me(&client_of(address)).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    assert_eq!(error.retry(), Retry::Harmless);
}

#[tokio::test]
async fn a_creating_call_carries_its_idempotency_key_and_no_other_call_does() {
    let mut http = Http::bind().await;
    let client = client_of(http.address).with_idempotency_key("once");
    let space = protocol::admin::NewSpace { id: "support".parse().unwrap() };
    let (answer, ()) = tokio::join!(within(client.create_space(&space)), async {
        let request = http.request().await;
        assert!(request.head.contains("idempotency-key: once\r\n"), "{}", request.head);
        request.problem(409, json!({"code": "idempotency_conflict"})).await;
    });
    assert_eq!(answer.unwrap_err().code(), Some(ProblemCode::IdempotencyConflict));
    let (_, ()) = tokio::join!(me(&client), async {
        let request = http.request().await;
        assert!(!request.head.contains("idempotency-key"), "{}", request.head);
        request.answer(somebody()).await;
    });
}

#[tokio::test]
async fn every_page_of_a_list_is_read() {
    let mut http = Http::bind().await;
    let client = client_of(http.address);
    let space = |id: &str| json!({"id": id, "created_at": "2026-07-12T16:22:03.123Z"});
    let reading = client.all_pages(|page: PageRequest| {
        let client = client.clone();
        async move { client.spaces(&page).await }
    });
    let (spaces, ()) = tokio::join!(within(reading), async {
        let first = http.request().await;
        assert_eq!(first.line, "GET /v1/spaces");
        first.answer(json!({"items": [space("a")], "next_cursor": "a&b"})).await;
        let second = http.request().await;
        assert_eq!(second.line, "GET /v1/spaces?cursor=a%26b");
        second.answer(json!({"items": [space("b")]})).await;
    });
    let names: Vec<_> = spaces.unwrap().into_iter().map(|space| space.id.to_string()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test]
async fn health_tells_a_server_that_does_not_serve_yet_from_one_that_is_not_there() {
    let mut http = Http::bind().await;
    let client = client_of(http.address);
    let (health, ()) = tokio::join!(within(client.health()), async {
        http.expect("/healthz").await.answer(json!({})).await;
        http.expect("/readyz").await.problem(503, json!({"code": "unavailable"})).await;
    });
    assert_eq!(health.unwrap(), doorstep_client::Health::NotReady);
}

#[test]
fn options_that_cannot_work_are_refused_without_showing_the_token() {
    let with = |url: &str, token: &str| Client::new(ClientOptions::new(url).with_token(Secret::new(token.to_owned())));
    assert!(matches!(with("ftp://x", "t"), Err(InvalidOptions::Address(_))));
    for token in ["", "two words", "line\nbreak", "umläut"] {
        let error = with("http://localhost", token).unwrap_err();
        assert!(matches!(error, InvalidOptions::Token), "{error}");
        assert!(token.is_empty() || !error.to_string().contains(token));
    }
}

#[test]
fn only_a_plain_address_of_another_machine_is_exposed() {
    let exposed = |url: &str| Client::new(ClientOptions::new(url)).unwrap().is_exposed();
    assert!(exposed("http://example.org"));
    assert!(!exposed("http://127.0.0.1:8080"));
}
