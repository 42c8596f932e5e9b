//! Every frame as a message for the AsyncAPI document, from the types that are read and written.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{
    Ack, CatchupComplete, ClientOp, Cursor, Dispatch, GatewayError, Heartbeat, HeartbeatAck, Hello, Identify, InboxUpdated, Ready, Resume,
    Resumed, ResyncRequired, ServerOp,
};

/// A frame as a message.
#[derive(Clone, Debug)]
pub struct FrameMessage {
    /// Its op.
    pub op: &'static str,
    /// The schema's name, such as `GatewayIdentify`.
    pub name: String,
    /// What it is for.
    pub summary: String,
    /// The JSON Schema of the whole frame, `op` included. It refers to `#/components/schemas/…`.
    pub schema: Value,
}

/// All frames, and the schemas that they refer to.
#[derive(Clone, Debug)]
pub struct FrameMessages {
    /// What clients send, in the order of [`ClientOp::ALL`].
    pub client: Vec<FrameMessage>,
    /// What the server sends, in the order of [`ServerOp::ALL`].
    pub server: Vec<FrameMessage>,
    /// What goes under `components.schemas`, by name.
    pub schemas: Map<String, Value>,
}

/// Describes every frame.
pub fn frame_messages() -> FrameMessages {
    let mut reading = generator(SchemaSettings::for_deserialize);
    let client = ClientOp::ALL.iter().map(|&op| client_message(op, &mut reading)).collect();
    let mut writing = generator(SchemaSettings::for_serialize);
    let server = ServerOp::ALL.iter().map(|&op| server_message(op, &mut writing)).collect();
    let mut schemas = reading.take_definitions(true);
    schemas.extend(writing.take_definitions(true));
    FrameMessages { client, server, schemas }
}

fn generator(contract: fn(SchemaSettings) -> SchemaSettings) -> SchemaGenerator {
    contract(SchemaSettings::draft2020_12())
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .into_generator()
}

fn client_message(op: ClientOp, generator: &mut SchemaGenerator) -> FrameMessage {
    match op {
        ClientOp::Identify => message::<Identify>(op.as_str(), op.describe(), generator),
        ClientOp::Resume => message::<Resume>(op.as_str(), op.describe(), generator),
        ClientOp::Ack => message::<Ack>(op.as_str(), op.describe(), generator),
        ClientOp::Heartbeat => message::<Heartbeat>(op.as_str(), op.describe(), generator),
    }
}

fn server_message(op: ServerOp, generator: &mut SchemaGenerator) -> FrameMessage {
    let (word, summary) = (op.as_str(), op.describe());
    match op {
        ServerOp::Hello => message::<Hello>(word, summary, generator),
        ServerOp::Ready => message::<Ready>(word, summary, generator),
        ServerOp::Resumed => message::<Resumed>(word, summary, generator),
        ServerOp::Dispatch => message::<Dispatch>(word, summary, generator),
        ServerOp::Cursor => message::<Cursor>(word, summary, generator),
        ServerOp::CatchupComplete => message::<CatchupComplete>(word, summary, generator),
        ServerOp::ResyncRequired => message::<ResyncRequired>(word, summary, generator),
        ServerOp::InboxUpdated => message::<InboxUpdated>(word, summary, generator),
        ServerOp::HeartbeatAck => message::<HeartbeatAck>(word, summary, generator),
        ServerOp::Error => message::<GatewayError>(word, summary, generator),
    }
}

/// The schema of a frame's members, with `op` in front.
fn message<T: JsonSchema>(op: &'static str, summary: String, generator: &mut SchemaGenerator) -> FrameMessage {
    let mut schema = T::json_schema(generator).to_value();
    if let Some(members) = schema.as_object_mut() {
        let mut properties = Map::from_iter([("op".to_owned(), json!({"type": "string", "const": op}))]);
        if let Some(Value::Object(own)) = members.remove("properties") {
            properties.extend(own);
        }
        let mut required = vec![json!("op")];
        if let Some(Value::Array(own)) = members.remove("required") {
            required.extend(own);
        }
        members.insert("properties".to_owned(), Value::Object(properties));
        members.insert("required".to_owned(), Value::Array(required));
    }
    FrameMessage { op, name: T::schema_name().into_owned(), summary, schema }
}
