//! What is to be done for one accepted event. Pure.

use domain::{Actor, Audience, Deduplication, EnvelopeParts, EventId, EventOrigin, PrincipalId, Publication, Timestamp, encode_body};

use crate::fingerprint::fingerprint;
use crate::validate::sanitise;
use crate::{NewEvent, Schedule, Settings};

/// What is to be done for one accepted event.
#[derive(Clone, Debug)]
pub(super) enum Planned {
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
pub(super) fn plan(event: &NewEvent, id: EventId, actor: &Actor, now: Timestamp, settings: &Settings) -> serde_json::Result<Planned> {
    let due = event.available_at.filter(|at| *at > now);
    let addressees = event.addressees();
    let publication = Publication {
        id,
        event_type: event.event_type.clone(),
        channel: event.channel.clone(),
        audience: Audience::new(&addressees),
        origin: EventOrigin::Published,
        created_at: now,
        body: encode_body(&envelope(event, id, actor, now, &addressees, event.summary.as_deref().and_then(sanitise).as_deref()))?,
        deduplication: deduplication(event, due.unwrap_or(now), settings)?,
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

/// The key is remembered from when the event is in the log.
fn deduplication(event: &NewEvent, available_at: Timestamp, settings: &Settings) -> serde_json::Result<Option<Deduplication>> {
    let Some(key) = event.deduplication_key.clone() else { return Ok(None) };
    let expires_at = available_at.plus(settings.deduplication_window);
    Ok(Some(Deduplication { key, body_hash: fingerprint(event)?, expires_at }))
}
