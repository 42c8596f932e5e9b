//! What the use cases of hooks are asked, and what they answer.

use domain::{PrincipalId, QueueName, Timestamp};

use crate::{Hook, HookUrl, KeyId, PublicKey, Secret, WebhookId};

/// A notify hook to make.
#[derive(Clone, Debug)]
pub struct NewHook {
    /// Whose; the caller's own when absent.
    pub agent: Option<PrincipalId>,
    /// Where.
    pub url: HookUrl,
    /// Only for these queues; for every queue when empty.
    pub queues: Vec<QueueName>,
    /// Also while the agent is clocked out.
    pub ignore_presence: bool,
}

/// A hook that was made, with its secret, which nobody is shown again.
#[derive(Clone, Debug)]
pub struct Created {
    /// The hook.
    pub hook: Hook,
    /// What its rings are signed with.
    pub secret: Secret,
}

/// What to change about a notify hook.
#[derive(Clone, Debug, Default)]
pub struct HookPatch {
    /// Another URL.
    pub url: Option<HookUrl>,
    /// Other queues; every queue when empty.
    pub queues: Option<Vec<QueueName>>,
    /// Whether also while the agent is clocked out.
    pub ignore_presence: Option<bool>,
}

/// A key that was replaced.
#[derive(Clone, Debug)]
pub struct Rotated {
    /// The hook.
    pub hook: Hook,
    /// The new key's name.
    pub key: KeyId,
    /// The new secret; absent when the receiver brought a public key.
    pub secret: Option<Secret>,
    /// Until when the replaced keys count too.
    pub previous_until: Timestamp,
}

/// How a callback's requests are signed (`auth_mode` of seed 000).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// `hmac-sha256`.
    HmacSha256,
    /// `http-message-signatures` (RFC 9421).
    HttpMessageSignatures,
}
crate::hook::words!(AuthMode { HmacSha256 => "hmac-sha256", HttpMessageSignatures => "http-message-signatures" });

/// A callback to register for the calling agent.
#[derive(Clone, Debug)]
pub struct NewCallback {
    /// Where.
    pub url: HookUrl,
    /// How it is signed.
    pub auth_mode: AuthMode,
    /// The key's name; made when absent (`secret_id`).
    pub key: Option<KeyId>,
    /// With what the receiver answers challenges; only with [`AuthMode::HttpMessageSignatures`], and then no secret is minted.
    pub public_key: Option<PublicKey>,
    /// Most requests per minute; `hooks.callback_rate_max` when absent, which also caps it.
    pub max_rate_per_minute: Option<u32>,
    /// Also while the agent is clocked out.
    pub ignore_presence: bool,
}

/// A callback that was registered and has to answer its challenge.
#[derive(Clone, Debug)]
pub struct Registered {
    /// The registration.
    pub hook: Hook,
    /// The key's name.
    pub key: KeyId,
    /// The minted secret; absent when the receiver brought a public key.
    pub secret: Option<Secret>,
    /// The ring that carries the challenge.
    pub challenge_delivery: WebhookId,
    /// Until when it can be answered.
    pub expires_at: Timestamp,
}

/// A key to change to.
#[derive(Clone, Debug, Default)]
pub struct NewKey {
    /// Its name; made when absent.
    pub key: Option<KeyId>,
    /// The receiver's new public key; of callbacks that have one.
    pub public_key: Option<PublicKey>,
}

/// One of the server's public keys, as `/.well-known/doorstep-keys` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedKey {
    /// Its name, as `keyid` carries it.
    pub id: KeyId,
    /// Ed25519, 32 bytes.
    pub public: Vec<u8>,
    /// From when it signs.
    pub signs_from: Timestamp,
}
