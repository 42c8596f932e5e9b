//! Rows as the values of `hooks`, and back. Each function names the columns that it expects, in order. What cannot be read is corrupt, never a default.

use std::time::Duration;

use domain::{EventId, QueueName, SyncEpoch, TenantId, Timestamp};
use hooks::{
    AttemptClass, AttemptRecord, Challenge, Delivery, DisabledCause, Health, Hook, HookId, HookKey, HookKind, HookState, HookUrl, KeyId,
    KeyMaterial, LogPosition, Profile, PublicKey, Reason, Sealed, ServerKey, WebhookId,
};
use rusqlite::Row;

use crate::codec;
use crate::failure::Failure;

fn unreadable(what: &str) -> Failure {
    Failure::corrupt(format!("a row of hooks with an unreadable {what}"))
}

/// A number of a narrower type than the column's.
fn number<T: TryFrom<u64>>(row: &Row<'_>, column: usize, what: &str) -> Result<T, Failure> {
    T::try_from(codec::natural(row, column)?).map_err(|_| unreadable(what))
}

/// The same for a column that may be NULL.
fn optional_number<T: TryFrom<u64>>(row: &Row<'_>, column: usize, what: &str) -> Result<Option<T>, Failure> {
    let is_null = row.get_ref(column)?.as_i64_or_null().is_ok_and(|value| value.is_none());
    if is_null { Ok(None) } else { number(row, column, what).map(Some) }
}

fn flag(row: &Row<'_>, column: usize, what: &str) -> Result<bool, Failure> {
    match codec::natural(row, column)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(unreadable(what)),
    }
}

fn string(row: &Row<'_>, column: usize, what: &str) -> Result<Option<String>, Failure> {
    Ok(row.get_ref(column)?.as_str_or_null().map_err(|_| unreadable(what))?.map(str::to_owned))
}

fn bytes(row: &Row<'_>, column: usize, what: &str) -> Result<Option<Vec<u8>>, Failure> {
    Ok(row.get_ref(column)?.as_blob_or_null().map_err(|_| unreadable(what))?.map(<[u8]>::to_vec))
}

/// The id of a hook in `column`.
pub(super) fn hook_id(row: &Row<'_>, column: usize) -> Result<HookId, Failure> {
    codec::uuid(row, column).map(HookId::new)
}

fn webhook_id(row: &Row<'_>, column: usize) -> Result<WebhookId, Failure> {
    codec::word(row, column, WebhookId::parse)
}

/// The name of a key in `column`.
pub(super) fn key_id(row: &Row<'_>, column: usize) -> Result<KeyId, Failure> {
    codec::word(row, column, |text| KeyId::parse(text).ok())
}

fn event_id(row: &Row<'_>, column: usize) -> Result<Option<EventId>, Failure> {
    Ok(codec::optional_uuid(row, column)?.map(EventId::new))
}

/// `hook_id, tenant_id, agent_id, kind, profile, url, queues, ignore_presence, max_rate_per_minute, state, disabled_cause, challenge_delivery,
/// challenge_nonce, challenge_text, challenge_expires_at, last_status, last_attempt_at, exhausted_in_row, since, created_at`.
pub(crate) fn hook(row: &Row<'_>) -> Result<Hook, Failure> {
    let cause = string(row, 10, "cause")?;
    let cause = cause.map(|word| DisabledCause::parse(&word).ok_or_else(|| unreadable("cause"))).transpose()?;
    let state = string(row, 9, "state")?.unwrap_or_default();
    Ok(Hook {
        id: hook_id(row, 0)?,
        tenant: codec::text(row, 1)?,
        agent: codec::text(row, 2)?,
        kind: codec::word(row, 3, HookKind::parse)?,
        profile: codec::word(row, 4, Profile::parse)?,
        url: codec::word(row, 5, |text| HookUrl::parse(text).ok())?,
        queues: queues(row, 6)?,
        ignore_presence: flag(row, 7, "presence")?,
        max_rate_per_minute: optional_number(row, 8, "rate")?,
        state: HookState::parse(&state, cause).ok_or_else(|| unreadable("state"))?,
        challenge: challenge(row)?,
        health: Health {
            last_status: optional_number(row, 15, "status")?,
            last_attempt_at: codec::optional_timestamp(row, 16)?,
            exhausted_in_row: number(row, 17, "count")?,
        },
        since: codec::seq(row, 18)?,
        created_at: codec::timestamp(row, 19)?,
    })
}

