//! Tenants: the instance operator's.

use domain::{PrincipalId, Seq, SyncEpoch, TenantId, Timestamp, TokenId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::strict::present;
use crate::vocabulary::vocabulary;
use crate::{Open, Secret, schema};

vocabulary! {
    /// Whether a tenant is served.
    pub enum TenantState: "a state of a tenant: active, suspended or deleting" {
        /// Served.
        Active = "active",
        /// Refused; its connections close with 4016.
        Suspended = "suspended",
        /// Being removed in pieces; the name is free again afterwards.
        Deleting = "deleting",
    }
}

/// A tenant to create, with its first owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a tenant object")]
#[schema(example = json!({"id": "acme"}))]
pub struct NewTenant {
    /// Its name.
    #[schema(value_type = schema::TenantId)]
    pub id: TenantId,
    /// The name of its first owner; `owner` when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::PrincipalId)]
    pub owner: Option<PrincipalId>,
}

/// A change of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with a state")]
#[schema(example = json!({"state": "suspended"}))]
pub struct TenantChange {
    /// `active` or `suspended`.
    pub state: TenantState,
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "id": "acme", "state": "active", "head_seq": 184_392, "sync_epoch": "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10",
    "created_at": "2026-07-12T16:22:03.123Z"
}))]
pub struct Tenant {
    /// Its name.
    #[schema(value_type = schema::TenantId)]
    pub id: TenantId,
    /// Whether it is served.
    #[schema(value_type = TenantState)]
    pub state: Open<TenantState>,
    /// Its log's head.
    #[schema(value_type = schema::Seq)]
    pub head_seq: Seq,
    /// Its log's epoch.
    #[schema(value_type = schema::SyncEpoch)]
    pub sync_epoch: SyncEpoch,
    /// When it was created.
    #[schema(value_type = schema::Timestamp)]
    pub created_at: Timestamp,
}

/// A tenant that was created, with its owner's token, which is shown this once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "id": "acme", "state": "active", "head_seq": 0, "sync_epoch": "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10",
    "created_at": "2026-07-12T16:22:03.123Z", "owner": "owner", "token_id": "0197f0ab-6b12-7d66-8e3f-7c1f5b8e3d22",
    "token": "dsp_person_…"
}))]
pub struct TenantCreated {
    /// The tenant.
    #[serde(flatten)]
    pub tenant: Tenant,
    /// Its first owner.
    #[schema(value_type = schema::PrincipalId)]
    pub owner: PrincipalId,
    /// The identity of the owner's token.
    #[schema(value_type = schema::TokenId)]
    pub token_id: TokenId,
    /// The owner's token. Absent in the replay of a request with an `Idempotency-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Secret)]
    pub token: Option<Secret>,
    /// Present and `true` in such a replay: the secret was shown before and is not known any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret_shown: bool,
}
