//! `listScheduledEvents`.

use std::str::FromStr;

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::{EventId, Timestamp};
use intake::{Scheduled, ScheduledState};
use protocol::{Open, Page, admin};

use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Scheduled events, waiting and failed.
///
/// The caller's own; all of the tenant for owners and operators.
#[utoipa::path(
    get, path = "/v1/events/scheduled", operation_id = "listScheduledEvents", tag = "events",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "By the time at which they are due.", body = Page<admin::ScheduledItem>)),
    extensions(("x-action" = json!(Action::EventsScheduled.name())))
)]
pub(crate) async fn list_scheduled_events(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let limit = query.limit(state.settings.default_page_size, state.settings.max_page_size)?;
    let after = query.parsed::<Due>("cursor", "the next_cursor of a page")?;
    query.end()?;
    let page = state.publisher.scheduled(&caller, after.map(|due| (due.at, due.id)), limit).await?;
    let next_cursor = page.next.map(|(at, id)| Due { at, id }.to_string());
    reply::ok(&Page { items: page.items.into_iter().map(item).collect(), next_cursor })
}

/// A position in the listing, as its cursor says it: `<microseconds>.<id>`.
#[derive(Debug, PartialEq, Eq)]
struct Due {
    at: Timestamp,
    id: EventId,
}

impl std::fmt::Display for Due {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.at.as_micros(), self.id)
    }
}

impl FromStr for Due {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (at, id) = text.split_once('.').ok_or(())?;
        Ok(Self { at: Timestamp::from_micros(at.parse().map_err(|_| ())?), id: id.parse().map_err(|_| ())? })
    }
}

pub(super) fn item(scheduled: Scheduled) -> admin::ScheduledItem {
    let Scheduled { schedule, state, failure } = scheduled;
    let publication = schedule.publication;
    admin::ScheduledItem {
        id: publication.id,
        event_type: publication.event_type,
        channel: publication.channel,
        audience: publication.audience.as_slice().to_vec(),
        deduplication_key: publication.deduplication.map(|deduplication| deduplication.key),
        publisher: schedule.publisher,
        created_at: publication.created_at,
        available_at: schedule.available_at,
        state: Open::Known(match state {
            ScheduledState::Waiting => admin::ScheduledState::Waiting,
            ScheduledState::Failed => admin::ScheduledState::Failed,
        }),
        failure,
    }
}

#[cfg(test)]
mod tests {
    use domain::{EventId, IdGenerator, SystemIds, Timestamp};

    use super::Due;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let due = Due { at: Timestamp::from_micros(1_782_345_600_123_456), id: EventId::new(SystemIds.uuid()) };
        assert_eq!(due.to_string().parse(), Ok(due));
        for wrong in ["", ".", "1", "1.x", "x.0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70"] {
            assert!(wrong.parse::<Due>().is_err(), "{wrong}");
        }
    }
}
