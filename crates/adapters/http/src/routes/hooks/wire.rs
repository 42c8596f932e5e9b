//! How hooks and their attempts look on the wire.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hooks::{AttemptRecord, Created, Hook, HookError, HookUrl, PublishedKey, Rotated};
use protocol::{
    AttemptResult, CallbackUrl, DisabledCause, HookAttempt, HookHealth, HookState, NotifyHook, NotifyHookCreated, NotifyHookRotated, Open,
    PublicSigningKey, RingReason, Secret,
};

use crate::refusal::{Refusal, url_refused};
use crate::request::Query;
use crate::services::ApiState;

/// Where a notify hook's request has its URL.
pub(super) const URL: &str = "/url";

/// `limit` and `cursor` of a listing of hooks.
pub(in crate::routes) fn page_of<K: FromStr>(query: &mut Query<'_>, state: &ApiState) -> Result<(usize, Option<K>), Refusal> {
    // One more than the page is asked for, and no tenant has more hooks than this.
    let most = state.settings.max_page_size.min(state.hooks.settings().max_per_tenant.saturating_sub(1)).max(1);
    let limit = query.limit(state.settings.default_page_size, most)?;
    Ok((limit, query.parsed("cursor", "the next_cursor of a page")?))
}

/// Reads a URL. Whether it may be called is not decided here.
pub(in crate::routes) fn url(url: &CallbackUrl, pointer: &'static str) -> Result<HookUrl, Refusal> {
    HookUrl::parse(url.expose()).map_err(|refusal| url_refused(refusal).at(pointer))
}

/// Refusals of requests with a URL: they name the member that has it.
pub(in crate::routes) fn refusal(pointer: &'static str) -> impl FnOnce(HookError) -> Refusal {
    move |error| match error {
        HookError::UrlRefused(refusal) => url_refused(refusal).at(pointer),
        other => other.into(),
    }
}

/// A notify hook.
pub(super) fn hook(hook: Hook) -> NotifyHook {
    NotifyHook {
        id: hook.id.to_string(),
        agent: hook.agent,
        url: CallbackUrl::new(hook.url.shown()),
        queues: hook.queues,
        ignore_presence: hook.ignore_presence,
        state: Open::Known(state(hook.state)),
        disabled_cause: hook.state.cause().map(|cause| Open::Known(disabled_cause(cause))),
        health: health(&hook.health),
        created_at: hook.created_at,
    }
}

/// A new hook with its secret, for the one answer that shows it.
pub(super) fn created(created: Created) -> NotifyHookCreated {
    NotifyHookCreated { hook: hook(created.hook), secret: Some(secret(&created.secret)), secret_shown: false }
}

/// A new hook as a repeat of the request is answered.
pub(super) fn without_secret(created: &Created) -> NotifyHookCreated {
    NotifyHookCreated { hook: hook(created.hook.clone()), secret: None, secret_shown: true }
}

/// A hook with its new secret, for the one answer that shows it.
pub(super) fn rotated(rotated: Rotated) -> Result<NotifyHookRotated, Refusal> {
    let minted = rotated.secret.ok_or_else(|| Refusal::internal("a notify hook was rotated without a secret"))?;
    Ok(NotifyHookRotated {
        id: rotated.hook.id.to_string(),
        key_id: rotated.key.to_string(),
        secret: secret(&minted),
        previous_until: rotated.previous_until,
    })
}

/// A secret as it is shown once.
pub(in crate::routes) fn secret(secret: &hooks::Secret) -> Secret {
    Secret::new(secret.reveal().to_string())
}

pub(in crate::routes) const fn state(state: hooks::HookState) -> HookState {
    match state {
        hooks::HookState::PendingVerification => HookState::PendingVerification,
        hooks::HookState::Active => HookState::Active,
        hooks::HookState::Disabled(_) => HookState::Disabled,
    }
}

