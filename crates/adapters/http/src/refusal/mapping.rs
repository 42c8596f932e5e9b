//! The one place where errors of the core become refusals.

use std::time::Duration;

use agents::{AckRefused, ConsumerError};
use authz::{AdminError, AuthenticationError, Denied, DeniedReason};
use domain::StoreError;
use gateway::{ReadError, Resync};
use hooks::{HookError, UrlRefusal, VaultError};
use inbox::InboxError;
use intake::ScheduleError;
use protocol::{InvalidBody, ProblemCode, Reason, ResyncReason};

use super::Refusal;

/// How long a client waits for what somebody has to do first: room to be made, a key to be given.
const UNTIL_DONE: Duration = Duration::from_secs(30);

/// The pointer to a query parameter.
pub(crate) fn query_pointer(name: &str) -> String {
    format!("#query/{name}")
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Full => Self::new(ProblemCode::StorageFull, "the store has no room; nothing of the request was kept")
                .retry_after(UNTIL_DONE)
                .because(&error),
            StoreError::Overloaded => {
                Self::new(ProblemCode::Overloaded, "more work is waiting than the server takes; nothing of the request was kept")
            }
            StoreError::InDoubt => {
                Self::new(ProblemCode::InDoubt, "it is unknown whether the request took effect; repeat it with the same keys")
                    .because(&error)
            }
            StoreError::TenantInactive => tenant_suspended(),
            StoreError::Unavailable | StoreError::Transient => {
                Self::new(ProblemCode::Unavailable, "the store cannot be reached").because(&error)
            }
            _ => Self::internal(&error),
        }
    }
}

fn tenant_suspended() -> Refusal {
    Refusal::new(ProblemCode::Forbidden, "the tenant is not active").with_reason(Reason::TenantSuspended)
}

impl From<AuthenticationError> for Refusal {
    fn from(error: AuthenticationError) -> Self {
        match error {
            AuthenticationError::Unauthenticated => unauthenticated(),
            AuthenticationError::TenantSuspended => tenant_suspended(),
            AuthenticationError::Store(error) => error.into(),
        }
    }
}

/// The one refusal of every missing or bad credential: it does not tell which part was wrong.
pub(crate) fn unauthenticated() -> Refusal {
    Refusal::new(ProblemCode::Unauthenticated, "the credential is missing, unknown, expired or revoked")
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let reason = match denied {
            Denied::NotFound => return not_found(),
            Denied::Unauthenticated => return unauthenticated(),
            Denied::Unavailable => return Self::new(ProblemCode::Unavailable, "the store cannot be reached").because(denied),
            Denied::Forbidden(reason) => reason,
        };
        let (reason, detail) = match reason {
            DeniedReason::PermissionMissing => (Reason::PermissionMissing, "no grant or role allows this"),
            DeniedReason::ScopeMissing => (Reason::ScopeMissing, "the token's scopes do not include this operation's"),
            DeniedReason::SubjectKindNotAllowed => (Reason::SubjectKindNotAllowed, "this operation is for another kind of principal"),
            DeniedReason::TenantSuspended => return tenant_suspended(),
        };
        Self::new(ProblemCode::Forbidden, detail).with_reason(reason)
    }
}

/// What is not there, or may not be known of.
pub(crate) fn not_found() -> Refusal {
    Refusal::new(ProblemCode::NotFound, "there is no such thing, or you may not know of it")
}

impl From<InvalidBody> for Refusal {
    fn from(invalid: InvalidBody) -> Self {
        Self::new(invalid.code, invalid.detail).at(invalid.pointer)
    }
}

impl From<ConsumerError> for Refusal {
    fn from(error: ConsumerError) -> Self {
        match error {
            ConsumerError::Denied(denied) => denied.into(),
            ConsumerError::Ack(AckRefused::AboveHead) => Self::invalid("/seq", "seq lies above the head of the log"),
            ConsumerError::AfterAboveHead => Self::invalid("#query/after", "after lies above the head of the log"),
            ConsumerError::Unknown => Self::new(ProblemCode::NotFound, "this consumer never connected"),
            ConsumerError::TooMany => {
                Self::new(ProblemCode::LimitReached, "the agent has as many consumers as it may (agent.max_consumers)")
            }
            ConsumerError::TooManyTakeovers(delay) => {
                Self::new(ProblemCode::RateLimited, "the consumer was taken over too often (agent.takeover_burst)")
                    .with_reason(Reason::TakeoverStorm)
                    .retry_after(delay)
            }
            ConsumerError::Replaced => Self::new(ProblemCode::StateConflict, "another holder took the consumer over"),
            ConsumerError::Resync { reason, head, epoch, floor } => {
                let reason = match reason {
                    agents::ResyncReason::Retention => ResyncReason::Retention,
                    agents::ResyncReason::CursorAhead => ResyncReason::CursorAhead,
                    agents::ResyncReason::EpochChanged => ResyncReason::EpochChanged,
                };
                resync(Resync { reason, head, epoch, floor })
            }
            ConsumerError::Unauthenticated => AuthenticationError::Unauthenticated.into(),
            ConsumerError::ShuttingDown => Self::new(ProblemCode::Unavailable, "the server is stopping"),
            ConsumerError::Store(error) => error.into(),
            other => Self::internal(other),
        }
    }
}

