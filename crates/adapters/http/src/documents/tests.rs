//! What both documents promise, held against the whole of them.

use std::collections::BTreeSet;

use authz::Action;
use protocol::{ProblemCode, Vocabulary};
use serde_json::{Map, Value, json};

use super::{asyncapi, openapi};

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// Whoever asks may have these.
const PUBLIC: [&str; 7] = ["getHealth", "getReadiness", "getMetrics", "getOpenApi", "getAsyncApi", "getSigningKeys", "openGateway"];

fn document() -> Value {
    serde_json::to_value(openapi()).unwrap()
}

/// Path, method and operation.
fn operations(document: &Value) -> Vec<(&str, &str, &Map<String, Value>)> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| METHODS.iter().filter_map(move |method| Some((path.as_str(), *method, item.get(*method)?.as_object()?))))
        .collect()
}

fn text<'a>(operation: &'a Map<String, Value>, member: &str) -> &'a str {
    operation.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(target)) = members.get("$ref") {
                found.insert(target.clone());
            }
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(elements) => elements.iter().for_each(|element| references(element, found)),
        _ => {}
    }
}

/// The answer itself, where an operation only refers to it.
fn answer<'a>(document: &'a Value, response: &'a Value) -> &'a Value {
    let target = response["$ref"].as_str().and_then(|target| document.pointer(target.strip_prefix('#')?));
    target.unwrap_or(response)
}

#[test]
fn the_document_is_openapi_3_1_and_every_reference_leads_somewhere() {
    let document = document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    assert_eq!(document["info"]["title"], "Doorstep");
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for target in found {
        assert!(document.pointer(target.strip_prefix('#').unwrap()).is_some(), "{target}");
    }
}

#[test]
fn every_operation_has_an_id_of_its_own_a_summary_a_tag_and_an_answer() {
    let document = document();
    let tags: BTreeSet<_> = document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let id = text(operation, "operationId");
        assert!(!id.is_empty() && ids.insert(id.to_owned()), "{method} {path}: {id}");
        assert!(text(operation, "summary").ends_with('.'), "{id} has a summary");
        assert!(operation["tags"].as_array().unwrap().iter().all(|tag| tags.contains(tag.as_str().unwrap())), "{id}");
        let answers = operation["responses"].as_object().unwrap().keys().filter(|status| status.starts_with(['1', '2'])).count();
        assert!(answers >= 1, "{id} has an answer");
    }
    assert!(ids.len() >= 30, "{ids:?}");
}

#[test]
fn every_operation_asks_about_a_registered_action_or_is_public() {
    let document = document();
    let actions: BTreeSet<_> = Action::ALL.iter().map(|action| action.name()).collect();
    let mut asked = BTreeSet::new();
    for (_, _, operation) in operations(&document) {
        let (id, action) = (text(operation, "operationId"), text(operation, "x-action"));
        assert_eq!(action.is_empty(), PUBLIC.contains(&id), "{id} asks about {action:?}");
        assert!(action.is_empty() || actions.contains(action), "{id} asks about {action}");
        let secured = operation["security"].as_array().is_some_and(|required| !required.is_empty());
        assert_eq!(secured, !action.is_empty(), "{id}");
        asked.insert(action);
    }
    for action in actions {
        assert!(asked.contains(action), "no operation asks about {action}");
    }
}

/// Seed 004: TestConsumerRoutesAndOpRegistered.
#[test]
fn consumer_routes_and_op_are_registered_with_their_action() {
    let document = document();
    for (path, method, id) in [
        ("/v1/agents/me/consumers/{consumer}", "get", "getConsumerState"),
        ("/v1/agents/me/consumers/{consumer}/events", "get", "pollAgentEvents"),
        ("/v1/agents/me/consumers/{consumer}/ack", "post", "ackAgentEvents"),
    ] {
        let operation = &document["paths"][path][method];
        assert_eq!((&operation["operationId"], &operation["x-action"]), (&json!(id), &json!("agent.events.consume")), "{path}");
    }
    let ack = &asyncapi()["operations"]["receiveAck"];
    assert_eq!((&ack["x-op"], &ack["x-action"]), (&json!("ack"), &json!(["agent.events.consume"])));
}

