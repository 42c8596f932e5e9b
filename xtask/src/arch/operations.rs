//! The generated API documents against the register: every operation and every op asks about a registered action.
//!
//! The generators write the extension `x-action` (a name, or a list of names) on each operation of both documents, and `x-op`
//! (the member `op` of its frame) on each operation of the AsyncAPI document that the server receives.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::finding::Finding;
use super::register::{REGISTER, Register};
use super::tree::Tree;

const OPENAPI: &str = "api/openapi.json";
const ASYNCAPI: &str = "api/asyncapi.json";
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// Every REST operation has one id and a registered action, or is registered as open.
pub(crate) fn rest(register: &Register, tree: &Tree) -> Vec<Finding> {
    let document = match read(OPENAPI, tree.openapi.as_deref(), "cargo xtask api") {
        Ok(document) => document,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for (route, method, operation) in operations_of(&document) {
        let place = format!("{OPENAPI}: {} {route}", method.to_uppercase());
        let Some(id) = operation.get("operationId").and_then(Value::as_str) else {
            findings.push(Finding::new(place, "has no operationId"));
            continue;
        };
        if !seen.insert(id) {
            findings.push(Finding::new(place, format!("uses operationId {id} again")));
            continue;
        }
        let open = register.listed(|module| &module.open_operations).any(|(operation, _)| operation == id);
        findings.extend(action_problems(register, id, &actions_of(operation), open).map(|problem| Finding::new(&place, problem)));
    }
    if seen.is_empty() {
        findings.push(Finding::new(OPENAPI, "has no operations"));
    }
    let lost = register.listed(|module| &module.open_operations).filter(|(operation, _)| !seen.contains(operation));
    findings.extend(lost.map(|(id, owner)| Finding::new(REGISTER, format!("open operation {id} of {owner} is not in {OPENAPI}"))));
    findings
}

/// The gateway ops that the server receives are the registered ones, with the registered actions.
pub(crate) fn gateway(register: &Register, tree: &Tree) -> Vec<Finding> {
    let document = match read(ASYNCAPI, tree.asyncapi.as_deref(), "cargo xtask api") {
        Ok(document) => document,
        Err(finding) => return vec![finding],
    };
    let mut registered = BTreeMap::<&str, BTreeSet<&str>>::new();
    for module in register.modules.values() {
        registered.extend(module.ops.iter().map(|(op, actions)| (op.as_str(), actions.iter().map(String::as_str).collect())));
        registered.extend(module.open_ops.iter().map(|op| (op.as_str(), BTreeSet::new())));
    }
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for (name, operation) in received(&document) {
        let place = format!("{ASYNCAPI}: {name}");
        let Some(op) = operation.get("x-op").and_then(Value::as_str) else {
            findings.push(Finding::new(place, "has no x-op"));
            continue;
        };
        seen.insert(op);
        match registered.get(op) {
            None => findings.push(Finding::new(place, format!("op {op} is not in {REGISTER}"))),
            Some(expected) if *expected != actions_of(operation) => {
                findings
                    .push(Finding::new(place, format!("op {op} has the actions {:?}; registered: {expected:?}", actions_of(operation))));
            }
            Some(_) => {}
        }
    }
    let lost = registered.keys().filter(|op| !seen.contains(*op));
    findings.extend(lost.map(|op| Finding::new(REGISTER, format!("op {op} is not in {ASYNCAPI}"))));
    findings
}

fn read(path: &str, text: Option<&str>, renew: &str) -> Result<Value, Finding> {
    let text = text.ok_or_else(|| Finding::new(path, format!("is missing; `{renew}` writes it")))?;
    serde_json::from_str(text).map_err(|error| Finding::new(path, format!("is not JSON: {error}")))
}

/// Every operation of an OpenAPI document with its route and method.
fn operations_of(document: &Value) -> impl Iterator<Item = (&str, &str, &Map<String, Value>)> {
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    paths
        .flat_map(|(route, item)| METHODS.iter().filter_map(move |method| Some((route.as_str(), *method, item.get(*method)?.as_object()?))))
}

/// Every operation of an `AsyncAPI` document in which the server receives.
fn received(document: &Value) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
    let operations = document.get("operations").and_then(Value::as_object).into_iter().flatten();
    let operations = operations.filter_map(|(name, operation)| Some((name.as_str(), operation.as_object()?)));
    operations.filter(|(_, operation)| operation.get("action").and_then(Value::as_str) == Some("receive"))
}

