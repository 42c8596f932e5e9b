//! `listInboxItems`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::{EventId, EventType, QueueName};
use inbox::ItemFilter;
use protocol::{AckState, InboxItem, Page, ProblemCode, Vocabulary, schema};

use super::{asked, wire};
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// The items of an inbox, whatever their state.
///
/// By event, so in about the order of their making; what has ended is listed for `inbox.ended_retention`. A page may have fewer items than `limit`,
/// even none, although it has a `next_cursor`. Nothing is changed. An agent sees its own;
/// operators (`inbox.read`) see any.
#[utoipa::path(
    get, path = "/v1/inbox/items", operation_id = "listInboxItems", tag = "inbox",
    params(
        ("recipient_id" = Option<schema::PrincipalId>, Query, description = "Operators: whose inbox. The caller's own by default."),
        ("tenant_id" = Option<schema::TenantId>, Query, description = "The token's own tenant."),
        ("state" = Option<String>, Query, description = "In this state, or in one of several: words of `AckState` with commas between them."),
        ("queue" = Option<protocol::QueueName>, Query, description = "In this queue."),
        ("event_type" = Option<schema::EventType>, Query, description = "Of this type."),
        ("created_before" = Option<schema::Timestamp>, Query, description = "Made before this instant."),
        ("created_after" = Option<schema::Timestamp>, Query, description = "Made at or after this instant."),
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "By event.", body = Page<InboxItem>)),
    extensions(("x-action" = json!(Action::InboxPoll.name())), ("x-problem-codes" = json!([ProblemCode::NotFound])))
)]
pub(crate) async fn list_inbox_items(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let recipient = asked::recipient(&mut query, &caller)?;
    let filter = filter(&mut query)?;
    let most = state.settings.max_page_size.min(state.inbox.settings().poll_max_items).max(1);
    let limit = query.limit(state.settings.default_page_size, most)?;
    let after = query.parsed::<EventId>("cursor", "the next_cursor of a page")?;
    query.end()?;
    let inbox::ItemPage { items, next } = state.inbox.items(&caller, recipient.as_ref(), filter, after, limit).await?;
    let agent = recipient.as_ref().unwrap_or(&caller.principal);
    let items = items.into_iter().map(|item| wire::item(item, &caller, agent)).collect();
    reply::ok(&Page { items, next_cursor: next.map(|event| event.to_string()) })
}

fn filter(query: &mut Query<'_>) -> Result<ItemFilter, Refusal> {
    Ok(ItemFilter {
        states: states(query)?,
        queue: query.parsed("queue", QueueName::EXPECTATION)?,
        event_type: query.parsed("event_type", EventType::EXPECTATION)?,
        created_before: query.instant("created_before")?,
        created_after: query.instant("created_after")?,
        event_ids: Vec::new(),
    })
}

fn states(query: &mut Query<'_>) -> Result<Vec<inbox::AckState>, Refusal> {
    let Some(text) = query.text("state")? else { return Ok(Vec::new()) };
    let refuse = || {
        let words: Vec<_> = AckState::ALL.iter().map(|state| state.as_str()).collect();
        Refusal::invalid("#query/state", format!("one or more of {}, with commas between them", words.join(", ")))
    };
    text.split(',').map(|word| AckState::from_word(word.trim()).map(wire::ack_state_of).ok_or_else(refuse)).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::Uri;
    use inbox::AckState;

    use super::{Query, states};

    fn of(query: &str) -> Result<Vec<AckState>, Option<String>> {
        let uri: Uri = format!("/x?{query}").parse().unwrap();
        states(&mut Query::of(&uri)).map_err(|refusal| refusal.pointer().map(str::to_owned))
    }

    #[test]
    fn states_are_one_word_or_several() {
        assert_eq!(of(""), Ok(vec![]));
        assert_eq!(of("state=acked"), Ok(vec![AckState::Acked]));
        assert_eq!(of("state=dead_letter,%20quarantined"), Ok(vec![AckState::DeadLetter, AckState::Quarantined]));
        for wrong in ["state=", "state=done", "state=acked,", "state=acked&state=expired"] {
            assert_eq!(of(wrong), Err(Some("#query/state".to_owned())), "{wrong}");
        }
    }
}
