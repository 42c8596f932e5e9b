//! What is to be done for one accepted event. Pure.

use std::sync::Arc;

use domain::{
    Actor, Audience, Deduplication, EnvelopeParts, EventId, EventOrigin, PrincipalId, Priority, Publication, Timestamp, Work, WorkFor,
    encode_body,
};

use crate::fingerprint::fingerprint;
use crate::validate::sanitise;
use crate::{NewEvent, Schedule, Settings};

/// What is to be done for one accepted event.
#[derive(Clone, Debug)]
pub(crate) enum Planned {
    /// Append it.
    Now(Publication),
    /// Store it aside until it is due.
    Later(Schedule),
}

impl Planned {
    pub(super) fn into_publication(self) -> Publication {
        match self {
            Self::Now(publication) | Self::Later(Schedule { publication, .. }) => publication,
        }
    }
}

/// Encodes the envelope, once and for all, and decides whether the event waits.
///
/// # Errors
/// When the body has a deduplication key and its payload has no RFC 8785 form.
pub(crate) fn plan(event: &NewEvent, id: EventId, actor: &Actor, now: Timestamp, settings: &Settings) -> serde_json::Result<Planned> {
    let due = event.available_at.filter(|at| *at > now);
    let addressees = event.addressees();
    let summary = event.summary.as_deref().and_then(sanitise);
    let work = work(event, due.unwrap_or(now), summary.as_deref(), settings);
    let publication = Publication {
        id,
        event_type: event.event_type.clone(),
        channel: event.channel.clone(),
        audience: Audience::new(&addressees),
        origin: if work.is_some() { EventOrigin::Work } else { EventOrigin::Published },
        created_at: now,
        body: encode_body(&envelope(event, id, actor, now, &addressees, summary.as_deref()))?,
        deduplication: deduplication(event, due.unwrap_or(now), settings)?,
        work: work.map(Arc::new),
    };
    Ok(match due {
        Some(available_at) => Planned::Later(Schedule { publication, publisher: actor.id.clone(), available_at }),
        None => Planned::Now(publication),
    })
}

fn envelope<'a>(
    event: &'a NewEvent,
    id: EventId,
    actor: &'a Actor,
    now: Timestamp,
    audience: &'a [PrincipalId],
    summary: Option<&'a str>,
) -> EnvelopeParts<'a> {
    EnvelopeParts {
        channel: event.channel.as_ref(),
        audience,
        priority: event.priority,
        deduplication_key: event.deduplication_key.as_ref(),
        correlation: event.correlation.as_ref(),
        payload_ref: event.payload_ref.as_ref(),
        kind: event.kind.as_deref(),
        source: event.source.as_deref(),
        summary,
        expires_at: event.expires_at,
        payload: event.payload.as_deref(),
        ..EnvelopeParts::new(id, &event.event_type, now, actor)
    }
}

/// What it leaves in the inboxes of its recipients, if it has any.
fn work(event: &NewEvent, available_at: Timestamp, summary: Option<&str>, settings: &Settings) -> Option<Work> {
    if event.recipients.is_empty() {
        return None;
    }
    let rules = &settings.items;
    let priority = event.priority.unwrap_or(Priority::Normal);
    let recipient = |new: &crate::NewRecipient| WorkFor { agent: new.id.clone(), queue: new.queue.clone().unwrap_or_default() };
    Some(Work {
        recipients: event.recipients.iter().map(recipient).collect(),
        priority,
        kind: event.kind.clone(),
        source: event.source.clone(),
        summary: summary.unwrap_or(event.event_type.as_str()).to_owned(),
        available_at,
        claim_key: rules.claim_key(available_at, priority),
        expires_at: event.expires_at,
        max_attempts: event.max_attempts.map_or(rules.max_attempts.max(1), std::num::NonZeroU32::get),
    })
}

/// The key is remembered from when the event is in the log.
fn deduplication(event: &NewEvent, available_at: Timestamp, settings: &Settings) -> serde_json::Result<Option<Deduplication>> {
    let Some(key) = event.deduplication_key.clone() else { return Ok(None) };
    let expires_at = available_at.plus(settings.deduplication_window);
    Ok(Some(Deduplication { key, body_hash: fingerprint(event)?, expires_at }))
}
