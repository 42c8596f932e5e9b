//! Frames from client to server. The server reads them strictly.

use std::borrow::Cow;

use domain::{ConsumerName, Seq, SessionId, SyncEpoch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::body::{parse_text, utf8};
use crate::strict::present;
use crate::vocabulary::vocabulary;
use crate::{CloseCode, InvalidBody, Secret, Vocabulary, schema};

vocabulary! {
    /// The ops that clients send.
    pub enum ClientOp: "an op of a client" {
        /// Says who connects and begins a session.
        Identify = "identify",
        /// Continues a session on a new connection.
        Resume = "resume",
        /// Acknowledges events, cumulatively.
        Ack = "ack",
        /// Shows that the client lives.
        Heartbeat = "heartbeat",
    }
}

/// Begins a session. The token may instead come as the header `Authorization` of the upgrade; never in the address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an identify frame")]
#[schemars(rename = "GatewayIdentify")]
pub struct Identify {
    /// The access token.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Secret")]
    pub token: Option<Secret>,
    /// The version of the protocol that the client speaks.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub protocol: Option<u64>,
    /// Agents: which consumer this is; `default` when absent. Ignored for people and apps.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::ConsumerName")]
    pub consumer: Option<ConsumerName>,
    /// People and apps: the last position they have. Ignored for agents, whose durable cursor decides.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Seq")]
    pub cursor: Option<Seq>,
    /// People and apps: the epoch that `cursor` belongs to.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::SyncEpoch")]
    pub sync_epoch: Option<SyncEpoch>,
    /// Whether to send `inbox.updated`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub inbox_hints: Option<bool>,
}

/// Continues a session on a new connection. A consumer stays that of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a resume frame")]
#[schemars(rename = "GatewayResume")]
pub struct Resume {
    /// The access token.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Secret")]
    pub token: Option<Secret>,
    /// The session, from `ready`.
    #[schemars(with = "schema::SessionId")]
    pub gateway_session_id: SessionId,
    /// People and apps: the last position they have.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Seq")]
    pub cursor: Option<Seq>,
}

/// Acknowledges everything up to a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an ack frame")]
#[schemars(rename = "GatewayAck")]
pub struct Ack {
    /// Everything up to here is done with. Above the head it is answered with an `error`; at or below what is acknowledged it changes
    /// nothing.
    #[schemars(with = "schema::Seq")]
    pub seq: Seq,
}

/// Shows that the client lives; answered by `heartbeat_ack`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a heartbeat frame")]
#[schemars(rename = "GatewayHeartbeat")]
pub struct Heartbeat {}

/// A frame from a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum ClientFrame {
    /// Begins a session.
    Identify(Identify),
    /// Continues a session.
    Resume(Resume),
    /// Acknowledges.
    Ack(Ack),
    /// Shows that the client lives.
    Heartbeat(Heartbeat),
}

/// Why a frame from a client was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameFault {
    /// The op is not known: the connection closes with 4001.
    #[error("unknown op `{op}`")]
    UnknownOp {
        /// The op, cut to a bounded length.
        op: String,
    },
    /// Not JSON or the wrong shape: the connection closes with 4002.
    #[error("{detail}")]
    Invalid {
        /// The op, when it could be read.
        op: Option<ClientOp>,
        /// A JSON Pointer to what is wrong.
        pointer: String,
        /// What is wrong, for people.
        detail: String,
    },
    /// An integer that no position can have: answered with `error`, `validation_failed`; the connection stays (seed 004, design note 8).
    #[error("{detail}")]
    OutOfRange {
        /// The op.
        op: ClientOp,
        /// A JSON Pointer to the number.
        pointer: String,
        /// What is wrong, for people.
        detail: String,
    },
}

impl FrameFault {
    /// How the connection is closed; `None` when it stays.
    pub const fn close_code(&self) -> Option<CloseCode> {
        match self {
            Self::UnknownOp { .. } => Some(CloseCode::UnknownOp),
            Self::Invalid { .. } => Some(CloseCode::InvalidFrame),
            Self::OutOfRange { .. } => None,
        }
    }
}

/// Of any frame, its op.
#[derive(Deserialize)]
#[serde(expecting = "a frame object")]
struct OpOf<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
}