pub(in crate::routes) const fn disabled_cause(cause: hooks::DisabledCause) -> DisabledCause {
    match cause {
        hooks::DisabledCause::Asked => DisabledCause::Asked,
        hooks::DisabledCause::Exhausted => DisabledCause::Exhausted,
        hooks::DisabledCause::Gone => DisabledCause::Gone,
    }
}

pub(in crate::routes) const fn health(health: &hooks::Health) -> HookHealth {
    HookHealth { last_status: health.last_status, last_attempt_at: health.last_attempt_at, consecutive_failures: health.exhausted_in_row }
}

/// An attempt, as the log keeps it.
pub(super) fn attempt(attempt: AttemptRecord) -> HookAttempt {
    HookAttempt {
        webhook_id: attempt.id.to_string(),
        reason: Open::Known(reason(attempt.reason)),
        event_id: attempt.event,
        attempt: attempt.attempt,
        at: attempt.at,
        latency_ms: u64::try_from(attempt.latency.as_millis()).unwrap_or(u64::MAX),
        status: attempt.status,
        result: Open::Known(result(attempt.class)),
    }
}

const fn reason(reason: hooks::Reason) -> RingReason {
    match reason {
        hooks::Reason::Created => RingReason::Created,
        hooks::Reason::Requeued => RingReason::Requeued,
        hooks::Reason::Backlog => RingReason::Backlog,
        hooks::Reason::Signal => RingReason::Signal,
        hooks::Reason::Challenge => RingReason::Challenge,
        hooks::Reason::Test => RingReason::Test,
    }
}

const fn result(class: hooks::AttemptClass) -> AttemptResult {
    match class {
        hooks::AttemptClass::Delivered => AttemptResult::Delivered,
        hooks::AttemptClass::Timeout => AttemptResult::Timeout,
        hooks::AttemptClass::Dns => AttemptResult::Dns,
        hooks::AttemptClass::Connect => AttemptResult::Connect,
        hooks::AttemptClass::Tls => AttemptResult::Tls,
        hooks::AttemptClass::Protocol => AttemptResult::Protocol,
        hooks::AttemptClass::Refused => AttemptResult::Refused,
        hooks::AttemptClass::Redirect => AttemptResult::Redirect,
        hooks::AttemptClass::RequestTimeout => AttemptResult::RequestTimeout,
        hooks::AttemptClass::Gone => AttemptResult::Gone,
        hooks::AttemptClass::RateLimited => AttemptResult::RateLimited,
        hooks::AttemptClass::ClientError => AttemptResult::ClientError,
        hooks::AttemptClass::ServerError => AttemptResult::ServerError,
        hooks::AttemptClass::Unproven => AttemptResult::Unproven,
    }
}

/// A public key of the server.
pub(super) fn signing_key(key: &PublishedKey) -> PublicSigningKey {
    PublicSigningKey {
        kid: key.id.to_string(),
        kty: "OKP".to_owned(),
        crv: "Ed25519".to_owned(),
        x: URL_SAFE_NO_PAD.encode(&key.public),
        key_use: "sig".to_owned(),
        signs_from: key.signs_from,
    }
}

#[cfg(test)]
mod tests {
    use hooks::{AttemptClass, DisabledCause, HookState, Reason};
    use protocol::Vocabulary;

    use super::{disabled_cause, reason, result, state};

    #[test]
    fn the_words_of_the_core_are_the_words_on_the_wire() {
        for class in AttemptClass::ALL {
            assert_eq!(result(class).as_str(), class.as_str());
        }
        assert_eq!(protocol::AttemptResult::all().len(), AttemptClass::ALL.len());
        for word in protocol::RingReason::ALL {
            assert_eq!(reason(Reason::parse(word.as_str()).unwrap()), *word);
        }
        for word in protocol::DisabledCause::ALL {
            assert_eq!(disabled_cause(DisabledCause::parse(word.as_str()).unwrap()), *word);
        }
        for own in [HookState::PendingVerification, HookState::Active, HookState::Disabled(DisabledCause::Gone)] {
            assert_eq!(state(own).as_str(), own.as_str());
        }
        assert_eq!(protocol::HookState::all().len(), 3);
    }
}
