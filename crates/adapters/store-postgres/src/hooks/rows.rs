//! Rows as the values of `hooks`, and back. Each function names the columns that it expects, in order. What cannot be read is corrupt, never a default.

use std::time::Duration;

use domain::{EventId, QueueName, SyncEpoch, TenantId, Timestamp};
use hooks::{
    AttemptClass, AttemptRecord, Challenge, Delivery, DisabledCause, Health, Hook, HookId, HookKey, HookKind, HookState, HookUrl, KeyId,
    KeyMaterial, LogPosition, Profile, PublicKey, Reason, Sealed, ServerKey, WebhookId,
};

use crate::codec;
use crate::db::PgRow;
use crate::failure::Failure;

fn unreadable(what: &str) -> Failure {
    Failure::corrupt(format!("a row of hooks with an unreadable {what}"))
}

/// A number of a narrower type than the column's.
fn number<T: TryFrom<i64>>(row: &PgRow, column: usize, what: &str) -> Result<T, Failure> {
    T::try_from(codec::get::<i64>(row, column)?).map_err(|_| unreadable(what))
}

/// A status, which may be NULL.
fn status(row: &PgRow, column: usize) -> Result<Option<u16>, Failure> {
    codec::get::<Option<i32>>(row, column)?.map(|status| u16::try_from(status).map_err(|_| unreadable("status"))).transpose()
}

fn string(row: &PgRow, column: usize) -> Result<Option<String>, Failure> {
    codec::get(row, column)
}

fn bytes(row: &PgRow, column: usize) -> Result<Option<Vec<u8>>, Failure> {
    codec::get(row, column)
}

/// The id of a hook in `column`.
pub(super) fn hook_id(row: &PgRow, column: usize) -> Result<HookId, Failure> {
    codec::uuid(row, column).map(HookId::new)
}

fn webhook_id(row: &PgRow, column: usize) -> Result<WebhookId, Failure> {
    codec::word(row, column, WebhookId::parse)
}

/// The name of a key in `column`.
pub(super) fn key_id(row: &PgRow, column: usize) -> Result<KeyId, Failure> {
    codec::word(row, column, |text| KeyId::parse(text).ok())
}

fn event_id(row: &PgRow, column: usize) -> Result<Option<EventId>, Failure> {
    Ok(codec::optional_uuid(row, column)?.map(EventId::new))
}

/// `hook_id, tenant_id, agent_id, kind, profile, url, queues, ignore_presence, max_rate_per_minute, state, disabled_cause, challenge_delivery,
/// challenge_nonce, challenge_text, challenge_expires_at, last_status, last_attempt_at, exhausted_in_row, since, created_at`.
pub(super) fn hook(row: &PgRow) -> Result<Hook, Failure> {
    let cause = string(row, 10)?;
    let cause = cause.map(|word| DisabledCause::parse(&word).ok_or_else(|| unreadable("cause"))).transpose()?;
    let rate = codec::get::<Option<i64>>(row, 8)?;
    Ok(Hook {
        id: hook_id(row, 0)?,
        tenant: codec::text(row, 1)?,
        agent: codec::text(row, 2)?,
        kind: codec::word(row, 3, HookKind::parse)?,
        profile: codec::word(row, 4, Profile::parse)?,
        url: codec::word(row, 5, |text| HookUrl::parse(text).ok())?,
        queues: queues(row, 6)?,
        ignore_presence: codec::get(row, 7)?,
        max_rate_per_minute: rate.map(|rate| u32::try_from(rate).map_err(|_| unreadable("rate"))).transpose()?,
        state: HookState::parse(codec::get(row, 9)?, cause).ok_or_else(|| unreadable("state"))?,
        challenge: challenge(row)?,
        health: Health {
            last_status: status(row, 15)?,
            last_attempt_at: codec::optional_timestamp(row, 16)?,
            exhausted_in_row: number(row, 17, "count")?,
        },
        since: codec::seq(row, 18)?,
        created_at: codec::timestamp(row, 19)?,
    })
}

fn queues(row: &PgRow, column: usize) -> Result<Vec<QueueName>, Failure> {
    let text = codec::get::<Option<&str>>(row, column)?;
    text.map_or(Ok(Vec::new()), |text| serde_json::from_str(text).map_err(|_| unreadable("list of queues")))
}

/// The column of a list of queues.
pub(super) fn queues_text(queues: &[QueueName]) -> Result<Option<String>, Failure> {
    let text = (!queues.is_empty()).then(|| serde_json::to_string(queues)).transpose();
    text.map_err(|_| Failure::corrupt("the queues of a hook cannot be written"))
}

fn challenge(row: &PgRow) -> Result<Option<Challenge>, Failure> {
    let parts = (string(row, 11)?, string(row, 12)?, string(row, 13)?, codec::optional_timestamp(row, 14)?);
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
pub(super) fn key(row: &PgRow) -> Result<HookKey, Failure> {
    let material = match (bytes(row, 2)?, string(row, 3)?, bytes(row, 4)?) {
        (Some(secret), None, None) => KeyMaterial::Secret(Sealed::from_bytes(secret)),
        (None, Some(algorithm), Some(public)) => {
            KeyMaterial::Public(PublicKey::from_parts(&algorithm, &public).map_err(|_| unreadable("public key"))?)
        }
        _ => return Err(unreadable("key")),
    };
    let (created_at, expires_at) = (codec::timestamp(row, 5)?, codec::optional_timestamp(row, 6)?);
    Ok(HookKey { id: key_id(row, 1)?, material, created_at, expires_at })
}

/// `hook_id, webhook_id, reason, cause, event_id, queue, attempts, next_at, created_at`.
pub(super) fn delivery(row: &PgRow, tenant: &TenantId) -> Result<Delivery, Failure> {
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
pub(super) fn attempt(row: &PgRow) -> Result<AttemptRecord, Failure> {
    Ok(AttemptRecord {
        id: webhook_id(row, 2)?,
        reason: codec::word(row, 3, Reason::parse)?,
        event: event_id(row, 4)?,
        attempt: number(row, 5, "count")?,
        at: codec::timestamp(row, 6)?,
        latency: Duration::from_micros(codec::natural(row, 7)?),
        status: status(row, 8)?,
        class: codec::word(row, 9, AttemptClass::parse)?,
    })
}

/// `tenant_id, group_number, epoch, position`, the last two NULL before the first step.
pub(super) fn position(row: &PgRow) -> Result<Option<LogPosition>, Failure> {
    let Some(epoch) = codec::optional_uuid(row, 2)? else { return Ok(None) };
    Ok(Some(LogPosition { epoch: SyncEpoch::new(epoch), seq: codec::seq(row, 3)? }))
}

/// `key_id, public_key, pair, signs_from`.
pub(super) fn server_key(row: &PgRow) -> Result<ServerKey, Failure> {
    let public: Vec<u8> = codec::get(row, 1)?;
    if public.len() != 32 {
        return Err(unreadable("public key"));
    }
    Ok(ServerKey { id: key_id(row, 0)?, public, pair: Sealed::from_bytes(codec::get(row, 2)?), signs_from: codec::timestamp(row, 3)? })
}

/// An instant as its column holds it.
pub(super) fn micros(instant: Option<Timestamp>) -> Option<i64> {
    instant.map(Timestamp::as_micros)
}
