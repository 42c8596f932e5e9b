//! Callback registrations: a signed request when the head of an inbox moved (seed 000).

use std::num::NonZeroU32;

use domain::{PrincipalId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::strict::{present, present_object};
use crate::{AuthMode, CallbackUrl, DeliveryScope, DisabledCause, HookHealth, HookKeyId, HookState, Open, Secret, schema};

/// The public key with which a receiver answers challenges: members of a JSON Web Key (RFC 7517), in base64url without padding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a public key object")]
#[schema(example = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}))]
pub struct CallbackPublicKey {
    /// `OKP`, or `EC`.
    pub kty: String,
    /// `Ed25519`, or `P-256`.
    pub crv: String,
    /// The key, or the point's first coordinate.
    pub x: String,
    /// The point's second coordinate; only with `P-256`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub y: Option<String>,
}

/// A callback to register for the calling agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a callback object")]
#[schema(example = json!({
    "tenant_id": "default", "recipient_id": "agent_alpha", "callback_url": "https://agent-alpha.example.net/matm/callback",
    "auth_mode": "hmac-sha256", "secret_id": "cbksec_2026_07", "delivery_scope": ["signal_only"], "max_rate_per_minute": 30
}))]
pub struct NewCallbackRegistration {
    /// The token's own tenant.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: Option<TenantId>,
    /// The token's own agent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: Option<PrincipalId>,
    /// Where to.
    pub callback_url: CallbackUrl,
    /// How requests are signed.
    pub auth_mode: AuthMode,
    /// What the key is called; the server names it when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = HookKeyId)]
    pub secret_id: Option<HookKeyId>,
    /// With what the receiver answers challenges; only with `http-message-signatures`. Then no secret is minted, and requests are signed with
    /// the server's own key.
    #[serde(default, deserialize_with = "present_object", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = CallbackPublicKey)]
    pub public_key: Option<CallbackPublicKey>,
    /// What is sent; `signal_only` is all there is.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<DeliveryScope>, min_items = 1)]
    pub delivery_scope: Option<Vec<DeliveryScope>>,
    /// Most requests per minute; capped to `hooks.callback_rate_max`, which is also the default. What is left out is not lost: the next request
    /// says where the head is.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, minimum = 1)]
    pub max_rate_per_minute: Option<NonZeroU32>,
    /// Also while the agent is clocked out. `false` when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    pub ignore_presence: Option<bool>,
}

/// A callback registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "registration_id": "0197f0ab-9e45-7f99-8b62-af4c8ebf6f55", "status": "active", "tenant_id": "default", "recipient_id": "agent_alpha",
    "callback_url": "https://agent-alpha.example.net/matm/callback", "auth_mode": "hmac-sha256", "delivery_scope": ["signal_only"],
    "max_rate_per_minute": 30, "ignore_presence": false,
    "health": {"last_status": 200, "last_attempt_at": "2026-07-12T16:22:04.000Z", "consecutive_failures": 0},
    "created_at_utc": "2026-07-12T16:00:00.000Z"
}))]
pub struct CallbackRegistration {
    /// Its identity.
    #[schema(value_type = schema::HookId)]
    pub registration_id: String,
    /// Whether it is called.
    #[schema(value_type = HookState)]
    pub status: Open<HookState>,
    /// Why it is disabled. Absent when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = DisabledCause)]
    pub disabled_cause: Option<Open<DisabledCause>>,
    /// The request that carries the open challenge. Absent when none is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::WebhookId)]
    pub challenge_delivery_id: Option<String>,
    /// Until when that can be answered. Absent when none is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub expires_at_utc: Option<Timestamp>,
    /// The tenant.
    #[schema(value_type = schema::TenantId)]
    pub tenant_id: TenantId,
    /// The agent whose inbox it is about.
    #[schema(value_type = schema::PrincipalId)]
    pub recipient_id: PrincipalId,
    /// Where to, without the query.
    pub callback_url: CallbackUrl,
    /// How requests are signed.
    #[schema(value_type = AuthMode)]
    pub auth_mode: Open<AuthMode>,
    /// What is sent.
    #[schema(value_type = Vec<DeliveryScope>)]
    pub delivery_scope: Vec<Open<DeliveryScope>>,
    /// Most requests per minute.
    pub max_rate_per_minute: u32,
    /// Whether also while the agent is clocked out.
    pub ignore_presence: bool,
    /// How its requests went.
    pub health: HookHealth,
    /// When it was registered.
    #[schema(value_type = schema::Timestamp)]
    pub created_at_utc: Timestamp,
}

/// A callback that was registered and has to answer its challenge. A minted secret is shown this once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "registration_id": "0197f0ab-9e45-7f99-8b62-af4c8ebf6f55", "status": "pending_verification",
    "challenge_delivery_id": "msg_5DGhYbWzvFJpq3B0tKx9aQeR1Ls", "expires_at_utc": "2026-07-12T16:32:03.000Z", "tenant_id": "default",
    "recipient_id": "agent_alpha", "callback_url": "https://agent-alpha.example.net/matm/callback", "auth_mode": "hmac-sha256",
    "delivery_scope": ["signal_only"], "max_rate_per_minute": 30, "ignore_presence": false, "health": {"consecutive_failures": 0},
    "created_at_utc": "2026-07-12T16:22:03.000Z", "secret_id": "cbksec_2026_07", "secret": "whsec_…"
}))]
pub struct CallbackRegistered {
    /// The registration.
    #[serde(flatten)]
    pub registration: CallbackRegistration,
    /// What the key is called.
    #[schema(value_type = HookKeyId)]
    pub secret_id: String,
    /// With what requests are signed, and challenges answered. Absent when the receiver brought a public key, and in the replay of a request
    /// with an `Idempotency-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Secret)]
    pub secret: Option<Secret>,
    /// Present and `true` in such a replay: a secret, if there was one, was shown before and is not shown again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret_shown: bool,
}

/// How to verify a callback. `{}` sends a new challenge now and looks at what the receiver answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object, perhaps with a response")]
#[schema(example = json!({"response": "3q2+7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}))]
pub struct CallbackVerify {
    /// The answer to the open challenge, as the receiver would have given it: the base64 of HMAC-SHA256, or of the signature with the
    /// registered key, over `delivery_id.nonce.challenge`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub response: Option<String>,
}

/// Another key for a callback. `{}` has the server mint and name one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a key object")]
#[schema(example = json!({"secret_id": "cbksec_2026_08"}))]
pub struct CallbackRotate {
    /// What the key is called; the server names it when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = HookKeyId)]
    pub secret_id: Option<HookKeyId>,
    /// The receiver's new public key; exactly where it registered one.
    #[serde(default, deserialize_with = "present_object", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = CallbackPublicKey)]
    pub public_key: Option<CallbackPublicKey>,
}

/// A callback with another key. A minted secret is shown this once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "registration_id": "0197f0ab-9e45-7f99-8b62-af4c8ebf6f55", "secret_id": "cbksec_2026_08", "secret": "whsec_…",
    "previous_until_utc": "2026-07-13T16:22:03.000Z"
}))]
pub struct CallbackRotated {
    /// The registration.
    #[schema(value_type = schema::HookId)]
    pub registration_id: String,
    /// What the new key is called.
    #[schema(value_type = HookKeyId)]
    pub secret_id: String,
    /// The minted secret. Absent when the receiver brought a public key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Secret)]
    pub secret: Option<Secret>,
    /// Until when the replaced keys count too.
    #[schema(value_type = schema::Timestamp)]
    pub previous_until_utc: Timestamp,
}
