//! Bodies of the hook operations: notify hooks (seed 002) and callback registrations (seed 000, "Optional callback registration"). Names of
//! the seeds are kept letter for letter; our own members stand beside them.
//!
//! A URL is a credential, and so is a secret: answers carry the one without its query, and the other once.

mod callback;
mod health;
mod keys;
mod names;
mod notify;
mod words;

pub use callback::{
    CallbackPublicKey, CallbackRegistered, CallbackRegistration, CallbackRotate, CallbackRotated, CallbackVerify, NewCallbackRegistration,
};
pub use health::{HookAttempt, HookHealth};
pub use keys::{PublicSigningKey, SigningKeys};
pub use names::{CallbackUrl, HookKeyId};
pub use notify::{NewNotifyHook, NotifyHook, NotifyHookChange, NotifyHookCreated, NotifyHookRotated};
pub use words::{AttemptResult, AuthMode, DeliveryScope, DisabledCause, HookState, RingReason};
