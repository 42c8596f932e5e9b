//! Every action that a request can ask for, and the scopes that narrow a token to some of them.

use domain::{ChannelRef, PrincipalId, SpaceId};

/// What a caller wants to do. The names are registered in `architecture/modules.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Publish events, at once or scheduled.
    EventsPublish,
    /// Read the log with a cursor of one's own: people and apps.
    EventsRead,
    /// List and cancel scheduled events.
    EventsScheduled,
    /// Consume as a named consumer: agents, for themselves (seed 004, requirement 9).
    AgentEventsConsume,
    /// List the consumers of an agent.
    ConsumersList,
    /// Create, change and delete principals.
    PrincipalsManage,
    /// See principals.
    PrincipalsRead,
    /// Create, list and revoke tokens.
    TokensManage,
    /// Create and delete spaces and channels.
    SpacesManage,
    /// See spaces and channels.
    SpacesRead,
    /// Create and revoke grants.
    GrantsManage,
    /// See grants.
    GrantsRead,
    /// Create, suspend and delete tenants: the instance operator.
    TenantsManage,
    /// Read the audit log.
    AuditRead,
    /// Make an online backup: the instance operator.
    AdminBackup,
    /// See the nodes that serve the store: the instance operator.
    NodesRead,
    /// Ask who one is.
    MeRead,
    /// Poll one's own inbox and look at its items: agents, for themselves.
    InboxPoll,
    /// Claim items of one's own inbox.
    InboxClaim,
    /// Acknowledge what one has claimed.
    InboxAck,
    /// Give back what one has claimed.
    InboxRelease,
    /// Extend the lease of what one has claimed.
    InboxHeartbeat,
    /// Be told when work arrives: sessions and streams of signals.
    StreamSubscribe,
    /// Say whether an agent wants to be rung: the agent itself, and operators.
    PresenceSet,
    /// Look at the inbox of any agent.
    InboxRead,
    /// Redrive, discard, put aside, pause: operators.
    InboxManage,
    /// Have the server ring an agent's hooks: the agent itself, and operators.
    HooksManage,
    /// Register a callback for one's own inbox.
    CallbackRegister,
    /// Give a callback of one's own another key.
    CallbackRotate,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 29] = [
        Self::EventsPublish,
        Self::EventsRead,
        Self::EventsScheduled,
        Self::AgentEventsConsume,
        Self::ConsumersList,
        Self::PrincipalsManage,
        Self::PrincipalsRead,
        Self::TokensManage,
        Self::SpacesManage,
        Self::SpacesRead,
        Self::GrantsManage,
        Self::GrantsRead,
        Self::TenantsManage,
        Self::AuditRead,
        Self::AdminBackup,
        Self::NodesRead,
        Self::MeRead,
        Self::InboxPoll,
        Self::InboxClaim,
        Self::InboxAck,
        Self::InboxRelease,
        Self::InboxHeartbeat,
        Self::StreamSubscribe,
        Self::PresenceSet,
        Self::InboxRead,
        Self::InboxManage,
        Self::HooksManage,
        Self::CallbackRegister,
        Self::CallbackRotate,
    ];

    /// The registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EventsPublish => "events.publish",
            Self::EventsRead => "events.read",
            Self::EventsScheduled => "events.scheduled",
            Self::AgentEventsConsume => "agent.events.consume",
            Self::ConsumersList => "consumers.list",
            Self::PrincipalsManage => "principals.manage",
            Self::PrincipalsRead => "principals.read",
            Self::TokensManage => "tokens.manage",
            Self::SpacesManage => "spaces.manage",
            Self::SpacesRead => "spaces.read",
            Self::GrantsManage => "grants.manage",
            Self::GrantsRead => "grants.read",
            Self::TenantsManage => "tenants.manage",
            Self::AuditRead => "audit.read",
            Self::AdminBackup => "admin.backup",
            Self::NodesRead => "nodes.read",
            Self::MeRead => "me.read",
            Self::InboxPoll => "inbox.poll",
            Self::InboxClaim => "inbox.claim",
            Self::InboxAck => "inbox.ack",
            Self::InboxRelease => "inbox.release",
            Self::InboxHeartbeat => "inbox.heartbeat",
            Self::StreamSubscribe => "stream.subscribe",
            Self::PresenceSet => "presence.set",
            Self::InboxRead => "inbox.read",
            Self::InboxManage => "inbox.manage",
            Self::HooksManage => "hooks.manage",
            Self::CallbackRegister => "callback.register",
            Self::CallbackRotate => "callback.rotate",
        }
    }

    /// The scope a token needs for it, aimed at its own principal; none for what every token may. What is done to another principal needs
    /// [`Action::scope_on_others`].
    pub const fn scope(self) -> Option<Scope> {
        match self {
            Self::EventsPublish | Self::EventsScheduled => Some(Scope::Publish),
            Self::EventsRead => Some(Scope::Read),
            Self::AgentEventsConsume => Some(Scope::Consume),
            Self::TenantsManage | Self::AdminBackup | Self::NodesRead => Some(Scope::Instance),
            Self::MeRead | Self::PresenceSet => None,
            Self::InboxPoll => Some(Scope::InboxPoll),
            Self::InboxClaim => Some(Scope::InboxClaim),
            Self::InboxAck => Some(Scope::InboxAck),
            Self::InboxRelease => Some(Scope::InboxRelease),
            Self::InboxHeartbeat => Some(Scope::InboxHeartbeat),
            Self::StreamSubscribe => Some(Scope::StreamSubscribe),
            Self::HooksManage => Some(Scope::HooksManage),
            Self::CallbackRegister => Some(Scope::CallbackRegister),
            Self::CallbackRotate => Some(Scope::CallbackRotate),
            _ => Some(Scope::Admin),
        }
    }

    /// The scope a token needs to do it to another principal: what agents do for themselves is administration when operators do it.
    pub const fn scope_on_others(self) -> Option<Scope> {
        match self {
            Self::HooksManage => Some(Scope::Admin),
            _ => self.scope(),
        }
    }
}

