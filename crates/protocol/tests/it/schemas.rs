//! Schemas say what the types do.

use std::collections::BTreeSet;

use domain::{
    AgentSessionId, ChannelId, ChannelRef, ConsumerName, DeduplicationKey, EventId, EventType, GrantId, PrincipalId, Seq, SessionId,
    SpaceId, SyncEpoch, TenantId, Timestamp, TokenId,
};
use protocol::{ClientOp, FrameMessage, ServerOp, admin, frame_messages, schema};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use utoipa::{PartialSchema, ToSchema};

fn openapi<T: PartialSchema>() -> Value {
    serde_json::to_value(T::schema()).unwrap()
}

fn asyncapi<T: JsonSchema>() -> Value {
    T::json_schema(&mut schemars::SchemaGenerator::default()).to_value()
}

/// The description of a wire form is one for both documents, and its examples are read by the type it describes.
fn describes<S: ToSchema + JsonSchema, T: DeserializeOwned>(name: &str) {
    assert_eq!(S::name(), name);
    assert_eq!(S::schema_name(), name);
    assert_eq!(openapi::<S>(), asyncapi::<S>(), "{name}");
    assert!(openapi::<S>()["description"].as_str().is_some_and(|text| text.ends_with('.')), "{name}");
    let examples = openapi::<S>()["examples"].clone();
    let examples = examples.as_array().unwrap();
    assert!(!examples.is_empty(), "{name}");
    for example in examples {
        assert!(serde_json::from_value::<T>(example.clone()).is_ok(), "{name}: {example}");
    }
}

#[test]
fn wire_forms_describe_the_words_of_domain() {
    describes::<schema::TenantId, TenantId>("TenantId");
    describes::<schema::PrincipalId, PrincipalId>("PrincipalId");
    describes::<schema::SpaceId, SpaceId>("SpaceId");
    describes::<schema::ChannelId, ChannelId>("ChannelId");
    describes::<schema::ChannelRef, ChannelRef>("ChannelRef");
    describes::<schema::ConsumerName, ConsumerName>("ConsumerName");
    describes::<schema::EventType, EventType>("EventType");
    describes::<schema::DeduplicationKey, DeduplicationKey>("DeduplicationKey");
    describes::<schema::EventId, EventId>("EventId");
    describes::<schema::SessionId, SessionId>("SessionId");
    describes::<schema::AgentSessionId, AgentSessionId>("AgentSessionId");
    describes::<protocol::Seconds, protocol::Seconds>("Seconds");
    describes::<schema::TokenId, TokenId>("TokenId");
    describes::<schema::GrantId, GrantId>("GrantId");
    describes::<schema::SyncEpoch, SyncEpoch>("SyncEpoch");
    describes::<schema::Seq, Seq>("Seq");
    describes::<schema::Timestamp, Timestamp>("Timestamp");
    describes::<schema::Payload, Value>("Payload");
    describes::<protocol::Label, protocol::Label>("Label");
    describes::<protocol::Summary, protocol::Summary>("Summary");
    describes::<protocol::DisplayName, protocol::DisplayName>("DisplayName");
    describes::<protocol::QueueName, protocol::QueueName>("QueueName");
    describes::<protocol::Secret, protocol::Secret>("Secret");
    describes::<protocol::Correlation, protocol::Correlation>("Correlation");
    describes::<schema::HookId, uuid::Uuid>("HookId");
    describes::<schema::WebhookId, String>("WebhookId");
    describes::<protocol::HookKeyId, protocol::HookKeyId>("HookKeyId");
    describes::<protocol::CallbackUrl, protocol::CallbackUrl>("CallbackUrl");
    describes::<admin::GrantResource, admin::GrantResource>("GrantResource");
}

#[test]
fn bounds_in_schemas_are_the_bounds_of_the_types() {
    assert_eq!(openapi::<schema::Seq>()["maximum"], json!(Seq::MAX.get()));
    let longest = openapi::<schema::EventType>()["maxLength"].as_u64().unwrap();
    assert!(EventType::parse(&"x".repeat(usize::try_from(longest).unwrap())).is_ok());
    assert!(EventType::parse(&"x".repeat(usize::try_from(longest).unwrap() + 1)).is_err());
    let longest = openapi::<schema::DeduplicationKey>()["maxLength"].as_u64().unwrap();
    assert!(DeduplicationKey::parse(&"x".repeat(usize::try_from(longest).unwrap())).is_ok());
    assert!(DeduplicationKey::parse(&"x".repeat(usize::try_from(longest).unwrap() + 1)).is_err());
}

