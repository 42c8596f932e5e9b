//! Principals, tokens, spaces, channels and grants as the store keeps them.

use std::fmt;
use std::str::FromStr;

use domain::{ActorKind, ChannelId, ChannelRef, GrantId, InvalidId, PrincipalId, Seq, SpaceId, SyncEpoch, TenantId, Timestamp, TokenId};
use serde::{Deserialize, Serialize};

use crate::{Scopes, TokenHash};

/// What a principal is; decides how it takes from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalKind {
    /// A human being; holds its own cursor.
    Person,
    /// A program that publishes or reads with its own cursor.
    App,
    /// A program that consumes through named consumers with durable cursors.
    Agent,
}

impl PrincipalKind {
    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::App => "app",
            Self::Agent => "agent",
        }
    }

    /// The word's kind.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Person, Self::App, Self::Agent].into_iter().find(|kind| kind.as_str() == word)
    }
}

impl From<PrincipalKind> for ActorKind {
    fn from(kind: PrincipalKind) -> Self {
        match kind {
            PrincipalKind::Person => Self::Person,
            PrincipalKind::App => Self::App,
            PrincipalKind::Agent => Self::Agent,
        }
    }
}

/// What a principal may administer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Nothing beyond its grants.
    #[default]
    Member,
    /// Everything of the tenant but other owners and operators.
    Operator,
    /// Everything of the tenant; the owner of tenant `default` also operates the instance.
    Owner,
}

impl Role {
    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Operator => "operator",
            Self::Owner => "owner",
        }
    }

    /// The word's role.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Member, Self::Operator, Self::Owner].into_iter().find(|role| role.as_str() == word)
    }

    /// Owners and operators implicitly hold `manage` on `*` and see the server's own events.
    pub const fn administers(self) -> bool {
        matches!(self, Self::Operator | Self::Owner)
    }
}

/// What a grant allows on its resource. Each includes the weaker ones: `manage` > `post` > `read`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// See its events.
    Read,
    /// Publish to it, and see its events.
    Post,
    /// Create and delete channels and grants in it as well.
    Manage,
}

impl Permission {
    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Post => "post",
            Self::Manage => "manage",
        }
    }

    /// The word's permission.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Read, Self::Post, Self::Manage].into_iter().find(|permission| permission.as_str() == word)
    }
}

/// What a grant names: `*`, `space` or `space/channel`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Everything of the tenant, also publishing without a channel.
    All,
    /// A space with all its channels.
    Space(SpaceId),
    /// One channel.
    Channel(ChannelRef),
}

impl Resource {
    /// What a valid one looks like.
    pub const EXPECTATION: &'static str = "'*', a space, or space/channel";

    /// Whether a grant on this resource speaks for `channel`.
    pub fn covers(&self, channel: &ChannelRef) -> bool {
        match self {
            Self::All => true,
            Self::Space(space) => space.as_str() == channel.space(),
            Self::Channel(own) => own == channel,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Space(space) => space.fmt(f),
            Self::Channel(channel) => channel.fmt(f),
        }
    }
}

impl FromStr for Resource {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = |_| InvalidId { expectation: Self::EXPECTATION };
        match text {
            "*" => Ok(Self::All),
            _ if text.contains('/') => ChannelRef::parse(text).map(Self::Channel).map_err(invalid),
            _ => SpaceId::parse(text).map(Self::Space).map_err(invalid),
        }
    }
}

/// A principal of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Its id, unique in the tenant.
    pub id: PrincipalId,
    /// What it is.
    pub kind: PrincipalKind,
    /// What it may administer.
    pub role: Role,
    /// A name for people, at most 200 characters.
    pub display_name: Option<String>,
    /// A disabled principal authenticates nowhere.
    pub enabled: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

/// An access token without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    /// The token.
    pub id: TokenId,
    /// Whose it is.
    pub principal: PrincipalId,
    /// SHA-256 of the secret.
    pub hash: TokenHash,
    /// The first characters of the secret, for recognition in listings.
    pub prefix: String,
    /// What the token is narrowed to.
    pub scopes: Scopes,
    /// When it was created.
    pub created_at: Timestamp,
    /// From when it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to about a minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A token with everything that authenticating needs, read in one snapshot.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The tenant it belongs to.
    pub tenant: TenantId,
    /// The tenant's state.
    pub tenant_state: TenantState,
    /// The token.
    pub token: TokenRecord,
    /// Its principal.
    pub principal: Principal,
}

/// What a principal may see and do, read in one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The principal.
    pub principal: PrincipalId,
    /// What it is.
    pub kind: PrincipalKind,
    /// What it may administer.
    pub role: Role,
    /// Whether it may act at all.
    pub enabled: bool,
    /// Its grants.
    pub grants: Vec<(Resource, Permission)>,
}

/// A grant: `principal` may do `permission` on `resource`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The grant.
    pub id: GrantId,
    /// Who.
    pub principal: PrincipalId,
    /// On what.
    pub resource: Resource,
    /// What.
    pub permission: Permission,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Its id, unique in the tenant.
    pub id: SpaceId,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A channel of a space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its space.
    pub space: SpaceId,
    /// Its id within the space.
    pub id: ChannelId,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Whether a tenant is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TenantState {
    /// Served.
    Active,
    /// Refused: connections close with 4016, requests are 403.
    Suspended,
    /// Being removed in chunks.
    Deleting,
}

impl TenantState {
    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::Deleting => "deleting",
        }
    }

    /// The word's state.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Active, Self::Suspended, Self::Deleting].into_iter().find(|state| state.as_str() == word)
    }
}

/// A tenant with the head of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// Whether it is served.
    pub state: TenantState,
    /// The highest committed position of its log.
    pub head: Seq,
    /// The identity of its log's history.
    pub epoch: SyncEpoch,
    /// When it was created.
    pub created_at: Timestamp,
}
