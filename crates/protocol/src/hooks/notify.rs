//! Notify hooks: a signed request for each item that becomes claimable (seed 002).

use domain::{PrincipalId, QueueName, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::strict::present;
use crate::{CallbackUrl, DisabledCause, HookHealth, HookKeyId, HookState, Open, Secret, schema};

/// A notify hook to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a hook object")]
#[schema(example = json!({"url": "https://agent-alpha.example.net/doorstep", "queues": ["inbox"], "ignore_presence": false}))]
pub struct NewNotifyHook {
    /// Operators: whose hook it is. The caller's own when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::PrincipalId)]
    pub agent: Option<PrincipalId>,
    /// Where to.
    pub url: CallbackUrl,
    /// Only for items of these queues; of every queue when absent or empty. At most `hooks.max_queues`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<crate::QueueName>)]
    pub queues: Option<Vec<QueueName>>,
    /// Also while the agent is clocked out. `false` when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    pub ignore_presence: Option<bool>,
}

/// What to change about a notify hook. What is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a hook object")]
#[schema(example = json!({"queues": []}))]
pub struct NotifyHookChange {
    /// Another URL. Rings that are on their way go there.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = CallbackUrl)]
    pub url: Option<CallbackUrl>,
    /// Other queues; every queue when empty.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<crate::QueueName>)]
    pub queues: Option<Vec<QueueName>>,
    /// Whether also while the agent is clocked out.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    pub ignore_presence: Option<bool>,
}

/// A notify hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "id": "0197f0ab-9e45-7f99-8b62-af4c8ebf6f55", "agent": "agent_alpha", "url": "https://agent-alpha.example.net/doorstep",
    "queues": ["inbox"], "ignore_presence": false, "state": "active",
    "health": {"last_status": 200, "last_attempt_at": "2026-07-12T16:22:04.000Z", "consecutive_failures": 0},
    "created_at": "2026-07-12T16:00:00.000Z"
}))]
pub struct NotifyHook {
    /// Its identity.
    #[schema(value_type = schema::HookId)]
    pub id: String,
    /// The agent whose inbox it rings for.
    #[schema(value_type = schema::PrincipalId)]
    pub agent: PrincipalId,
    /// Where to, without the query.
    pub url: CallbackUrl,
    /// Only for items of these queues; of every queue when empty.
    #[schema(value_type = Vec<crate::QueueName>)]
    pub queues: Vec<QueueName>,
    /// Whether also while the agent is clocked out.
    pub ignore_presence: bool,
    /// Whether it is rung.
    #[schema(value_type = HookState)]
    pub state: Open<HookState>,
    /// Why it is disabled. Absent when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = DisabledCause)]
    pub disabled_cause: Option<Open<DisabledCause>>,
    /// How its rings went.
    pub health: HookHealth,
    /// When it was made.
    #[schema(value_type = schema::Timestamp)]
    pub created_at: Timestamp,
}

/// A notify hook that was made. Its secret is shown this once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "id": "0197f0ab-9e45-7f99-8b62-af4c8ebf6f55", "agent": "agent_alpha", "url": "https://agent-alpha.example.net/doorstep",
    "queues": ["inbox"], "ignore_presence": false, "state": "active", "health": {"consecutive_failures": 0},
    "created_at": "2026-07-12T16:00:00.000Z", "secret": "whsec_…"
}))]
pub struct NotifyHookCreated {
    /// The hook.
    #[serde(flatten)]
    pub hook: NotifyHook,
    /// What its rings are signed with (Standard Webhooks). Absent in the replay of a request with an `Idempotency-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Secret)]
    pub secret: Option<Secret>,
    /// Present and `true` in such a replay: the secret was shown before and is not shown again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret_shown: bool,
}

/// A notify hook with another secret, which is shown this once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "id": "0197f0ab-9e45-7f99-8b62-af4c8ebf6f55", "key_id": "key_0197f0abb1577fab8d84c16ea0d18177", "secret": "whsec_…",
    "previous_until": "2026-07-13T16:22:03.000Z"
}))]
pub struct NotifyHookRotated {
    /// The hook.
    #[schema(value_type = schema::HookId)]
    pub id: String,
    /// The new key's name.
    #[schema(value_type = HookKeyId)]
    pub key_id: String,
    /// What rings are signed with from now on.
    pub secret: Secret,
    /// Until when the replaced secrets sign too: rings carry a signature of each.
    #[schema(value_type = schema::Timestamp)]
    pub previous_until: Timestamp,
}