#[test]
fn vocabularies_list_and_explain_their_words() {
    let codes = openapi::<protocol::ProblemCode>();
    assert_eq!(codes["enum"].as_array().unwrap().len(), protocol::ProblemCode::ALL.len());
    for code in protocol::ProblemCode::ALL {
        assert!(codes["description"].as_str().unwrap().contains(&format!("- `{code}`: {}", code.describe())));
    }
}

/// Every place in a schema where `null` would be allowed.
fn nulls(value: &Value, place: &str, found: &mut Vec<String>) {
    if value["type"] == "null" || value["type"].as_array().is_some_and(|types| types.contains(&json!("null"))) {
        found.push(place.to_owned());
    }
    match value {
        Value::Object(members) => members.iter().for_each(|(name, member)| nulls(member, &format!("{place}/{name}"), found)),
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(index, element)| nulls(element, &format!("{place}/{index}"), found));
        }
        _ => {}
    }
}

/// A body's schema: no `null`, every member explained, its example read by the type itself.
fn body<T: ToSchema>(reads_example: impl Fn(&Value) -> bool) {
    let (name, text) = (T::name(), openapi::<T>());
    let mut found = Vec::new();
    nulls(&text, &name, &mut found);
    assert!(found.is_empty(), "null is allowed at {found:?}");
    let parts = text.get("allOf").and_then(Value::as_array).cloned().unwrap_or_else(|| vec![text.clone()]);
    for part in &parts {
        for (member, schema) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
            assert!(schema.get("description").is_some() || schema.get("$ref").is_some(), "{name}/{member} is not explained: {schema}");
        }
    }
    let example = parts.iter().find_map(|part| part.get("example")).or_else(|| text.get("example"));
    assert!(example.is_some_and(reads_example), "{name}: the example is missing or is not read: {example:?}");
}

fn typed<T: DeserializeOwned>(example: &Value) -> bool {
    protocol::parse_body::<T>(example.to_string().as_bytes()).is_ok()
}

#[test]
fn bodies_allow_no_null_explain_their_members_and_have_examples_that_are_read() {
    use protocol::{ConsumerAck, ConsumerItem, ConsumerState, EventBatch, EventEnvelope, EventInput, EventPage, Problem, PublishResponse};
    body::<Problem>(typed::<Problem>);
    body::<EventInput>(typed::<EventInput>);
    body::<EventBatch>(typed::<EventBatch>);
    body::<PublishResponse>(typed::<PublishResponse>);
    body::<EventEnvelope>(typed::<EventEnvelope>);
    body::<EventPage>(typed::<EventPage>);
    body::<ConsumerState>(typed::<ConsumerState>);
    body::<ConsumerItem>(typed::<ConsumerItem>);
    body::<ConsumerAck>(typed::<ConsumerAck>);
    inbox_bodies();
    hook_bodies();
    body::<admin::NewPrincipal>(typed::<admin::NewPrincipal>);
    body::<admin::PrincipalChange>(typed::<admin::PrincipalChange>);
    body::<admin::Principal>(typed::<admin::Principal>);
    body::<admin::Me>(typed::<admin::Me>);
    body::<admin::NewToken>(typed::<admin::NewToken>);
    body::<admin::TokenCreated>(typed::<admin::TokenCreated>);
    body::<admin::TokenItem>(typed::<admin::TokenItem>);
    body::<admin::NewSpace>(typed::<admin::NewSpace>);
    body::<admin::Space>(typed::<admin::Space>);
    body::<admin::NewChannel>(typed::<admin::NewChannel>);
    body::<admin::Channel>(typed::<admin::Channel>);
    body::<admin::NewGrant>(typed::<admin::NewGrant>);
    body::<admin::Grant>(typed::<admin::Grant>);
    body::<admin::NewTenant>(typed::<admin::NewTenant>);
    body::<admin::TenantChange>(typed::<admin::TenantChange>);
    body::<admin::Tenant>(typed::<admin::Tenant>);
    body::<admin::TenantCreated>(typed::<admin::TenantCreated>);
    body::<admin::AuditItem>(typed::<admin::AuditItem>);
    body::<admin::ScheduledItem>(typed::<admin::ScheduledItem>);
    body::<admin::StagedItem>(typed::<admin::StagedItem>);
    body::<admin::BackupRequest>(typed::<admin::BackupRequest>);
    body::<admin::BackupReport>(typed::<admin::BackupReport>);
}