fn queues(row: &Row<'_>, column: usize) -> Result<Vec<QueueName>, Failure> {
    let text = row.get_ref(column)?.as_str_or_null().map_err(|_| unreadable("list of queues"))?;
    text.map_or(Ok(Vec::new()), |text| serde_json::from_str(text).map_err(|_| unreadable("list of queues")))
}

/// The column of a list of queues.
pub(super) fn queues_text(queues: &[QueueName]) -> Result<Option<String>, Failure> {
    let text = (!queues.is_empty()).then(|| serde_json::to_string(queues)).transpose();
    text.map_err(|_| Failure::corrupt("the queues of a hook cannot be written"))
}

fn challenge(row: &Row<'_>) -> Result<Option<Challenge>, Failure> {
    let parts = (
        string(row, 11, "challenge")?,
        string(row, 12, "challenge")?,
        string(row, 13, "challenge")?,
        codec::optional_timestamp(row, 14).map_err(|_| unreadable("challenge"))?,
    );
    match parts {
        (None, None, None, None) => Ok(None),
        (Some(delivery), Some(nonce), Some(text), Some(expires_at)) => {
            let delivery = WebhookId::parse(&delivery).ok_or_else(|| unreadable("challenge"))?;
            Ok(Some(Challenge { delivery, nonce, text, expires_at }))
        }
        _ => Err(unreadable("challenge")),
    }
}

/// `hook_id, key_id, secret, algorithm, public_key, created_at, expires_at`.
pub(crate) fn key(row: &Row<'_>) -> Result<HookKey, Failure> {
    let parts = (bytes(row, 2, "secret")?, string(row, 3, "algorithm")?, bytes(row, 4, "public key")?);
    let material = match parts {
        (Some(secret), None, None) => KeyMaterial::Secret(Sealed::from_bytes(secret)),
        (None, Some(algorithm), Some(public)) => {
            KeyMaterial::Public(PublicKey::from_parts(&algorithm, &public).map_err(|_| unreadable("public key"))?)
        }
        _ => return Err(unreadable("key")),
    };
    Ok(HookKey {
        id: key_id(row, 1)?,
        material,
        created_at: codec::timestamp(row, 5)?,
        expires_at: codec::optional_timestamp(row, 6).map_err(|_| unreadable("expiry"))?,
    })
}

/// `hook_id, webhook_id, reason, cause, event_id, queue, attempts, next_at, created_at`.
pub(crate) fn delivery(row: &Row<'_>, tenant: &TenantId) -> Result<Delivery, Failure> {
    Ok(Delivery {
        tenant: tenant.clone(),
        hook: hook_id(row, 0)?,
        id: webhook_id(row, 1)?,
        reason: codec::word(row, 2, Reason::parse)?,
        cause: codec::seq(row, 3)?,
        event: event_id(row, 4)?,
        queue: codec::optional_text(row, 5)?,
        attempts: number(row, 6, "count")?,
        next_at: codec::timestamp(row, 7)?,
        created_at: codec::timestamp(row, 8)?,
    })
}

/// `hook_id, number, webhook_id, reason, event_id, attempt, at, latency, status, class`.
pub(crate) fn attempt(row: &Row<'_>) -> Result<AttemptRecord, Failure> {
    Ok(AttemptRecord {
        id: webhook_id(row, 2)?,
        reason: codec::word(row, 3, Reason::parse)?,
        event: event_id(row, 4)?,
        attempt: number(row, 5, "count")?,
        at: codec::timestamp(row, 6)?,
        latency: Duration::from_micros(codec::natural(row, 7)?),
        status: optional_number(row, 8, "status")?,
        class: codec::word(row, 9, AttemptClass::parse)?,
    })
}

/// `tenant_id, epoch, position`.
pub(crate) fn position(row: &Row<'_>) -> Result<LogPosition, Failure> {
    Ok(LogPosition { epoch: SyncEpoch::new(codec::uuid(row, 1)?), seq: codec::seq(row, 2)? })
}

/// `key_id, public_key, pair, signs_from`.
pub(crate) fn server_key(row: &Row<'_>) -> Result<ServerKey, Failure> {
    let (public, pair) = (bytes(row, 1, "public key")?, bytes(row, 2, "key pair")?);
    Ok(ServerKey {
        id: key_id(row, 0)?,
        public: public.filter(|bytes| bytes.len() == 32).ok_or_else(|| unreadable("public key"))?,
        pair: pair.map(Sealed::from_bytes).ok_or_else(|| unreadable("key pair"))?,
        signs_from: codec::timestamp(row, 3)?,
    })
}

/// An instant as its column holds it.
pub(super) fn micros(instant: Option<Timestamp>) -> Option<i64> {
    instant.map(Timestamp::as_micros)
}
