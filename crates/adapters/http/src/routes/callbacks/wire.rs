//! How callbacks look on the wire.

use hooks::{Hook, KeyId, Profile, PublicKey, Registered, Rotated};
use protocol::{
    AuthMode, CallbackPublicKey, CallbackRegistered, CallbackRegistration, CallbackRotated, CallbackUrl, DeliveryScope, HookKeyId, Open,
};

use crate::refusal::Refusal;
use crate::routes::hooks::wire::{disabled_cause, health, secret, state};

/// Where a callback's request has its URL.
pub(super) const CALLBACK_URL: &str = "/callback_url";

pub(super) const fn auth_mode_of(mode: AuthMode) -> hooks::AuthMode {
    match mode {
        AuthMode::HmacSha256 => hooks::AuthMode::HmacSha256,
        AuthMode::HttpMessageSignatures => hooks::AuthMode::HttpMessageSignatures,
    }
}

const fn auth_mode(profile: Profile) -> AuthMode {
    match profile {
        Profile::StandardWebhooks | Profile::CallbackHmac => AuthMode::HmacSha256,
        Profile::MessageHmac | Profile::MessageEd25519 => AuthMode::HttpMessageSignatures,
    }
}

/// The name of a key.
pub(super) fn key_id(id: &HookKeyId) -> Result<KeyId, Refusal> {
    KeyId::parse(id.as_str()).map_err(|invalid| Refusal::invalid("/secret_id", invalid.expectation))
}

/// A receiver's public key.
pub(super) fn public_key(key: &CallbackPublicKey) -> Result<PublicKey, Refusal> {
    PublicKey::from_jwk(&key.kty, &key.crv, &key.x, key.y.as_deref())
        .map_err(|invalid| Refusal::invalid("/public_key", invalid.to_string()))
}

/// A callback.
pub(super) fn registration(hook: Hook) -> CallbackRegistration {
    let (challenge_delivery_id, expires_at_utc) = match hook.challenge {
        Some(challenge) => (Some(challenge.delivery.to_string()), Some(challenge.expires_at)),
        None => (None, None),
    };
    CallbackRegistration {
        registration_id: hook.id.to_string(),
        status: Open::Known(state(hook.state)),
        disabled_cause: hook.state.cause().map(|cause| Open::Known(disabled_cause(cause))),
        challenge_delivery_id,
        expires_at_utc,
        tenant_id: hook.tenant,
        recipient_id: hook.agent,
        callback_url: CallbackUrl::new(hook.url.shown()),
        auth_mode: Open::Known(auth_mode(hook.profile)),
        delivery_scope: vec![Open::Known(DeliveryScope::SignalOnly)],
        max_rate_per_minute: hook.max_rate_per_minute.unwrap_or_default(),
        ignore_presence: hook.ignore_presence,
        health: health(&hook.health),
        created_at_utc: hook.created_at,
    }
}

/// A new callback with its secret, for the one answer that shows it.
pub(super) fn registered(registered: Registered) -> CallbackRegistered {
    let secret = registered.secret.as_ref().map(secret);
    CallbackRegistered { secret, secret_shown: false, ..without_secret(&registered) }
}

/// A new callback as a repeat of the request is answered.
pub(super) fn without_secret(registered: &Registered) -> CallbackRegistered {
    CallbackRegistered {
        registration: CallbackRegistration {
            challenge_delivery_id: Some(registered.challenge_delivery.to_string()),
            expires_at_utc: Some(registered.expires_at),
            ..registration(registered.hook.clone())
        },
        secret_id: registered.key.to_string(),
        secret: None,
        secret_shown: true,
    }
}

/// A callback with its new key, for the one answer that shows a minted secret.
pub(super) fn rotated(rotated: &Rotated) -> CallbackRotated {
    CallbackRotated {
        registration_id: rotated.hook.id.to_string(),
        secret_id: rotated.key.to_string(),
        secret: rotated.secret.as_ref().map(secret),
        previous_until_utc: rotated.previous_until,
    }
}

#[cfg(test)]
mod tests {
    use hooks::Profile;
    use protocol::AuthMode;

    use super::{auth_mode, auth_mode_of};

    #[test]
    fn the_words_of_the_core_are_the_words_on_the_wire() {
        for mode in AuthMode::ALL {
            assert_eq!(auth_mode_of(*mode).as_str(), mode.as_str());
        }
        for (profile, mode) in [
            (Profile::CallbackHmac, AuthMode::HmacSha256),
            (Profile::MessageHmac, AuthMode::HttpMessageSignatures),
            (Profile::MessageEd25519, AuthMode::HttpMessageSignatures),
        ] {
            assert_eq!(auth_mode(profile), mode);
        }
    }
}
