//! `publishEvents`: the hot path.

use std::fmt::Write;
use std::time::Instant;

use authz::Action;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::{PayloadRef, PrincipalId, Priority};
use intake::{NewEvent, NewRecipient, Place, PublishError, Published, PublishedEvent};
use protocol::{CloudEventsMode, EventInput, ProblemCode, PublishRequest, PublishResponse, Recipient, parse_cloudevents, parse_publish};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, MediaType, Query, media_type, read_body};
use crate::routes::reply;
use crate::services::ApiState;

/// Publish events.
///
/// One event object, or `{"events": […]}`; all of a request are published or none. Answered after the durable commit, in the order of the request;
/// 200 instead of 201 when every event was a repeat of a known `deduplication_key`. An event with `available_at` in the future is stored aside and
/// has no `seq` until then. Needs `post` on the channel, without a channel `post` on `*`.
///
/// CloudEvents 1.0 in JSON are taken too, structured and batched: `type`, `source`, `data` become `type`, `source` and `payload`; source and id become the
/// `deduplication_key`.
#[utoipa::path(
    post, path = "/v1/events", operation_id = "publishEvents", tag = "events",
    request_body(
        description = "One event or several.",
        content(
            (PublishRequest = "application/json", examples(
                ("one" = (summary = "One event", value = json!({
                    "type": "message.created", "channel": "support/general", "deduplication_key": "msg:room_7:920155", "payload": {"text": "Hello"}
                }))),
                ("several" = (summary = "Several, together or not at all", value = json!({
                    "events": [
                        {"type": "message.created", "channel": "support/general", "payload": {"text": "Hello"}},
                        {"type": "reminder.due", "audience": ["agent_alpha"], "available_at": "2026-07-13T08:00:00Z"}
                    ]
                }))),
            )),
            (Value = "application/cloudevents+json", example = json!({
                "specversion": "1.0", "id": "A234", "source": "/mycontext", "type": "com.example.someevent", "channel": "support/general",
                "data": {"text": "Hello"}
            })),
            (Value = "application/cloudevents-batch+json", example = json!([{
                "specversion": "1.0", "id": "A234", "source": "/mycontext", "type": "com.example.someevent", "channel": "support/general",
                "data": {"text": "Hello"}
            }])),
        )
    ),
    responses(
        (status = 201, description = "At least one event is new.", body = PublishResponse),
        (status = 200, description = "Every event was a repeat; the first ones stand.", body = PublishResponse),
    ),
    extensions(
        ("x-action" = json!(Action::EventsPublish.name())),
        ("x-problem-codes" = json!([
            [ProblemCode::NotFound, ProblemCode::RecipientUnknown, ProblemCode::DeduplicationConflict].as_slice(), &WRITING
        ].concat())),
    )
)]
pub(crate) async fn publish_events(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    Query::none(request.uri())?;
    let (parts, body) = request.into_parts();
    let media = media_type(&parts.headers)?;
    let bytes = read_body(body, state.settings.max_publish_bytes, state.settings.request_timeout).await?;
    let limits = &state.settings.publish;
    let inputs = match media {
        MediaType::Json => parse_publish(&bytes, limits)?,
        MediaType::CloudEvents(mode) => parse_cloudevents(&bytes, mode, limits)?,
    };
    let recipients: Vec<_> = inputs.iter().map(recipients_of).collect();
    let events = inputs.into_iter().map(event).collect();
    let began = Instant::now();
    let published = state.publisher.publish(&caller, events).await.map_err(|error| refuse(error, media, &bytes))?;
    state.metrics.committed(began.elapsed());
    Ok(answer(&published, &recipients))
}

/// Whose inboxes an event is put into.
fn recipients_of(input: &EventInput) -> Vec<PrincipalId> {
    input.recipients.iter().flatten().map(|recipient| recipient.id.clone()).collect()
}

