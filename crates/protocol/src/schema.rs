//! How the words of `domain` look in schemas. `domain` knows no schema, so each of its wire forms is described here once, as a type
//! that exists only to be named in `#[schema(value_type = …)]` and `#[schemars(with = "…")]`.
//!
//! One JSON Schema text serves both generators: OpenAPI (utoipa) and AsyncAPI (schemars).

use serde_json::{Value, json};

/// Reads a JSON Schema of an unnested type as the OpenAPI generator holds it.
pub(crate) fn openapi(schema: Value) -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
    let object: utoipa::openapi::schema::Object = serde_json::from_value(schema).unwrap_or_default();
    utoipa::openapi::RefOr::T(utoipa::openapi::schema::Schema::Object(object))
}

/// Reads a JSON Schema as the AsyncAPI generator holds it.
pub(crate) fn asyncapi(schema: Value) -> schemars::Schema {
    schemars::Schema::try_from(schema).unwrap_or_default()
}

/// `schema` with the text of doc comments as its description.
pub(crate) fn described(mut schema: Value, doc: &[&str]) -> Value {
    let text = doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    if let Some(members) = schema.as_object_mut() {
        members.insert("description".to_owned(), Value::String(text));
    }
    schema
}

/// Implements the schema traits of both generators for a type whose JSON Schema is `$schema`.
macro_rules! impl_schema {
    ($type:ty, $name:expr, $schema:expr) => {
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::schema::openapi($schema)
            }
        }

        impl utoipa::ToSchema for $type {
            fn name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed($name)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed($name)
            }

            fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::schema::asyncapi($schema)
            }
        }
    };
}

pub(crate) use impl_schema;

/// Declares the description of a wire form.
macro_rules! wire_form {
    ($($(#[doc = $doc:literal])+ $name:ident: $schema:expr;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub enum $name {}

        impl_schema!($name, stringify!($name), described($schema, &[$($doc),+]));
    )+};
}

const NAME: &str = "^[a-z0-9][a-z0-9_.-]{0,63}$";

fn text(pattern: &str, example: &str) -> Value {
    json!({"type": "string", "pattern": pattern, "examples": [example]})
}

fn uuid(example: &str) -> Value {
    json!({"type": "string", "format": "uuid", "examples": [example]})
}

wire_form! {
    /// A tenant's name.
    TenantId: text(NAME, "default");
    /// A principal's name, unique in its tenant.
    PrincipalId: text(NAME, "agent_alpha");
    /// A space's name, unique in its tenant.
    SpaceId: text(NAME, "support");
    /// A channel's own name, unique in its space.
    ChannelId: text(NAME, "general");
    /// A channel, written `space/channel`.
    ChannelRef: text("^[a-z0-9][a-z0-9_.-]{0,63}/[a-z0-9][a-z0-9_.-]{0,63}$", "support/general");
    /// A consumer's name, unique under its agent.
    ConsumerName: text("^[a-z0-9][a-z0-9_-]{0,63}$", "default");
    /// What happened: words separated by dots.
    EventType: json!({
        "type": "string", "maxLength": 128, "pattern": "^[a-z0-9_-]+(\\.[a-z0-9_-]+)*$", "examples": ["message.created"],
    });
    /// By what a publish is recognised when it is repeated; no control characters.
    DeduplicationKey: json!({"type": "string", "minLength": 1, "maxLength": 256, "examples": ["msg:room_7:920155"]});
    /// An event's identity; UUIDv7.
    EventId: uuid("0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70");
    /// A hook's identity; UUIDv7.
    HookId: uuid("0197f0ab-9e45-7f99-8b62-af4c8ebf6f55");
    /// A ring's identity, the same over all its attempts: by it a receiver recognises a repeat (header `webhook-id`).
    WebhookId: text("^[A-Za-z0-9_-]{1,64}$", "msg_5DGhYbWzvFJpq3B0tKx9aQeR1Ls");
    /// A session of an agent that is told when work arrives; no credential.
    AgentSessionId: text("^sess_[A-Za-z0-9]{1,59}$", "sess_01j2m7ygf41b5b2n0t3w3d7sm2");
    /// A gateway session.
    SessionId: uuid("0197f0ab-5a01-7c55-9d2e-6b0f4a7d2c11");
    /// An access token's identity; not its secret.
    TokenId: uuid("0197f0ab-6b12-7d66-8e3f-7c1f5b8e3d22");
    /// A grant's identity.
    GrantId: uuid("0197f0ab-7c23-7e77-9f40-8d2a6c9f4e33");
    /// The identity of a log's history; another one after a restore.
    SyncEpoch: uuid("6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10");
    /// A server process, from its start to its end.
    NodeId: uuid("0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70");
    /// A position in the tenant's log.
    Seq: json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": 9_007_199_254_740_991_u64, "examples": [184_392]});
    /// An instant, RFC 3339. Answers carry UTC with milliseconds.
    Timestamp: json!({"type": "string", "format": "date-time", "examples": ["2026-07-12T16:22:03.123Z"]});
    /// Any JSON object, kept verbatim.
    Payload: json!({"type": "object", "additionalProperties": true, "examples": [{"text": "Hello"}]});
}