impl From<AdminError> for Refusal {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Denied(denied) => denied.into(),
            AdminError::Invalid { pointer, detail } => Self::invalid(pointer, detail),
            AdminError::NotFound => not_found(),
            AdminError::AlreadyExists => Self::new(ProblemCode::AlreadyExists, "something with this name exists already"),
            AdminError::LimitReached(key) => Self::new(ProblemCode::LimitReached, format!("the ceiling {key} is reached")),
            AdminError::LastOwner => {
                Self::new(ProblemCode::StateConflict, "it is the tenant's last enabled owner").with_reason(Reason::LastOwner)
            }
            AdminError::IdempotencyConflict => {
                Self::new(ProblemCode::IdempotencyConflict, "this key was used for another request").at("#header/idempotency-key")
            }
            AdminError::Random => Self::internal(error),
            AdminError::Store(error) => error.into(),
        }
    }
}

impl From<ScheduleError> for Refusal {
    fn from(error: ScheduleError) -> Self {
        match error {
            ScheduleError::Denied(denied) => denied.into(),
            ScheduleError::NotFound => not_found(),
            ScheduleError::AlreadyPromoted => {
                Self::new(ProblemCode::StateConflict, "the event has just been appended").with_reason(Reason::AlreadyPromoted)
            }
            ScheduleError::Store(error) => error.into(),
        }
    }
}

impl From<InboxError> for Refusal {
    fn from(error: InboxError) -> Self {
        match error {
            InboxError::Denied(denied) => denied.into(),
            InboxError::Invalid { pointer, detail } => Self::invalid(pointer, detail),
            InboxError::NotFound => not_found(),
            InboxError::LeaseLost => Self::new(ProblemCode::LeaseLost, "the token is not the one of the item's present lease"),
            InboxError::NotInThatState => Self::new(ProblemCode::StateConflict, "the item is in a state from which nothing leads there"),
            InboxError::SessionNotActive => {
                Self::new(ProblemCode::StateConflict, "only the session that subscribed last with wants_claims may claim")
                    .with_reason(Reason::SessionNotActive)
            }
            InboxError::CursorReset { oldest, head, epoch } => {
                let detail = "the inbox cannot say what changed since this position; read its items afresh, then poll after head_seq";
                Self::new(ProblemCode::CursorResetRequired, detail).with_reset(oldest, head, epoch)
            }
            InboxError::EpochChanged { head, epoch, floor } => resync(Resync { reason: ResyncReason::EpochChanged, head, epoch, floor }),
            InboxError::IdempotencyConflict => {
                Self::new(ProblemCode::IdempotencyConflict, "this key was used for another request").at("#header/idempotency-key")
            }
            InboxError::LimitReached(key) => Self::new(ProblemCode::LimitReached, format!("the ceiling {key} is reached")),
            InboxError::ShuttingDown => Self::new(ProblemCode::Unavailable, "the server is stopping"),
            InboxError::Store(error) => error.into(),
        }
    }
}