/// A frame with its op, so that the op is not an unknown member and nothing else may be one.
macro_rules! with_op {
    ($name:ident { $($(#[$meta:meta])* $member:ident: $type:ty),* $(,)? }) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, expecting = "a frame object")]
        struct $name {
            #[serde(rename = "op")]
            _op: serde::de::IgnoredAny,
            $($(#[$meta])* $member: $type,)*
        }
    };
}

with_op!(IdentifyFrame {
    #[serde(default, deserialize_with = "present")]
    token: Option<Secret>,
    #[serde(default, deserialize_with = "present")]
    protocol: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    consumer: Option<ConsumerName>,
    #[serde(default, deserialize_with = "present")]
    cursor: Option<Seq>,
    #[serde(default, deserialize_with = "present")]
    sync_epoch: Option<SyncEpoch>,
    #[serde(default, deserialize_with = "present")]
    inbox_hints: Option<bool>,
});
with_op!(ResumeFrame {
    #[serde(default, deserialize_with = "present")]
    token: Option<Secret>,
    gateway_session_id: SessionId,
    #[serde(default, deserialize_with = "present")]
    cursor: Option<Seq>,
});
with_op!(AckFrame { seq: serde_json::Number });
with_op!(HeartbeatFrame {});

/// Bytes of an unknown op that are repeated to whoever sent it.
const ECHOED_OP: usize = 64;

impl ClientFrame {
    /// Reads a frame.
    ///
    /// # Errors
    /// Which of the three faults it has.
    pub fn parse(frame: impl AsRef<[u8]>) -> Result<Self, FrameFault> {
        let text = utf8(frame.as_ref()).map_err(|fault| invalid(None, fault))?;
        let OpOf { op } = parse_text(text).map_err(|fault| invalid(None, fault))?;
        let Some(op) = ClientOp::from_word(&op) else {
            let end = op.floor_char_boundary(ECHOED_OP);
            return Err(FrameFault::UnknownOp { op: op.get(..end).unwrap_or_default().to_owned() });
        };
        Self::parse_as(op, text)
    }

    fn parse_as(op: ClientOp, text: &str) -> Result<Self, FrameFault> {
        let fault = |fault| invalid(Some(op), fault);
        Ok(match op {
            ClientOp::Identify => {
                let IdentifyFrame { token, protocol, consumer, cursor, sync_epoch, inbox_hints, .. } = parse_text(text).map_err(fault)?;
                Self::Identify(Identify { token, protocol, consumer, cursor, sync_epoch, inbox_hints })
            }
            ClientOp::Resume => {
                let ResumeFrame { token, gateway_session_id, cursor, .. } = parse_text(text).map_err(fault)?;
                Self::Resume(Resume { token, gateway_session_id, cursor })
            }
            ClientOp::Ack => {
                let AckFrame { seq, .. } = parse_text(text).map_err(fault)?;
                Self::Ack(Ack { seq: position(&seq)? })
            }
            ClientOp::Heartbeat => {
                let HeartbeatFrame { .. } = parse_text(text).map_err(fault)?;
                Self::Heartbeat(Heartbeat {})
            }
        })
    }

    /// The frame's op.
    pub const fn op(&self) -> ClientOp {
        match self {
            Self::Identify(_) => ClientOp::Identify,
            Self::Resume(_) => ClientOp::Resume,
            Self::Ack(_) => ClientOp::Ack,
            Self::Heartbeat(_) => ClientOp::Heartbeat,
        }
    }

    /// The frame's JSON text, as a client sends it.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn invalid(op: Option<ClientOp>, fault: InvalidBody) -> FrameFault {
    FrameFault::Invalid { op, pointer: fault.pointer, detail: fault.detail }
}

/// The position of an `ack`: an integer outside the range of positions is a wrong value, anything but an integer a wrong shape.
fn position(number: &serde_json::Number) -> Result<Seq, FrameFault> {
    if let Some(seq) = number.as_u64().and_then(Seq::new) {
        return Ok(seq);
    }
    let (op, pointer) = (ClientOp::Ack, "/seq".to_owned());
    let integer = !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0 && float.abs() > Seq::MAX.get() as f64);
    if integer {
        return Err(FrameFault::OutOfRange { op, pointer, detail: "a seq lies between 0 and the head".to_owned() });
    }
    Err(FrameFault::Invalid { op: Some(op), pointer, detail: "a seq is an integer".to_owned() })
}
