//! Spaces, channels and grants.

use std::fmt;
use std::str::FromStr;

use domain::{ChannelId, ChannelRef, GrantId, InvalidId, PrincipalId, SpaceId, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use crate::vocabulary::vocabulary;
use crate::{Open, schema};

/// A space to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a space object")]
#[schema(example = json!({"id": "support"}))]
pub struct NewSpace {
    /// Its name, unique in the tenant.
    #[schema(value_type = schema::SpaceId)]
    pub id: SpaceId,
}

/// A space: a group of channels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"id": "support", "created_at": "2026-07-12T16:22:03.123Z"}))]
pub struct Space {
    /// Its name.
    #[schema(value_type = schema::SpaceId)]
    pub id: SpaceId,
    /// When it was created.
    #[schema(value_type = schema::Timestamp)]
    pub created_at: Timestamp,
}

/// A channel to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a channel object")]
#[schema(example = json!({"id": "general"}))]
pub struct NewChannel {
    /// Its own name, unique in the space.
    #[schema(value_type = schema::ChannelId)]
    pub id: ChannelId,
}

/// A channel of a space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({"channel": "support/general", "space": "support", "id": "general", "created_at": "2026-07-12T16:22:03.123Z"}))]
pub struct Channel {
    /// How it is named when publishing and granting.
    #[schema(value_type = schema::ChannelRef)]
    pub channel: ChannelRef,
    /// Its space.
    #[schema(value_type = schema::SpaceId)]
    pub space: SpaceId,
    /// Its own name.
    #[schema(value_type = schema::ChannelId)]
    pub id: ChannelId,
    /// When it was created.
    #[schema(value_type = schema::Timestamp)]
    pub created_at: Timestamp,
}

vocabulary! {
    /// What a grant allows on its resource. Each includes the weaker ones.
    pub enum Permission: "a permission: read, post or manage" {
        /// See its events.
        Read = "read",
        /// Publish to it.
        Post = "post",
        /// Create and delete channels and grants in it.
        Manage = "manage",
    }
}

/// What a grant names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GrantResource {
    /// Everything of the tenant, also publishing without a channel: `*`.
    All,
    /// A space with all its channels.
    Space(SpaceId),
    /// One channel.
    Channel(ChannelRef),
}

impl GrantResource {
    /// What a valid one looks like, as a sentence for people.
    pub const EXPECTATION: &'static str = "'*', a space, or space/channel";
}

impl FromStr for GrantResource {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let parsed = match text {
            "*" => Ok(Self::All),
            _ if text.contains('/') => ChannelRef::parse(text).map(Self::Channel),
            _ => SpaceId::parse(text).map(Self::Space),
        };
        parsed.map_err(|_| InvalidId { expectation: Self::EXPECTATION })
    }
}

impl fmt::Display for GrantResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Space(space) => space.fmt(f),
            Self::Channel(channel) => channel.fmt(f),
        }
    }
}

impl Serialize for GrantResource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GrantResource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

crate::schema::impl_schema!(
    GrantResource,
    "GrantResource",
    serde_json::json!({
        "type": "string", "pattern": "^(\\*|[a-z0-9][a-z0-9_.-]{0,63}(/[a-z0-9][a-z0-9_.-]{0,63})?)$", "examples": ["support/general"],
        "description": "What a grant names: `*` for everything of the tenant, a space with all its channels, or one channel.",
    })
);

/// A grant to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a grant object")]
#[schema(example = json!({"principal": "agent_alpha", "resource": "support/general", "permission": "read"}))]
pub struct NewGrant {
    /// Who.
    #[schema(value_type = schema::PrincipalId)]
    pub principal: PrincipalId,
    /// On what.
    pub resource: GrantResource,
    /// What.
    pub permission: Permission,
}

/// A grant: the principal may do `permission` on the resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "grant_id": "0197f0ab-7c23-7e77-9f40-8d2a6c9f4e33", "principal": "agent_alpha", "resource": "support/general", "permission": "read",
    "created_at": "2026-07-12T16:22:03.123Z"
}))]
pub struct Grant {
    /// Its identity.
    #[schema(value_type = schema::GrantId)]
    pub grant_id: GrantId,
    /// Who.
    #[schema(value_type = schema::PrincipalId)]
    pub principal: PrincipalId,
    /// On what.
    pub resource: GrantResource,
    /// What.
    #[schema(value_type = Permission)]
    pub permission: Open<Permission>,
    /// When it was made.
    #[schema(value_type = schema::Timestamp)]
    pub created_at: Timestamp,
}
