//! Bodies of `publishEvents`. How they are read is in `parse`.

use std::collections::BTreeMap;

use domain::{ChannelRef, DeduplicationKey, EventId, EventType, PrincipalId, Seq, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::strict::{objects, present, present_object, present_objects};
use crate::vocabulary::vocabulary;
use crate::{Label, QueueName, Summary, schema};

vocabulary! {
    /// How urgent an event is for those who work on it.
    pub enum Priority: "a priority: low, normal, high or urgent" {
        /// After everything else.
        Low = "low",
        /// In turn. What an event without a priority has.
        Normal = "normal",
        /// Before what is normal.
        High = "high",
        /// Before everything else.
        Urgent = "urgent",
    }
}

vocabulary! {
    /// What kind of principal a recipient is.
    pub enum RecipientKind: "a kind of recipient: agent" {
        /// An agent.
        Agent = "agent",
    }
}

/// Who is to work on an event. A recipient joins the audience.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a recipient object")]
pub struct Recipient {
    /// Its kind.
    pub kind: RecipientKind,
    /// The principal.
    #[schema(value_type = schema::PrincipalId)]
    pub id: PrincipalId,
    /// The queue that its item is put in.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = QueueName)]
    pub queue: Option<QueueName>,
}

/// What an event is about, in the publisher's own system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with kind and id")]
pub struct PayloadRef {
    /// The kind of thing.
    #[schema(example = "meeting_room_message")]
    pub kind: Label,
    /// The thing.
    #[schema(example = "920155")]
    pub id: Label,
}

/// References by which a receiver finds what belongs together: names and texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Correlation(pub(crate) BTreeMap<String, String>);

impl Correlation {
    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Every name and value, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, String)> for Correlation {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl<'de> Deserialize<'de> for Correlation {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> serde::de::Visitor<'de> for Entries {
            type Value = Correlation;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Correlation, A::Error> {
                let mut read = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if read.contains_key(&name) {
                        return Err(serde::de::Error::custom(format_args!("duplicate member `{name}`")));
                    }
                    let value = map.next_value::<String>()?;
                    read.insert(name, value);
                }
                Ok(Correlation(read))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

crate::schema::impl_schema!(
    Correlation,
    "Correlation",
    serde_json::json!({
        "type": "object", "additionalProperties": {"type": "string"}, "examples": [{"meeting_room_id": "room_7"}],
        "description": "References by which a receiver finds what belongs together: names and texts.",
    })
);

/// An event as a publisher sends it. It needs a `channel`, an `audience` or `recipients`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an event object")]
#[schema(example = json!({
    "type": "message.created", "channel": "support/general", "audience": ["agent_alpha"], "deduplication_key": "msg:room_7:920155",
    "correlation": {"meeting_room_id": "room_7"}, "payload_ref": {"kind": "meeting_room_message", "id": "920155"},
    "payload": {"text": "Hello"}
}))]
pub struct EventInput {
    /// What happened.
    #[serde(rename = "type")]
    #[schema(value_type = schema::EventType)]
    pub event_type: EventType,
    /// Where: readers of the channel see the event. Needs `post` on it; without a channel, `post` on `*`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::ChannelRef)]
    pub channel: Option<ChannelRef>,
    /// Principals that see the event beside the readers of the channel.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<schema::PrincipalId>)]
    pub audience: Option<Vec<PrincipalId>>,
    /// Agents that are to work on it.
    #[serde(default, deserialize_with = "present_objects", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Recipient>)]
    pub recipients: Option<Vec<Recipient>>,
    /// How urgent it is.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Priority)]
    pub priority: Option<Priority>,
    /// When it is to appear. In the future, it is stored aside and has no `seq` until then.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub available_at: Option<Timestamp>,
    /// After when nobody needs to work on it any more. Lies after `available_at`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub expires_at: Option<Timestamp>,
    /// How often working on it is tried.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, minimum = 1)]
    pub max_attempts: Option<std::num::NonZeroU32>,
    /// The publisher's own word for what kind of work it is.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Label)]
    pub kind: Option<Label>,
    /// The publisher's own word for where it comes from.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Label)]
    pub source: Option<Label>,
    /// One line about it, for hooks and listings. Without one they show the type.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Summary)]
    pub summary: Option<Summary>,
    /// By what a repeat is recognised within `sync.deduplication_window`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::DeduplicationKey)]
    pub deduplication_key: Option<DeduplicationKey>,
    /// References by which a receiver finds what belongs together.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Correlation)]
    pub correlation: Option<Correlation>,
    /// What it is about, in the publisher's own system.
    #[serde(default, deserialize_with = "present_object", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = PayloadRef)]
    pub payload_ref: Option<PayloadRef>,
    /// Any JSON object, kept verbatim.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Payload)]
    pub payload: Option<Box<RawValue>>,
}

impl EventInput {
    /// An event of this type and nothing else.
    pub fn new(event_type: EventType) -> Self {
        Self {
            event_type,
            channel: None,
            audience: None,
            recipients: None,
            priority: None,
            available_at: None,
            expires_at: None,
            max_attempts: None,
            kind: None,
            source: None,
            summary: None,
            deduplication_key: None,
            correlation: None,
            payload_ref: None,
            payload: None,
        }
    }
}

/// Several events that are published together or not at all.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with events")]
#[schema(example = json!({"events": [{"type": "message.created", "channel": "support/general", "payload": {"text": "Hello"}}]}))]
pub struct EventBatch {
    /// The events, in the order in which they are to appear; at most `publish.max_events`.
    #[serde(deserialize_with = "objects")]
    pub events: Vec<EventInput>,
}

/// A publish request: one event object or `{events: […]}`. Clients build it; the server reads it with `parse_publish`.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum PublishRequest {
    /// One event.
    One(Box<EventInput>),
    /// Several events.
    Several(EventBatch),
}

/// An inbox item that a published event left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublishedItem {
    /// The agent that is to work on it.
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: PrincipalId,
    /// The item's position in the agent's inbox.
    #[schema(value_type = schema::Seq)]
    pub inbox_seq: Seq,
}

/// What became of one event of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublishedEvent {
    /// The event; the first one when this is a repeat.
    #[schema(value_type = schema::EventId)]
    pub id: EventId,
    /// Its position. Absent while it is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Seq)]
    pub seq: Option<Seq>,
    /// Whether its deduplication key was known, so that the first event stands.
    pub deduplicated: bool,
    /// Present and `true` while it waits for its `available_at`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduled: bool,
    /// The inbox items that it left. Absent when it has no recipients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inbox: Vec<PublishedItem>,
}

/// The answer to a publish: 201, or 200 when every event was a repeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "events": [{"id": "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70", "seq": 184_392, "deduplicated": false}], "head_seq": 184_392
}))]
pub struct PublishResponse {
    /// One entry per event, in the order of the request.
    pub events: Vec<PublishedEvent>,
    /// The log's committed head.
    #[schema(value_type = schema::Seq)]
    pub head_seq: Seq,
}