/// The extension `x-action`: a name, or a list of names.
fn actions_of(operation: &Map<String, Value>) -> BTreeSet<&str> {
    match operation.get("x-action") {
        Some(Value::String(action)) => BTreeSet::from([action.as_str()]),
        Some(Value::Array(actions)) => actions.iter().filter_map(Value::as_str).collect(),
        _ => BTreeSet::new(),
    }
}

fn action_problems<'a>(register: &'a Register, id: &'a str, actions: &BTreeSet<&'a str>, open: bool) -> impl Iterator<Item = String> {
    let unregistered: Vec<&str> = actions.iter().copied().filter(|action| !register.has_action(action)).collect();
    let unregistered = unregistered.into_iter().map(move |action| format!("{id} asks about {action}, which no module registers"));
    let contradiction = match (actions.is_empty(), open) {
        (true, false) => Some(format!("{id} has no x-action; list it in open_operations of {REGISTER} if everyone may call it")),
        (false, true) => Some(format!("{id} has an action although {REGISTER} lists it as open")),
        _ => None,
    };
    unregistered.chain(contradiction)
}

#[cfg(test)]
mod tests {
    use super::{gateway, rest};
    use crate::arch::fixture::{assert_finds, assert_finds_only, register, tree};

    #[test]
    fn healthy_documents_pass() {
        assert_eq!(rest(&register(), &tree()), []);
        assert_eq!(gateway(&register(), &tree()), []);
    }

    #[test]
    fn an_operation_asks_about_a_registered_action_or_is_registered_as_open() {
        let mut faulty = tree();
        faulty.openapi = Some(
            r#"{"paths": {"/a": {"get": {"operationId": "a"}, "put": {"operationId": "b", "x-action": "lost.action"}, "post": {}},
                          "/b": {"get": {"operationId": "a", "x-action": "me.read"}},
                          "/healthz": {"get": {"operationId": "getHealth", "x-action": "me.read"}}}}"#
                .to_owned(),
        );
        let findings = rest(&register(), &faulty);
        for expected in [
            "GET /a: a has no x-action",
            "PUT /a: b asks about lost.action",
            "POST /a: has no operationId",
            "GET /b: uses operationId a again",
            "getHealth has an action although",
        ] {
            assert_finds(&findings, expected);
        }
        assert_eq!(findings.len(), 5);
    }

    #[test]
    fn open_operations_exist() {
        let mut generous = register();
        generous.modules.get_mut("http").unwrap().open_operations.push("getNothing".to_owned());
        assert_finds_only(&rest(&generous, &tree()), "open operation getNothing of http is not in api/openapi.json");
    }

    #[test]
    fn received_ops_are_the_registered_ones_with_their_actions() {
        let mut faulty = tree();
        faulty.asyncapi = Some(
            r#"{"operations": {"a": {"action": "receive", "x-op": "identify", "x-action": "me.read"},
                               "b": {"action": "receive", "x-op": "rewind"}, "c": {"action": "receive"}}}"#
                .to_owned(),
        );
        let findings = gateway(&register(), &faulty);
        for expected in
            ["a: op identify has the actions", "b: op rewind is not in", "c: has no x-op", "op heartbeat is not in api/asyncapi.json"]
        {
            assert_finds(&findings, expected);
        }
        assert_eq!(findings.len(), 4);
    }

    #[test]
    fn a_document_that_is_missing_broken_or_empty_is_found() {
        let mut faulty = tree();
        faulty.openapi = None;
        faulty.asyncapi = Some("{".to_owned());
        assert_finds_only(&rest(&register(), &faulty), "api/openapi.json: is missing");
        assert_finds_only(&gateway(&register(), &faulty), "api/asyncapi.json: is not JSON");
        faulty.openapi = Some("{}".to_owned());
        assert_finds(&rest(&register(), &faulty), "has no operations");
    }
}
