//! One request to a receiver: its signature, the call, and what it proves.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use domain::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use tokio::time::timeout;

use crate::sign::{SigningKey, Unsigned, is_hmac, sign};
use crate::{
    AttemptClass, AttemptRecord, Challenge, Delivery, Hook, HookError, HookId, HookKey, Hooks, KeyId, KeyMaterial, OutboundAnswer,
    OutboundError, OutboundRequest, Profile, Reason, Secret, SecretPlace, VaultError, WebhookId, retry,
};

/// Bytes of an answer that are read.
const ANSWER_MAX: usize = 4_096;

/// An attempt that was made.
#[derive(Clone, Debug)]
pub(crate) struct Attempted {
    /// What is kept of it.
    pub(crate) record: AttemptRecord,
    /// For how long the receiver asked to be left alone.
    pub(crate) retry_after: Option<Duration>,
}

impl Hooks {
    /// Makes an attempt of a ring. Nothing is written.
    pub(crate) async fn attempt(&self, hook: &Hook, keys: &[HookKey], delivery: &Delivery, body: Bytes) -> Result<Attempted, HookError> {
        let metrics = &self.parts.metrics;
        let at = self.parts.clock.now();
        let request = self.request(hook, keys, &delivery.id, body, at).await?;
        metrics.attempts_in_flight.up();
        // The client keeps to the time as well; nothing outside is trusted with it.
        let answer = timeout(request.timeout, self.parts.outbound.post(request)).await.unwrap_or(Err(OutboundError::Timeout));
        metrics.attempts_in_flight.down();
        let now = self.parts.clock.now();
        let class = match delivery.reason {
            Reason::Challenge => self.class_of_proof(hook, keys, &answer, now),
            _ => AttemptClass::of(&answer),
        };
        metrics.count_attempt(class);
        metrics.attempt_latency.observe(now.since(at));
        if class == AttemptClass::Delivered && delivery.reason != Reason::Challenge {
            metrics.ring_latency.observe(now.since(delivery.created_at));
        }
        tracing::debug!(
            hook.id = %hook.id, hook.host = %hook.url, ring.id = %delivery.id, ring.reason = delivery.reason.as_str(),
            attempt.class = class.as_str(), attempt.number = delivery.attempts + 1, attempt.ms = now.since(at).as_millis(), "hook rung"
        );
        let record = AttemptRecord {
            id: delivery.id.clone(),
            reason: delivery.reason,
            event: delivery.event,
            attempt: delivery.attempts.saturating_add(1),
            at,
            latency: now.since(at),
            status: answer.as_ref().ok().map(|answer| answer.status),
            class,
        };
        let retry_after = answer.ok().and_then(|answer| answer.retry_after).and_then(|value| retry::retry_after(&value, now));
        Ok(Attempted { record, retry_after })
    }

    /// What the answer to a challenge means: it must prove something besides.
    fn class_of_proof(
        &self,
        hook: &Hook,
        keys: &[HookKey],
        answer: &Result<OutboundAnswer, OutboundError>,
        now: Timestamp,
    ) -> AttemptClass {
        let class = AttemptClass::of(answer);
        let (AttemptClass::Delivered, Ok(answer), Some(challenge)) = (class, answer, &hook.challenge) else { return class };
        match serde_json::from_slice::<ChallengeAnswer>(&answer.body) {
            Ok(said) if self.proves(hook, keys, challenge, &said.response, now) => AttemptClass::Delivered,
            _ => AttemptClass::Unproven,
        }
    }

    /// Whether `response` proves that whoever gives it holds a key of the hook (seed 000, "Callback verification").
    pub(crate) fn proves(&self, hook: &Hook, keys: &[HookKey], challenge: &Challenge, response: &str, now: Timestamp) -> bool {
        let Ok(response) = STANDARD.decode(response.trim()) else { return false };
        let message = [challenge.delivery.as_str(), &challenge.nonce, &challenge.text].join(".");
        now < challenge.expires_at
            && keys.iter().filter(|key| key.is_valid(now)).any(|key| match &key.material {
                KeyMaterial::Public(public) => public.has_signed(message.as_bytes(), &response),
                KeyMaterial::Secret(_) => self.secret(hook, key).is_ok_and(|secret| is_hmac(secret.bytes(), message.as_bytes(), &response)),
            })
    }

    async fn request(
        &self,
        hook: &Hook,
        keys: &[HookKey],
        id: &WebhookId,
        body: Bytes,
        now: Timestamp,
    ) -> Result<OutboundRequest, HookError> {
        let settings = &self.parts.settings;
        let nonce = random_text()?;
        let unsigned =
            Unsigned { profile: hook.profile, id, url: &hook.url, body: &body, now, nonce: &nonce, lifetime: settings.signature_ttl };
        let signing = self.signing_keys(hook, keys, now).await?;
        let mut headers = vec![("content-type", "application/json".to_owned()), ("user-agent", settings.user_agent.clone())];
        headers.extend(sign(unsigned, &signing).ok_or(VaultError::UnknownKey)?);
        Ok(OutboundRequest { url: hook.url.clone(), headers, body, timeout: settings.attempt_timeout, answer_max: ANSWER_MAX })
    }

    /// The keys that sign now, the newest first. An expired key never does.
    async fn signing_keys(&self, hook: &Hook, keys: &[HookKey], now: Timestamp) -> Result<Vec<SigningKey>, HookError> {
        if hook.profile == Profile::MessageEd25519 {
            return Ok(vec![self.server_signing_key(now).await?]);
        }
        let mut signing = Vec::new();
        let mut failed = None;
        for key in keys.iter().filter(|key| key.is_valid(now) && matches!(key.material, KeyMaterial::Secret(_))) {
            match self.secret(hook, key) {
                Ok(secret) => signing.push(SigningKey::Hmac(key.id.clone(), secret)),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            // An old key that cannot be opened keeps no newer one from signing.
            Some(error) if signing.is_empty() => Err(error.into()),
            _ => Ok(signing),
        }
    }

    fn secret(&self, hook: &Hook, key: &HookKey) -> Result<Secret, VaultError> {
        let KeyMaterial::Secret(sealed) = &key.material else { return Err(VaultError::UnknownKey) };
        let row = secret_row(hook.id, &key.id);
        let opened = self.parts.vault.open(&secret_place(hook.tenant.as_str(), &row), sealed)?;
        Secret::from_bytes(opened.to_vec()).map_err(|_| VaultError::Damaged)
    }
}

#[derive(Deserialize)]
struct ChallengeAnswer {
    response: String,
}

/// The key of a row of `hook_keys`, as secrets are bound to it.
pub(crate) fn secret_row(hook: HookId, key: &KeyId) -> String {
    format!("{hook}/{key}")
}

/// Where the secret of a hook belongs.
pub(crate) fn secret_place<'a>(tenant: &'a str, row: &'a str) -> SecretPlace<'a> {
    SecretPlace { tenant, table: "hook_keys", column: "secret", row }
}

/// 128 random bits.
pub(crate) fn random_text() -> Result<String, VaultError> {
    let mut bytes = [0_u8; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| VaultError::NoRandomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
