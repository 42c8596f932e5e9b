//! `acknowledgeItems`.

use authz::Action;
use axum::extract::{Request, State};
use axum::response::Response;
use domain::EventId;
use inbox::{Acknowledge, Item, Report};
use protocol::{AckDone, AckItem, AckResult, AcknowledgeRequest, AcknowledgeResponse, Open, ProblemCode, check_kept_json};

use super::{asked, wire};
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::reply;
use crate::services::ApiState;

/// Acknowledge what was claimed.
///
/// Each is answered for itself. `completed` and `discarded` end the item; `failed` has it rest and come back, or makes it a dead letter when its
/// attempts are used up. Accepted as long as the item was not claimed again, also past the end of its lease. The same token with the same
/// result again is a success, so a repeat is harmless and there is no `Idempotency-Key`; any other token is `lease_lost`.
#[utoipa::path(
    post, path = "/v1/inbox/acknowledge", operation_id = "acknowledgeItems", tag = "inbox",
    request_body(content = AcknowledgeRequest, description = "What became of the work."),
    responses((status = 200, description = "One entry per item, in the order of the request.", body = AcknowledgeResponse)),
    extensions(
        ("x-action" = json!(Action::InboxAck.name())),
        ("x-problem-codes" = json!([[ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn acknowledge_items(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let asked: AcknowledgeRequest = asked::body(request, &state).await?;
    asked::own(&caller, asked.tenant_id.as_ref(), asked.recipient_id.as_ref())?;
    let max_depth = state.settings.publish.max_depth;
    let events: Vec<_> = asked.acks.iter().map(|ack| ack.event_id).collect();
    let acks = asked.acks.into_iter().enumerate().map(|(index, ack)| acknowledge(index, ack, max_depth)).collect::<Result<_, _>>()?;
    let outcomes = state.inbox.acknowledge(&caller, asked.session_id.as_ref(), acks).await?;
    let acks = events.into_iter().zip(&outcomes).map(|(event, outcome)| done(event, outcome)).collect();
    reply::ok(&AcknowledgeResponse { acks })
}

fn acknowledge(index: usize, ack: AckItem, max_depth: usize) -> Result<Acknowledge, Refusal> {
    if let Some(output) = &ack.output {
        check_kept_json(output, max_depth).map_err(|detail| Refusal::invalid(format!("/acks/{index}/output"), detail))?;
    }
    if ack.summary.as_ref().is_some_and(|summary| summary.contains('\0')) {
        return Err(Refusal::invalid(format!("/acks/{index}/summary"), "the character U+0000 is not allowed"));
    }
    let result = match ack.result {
        AckResult::Completed => inbox::AckResult::Completed,
        AckResult::Failed => inbox::AckResult::Failed,
        AckResult::Discarded => inbox::AckResult::Discarded,
    };
    let report = Report { summary: ack.summary, result: ack.output.map(|output| String::from(Box::<str>::from(output))) };
    Ok(Acknowledge { event: ack.event_id, token: ack.lease_token.into_exposed(), result, report })
}

fn done(event_id: EventId, outcome: &inbox::ItemOutcome<Item>) -> AckDone {
    let (outcome, item) = wire::outcome(outcome);
    AckDone {
        event_id,
        outcome: Open::Known(outcome),
        ack_state: item.map(|item| Open::Known(wire::ack_state(item.state))),
        dead_letter_state: item.map(|item| Open::Known(wire::dead_letter(item.dead_letter))),
        next_retry_at_utc: item.and_then(|item| item.next_retry_at),
    }
}
