//! Events as clients read them. How the server writes them is in `encode`.

use domain::{ActorKind, ChannelRef, DeduplicationKey, EventId, EventType, PrincipalId, Seq, SyncEpoch, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::vocabulary::vocabulary;
use crate::{Correlation, Label, Open, PayloadRef, Priority, schema};

vocabulary! {
    /// The kinds of actors as schemas show them; code uses [`domain::ActorKind`].
    pub enum EventActorKind: "a kind of actor: person, app, agent or server" {
        /// A human being.
        Person = "person",
        /// A program that publishes or reads with its own cursor.
        App = "app",
        /// A program that consumes with a durable cursor.
        Agent = "agent",
        /// The server itself.
        Server = "server",
    }
}

/// Who caused an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, JsonSchema)]
pub struct EventActor {
    /// The kind of principal.
    #[schema(value_type = EventActorKind)]
    #[schemars(with = "EventActorKind")]
    pub kind: Open<ActorKind>,
    /// The principal.
    #[schema(value_type = schema::PrincipalId)]
    #[schemars(with = "schema::PrincipalId")]
    pub id: PrincipalId,
}

/// An event as it is delivered. Members that this version does not know are ignored.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, JsonSchema)]
#[schema(example = json!({
    "seq": 184_392, "id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "type": "message.created", "created_at": "2026-07-12T16:22:03.123Z",
    "actor": {"kind": "person", "id": "sam"}, "channel": "support/general", "audience": ["agent_alpha"], "priority": "normal",
    "deduplication_key": "msg:room_7:920155", "correlation": {"meeting_room_id": "room_7"},
    "payload_ref": {"kind": "meeting_room_message", "id": "920155"}, "payload": {"text": "…"}
}))]
pub struct EventEnvelope {
    /// Its position in the tenant's log.
    #[schema(value_type = schema::Seq)]
    #[schemars(with = "schema::Seq")]
    pub seq: Seq,
    /// Its identity, by which receivers recognise a repeat.
    #[schema(value_type = schema::EventId)]
    #[schemars(with = "schema::EventId")]
    pub id: EventId,
    /// What happened.
    #[serde(rename = "type")]
    #[schema(value_type = schema::EventType)]
    #[schemars(with = "schema::EventType")]
    pub event_type: EventType,
    /// When it was accepted.
    #[schema(value_type = schema::Timestamp)]
    #[schemars(with = "schema::Timestamp")]
    pub created_at: Timestamp,
    /// Who caused it.
    pub actor: EventActor,
    /// Where it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::ChannelRef)]
    #[schemars(with = "schema::ChannelRef")]
    pub channel: Option<ChannelRef>,
    /// To whom it is addressed beside the readers of the channel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::PrincipalId>)]
    #[schemars(with = "Vec<schema::PrincipalId>")]
    pub audience: Vec<PrincipalId>,
    /// How urgent it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Priority)]
    #[schemars(with = "Priority")]
    pub priority: Option<Open<Priority>>,
    /// By what a repeated publish is recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::DeduplicationKey)]
    #[schemars(with = "schema::DeduplicationKey")]
    pub deduplication_key: Option<DeduplicationKey>,
    /// References by which a receiver finds what belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Correlation)]
    #[schemars(with = "Correlation")]
    pub correlation: Option<Correlation>,
    /// What it is about, in the publisher's own system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = EventPayloadRef)]
    #[schemars(with = "EventPayloadRef")]
    pub payload_ref: Option<EventPayloadRef>,
    /// The publisher's own word for what kind of work it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Label)]
    #[schemars(with = "Label")]
    pub kind: Option<Label>,
    /// The publisher's own word for where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Label)]
    #[schemars(with = "Label")]
    pub source: Option<Label>,
    /// One line about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    #[schemars(with = "String")]
    pub summary: Option<String>,
    /// After when nobody needs to work on it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    #[schemars(with = "schema::Timestamp")]
    pub expires_at: Option<Timestamp>,
    /// What the publisher sent, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Payload)]
    #[schemars(with = "schema::Payload")]
    pub payload: Option<Box<RawValue>>,
    /// Present and `true` when this consumer was sent the event before and did not acknowledge it in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redelivered: bool,
}

/// Of an event, what orders and recognises it: much cheaper to read than the whole envelope.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct EventHead {
    /// Its position in the tenant's log.
    pub seq: Seq,
    /// Its identity, by which receivers recognise a repeat.
    pub id: EventId,
    /// Whether this consumer was sent the event before and did not acknowledge it in time.
    #[serde(default)]
    pub redelivered: bool,
}

impl EventHead {
    /// Reads the head of an envelope from its JSON text.
    ///
    /// # Errors
    /// When the text is not an envelope.
    pub fn parse(text: &RawValue) -> serde_json::Result<Self> {
        serde_json::from_str(text.get())
    }
}

/// [`PayloadRef`] as a client reads it: members that it does not know are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, JsonSchema)]
pub struct EventPayloadRef {
    /// The kind of thing.
    pub kind: Label,
    /// The thing.
    pub id: Label,
}

impl From<PayloadRef> for EventPayloadRef {
    fn from(PayloadRef { kind, id }: PayloadRef) -> Self {
        Self { kind, id }
    }
}

impl EventEnvelope {
    /// Reads an envelope from its JSON text, which stays the record: print or forward that rather than this view.
    ///
    /// # Errors
    /// When the text is not an envelope.
    pub fn parse(text: &RawValue) -> serde_json::Result<Self> {
        serde_json::from_str(text.get())
    }
}

/// A page of events as a client reads it. Each event is kept as the text that came; [`EventEnvelope::parse`] reads it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "events": [{
        "seq": 184_392, "id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "type": "message.created",
        "created_at": "2026-07-12T16:22:03.123Z", "actor": {"kind": "person", "id": "sam"}, "channel": "support/general",
        "payload": {"text": "…"}
    }],
    "next_cursor": 184_392, "head_seq": 184_392, "sync_epoch": "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10"
}))]
pub struct EventPage {
    /// The events, in order.
    #[schema(value_type = Vec<EventEnvelope>)]
    pub events: Vec<Box<RawValue>>,
    /// The last position that was checked; what may not be seen is skipped. Acknowledge it, or pass it as `after`.
    #[schema(value_type = schema::Seq)]
    pub next_cursor: Seq,
    /// The log's head.
    #[schema(value_type = schema::Seq)]
    pub head_seq: Seq,
    /// The epoch that the positions belong to.
    #[schema(value_type = schema::SyncEpoch)]
    pub sync_epoch: SyncEpoch,
    /// Present and `true` when nothing was dispatched because the page before is not yet known to have arrived. `next_cursor` is then
    /// the acknowledged position: do not pass it as `after`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven: bool,
}