fn hook_bodies() {
    body::<protocol::CallbackPublicKey>(typed::<protocol::CallbackPublicKey>);
    body::<protocol::CallbackRegistered>(typed::<protocol::CallbackRegistered>);
    body::<protocol::CallbackRegistration>(typed::<protocol::CallbackRegistration>);
    body::<protocol::CallbackRotate>(typed::<protocol::CallbackRotate>);
    body::<protocol::CallbackRotated>(typed::<protocol::CallbackRotated>);
    body::<protocol::CallbackVerify>(typed::<protocol::CallbackVerify>);
    body::<protocol::HookAttempt>(typed::<protocol::HookAttempt>);
    body::<protocol::HookHealth>(typed::<protocol::HookHealth>);
    body::<protocol::NewCallbackRegistration>(typed::<protocol::NewCallbackRegistration>);
    body::<protocol::NewNotifyHook>(typed::<protocol::NewNotifyHook>);
    body::<protocol::NotifyHook>(typed::<protocol::NotifyHook>);
    body::<protocol::NotifyHookChange>(typed::<protocol::NotifyHookChange>);
    body::<protocol::NotifyHookCreated>(typed::<protocol::NotifyHookCreated>);
    body::<protocol::NotifyHookRotated>(typed::<protocol::NotifyHookRotated>);
    body::<protocol::PublicSigningKey>(typed::<protocol::PublicSigningKey>);
    body::<protocol::SigningKeys>(typed::<protocol::SigningKeys>);
}

fn inbox_bodies() {
    body::<protocol::AckDone>(typed::<protocol::AckDone>);
    body::<protocol::AckItem>(typed::<protocol::AckItem>);
    body::<protocol::AcknowledgeRequest>(typed::<protocol::AcknowledgeRequest>);
    body::<protocol::AcknowledgeResponse>(typed::<protocol::AcknowledgeResponse>);
    body::<protocol::BulkRequest>(typed::<protocol::BulkRequest>);
    body::<protocol::BulkResponse>(typed::<protocol::BulkResponse>);
    body::<protocol::ClaimBacklog>(typed::<protocol::ClaimBacklog>);
    body::<protocol::ClaimNextRequest>(typed::<protocol::ClaimNextRequest>);
    body::<protocol::ClaimNextResponse>(typed::<protocol::ClaimNextResponse>);
    body::<protocol::ClaimRequest>(typed::<protocol::ClaimRequest>);
    body::<protocol::ClaimResponse>(typed::<protocol::ClaimResponse>);
    body::<protocol::HeartbeatItem>(typed::<protocol::HeartbeatItem>);
    body::<protocol::HeartbeatRequest>(typed::<protocol::HeartbeatRequest>);
    body::<protocol::HeartbeatResponse>(typed::<protocol::HeartbeatResponse>);
    body::<protocol::InboxHead>(typed::<protocol::InboxHead>);
    body::<protocol::InboxItem>(typed::<protocol::InboxItem>);
    body::<protocol::InboxItemFilter>(typed::<protocol::InboxItemFilter>);
    body::<protocol::InboxPolicy>(typed::<protocol::InboxPolicy>);
    body::<protocol::InboxPresence>(typed::<protocol::InboxPresence>);
    body::<protocol::InboxState>(typed::<protocol::InboxState>);
    body::<protocol::ItemAttempt>(typed::<protocol::ItemAttempt>);
    body::<protocol::ItemClaim>(typed::<protocol::ItemClaim>);
    body::<protocol::ItemTarget>(typed::<protocol::ItemTarget>);
    body::<protocol::LeaseExtended>(typed::<protocol::LeaseExtended>);
    body::<protocol::PauseRequest>(typed::<protocol::PauseRequest>);
    body::<protocol::PollRequest>(typed::<protocol::PollRequest>);
    body::<protocol::PollResponse>(typed::<protocol::PollResponse>);
    body::<protocol::PresenceRequest>(typed::<protocol::PresenceRequest>);
    body::<protocol::RecipientRef>(typed::<protocol::RecipientRef>);
    body::<protocol::ReleaseRequest>(typed::<protocol::ReleaseRequest>);
    body::<protocol::SessionSubscribed>(typed::<protocol::SessionSubscribed>);
    body::<protocol::SubscribeRequest>(typed::<protocol::SubscribeRequest>);
}

