//! `listStagedEvents`.

use authz::Action;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use domain::PrincipalId;
use intake::{Staged, StagedNumber, StagedState};
use protocol::{EventInput, Open, Page, admin};

use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Events that applications handed in within their own transactions of the database, and that are not in the log.
///
/// Those that could not be appended, for `intake.staged_retention`, and those that are still on their way. The caller's own, by the name of the role
/// that handed them in; all of the tenant for owners and operators. A server on the embedded store, which no application shares, has none.
#[utoipa::path(
    get, path = "/v1/events/staged", operation_id = "listStagedEvents", tag = "events",
    params(
        ("limit" = Option<u64>, Query, minimum = 1, description = "Entries of the page; capped to `http.max_page_size`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before."),
    ),
    responses((status = 200, description = "In the order in which they were handed in.", body = Page<admin::StagedItem>)),
    extensions(("x-action" = json!(Action::EventsScheduled.name())))
)]
pub(crate) async fn list_staged_events(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::of(&uri);
    let limit = query.limit(state.settings.default_page_size, state.settings.max_page_size)?;
    let after = query.parsed::<u64>("cursor", "the next_cursor of a page")?;
    query.end()?;
    let page = state.publisher.staged(&caller, after.map(StagedNumber), limit).await?;
    let next_cursor = page.next.map(|number| number.0.to_string());
    reply::ok(&Page { items: page.items.into_iter().map(item).collect(), next_cursor })
}

/// What cannot be read of an event is left out: that may be why it is in the list.
fn item(staged: Staged) -> admin::StagedItem {
    let event: Option<EventInput> = serde_json::from_str(&staged.event).ok();
    let audience = event.as_ref().map(addressees).unwrap_or_default();
    let (event_type, channel, deduplication_key) = match event {
        Some(event) => (Some(event.event_type), event.channel, event.deduplication_key),
        None => (None, None, None),
    };
    admin::StagedItem {
        id: staged.id,
        event_type,
        channel,
        audience,
        deduplication_key,
        publisher: staged.publisher,
        staged_at: staged.staged_at,
        state: Open::Known(match staged.state {
            StagedState::Waiting => admin::StagedState::Waiting,
            StagedState::Failed => admin::StagedState::Failed,
        }),
        failure: staged.failure,
    }
}

fn addressees(event: &EventInput) -> Vec<PrincipalId> {
    let mut all = event.audience.clone().unwrap_or_default();
    all.extend(event.recipients.iter().flatten().map(|recipient| recipient.id.clone()));
    let mut seen = std::collections::HashSet::new();
    all.retain(|principal| seen.insert(principal.clone()));
    all
}

#[cfg(test)]
mod tests {
    use domain::{EventId, IdGenerator, PrincipalId, SystemIds, Timestamp};
    use intake::{Staged, StagedNumber, StagedState};

    use super::item;

    fn staged(event: &str) -> Staged {
        Staged {
            number: StagedNumber(7),
            id: EventId::new(SystemIds.uuid()),
            publisher: PrincipalId::parse("shop").unwrap(),
            event: event.to_owned(),
            staged_at: Timestamp::from_micros(1_800_000_000_000_000),
            state: StagedState::Failed,
            failure: Some("The channel does not exist any more.".to_owned()),
        }
    }

    #[test]
    fn an_entry_says_what_the_event_was_without_its_payload() {
        let event = r#"{"type": "order.placed", "channel": "shop/orders", "audience": ["sam", "alpha"], "payload": {"secret": 1},
            "recipients": [{"kind": "agent", "id": "alpha"}], "deduplication_key": "order:7"}"#;
        let text = serde_json::to_string(&item(staged(event))).unwrap();
        assert!(
            text.contains(r#""type":"order.placed","channel":"shop/orders","audience":["sam","alpha"],"deduplication_key":"order:7""#),
            "{text}"
        );
        assert!(
            text.contains(r#""state":"failed","failure":"The channel does not exist any more.""#) && !text.contains("secret"),
            "{text}"
        );
    }

    #[test]
    fn an_event_that_cannot_be_read_is_listed_all_the_same() {
        let text = serde_json::to_string(&item(staged(r#"{"type": 1}"#))).unwrap();
        assert!(text.contains(r#""publisher":"shop""#) && !text.contains("type"), "{text}");
    }
}
