//! `cancelScheduledEvent`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::EventId;
use protocol::{ProblemCode, schema};

use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, PathNames, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Cancel a scheduled event, waiting or failed.
///
/// One's own; any of the tenant for owners and operators. Its `deduplication_key` is free again. An event that is appended at that very moment is
/// `state_conflict`.
#[utoipa::path(
    delete, path = "/v1/events/scheduled/{event}", operation_id = "cancelScheduledEvent", tag = "events",
    params(("event" = schema::EventId, Path, description = "The event.")),
    responses((status = 204, description = "It will not appear.")),
    extensions(
        ("x-action" = json!(Action::EventsScheduled.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound, ProblemCode::StateConflict].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn cancel_scheduled_event(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    names: PathNames,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let event: EventId = names.name("event")?;
    state.publisher.cancel_scheduled(&caller, event).await?;
    Ok(reply::no_content())
}