impl From<HookError> for Refusal {
    fn from(error: HookError) -> Self {
        match error {
            HookError::Denied(denied) => denied.into(),
            HookError::Invalid { pointer, detail } => Self::invalid(pointer, detail),
            HookError::UrlRefused(refusal) => url_refused(refusal),
            HookError::NotFound => not_found(),
            HookError::LimitReached(key) => Self::new(ProblemCode::LimitReached, format!("the ceiling {key} is reached")),
            HookError::Busy(bound, wait) => Self::new(ProblemCode::RateLimited, format!("the bound {bound} is reached")).retry_after(wait),
            HookError::IdempotencyConflict => {
                Self::new(ProblemCode::IdempotencyConflict, "this key was used for another request").at("#header/idempotency-key")
            }
            HookError::NotInThatState(why) => Self::new(ProblemCode::StateConflict, why),
            HookError::Unverified(class) => {
                Self::new(ProblemCode::StateConflict, format!("the receiver did not prove that it holds the key: {}", class.as_str()))
                    .with_reason(Reason::ReceiverUnverified)
            }
            HookError::Secrets(error @ (VaultError::NoKey | VaultError::UnknownKey)) => {
                Self::new(ProblemCode::SecretsUnavailable, "the server has no key to keep secrets with (security.master_key)")
                    .retry_after(UNTIL_DONE)
                    .because(error)
            }
            HookError::Secrets(error) => Self::internal(error),
            HookError::Store(error) => error.into(),
        }
    }
}

/// A URL that is not called: which class of refusal it is, and never what was found there.
pub(crate) fn url_refused(refusal: UrlRefusal) -> Refusal {
    let reason = match refusal {
        UrlRefusal::Malformed => Reason::Malformed,
        UrlRefusal::Scheme => Reason::Scheme,
        UrlRefusal::Userinfo => Reason::Userinfo,
        UrlRefusal::Port => Reason::Port,
        UrlRefusal::NotListed => Reason::NotListed,
        UrlRefusal::Unresolvable => Reason::Unresolvable,
        UrlRefusal::Network => Reason::Network,
    };
    Refusal::new(ProblemCode::UrlRefused, refusal.to_string()).with_reason(reason)
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Denied(denied) => denied.into(),
            ReadError::Unauthenticated => AuthenticationError::Unauthenticated.into(),
            ReadError::Resync(at) => resync(at),
            ReadError::TooMany => Self::new(ProblemCode::RateLimited, "too many streams are open (gateway.max_connections_per_principal)"),
            ReadError::ShuttingDown => Self::new(ProblemCode::Unavailable, "the server is stopping"),
            ReadError::Store(error) => error.into(),
            other => Self::internal(other),
        }
    }
}

fn resync(at: Resync) -> Refusal {
    let detail = match at.reason {
        ResyncReason::Retention => "events after this position have been removed; read the current state afresh",
        ResyncReason::CursorAhead => "this position lies above the head of the log",
        ResyncReason::EpochChanged => "this position belongs to another history of the log",
        ResyncReason::TooFarBehind => "this position lies too far behind the head to be streamed; page over REST first",
    };
    Refusal::new(ProblemCode::ResyncRequired, detail).with_reason(at.reason.into()).with_position(at.head, at.floor, at.epoch)
}

#[cfg(test)]
mod tests {
    use hooks::{AttemptClass, HookError, UrlRefusal, VaultError};
    use protocol::ProblemCode;

    use super::{Refusal, url_refused};

    #[test]
    fn a_refused_url_is_told_the_class_in_the_words_of_the_core() {
        for refusal in [
            UrlRefusal::Malformed,
            UrlRefusal::Scheme,
            UrlRefusal::Userinfo,
            UrlRefusal::Port,
            UrlRefusal::NotListed,
            UrlRefusal::Unresolvable,
            UrlRefusal::Network,
        ] {
            let told = url_refused(refusal);
            assert_eq!((told.code(), told.reason().map(protocol::Reason::as_str)), (ProblemCode::UrlRefused, Some(refusal.as_str())));
        }
    }

    #[test]
    fn errors_of_hooks_have_the_agreed_codes() {
        let code = |error: HookError| Refusal::from(error).code();
        assert_eq!(code(HookError::NotFound), ProblemCode::NotFound);
        assert_eq!(code(HookError::LimitReached("hooks.max_per_agent")), ProblemCode::LimitReached);
        assert_eq!(code(HookError::IdempotencyConflict), ProblemCode::IdempotencyConflict);
        assert_eq!(code(HookError::Busy("hooks.concurrency", std::time::Duration::from_secs(5))), ProblemCode::RateLimited);
        assert_eq!(code(HookError::NotInThatState("it is disabled")), ProblemCode::StateConflict);
        assert_eq!(code(HookError::Unverified(AttemptClass::Unproven)), ProblemCode::StateConflict);
        assert_eq!(code(HookError::Secrets(VaultError::NoKey)), ProblemCode::SecretsUnavailable);
        assert_eq!(code(HookError::Secrets(VaultError::UnknownKey)), ProblemCode::SecretsUnavailable);
        assert_eq!(code(HookError::Secrets(VaultError::Damaged)), ProblemCode::Internal);
    }
}