/// A part of what its principal may do, to which a token can be narrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Publish and schedule.
    Publish,
    /// Read the log.
    Read,
    /// Consume as an agent.
    Consume,
    /// Administer the tenant, as far as the role allows.
    Admin,
    /// Operate the instance, as far as the role allows.
    Instance,
    /// Poll an inbox (this and the next five are seed 000's).
    InboxPoll,
    /// Claim.
    InboxClaim,
    /// Acknowledge.
    InboxAck,
    /// Give back.
    InboxRelease,
    /// Extend leases.
    InboxHeartbeat,
    /// Open sessions and streams of signals.
    StreamSubscribe,
    /// Manage one's own hooks (seed 002).
    HooksManage,
    /// Register callbacks (this and the next are seed 000's).
    CallbackRegister,
    /// Rotate the keys of callbacks.
    CallbackRotate,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 14] = [
        Self::Publish,
        Self::Read,
        Self::Consume,
        Self::Admin,
        Self::Instance,
        Self::InboxPoll,
        Self::InboxClaim,
        Self::InboxAck,
        Self::InboxRelease,
        Self::InboxHeartbeat,
        Self::StreamSubscribe,
        Self::HooksManage,
        Self::CallbackRegister,
        Self::CallbackRotate,
    ];

    /// What only agents' tokens can have: the scopes of their own inbox, and of what is rung for it.
    pub const AGENT: [Self; 9] = [
        Self::InboxPoll,
        Self::InboxClaim,
        Self::InboxAck,
        Self::InboxRelease,
        Self::InboxHeartbeat,
        Self::StreamSubscribe,
        Self::HooksManage,
        Self::CallbackRegister,
        Self::CallbackRotate,
    ];

    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Read => "read",
            Self::Consume => "consume",
            Self::Admin => "admin",
            Self::Instance => "instance",
            Self::InboxPoll => "inbox.poll",
            Self::InboxClaim => "inbox.claim",
            Self::InboxAck => "inbox.ack",
            Self::InboxRelease => "inbox.release",
            Self::InboxHeartbeat => "inbox.heartbeat",
            Self::StreamSubscribe => "stream.subscribe",
            Self::HooksManage => "hooks.manage",
            Self::CallbackRegister => "callback.register",
            Self::CallbackRotate => "callback.rotate",
        }
    }

    /// The word's scope.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }

    const fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u16);

impl Scopes {
    /// Whether the set has `scope`.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether every scope of `other` is in this set.
    pub const fn includes(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// The scopes in the set, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }

    /// The words, separated by single spaces, as stores keep them.
    pub fn to_words(self) -> String {
        self.iter().map(Scope::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Reads words as stores keep them; unknown ones are left out.
    pub fn from_words(words: &str) -> Self {
        words.split(' ').filter_map(Scope::parse).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | scope.bit()))
    }
}

/// What an action is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// The tenant as a whole.
    Tenant,
    /// The instance with all tenants.
    Instance,
    /// A space.
    Space(&'a SpaceId),
    /// A channel.
    Channel(&'a ChannelRef),
    /// A principal, e.g. the agent that consumes.
    Principal(&'a PrincipalId),
}

impl std::fmt::Display for Target<'_> {
    /// As the audit log writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tenant => f.write_str("tenant"),
            Self::Instance => f.write_str("instance"),
            Self::Space(space) => write!(f, "space/{space}"),
            Self::Channel(channel) => write!(f, "channel/{channel}"),
            Self::Principal(principal) => write!(f, "principal/{principal}"),
        }
    }
}
