//! A registration: whom to ring, where, for what, and how that goes.

use std::fmt;

use domain::{InvalidId, PrincipalId, QueueName, Seq, TenantId, Timestamp};
use inbox::Recipient;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{HookUrl, WebhookId};

/// A hook of either kind; UUIDv7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HookId(Uuid);

impl HookId {
    /// Wraps a UUID.
    pub const fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID.
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for HookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for HookId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Uuid::try_parse(text).map(Self).map_err(|_| InvalidId { expectation: "a UUID" })
    }
}

/// Declares the words of an enum as stores and the wire know them.
macro_rules! words {
    ($name:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $name {
            /// The word, in stores and on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// The word's value.
            pub fn parse(word: &str) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|value| value.as_str() == word)
            }
        }
    };
}
pub(crate) use words;

/// What a hook is rung for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookKind {
    /// Each item that becomes claimable (seed 002).
    Notify,
    /// That the head of the inbox moved, coalesced (seed 000).
    Callback,
}
words!(HookKind { Notify => "notify", Callback => "callback" });

/// How rings are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Standard Webhooks: notify hooks.
    StandardWebhooks,
    /// Standard Webhooks with the `MATM-*` headers and `Content-Digest`: callbacks with `auth_mode: hmac-sha256`.
    CallbackHmac,
    /// RFC 9421 with the minted key: callbacks with `auth_mode: http-message-signatures`.
    MessageHmac,
    /// RFC 9421 with the server's Ed25519 key: the same for a receiver that registered a public key.
    MessageEd25519,
}
words!(Profile {
    StandardWebhooks => "standard-webhooks",
    CallbackHmac => "callback-hmac-sha256",
    MessageHmac => "message-hmac-sha256",
    MessageEd25519 => "message-ed25519",
});

/// Why a hook is not rung any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisabledCause {
    /// Its agent or an operator said so.
    Asked,
    /// `hooks.disable_after` rings in a row were exhausted.
    Exhausted,
    /// The receiver answered 410.
    Gone,
}
words!(DisabledCause { Asked => "asked", Exhausted => "exhausted", Gone => "gone" });

/// Whether a hook is rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookState {
    /// Not until its challenge is answered.
    PendingVerification,
    /// Yes.
    Active,
    /// Not any more.
    Disabled(DisabledCause),
}

impl HookState {
    /// The word without the cause, in stores and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PendingVerification => "pending_verification",
            Self::Active => "active",
            Self::Disabled(_) => "disabled",
        }
    }

    /// Why it is disabled.
    pub const fn cause(self) -> Option<DisabledCause> {
        match self {
            Self::Disabled(cause) => Some(cause),
            _ => None,
        }
    }

    /// The state of these words; `None` when they contradict each other.
    pub fn parse(word: &str, cause: Option<DisabledCause>) -> Option<Self> {
        match (word, cause) {
            ("pending_verification", None) => Some(Self::PendingVerification),
            ("active", None) => Some(Self::Active),
            ("disabled", Some(cause)) => Some(Self::Disabled(cause)),
            _ => None,
        }
    }
}

/// How the rings of a hook went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The last attempt's HTTP status; absent when it brought none, or before the first.
    pub last_status: Option<u16>,
    /// When the last attempt began.
    pub last_attempt_at: Option<Timestamp>,
    /// Rings exhausted since the last one that was delivered. Above zero, the hook is rung one at a time.
    pub exhausted_in_row: u32,
}

/// What a receiver is to prove that it holds the key (seed 000, "Callback verification").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The ring that carries it.
    pub delivery: WebhookId,
    /// Fresh per challenge.
    pub nonce: String,
    /// What is to be answered for.
    pub text: String,
    /// From when no answer counts.
    pub expires_at: Timestamp,
}

/// A row of `hooks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its id.
    pub id: HookId,
    /// The tenant.
    pub tenant: TenantId,
    /// The agent whose inbox it rings for; nobody else's.
    pub agent: PrincipalId,
    /// What it is rung for.
    pub kind: HookKind,
    /// How rings are signed.
    pub profile: Profile,
    /// Where.
    pub url: HookUrl,
    /// Only for items of these queues; of every queue when empty.
    pub queues: Vec<QueueName>,
    /// Also while the agent is clocked out.
    pub ignore_presence: bool,
    /// Most requests per minute; callbacks always have one.
    pub max_rate_per_minute: Option<u32>,
    /// Whether it is rung.
    pub state: HookState,
    /// What its receiver is to prove; present while that is open.
    pub challenge: Option<Challenge>,
    /// How its rings went.
    pub health: Health,
    /// Events up to and with this position of the log are none of its business: it was made, verified or enabled after them.
    pub since: Seq,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Hook {
    /// The inbox that it rings for.
    pub fn recipient(&self) -> Recipient {
        Recipient { tenant: self.tenant.clone(), agent: self.agent.clone() }
    }

    /// Whether it is for items of `queue`.
    pub fn is_for(&self, queue: &QueueName) -> bool {
        self.queues.is_empty() || self.queues.contains(queue)
    }
}
