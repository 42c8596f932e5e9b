//! Access tokens.

use std::num::NonZeroU64;

use domain::{PrincipalId, Timestamp, TokenId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::strict::present;
use crate::vocabulary::vocabulary;
use crate::{Open, Secret, schema};

vocabulary! {
    /// A part of what its principal may do, to which a token can be narrowed.
    pub enum Scope: "a scope" {
        /// Publish and schedule.
        Publish = "publish",
        /// Read the log with a cursor of one's own.
        Read = "read",
        /// Consume as an agent.
        Consume = "consume",
        /// Administer the tenant, as far as the role allows.
        Admin = "admin",
        /// Operate the instance, as far as the role allows.
        Instance = "instance",
        /// Agents: poll one's own inbox and look at its items.
        InboxPoll = "inbox.poll",
        /// Agents: claim items of one's own inbox.
        InboxClaim = "inbox.claim",
        /// Agents: acknowledge what one has claimed.
        InboxAck = "inbox.ack",
        /// Agents: give back what one has claimed.
        InboxRelease = "inbox.release",
        /// Agents: extend the lease of what one has claimed.
        InboxHeartbeat = "inbox.heartbeat",
        /// Agents: open sessions and streams of signals.
        StreamSubscribe = "stream.subscribe",
        /// Agents: manage one's own hooks.
        HooksManage = "hooks.manage",
        /// Agents: register callbacks.
        CallbackRegister = "callback.register",
        /// Agents: rotate the keys of callbacks.
        CallbackRotate = "callback.rotate",
    }
}

/// A token to create. `{}` gives one with every scope of its principal's kind that does not expire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a token object")]
#[schema(example = json!({"scopes": ["consume"], "expires_in_seconds": 7_776_000}))]
pub struct NewToken {
    /// What it is narrowed to.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Scope>)]
    pub scopes: Option<Vec<Scope>>,
    /// After how many seconds it is refused.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64, minimum = 1)]
    pub expires_in_seconds: Option<NonZeroU64>,
}

/// A token that was created. Its secret is shown this once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "token_id": "0197f0ab-6b12-7d66-8e3f-7c1f5b8e3d22", "token": "dsp_agent_…", "principal": "agent_alpha", "prefix": "dsp_agent_4fQz",
    "scopes": ["consume"], "created_at": "2026-07-12T16:22:03.123Z", "expires_at": "2026-10-10T16:22:03.123Z"
}))]
pub struct TokenCreated {
    /// The token's identity, by which it is listed and revoked.
    #[schema(value_type = schema::TokenId)]
    pub token_id: TokenId,
    /// The secret. Absent in the replay of a request with an `Idempotency-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Secret)]
    pub token: Option<Secret>,
    /// Present and `true` in such a replay: the secret was shown before and is not known any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret_shown: bool,
    /// Whose it is.
    #[schema(value_type = schema::PrincipalId)]
    pub principal: PrincipalId,
    /// The first characters of the secret, for recognition in listings.
    pub prefix: String,
    /// What it is narrowed to.
    #[schema(value_type = Vec<Scope>)]
    pub scopes: Vec<Open<Scope>>,
    /// When it was created.
    #[schema(value_type = schema::Timestamp)]
    pub created_at: Timestamp,
    /// From when it is refused. Absent when it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub expires_at: Option<Timestamp>,
}

/// A token in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "token_id": "0197f0ab-6b12-7d66-8e3f-7c1f5b8e3d22", "prefix": "dsp_agent_4fQz", "scopes": ["consume"],
    "created_at": "2026-07-12T16:22:03.123Z", "last_used_at": "2026-07-12T17:00:00.000Z"
}))]
pub struct TokenItem {
    /// The token's identity.
    #[schema(value_type = schema::TokenId)]
    pub token_id: TokenId,
    /// The first characters of the secret.
    pub prefix: String,
    /// What it is narrowed to.
    #[schema(value_type = Vec<Scope>)]
    pub scopes: Vec<Open<Scope>>,
    /// When it was created.
    #[schema(value_type = schema::Timestamp)]
    pub created_at: Timestamp,
    /// From when it is refused. Absent when it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to about a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub revoked_at: Option<Timestamp>,
}