#[test]
fn every_problem_code_of_an_operation_is_documented_at_its_status_with_an_example() {
    let document = document();
    for (_, _, operation) in operations(&document) {
        let id = text(operation, "operationId");
        let codes = operation["x-problem-codes"].as_array().unwrap();
        assert!(codes.contains(&json!("validation_failed")) && codes.contains(&json!("internal")), "{id}");
        for word in codes {
            let code = ProblemCode::from_word(word.as_str().unwrap()).unwrap();
            let response = answer(&document, &operation["responses"][code.status().to_string()]);
            let example = &response["content"]["application/problem+json"]["examples"][code.as_str()]["value"];
            assert_eq!((&example["code"], &example["status"]), (word, &json!(code.status())), "{id}");
            assert_eq!(response["content"]["application/problem+json"]["schema"]["$ref"], "#/components/schemas/Problem", "{id}");
        }
    }
}

#[test]
fn refusals_that_pass_say_when_and_missing_credentials_say_how() {
    let document = document();
    let publish = &document["paths"]["/v1/events"]["post"]["responses"];
    assert!(answer(&document, &publish["503"])["headers"]["Retry-After"].is_object());
    assert!(answer(&document, &publish["401"])["headers"]["WWW-Authenticate"].is_object());
    let poll = &document["paths"]["/v1/agents/me/consumers/{consumer}/events"]["get"]["responses"];
    assert!(answer(&document, &poll["429"])["headers"]["Retry-After"].is_object());
}

#[test]
fn every_name_in_a_path_is_a_required_parameter() {
    let document = document();
    for (path, method, operation) in operations(&document) {
        let parameters = operation.get("parameters").and_then(Value::as_array).cloned().unwrap_or_default();
        let declared: BTreeSet<_> = parameters
            .iter()
            .filter(|p| p["in"] == "path" && p["required"] == true)
            .map(|p| p["name"].as_str().unwrap().to_owned())
            .collect();
        let named: BTreeSet<_> = path.split('/').filter_map(|part| Some(part.strip_prefix('{')?.strip_suffix('}')?.to_owned())).collect();
        assert_eq!(declared, named, "{method} {path}");
        for parameter in &parameters {
            assert!(parameter["schema"].is_object() && parameter["description"].is_string(), "{method} {path}: {parameter}");
            // A stream of signals belongs to a session.
            let is_session = parameter["name"] == "session_id";
            assert_eq!(parameter["required"] == true, parameter["in"] == "path" || is_session, "{method} {path}: {parameter}");
        }
    }
}

#[test]
fn creating_operations_can_be_repeated() {
    let document = document();
    // Acknowledging and publishing have keys of their own; a backup names its file; a session is a new one each time. What is done to an
    // inbox by an operator or by the holder of a lease is monotone or matched against the lease, and polling changes nothing. Hooks are rotated,
    // verified and tried again by asking again.
    let exempt = [
        "ackAgentEvents",
        "publishEvents",
        "createBackup",
        "subscribeSession",
        "pollInbox",
        "acknowledgeItems",
        "releaseItem",
        "heartbeatLeases",
        "redriveItems",
        "discardItems",
        "quarantineItem",
        "unquarantineItem",
        "pauseInbox",
        "resumeInbox",
        "rotateNotifyHook",
        "enableNotifyHook",
        "disableNotifyHook",
        "testNotifyHook",
        "verifyCallback",
        "enableCallback",
        "disableCallback",
        "rotateCallback",
    ];
    for (_, method, operation) in operations(&document) {
        let id = text(operation, "operationId");
        let parameters = operation.get("parameters").and_then(Value::as_array).cloned().unwrap_or_default();
        let repeatable = parameters.iter().any(|parameter| parameter["name"] == "idempotency-key");
        assert_eq!(repeatable, method == "post" && !exempt.contains(&id), "{id}");
    }
}

#[test]
fn the_document_is_the_same_each_time() {
    assert_eq!(document().to_string(), document().to_string());
}