#[test]
fn optional_members_are_not_required_and_the_others_are() {
    let required = |schema: Value| -> BTreeSet<String> {
        schema["required"].as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    assert_eq!(required(openapi::<protocol::EventInput>()), BTreeSet::from(["type".to_owned()]));
    assert_eq!(
        required(openapi::<protocol::EventEnvelope>()),
        ["actor", "created_at", "id", "seq", "type"].map(str::to_owned).into_iter().collect()
    );
    assert_eq!(
        required(openapi::<protocol::Problem>()),
        ["code", "detail", "request_id", "status", "title", "type"].map(str::to_owned).into_iter().collect()
    );
}

#[test]
fn requests_say_that_other_members_are_refused() {
    for (name, schema) in [
        ("EventInput", openapi::<protocol::EventInput>()),
        ("ConsumerAck", openapi::<protocol::ConsumerAck>()),
        ("NewPrincipal", openapi::<admin::NewPrincipal>()),
        ("AckItem", openapi::<protocol::AckItem>()),
        ("AcknowledgeRequest", openapi::<protocol::AcknowledgeRequest>()),
        ("BulkRequest", openapi::<protocol::BulkRequest>()),
        ("ClaimNextRequest", openapi::<protocol::ClaimNextRequest>()),
        ("ClaimRequest", openapi::<protocol::ClaimRequest>()),
        ("HeartbeatItem", openapi::<protocol::HeartbeatItem>()),
        ("HeartbeatRequest", openapi::<protocol::HeartbeatRequest>()),
        ("InboxItemFilter", openapi::<protocol::InboxItemFilter>()),
        ("InboxPolicy", openapi::<protocol::InboxPolicy>()),
        ("CallbackPublicKey", openapi::<protocol::CallbackPublicKey>()),
        ("CallbackRotate", openapi::<protocol::CallbackRotate>()),
        ("CallbackVerify", openapi::<protocol::CallbackVerify>()),
        ("NewCallbackRegistration", openapi::<protocol::NewCallbackRegistration>()),
        ("NewNotifyHook", openapi::<protocol::NewNotifyHook>()),
        ("NotifyHookChange", openapi::<protocol::NotifyHookChange>()),
        ("ItemTarget", openapi::<protocol::ItemTarget>()),
        ("PauseRequest", openapi::<protocol::PauseRequest>()),
        ("PollRequest", openapi::<protocol::PollRequest>()),
        ("PresenceRequest", openapi::<protocol::PresenceRequest>()),
        ("ReleaseRequest", openapi::<protocol::ReleaseRequest>()),
        ("SubscribeRequest", openapi::<protocol::SubscribeRequest>()),
    ] {
        assert_eq!(schema["additionalProperties"], json!(false), "{name}");
    }
}

#[test]
fn every_frame_is_a_message_with_its_op_and_without_null() {
    let messages = frame_messages();
    let ops = |messages: &[FrameMessage]| messages.iter().map(|message| message.op).collect::<Vec<_>>();
    assert_eq!(ops(&messages.client), ClientOp::ALL.iter().map(|op| op.as_str()).collect::<Vec<_>>());
    assert_eq!(ops(&messages.server), ServerOp::ALL.iter().map(|op| op.as_str()).collect::<Vec<_>>());
    let mut names = BTreeSet::new();
    for message in messages.client.iter().chain(&messages.server) {
        assert!(message.name.starts_with("Gateway") && names.insert(message.name.clone()), "{}", message.name);
        assert_eq!(message.schema["properties"]["op"]["const"], json!(message.op));
        assert_eq!(message.schema["required"][0], json!("op"));
        let mut found = Vec::new();
        nulls(&message.schema, &message.name, &mut found);
        assert!(found.is_empty(), "null is allowed at {found:?}");
        for name in references(&message.schema) {
            assert!(messages.schemas.contains_key(&name), "{}: {name} is not described", message.name);
        }
    }
    for schema in messages.schemas.values() {
        for name in references(schema) {
            assert!(messages.schemas.contains_key(&name), "{name} is not described");
        }
    }
    assert_eq!(messages.client[0].schema["additionalProperties"], json!(false));
    assert_eq!(messages.server[0].schema.get("additionalProperties"), None);
}

fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, member)| match (name.as_str(), member) {
                ("$ref", Value::String(target)) => vec![target.strip_prefix("#/components/schemas/").unwrap().to_owned()],
                _ => references(member),
            })
            .collect(),
        Value::Array(elements) => elements.iter().flat_map(references).collect(),
        _ => vec![],
    }
}
