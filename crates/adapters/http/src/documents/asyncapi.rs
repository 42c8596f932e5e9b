//! The AsyncAPI 3 document of the gateway, from the frames.

use authz::Action;
use protocol::{ClientOp, CloseCode, FrameMessage, PROTOCOL, Reconnect, Vocabulary, frame_messages};
use serde_json::{Map, Value, json};

use super::capitalised;

const CHANNEL: &str = "gateway";

const DESCRIPTION: &str = "\
JSON text frames with the member `op` over WebSocket at `/v1/gateway`. A session begins with `identify` or `resume`; the token is in that frame \
or in the header `Authorization` of the upgrade, never in the address. An `error` keeps the connection; a close code says whether a client may \
reconnect by itself.";

/// The AsyncAPI 3 document.
pub fn asyncapi() -> Value {
    let frames = frame_messages();
    let mut messages = Map::new();
    let mut operations = Map::new();
    for frame in &frames.client {
        messages.insert(message_id(frame), message(frame));
        operations.insert(operation_id("receive", frame), receive(frame));
    }
    for frame in &frames.server {
        messages.insert(message_id(frame), message(frame));
        operations.insert(operation_id("send", frame), operation("send", frame));
    }
    let in_channel: Map<_, _> = messages.keys().map(|id| (id.clone(), reference("components/messages", id))).collect();
    let channel = json!({
        "address": "/v1/gateway",
        "description": "One connection per session. An agent has one connection per consumer: the newest wins, the older one closes with 4015.",
        "messages": in_channel,
        "x-protocol": PROTOCOL,
        "x-close-codes": close_codes(),
    });
    json!({
        "asyncapi": "3.0.0",
        "info": {"title": "Doorstep gateway", "version": env!("CARGO_PKG_VERSION"), "description": DESCRIPTION, "license": {"name": "Apache-2.0"}},
        "defaultContentType": "application/json",
        "channels": {CHANNEL: channel},
        "operations": operations,
        "components": {"messages": messages, "schemas": frames.schemas},
    })
}

/// `identify`, `catchup.complete` → `identify`, `catchupComplete`: ids have no dots.
fn message_id(frame: &FrameMessage) -> String {
    let mut words = frame.op.split(['.', '_']);
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |id, word| id + &capitalised(word))
}

fn operation_id(direction: &str, frame: &FrameMessage) -> String {
    direction.to_owned() + &capitalised(&message_id(frame))
}

fn reference(place: &str, id: &str) -> Value {
    json!({"$ref": format!("#/{place}/{id}")})
}

fn message(frame: &FrameMessage) -> Value {
    json!({"name": frame.op, "title": frame.name, "summary": frame.summary, "payload": frame.schema})
}

fn operation(direction: &str, frame: &FrameMessage) -> Value {
    let message = reference(&format!("channels/{CHANNEL}/messages"), &message_id(frame));
    json!({"action": direction, "channel": reference("channels", CHANNEL), "summary": frame.summary, "messages": [message]})
}

/// What the server receives asks about actions.
fn receive(frame: &FrameMessage) -> Value {
    let mut operation = operation("receive", frame);
    let actions: Vec<&str> = actions_of(frame.op).iter().map(|action| action.name()).collect();
    if let Some(members) = operation.as_object_mut() {
        members.insert("x-op".to_owned(), frame.op.into());
        if !actions.is_empty() {
            members.insert("x-action".to_owned(), actions.into());
        }
    }
    operation
}

/// The actions that an op asks about: agents consume, people and apps read.
fn actions_of(op: &str) -> &'static [Action] {
    match ClientOp::from_word(op) {
        Some(ClientOp::Identify | ClientOp::Resume) => &[Action::AgentEventsConsume, Action::EventsRead],
        Some(ClientOp::Ack) => &[Action::AgentEventsConsume],
        Some(ClientOp::Heartbeat) | None => &[],
    }
}

fn close_codes() -> Vec<Value> {
    let entry = |code: &CloseCode| {
        json!({
            "code": code.number(), "name": code.name(), "description": code.describe(),
            "client_may_reconnect": match code.client_may_reconnect() {
                Reconnect::Never => "never",
                Reconnect::Backoff => "backoff",
                Reconnect::Identify => "identify",
                Reconnect::Delay => "delay",
                Reconnect::Jittered => "jittered",
            },
        })
    };
    CloseCode::ALL.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::asyncapi;

    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(target)) = members.get("$ref") {
                    found.push(target.clone());
                }
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(elements) => elements.iter().for_each(|element| references(element, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = asyncapi();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 20);
        for target in found {
            let pointer = target.strip_prefix('#').unwrap_or_default();
            assert!(document.pointer(pointer).is_some(), "{target}");
        }
    }

    #[test]
    fn every_op_is_an_operation_and_every_close_code_is_listed() {
        let document = asyncapi();
        for operation in ["receiveIdentify", "receiveResume", "receiveAck", "receiveHeartbeat", "sendCatchupComplete", "sendResyncRequired"]
        {
            assert!(document["operations"][operation].is_object(), "{operation}");
        }
        assert_eq!(document["operations"]["receiveAck"]["x-action"], serde_json::json!(["agent.events.consume"]));
        let codes = document["channels"]["gateway"]["x-close-codes"].as_array().unwrap();
        assert!(codes.iter().any(|code| code["code"] == 4015 && code["client_may_reconnect"] == "never"));
        assert_eq!(codes.len(), 18);
    }

    #[test]
    fn the_document_is_the_same_each_time() {
        assert_eq!(asyncapi().to_string(), asyncapi().to_string());
    }
}
