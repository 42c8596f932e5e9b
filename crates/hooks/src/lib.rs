//! Hooks out: signed doorbells for whoever has no session. Registrations, signing, the dispatcher on a durable cursor of the log, the sender
//! with its retries and health, and the secrets.
//!
//! Architecture invariant: a ring is a hint. It carries no field of any payload, it is derived from what is committed, and losing one loses
//! nothing. Knows no HTTP client, no SQL, no socket: what goes out goes through [`OutboundClient`].

mod audit;
mod behind;
mod bell;
mod body;
mod calls;
mod delivery;
mod dispatcher;
mod error;
mod gate;
mod groups;
mod health;
mod hook;
mod hook_url;
mod hooks;
mod key;
mod managing;
mod metrics;
mod once;
mod outbound;
mod places;
mod planning;
mod registering;
mod retry;
mod ringing;
mod rotating;
mod secret;
mod sender;
mod server_keys;
mod settings;
mod settling;
mod sign;
mod store;
mod vault;
mod verifying;

pub use bell::HookBell;
pub use calls::{AuthMode, Created, HookPatch, NewCallback, NewHook, NewKey, PublishedKey, Registered, Rotated};
pub use delivery::{AttemptClass, AttemptRecord, Delivery, Reason, WebhookId};
pub use dispatcher::Dispatcher;
pub use error::HookError;
pub use groups::{EveryGroup, GroupLeases};
pub use hook::{Challenge, DisabledCause, Health, Hook, HookId, HookKind, HookState, Profile};
pub use hook_url::{HookUrl, UrlRefusal};
pub use hooks::{HOOK_DISABLED, Hooks, HooksParts};
pub use key::{HookKey, InvalidKey, KeyId, KeyMaterial, PublicKey};
pub use metrics::Metrics;
pub use outbound::{OutboundAnswer, OutboundClient, OutboundError, OutboundRequest};
pub use secret::{InvalidSecret, Secret};
pub use sender::Sender;
pub use server_keys::ServerKey;
pub use settings::{AllowedNetwork, Settings};
pub use store::{
    DueHook, DueQuery, Generation, GroupNumber, HookStore, HookTotals, HookTx, HookWrite, LogPosition, SealedRow, TenantHooks,
};
pub use vault::{InvalidMasterKey, MasterKey, MasterVault, NoVault, Sealed, SecretPlace, Vault, VaultError};
