//! Frames from server to client. Clients read them tolerantly: unknown members, words and ops are no fault.

use std::borrow::Cow;

use domain::{ActorKind, ConsumerName, PrincipalId, QueueName, Seq, SessionId, SyncEpoch, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::vocabulary::vocabulary;
use crate::{EventActorKind, EventEnvelope, Open, ProblemCode, Reason, ResyncReason, Vocabulary, schema};

vocabulary! {
    /// The ops that the server sends.
    pub enum ServerOp: "an op of the server" {
        /// The first frame of every connection.
        Hello = "hello",
        /// Answers `identify`: the session has begun.
        Ready = "ready",
        /// Answers `resume`: the session goes on.
        Resumed = "resumed",
        /// An event.
        Dispatch = "dispatch",
        /// Everything up to here has been checked and, if admissible, dispatched.
        Cursor = "cursor",
        /// What was there at `ready` has been sent; from here on events are live.
        CatchupComplete = "catchup.complete",
        /// The position cannot be served; delivery goes on after `head_seq`.
        ResyncRequired = "resync_required",
        /// A hint that the recipient's inbox has moved.
        InboxUpdated = "inbox.updated",
        /// Answers `heartbeat`.
        HeartbeatAck = "heartbeat_ack",
        /// An op was refused; the connection stays.
        Error = "error",
    }
}

/// The first frame of every connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayHello")]
pub struct Hello {
    /// How often the client is to send `heartbeat`, or answer a ping, in milliseconds.
    pub heartbeat_interval_ms: u64,
    /// The version of the protocol that the server speaks.
    pub protocol: u64,
}

/// Who a session belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayPrincipal")]
pub struct ReadyPrincipal {
    /// The kind of principal.
    #[schemars(with = "EventActorKind")]
    pub kind: Open<ActorKind>,
    /// The principal.
    #[schemars(with = "schema::PrincipalId")]
    pub id: PrincipalId,
}

/// Answers `identify`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayReady")]
pub struct Ready {
    /// The session, by which a new connection can resume it.
    #[schemars(with = "schema::SessionId")]
    pub gateway_session_id: SessionId,
    /// Who it belongs to.
    pub principal: ReadyPrincipal,
    /// The log's head.
    #[schemars(with = "schema::Seq")]
    pub head_seq: Seq,
    /// The epoch that positions belong to.
    #[schemars(with = "schema::SyncEpoch")]
    pub sync_epoch: SyncEpoch,
    /// Agents: the consumer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::ConsumerName")]
    pub consumer: Option<ConsumerName>,
    /// Agents: everything up to here is acknowledged; delivery begins after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Seq")]
    pub acked_seq: Option<Seq>,
    /// Agents: how many events may be unacknowledged (`agent.max_inflight_events`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub max_inflight_events: Option<u64>,
    /// Agents: after how many milliseconds an unacknowledged event comes again (`agent.ack_timeout`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub ack_timeout_ms: Option<u64>,
    /// For how many milliseconds the session can be resumed after its connection is lost (`sync.resume_window`).
    pub resume_window_ms: u64,
}

/// Answers `resume`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayResumed")]
pub struct Resumed {
    /// The log's head.
    #[schemars(with = "schema::Seq")]
    pub head_seq: Seq,
    /// Agents: everything up to here is acknowledged; delivery begins after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Seq")]
    pub acked_seq: Option<Seq>,
}

/// An event. It is kept as the text that came; [`EventEnvelope::parse`] reads it. The server writes this frame with
/// [`domain::Event::dispatch_frame`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayDispatch")]
pub struct Dispatch {
    /// The event.
    #[schemars(with = "EventEnvelope")]
    pub event: Box<RawValue>,
}

/// Everything up to here has been checked; numbers that were not dispatched were not for this reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayCursor")]
pub struct Cursor {
    /// The last position checked.
    #[schemars(with = "schema::Seq")]
    pub seq: Seq,
}

/// What was there at `ready` has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayCatchupComplete")]
pub struct CatchupComplete {
    /// The head that `ready` named.
    #[schemars(with = "schema::Seq")]
    pub head_seq: Seq,
}

/// The position cannot be served. Read the current state afresh; delivery goes on after `head_seq`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayResyncRequired")]
pub struct ResyncRequired {
    /// Why.
    #[schemars(with = "ResyncReason")]
    pub reason: Open<ResyncReason>,
    /// The log's head, where delivery goes on.
    #[schemars(with = "schema::Seq")]
    pub head_seq: Seq,
    /// The log's present epoch.
    #[schemars(with = "schema::SyncEpoch")]
    pub sync_epoch: SyncEpoch,
    /// The lowest retained position.
    #[schemars(with = "schema::Seq")]
    pub floor_seq: Seq,
}

/// A hint that the recipient's inbox has moved. Losing one costs latency and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayInboxUpdated")]
pub struct InboxUpdated {
    /// The kind of signal: `inbox.updated`.
    pub signal_type: String,
    /// The tenant.
    #[schemars(with = "schema::TenantId")]
    pub tenant_id: TenantId,
    /// The agent whose inbox it is.
    #[schemars(with = "schema::PrincipalId")]
    pub recipient_id: PrincipalId,
    /// The recipient's head.
    #[schemars(with = "schema::Seq")]
    pub head_seq: Seq,
    /// The epoch that the head belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::SyncEpoch")]
    pub sync_epoch: Option<SyncEpoch>,
    /// About how many items are not acknowledged.
    pub approximate_unacked: u64,
    /// Present and `true` when an absence or a pause is over: poll from 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resync: bool,
    /// With `resync`: how much waits in each queue that has something. Absent otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueDigest>,
    /// This signal's identity.
    pub delivery_id: String,
    /// When it was sent.
    #[schemars(with = "schema::Timestamp")]
    pub sent_at_utc: Timestamp,
}

/// How much waits in a queue: counts only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayQueueDigest")]
pub struct QueueDigest {
    /// The queue.
    #[schemars(with = "crate::QueueName")]
    pub queue: QueueName,
    /// Items that can be claimed, counted up to `inbox.backlog_count_max`.
    pub available: u64,
}

/// Answers `heartbeat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayHeartbeatAck")]
pub struct HeartbeatAck {}

/// An op was refused; the connection stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayError")]
pub struct GatewayError {
    /// The op that was refused. (`op` itself is `error`, as in every frame.)
    pub refused_op: String,
    /// What went wrong, for programs.
    #[schemars(with = "ProblemCode")]
    pub code: Open<ProblemCode>,
    /// What went wrong, for people.
    pub detail: String,
    /// A JSON Pointer into the frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub pointer: Option<String>,
    /// Why, where the code alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reason")]
    pub reason: Option<Open<Reason>>,
}

/// A frame from the server.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum ServerFrame {
    /// The first frame of every connection.
    Hello(Hello),
    /// The session has begun.
    Ready(Ready),
    /// The session goes on.
    Resumed(Resumed),
    /// An event.
    Dispatch(Dispatch),
    /// Everything up to here has been checked.
    Cursor(Cursor),
    /// What was there at `ready` has been sent.
    #[serde(rename = "catchup.complete")]
    CatchupComplete(CatchupComplete),
    /// The position cannot be served.
    ResyncRequired(ResyncRequired),
    /// The inbox has moved.
    #[serde(rename = "inbox.updated")]
    InboxUpdated(InboxUpdated),
    /// Answers `heartbeat`.
    HeartbeatAck(HeartbeatAck),
    /// An op was refused.
    Error(GatewayError),
    /// An op that this version does not know. Clients ignore it; the server never sends it.
    #[serde(skip)]
    Unknown {
        /// The op.
        op: String,
    },
}

