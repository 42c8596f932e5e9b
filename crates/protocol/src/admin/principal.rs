//! Principals, and who the caller is.

use domain::{PrincipalId, TenantId, Timestamp, TokenId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Scope;
use crate::strict::present;
use crate::vocabulary::vocabulary;
use crate::{DisplayName, Open, schema};

vocabulary! {
    /// What a principal is; decides how it takes from the log.
    pub enum PrincipalKind: "a kind of principal: person, app or agent" {
        /// A human being; holds its own cursor.
        Person = "person",
        /// A program that publishes or reads with its own cursor.
        App = "app",
        /// A program that consumes through named consumers with durable cursors.
        Agent = "agent",
    }
}

vocabulary! {
    /// What a principal may administer.
    pub enum Role: "a role: owner, operator or member" {
        /// Everything of the tenant.
        Owner = "owner",
        /// Everything of the tenant but owners and other operators.
        Operator = "operator",
        /// Nothing beyond its grants.
        Member = "member",
    }
}

/// A principal to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a principal object")]
#[schema(example = json!({"kind": "agent", "id": "agent_alpha", "display_name": "Agent Alpha"}))]
pub struct NewPrincipal {
    /// What it is.
    pub kind: PrincipalKind,
    /// Its name, unique in the tenant.
    #[schema(value_type = schema::PrincipalId)]
    pub id: PrincipalId,
    /// A name for people.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = DisplayName)]
    pub display_name: Option<DisplayName>,
    /// What it may administer; `member` when absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Role)]
    pub role: Option<Role>,
}

/// A change of a principal. What is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with changes")]
#[schema(example = json!({"enabled": false}))]
pub struct PrincipalChange {
    /// A name for people.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = DisplayName)]
    pub display_name: Option<DisplayName>,
    /// Whether it may act. Disabling closes its connections (4012).
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    pub enabled: Option<bool>,
    /// What it may administer.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Role)]
    pub role: Option<Role>,
}

/// A principal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "id": "agent_alpha", "kind": "agent", "role": "member", "display_name": "Agent Alpha", "enabled": true,
    "created_at": "2026-07-12T16:22:03.123Z"
}))]
pub struct Principal {
    /// Its name, unique in the tenant.
    #[schema(value_type = schema::PrincipalId)]
    pub id: PrincipalId,
    /// What it is.
    #[schema(value_type = PrincipalKind)]
    pub kind: Open<PrincipalKind>,
    /// What it may administer.
    #[schema(value_type = Role)]
    pub role: Open<Role>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub display_name: Option<String>,
    /// Whether it may act.
    pub enabled: bool,
    /// When it was created.
    #[schema(value_type = schema::Timestamp)]
    pub created_at: Timestamp,
}

/// Who the token is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "tenant": "default", "id": "agent_alpha", "kind": "agent", "role": "member", "token_id": "0197f0ab-6b12-7d66-8e3f-7c1f5b8e3d22",
    "scopes": ["consume", "publish"], "expires_at": "2026-10-10T16:22:03.123Z"
}))]
pub struct Me {
    /// The tenant.
    #[schema(value_type = schema::TenantId)]
    pub tenant: TenantId,
    /// The principal.
    #[schema(value_type = schema::PrincipalId)]
    pub id: PrincipalId,
    /// What it is.
    #[schema(value_type = PrincipalKind)]
    pub kind: Open<PrincipalKind>,
    /// What it may administer.
    #[schema(value_type = Role)]
    pub role: Open<Role>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub display_name: Option<String>,
    /// The token.
    #[schema(value_type = schema::TokenId)]
    pub token_id: TokenId,
    /// What the token is narrowed to.
    #[schema(value_type = Vec<Scope>)]
    pub scopes: Vec<Open<Scope>>,
    /// From when the token is refused. Absent when it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Timestamp)]
    pub expires_at: Option<Timestamp>,
}
