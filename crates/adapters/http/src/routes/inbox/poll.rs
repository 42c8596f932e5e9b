//! `pollInbox`.

use std::num::NonZeroU64;

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use inbox::Poll;
use protocol::{PollRequest, PollResponse, ProblemCode, Seconds};

use super::{asked, wire};
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::reply;
use crate::services::ApiState;

/// Items of a poll that names no limit.
const DEFAULT_LIMIT: usize = 100;

/// Look at what waits.
///
/// The calling agent's current items with a `ring_seq` above `after_seq`, in that order; an item that became claimable again comes again. Nothing
/// is changed: claim what is to be worked on. With `wait_seconds` the answer waits until there is an item. A position above
/// the log's head, or below both what the log retains and every current item (then below the head), is `cursor_reset_required`: read the items at
/// `resync_url`, then poll after `head_seq`. A page may have fewer items than `limit`, even none, although `more_available`: go on after
/// `next_cursor`.
#[utoipa::path(
    post, path = "/v1/inbox/poll-after-cursor", operation_id = "pollInbox", tag = "inbox",
    request_body(content = PollRequest, description = "From where, and for how long."),
    responses((status = 200, description = "What there is, possibly nothing.", body = PollResponse)),
    extensions(
        ("x-action" = json!(Action::InboxPoll.name())),
        ("x-problem-codes" = json!([ProblemCode::NotFound, ProblemCode::CursorResetRequired, ProblemCode::ResyncRequired])),
    )
)]
pub(crate) async fn poll_inbox(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let asked: PollRequest = asked::body(request, &state).await?;
    asked::own(&caller, asked.tenant_id.as_ref(), asked.recipient_id.as_ref())?;
    let poll = Poll {
        after: asked.after_seq.unwrap_or_default(),
        limit: asked.limit.map_or(DEFAULT_LIMIT, limit),
        wait: asked.wait_seconds.map(Seconds::duration).unwrap_or_default(),
        claimable_only: asked.include_claimable_only.unwrap_or_default(),
        queues: asked.queues,
        epoch: asked.sync_epoch,
        session: asked.session_id,
    };
    let polled = state.inbox.poll(&caller, poll).await?;
    let show = |(item, paused)| wire::polled(item, paused, &caller, &caller.principal);
    reply::ok(&PollResponse {
        head_seq: polled.head,
        events: polled.items.into_iter().map(show).collect(),
        next_cursor: polled.next,
        more_available: polled.more,
        sync_epoch: polled.epoch,
    })
}

/// Whoever is asked caps it.
pub(super) fn limit(asked: NonZeroU64) -> usize {
    usize::try_from(asked.get()).unwrap_or(usize::MAX)
}
