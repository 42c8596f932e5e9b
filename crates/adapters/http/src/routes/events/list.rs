//! `listEvents`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::SyncEpoch;
use gateway::PageRequest;
use protocol::{EventPage, ProblemCode, schema};

use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Read the log with a cursor of one's own.
///
/// For people and apps. A page holds what the caller may see now, after `after`; `next_cursor` is the last position that was checked, so pass it as
/// the next `after`, also when the page is empty. Below the lowest retained position, above the head and in another epoch the answer is
/// `resync_required`.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "listEvents", tag = "events",
    params(
        ("after" = Option<schema::Seq>, Query, description = "The last position that the reader has. From the lowest retained one by default."),
        ("limit" = Option<u64>, Query, minimum = 1, description = "At most this many events; capped to `http.max_page_size`."),
        ("sync_epoch" = Option<schema::SyncEpoch>, Query, description = "The epoch that `after` belongs to; another one is refused with `resync_required`."),
    ),
    responses((status = 200, description = "What there is, possibly nothing.", body = EventPage)),
    extensions(("x-action" = json!(Action::EventsRead.name())), ("x-problem-codes" = json!([ProblemCode::ResyncRequired])))
)]
pub(crate) async fn list_events(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let request = PageRequest {
        after: query.seq("after")?,
        limit: query.limit(state.settings.default_page_size, state.settings.max_page_size)?,
        epoch: query.parsed::<SyncEpoch>("sync_epoch", "a UUID")?,
    };
    query.end()?;
    Ok(reply::event_page(&state.events.page(&caller, request).await?))
}
