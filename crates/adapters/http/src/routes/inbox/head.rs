//! `getInboxHead`.

use authz::{Action, Caller};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use domain::{Seq, SyncEpoch};
use protocol::InboxHead;

use super::wire;
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query};
use crate::routes::reply;
use crate::services::ApiState;

/// Ask whether an inbox has moved.
///
/// The cheapest question: one row is read. The header `ETag` names the head; sent back as `If-None-Match` it is answered 304 as long as nothing
/// became claimable.
#[utoipa::path(
    get, path = "/v1/inbox/head", operation_id = "getInboxHead", tag = "inbox",
    params(("if-none-match" = Option<String>, Header, description = "The `ETag` of an answer before, several of them, or `*`.")),
    responses(
        (
            status = 200, description = "Where the inbox stands.", body = InboxHead,
            headers(("ETag" = String, description = "`\"<tenant>:<agent>:<head_seq>:<sync_epoch>\"`."))
        ),
        (status = 304, description = "It has not moved."),
    ),
    extensions(("x-action" = json!(Action::InboxPoll.name())))
)]
pub(crate) async fn get_inbox_head(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let (head, epoch) = state.inbox.head(&caller).await?;
    let tag = tag(&caller, head, epoch);
    let metrics = state.inbox.metrics();
    metrics.head_checks.increment();
    let mut response = if is_known(&headers, &tag) {
        metrics.not_modified.increment();
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        reply::ok(&InboxHead { recipient: wire::recipient(&caller, &caller.principal), head_seq: head, sync_epoch: epoch })?
    };
    response.headers_mut().insert(header::ETAG, HeaderValue::try_from(tag).map_err(Refusal::internal)?);
    // The client may keep it, and must ask.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    Ok(response)
}

fn tag(caller: &Caller, head: Seq, epoch: SyncEpoch) -> String {
    format!("\"{}:{}:{head}:{epoch}\"", caller.tenant, caller.principal)
}

/// `If-None-Match` (RFC 9110, section 13.1.2): any of a list, weak or not, or `*`. No tag of ours has a comma.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};

    use super::is_known;

    #[test]
    fn a_list_weak_tags_and_the_star_are_understood() {
        let tag = "\"default:alpha:7:6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10\"";
        let of = |values: &[&str]| {
            let headers: HeaderMap = values.iter().map(|value| (header::IF_NONE_MATCH, HeaderValue::from_str(value).unwrap())).collect();
            is_known(&headers, tag)
        };
        for known in [&[tag][..], &["*"], &[&format!("W/{tag}")], &[&format!("\"other\", W/{tag} ,\"x\"")], &["\"other\"", tag]] {
            assert!(of(known), "{known:?}");
        }
        for unknown in [&[][..], &["\"other\""], &[""], &["W/*"], &[&tag.replace(":7:", ":8:")], &[tag.trim_matches('"')]] {
            assert!(!of(unknown), "{unknown:?}");
        }
    }
}