/// What intake takes, from what was read.
fn event(input: EventInput) -> NewEvent {
    NewEvent {
        event_type: input.event_type,
        channel: input.channel,
        audience: input.audience.unwrap_or_default(),
        recipients: input.recipients.unwrap_or_default().into_iter().map(recipient).collect(),
        priority: input.priority.map(priority),
        available_at: input.available_at,
        expires_at: input.expires_at,
        max_attempts: input.max_attempts,
        kind: input.kind.map(|kind| kind.as_str().to_owned()),
        source: input.source.map(|source| source.as_str().to_owned()),
        summary: input.summary.map(|summary| summary.as_str().to_owned()),
        deduplication_key: input.deduplication_key,
        correlation: input
            .correlation
            .map(|correlation| correlation.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()),
        payload_ref: input
            .payload_ref
            .map(|reference| PayloadRef { kind: reference.kind.as_str().to_owned(), id: reference.id.as_str().to_owned() }),
        payload: input.payload,
    }
}

fn recipient(recipient: Recipient) -> NewRecipient {
    NewRecipient { id: recipient.id, queue: recipient.queue.and_then(|queue| domain::QueueName::parse(queue.as_str()).ok()) }
}

const fn priority(priority: protocol::Priority) -> Priority {
    match priority {
        protocol::Priority::Low => Priority::Low,
        protocol::Priority::Normal => Priority::Normal,
        protocol::Priority::High => Priority::High,
        protocol::Priority::Urgent => Priority::Urgent,
    }
}

/// What an event's entry in the answer costs.
const ENTRY: usize = 96;