/// Of any frame, its op.
#[derive(Deserialize)]
struct OpOf<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
}

/// How the server begins a dispatch. Recognised by its text, the most frequent frame is read in one pass.
const DISPATCH_OPEN: &[u8] = br#"{"op":"dispatch","event":"#;

impl ServerFrame {
    /// Reads a frame, as a client does: unknown members are ignored, an unknown op is [`ServerFrame::Unknown`].
    ///
    /// # Errors
    /// When the text is not a frame, or a known frame lacks a member.
    pub fn parse(frame: impl AsRef<[u8]>) -> serde_json::Result<Self> {
        let text = frame.as_ref();
        if text.starts_with(DISPATCH_OPEN) {
            return serde_json::from_slice(text).map(Self::Dispatch);
        }
        let OpOf { op } = serde_json::from_slice(text)?;
        Ok(match ServerOp::from_word(&op) {
            Some(ServerOp::Hello) => Self::Hello(serde_json::from_slice(text)?),
            Some(ServerOp::Ready) => Self::Ready(serde_json::from_slice(text)?),
            Some(ServerOp::Resumed) => Self::Resumed(serde_json::from_slice(text)?),
            Some(ServerOp::Dispatch) => Self::Dispatch(serde_json::from_slice(text)?),
            Some(ServerOp::Cursor) => Self::Cursor(serde_json::from_slice(text)?),
            Some(ServerOp::CatchupComplete) => Self::CatchupComplete(serde_json::from_slice(text)?),
            Some(ServerOp::ResyncRequired) => Self::ResyncRequired(serde_json::from_slice(text)?),
            Some(ServerOp::InboxUpdated) => Self::InboxUpdated(serde_json::from_slice(text)?),
            Some(ServerOp::HeartbeatAck) => Self::HeartbeatAck(HeartbeatAck {}),
            Some(ServerOp::Error) => Self::Error(serde_json::from_slice(text)?),
            None => Self::Unknown { op: op.into_owned() },
        })
    }

    /// The frame's JSON text, as the server sends it.
    pub fn encode(&self) -> String {
        // Cannot fail but for `Unknown`, which the server does not make.
        serde_json::to_string(self).unwrap_or_default()
    }
}