/// The answer is written by hand: it is small, and it is the hot path. `recipients` are those of each event.
fn answer(published: &Published, recipients: &[Vec<PrincipalId>]) -> Response {
    let mut body = String::with_capacity(published.events.len() * ENTRY + ENTRY);
    body.push_str(r#"{"events":["#);
    for (index, event) in published.events.iter().enumerate() {
        if index > 0 {
            body.push(',');
        }
        write_entry(&mut body, event, recipients.get(index).map_or(&[], Vec::as_slice));
    }
    // Writing to a string cannot fail.
    let _ = write!(body, r#"],"head_seq":{}}}"#, published.head);
    let new = published.events.iter().any(|event| !event.deduplicated);
    reply::encoded(if new { StatusCode::CREATED } else { StatusCode::OK }, "application/json", body)
}

fn write_entry(body: &mut String, event: &PublishedEvent, recipients: &[PrincipalId]) {
    let _ = write!(body, r#"{{"id":"{}""#, event.id);
    if let Some(seq) = event.seq {
        let _ = write!(body, r#","seq":{seq}"#);
    }
    body.push_str(if event.deduplicated { r#","deduplicated":true"# } else { r#","deduplicated":false"# });
    if event.is_scheduled() {
        body.push_str(r#","scheduled":true"#);
    }
    if let (true, Some(seq), false) = (event.delivered, event.seq, recipients.is_empty()) {
        for (index, recipient) in recipients.iter().enumerate() {
            body.push_str(if index == 0 { r#","inbox":["# } else { "," });
            // The names of principals need no escapes.
            let _ = write!(body, r#"{{"recipient_id":"{recipient}","inbox_seq":{seq}}}"#);
        }
        body.push(']');
    }
    body.push('}');
}

fn refuse(error: PublishError, media: MediaType, body: &[u8]) -> Refusal {
    let pointer = error.place().map(|place| pointer(place, media, body)).unwrap_or_default();
    let detail = error.to_string();
    let code = match error {
        PublishError::Denied(denied) => return denied.into(),
        PublishError::Store(error) => return error.into(),
        PublishError::Invalid { .. } => ProblemCode::ValidationFailed,
        PublishError::PayloadTooLarge { .. } => ProblemCode::PayloadTooLarge,
        PublishError::RecipientUnknown { .. } => ProblemCode::RecipientUnknown,
        PublishError::DeduplicationConflict { .. } => ProblemCode::DeduplicationConflict,
    };
    Refusal::new(code, detail).at(pointer)
}

/// Where in the body that came; only asked for when something is wrong.
fn pointer(place: &Place, media: MediaType, body: &[u8]) -> String {
    match (media, place.event) {
        (MediaType::Json, _) => place.pointer(!has_member_events(body)),
        (MediaType::CloudEvents(CloudEventsMode::Structured), _) | (_, None) => place.member.clone(),
        (MediaType::CloudEvents(CloudEventsMode::Batch), Some(event)) => format!("/{event}{}", place.member),
    }
}

fn has_member_events(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Members {
        events: Option<IgnoredAny>,
    }
    serde_json::from_slice(body).is_ok_and(|Members { events }| events.is_some())
}

#[cfg(test)]
mod tests {
    use domain::{EventId, IdGenerator, PrincipalId, Seq, SystemIds};
    use intake::{Place, Published, PublishedEvent};
    use protocol::{CloudEventsMode, PublishResponse};

    use super::{answer, pointer, write_entry};
    use crate::request::MediaType;

    fn published(events: &[(Option<u64>, bool)]) -> Published {
        let event = |(seq, deduplicated): &(Option<u64>, bool)| PublishedEvent {
            id: EventId::new(SystemIds.uuid()),
            seq: seq.and_then(Seq::new),
            deduplicated: *deduplicated,
            delivered: seq.is_some() && !deduplicated,
        };
        Published { events: events.iter().map(event).collect(), head: Seq::MAX }
    }

    #[tokio::test]
    async fn the_answer_written_by_hand_is_the_documented_one() {
        let published = published(&[(Some(7), false), (Some(3), true), (None, false), (None, true), (Some(8), false)]);
        let agents: Vec<_> = ["alpha", "beta"].into_iter().map(|name| PrincipalId::parse(name).unwrap()).collect();
        let recipients = [agents.clone(), agents.clone(), agents.clone(), agents.clone(), vec![]];
        let body = axum::body::to_bytes(answer(&published, &recipients).into_body(), usize::MAX).await.unwrap();
        let read: PublishResponse = serde_json::from_slice(&body).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap().as_bytes(), body);
        assert_eq!(read.head_seq, Seq::MAX);
        for (read, own) in read.events.iter().zip(&published.events) {
            assert_eq!((read.id, read.seq, read.deduplicated, read.scheduled), (own.id, own.seq, own.deduplicated, own.is_scheduled()));
        }
        let first: Vec<_> = read.events[0].inbox.iter().map(|item| (item.recipient_id.clone(), item.inbox_seq.get())).collect();
        assert_eq!(first, agents.into_iter().map(|agent| (agent, 7)).collect::<Vec<_>>());
        assert!(read.events[1..].iter().all(|event| event.inbox.is_empty()), "what was not put into inboxes now names none");
    }

    #[test]
    fn only_a_request_of_repeats_is_answered_with_200() {
        assert_eq!(answer(&published(&[(Some(7), true), (Some(8), true)]), &[]).status(), 200);
        assert_eq!(answer(&published(&[(Some(7), true), (Some(8), false)]), &[]).status(), 201);
        assert_eq!(answer(&published(&[(None, false)]), &[]).status(), 201);
    }

    #[test]
    fn an_entry_has_no_seq_while_it_is_scheduled() {
        let mut text = String::new();
        write_entry(&mut text, &published(&[(None, false)]).events[0], &[]);
        assert!(text.ends_with(r#""deduplicated":false,"scheduled":true}"#) && !text.contains("seq"), "{text}");
    }

    #[test]
    fn a_pointer_leads_into_the_body_that_came() {
        let place = Place { event: Some(2), member: "/recipients/0".to_owned() };
        let json = |body: &str| pointer(&place, MediaType::Json, body.as_bytes());
        assert_eq!(json(r#"{"type": "a"}"#), "/recipients/0");
        assert_eq!(json(r#"{"events": [{"type": "a"}]}"#), "/events/2/recipients/0");
        assert_eq!(pointer(&place, MediaType::CloudEvents(CloudEventsMode::Batch), b"[]"), "/2/recipients/0");
        assert_eq!(pointer(&place, MediaType::CloudEvents(CloudEventsMode::Structured), b"{}"), "/recipients/0");
    }
}
