//! `subscribeSession`.

use authz::Action;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use domain::AgentSessionId;
use inbox::Subscribe;
use protocol::{Open, SessionSubscribed, SubscribeRequest, Transport, Vocabulary};

use super::{asked, wire};
use crate::Settings;
use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::Authenticated;
use crate::routes::reply;
use crate::services::ApiState;

const POLL: &str = "/v1/inbox/poll-after-cursor";
const STREAM: &str = "/v1/streams/sse?session_id=";
const GATEWAY: &str = "/v1/gateway";

/// A lease survives the loss of all but one of this many heartbeats.
const HEARTBEATS_PER_LEASE: u32 = 4;

const A_DAY: u64 = 24 * 60 * 60;

/// Open a session of the calling agent.
///
/// A session says on which device an agent is and how it can be told of work. Its id is no credential; streams name it, and where an agent is
/// held to `single_active_session`, claims. Under that policy the session that subscribed last with `wants_claims` is the one that may claim.
#[utoipa::path(
    post, path = "/v1/agent-sessions/subscribe", operation_id = "subscribeSession", tag = "inbox",
    request_body(content = SubscribeRequest, description = "What the agent has and has seen."),
    responses((status = 201, description = "The session, and how to be told.", body = SessionSubscribed)),
    extensions(
        ("x-action" = json!(Action::StreamSubscribe.name())),
        ("x-problem-codes" = json!([[protocol::ProblemCode::NotFound].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn subscribe_session(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    let (asked, parts, _) = asked::body_of::<SubscribeRequest>(request, &state).await?;
    asked::own(&caller, asked.tenant_id.as_ref(), asked.agent_id.as_ref())?;
    let transports = asked.supported_transports.unwrap_or_default();
    let subscribe = Subscribe {
        device: asked.device_id.map(|device| device.as_str().to_owned()),
        transports: transports.iter().filter_map(Open::known).map(|transport| transport.as_str().to_owned()).collect(),
        last_seen: asked.last_seen_seq.unwrap_or_default(),
        wants_claims: asked.wants_claims.unwrap_or_default(),
    };
    let subscribed = state.inbox.subscribe(&caller, subscribe).await?;
    let urls = Urls::of(&state.settings, &parts.headers, &subscribed.session);
    let lease = state.inbox.settings().rules.lease_default;
    reply::json(
        StatusCode::CREATED,
        &SessionSubscribed {
            session_id: subscribed.session,
            recipient: wire::recipient(&caller, &caller.principal),
            current_head_seq: subscribed.head,
            sync_epoch: subscribed.epoch,
            recommended_transport: Transport::from_word(subscribed.transport)
                .map_or_else(|| Open::Other(subscribed.transport.to_owned()), Open::Known),
            poll_after_cursor_url: urls.poll,
            sse_url: urls.stream,
            websocket_url: urls.gateway,
            heartbeat_interval_seconds: (lease / HEARTBEATS_PER_LEASE).as_secs().max(1),
            lease_default_seconds: lease.as_secs(),
            retention_days: state.settings.event_retention.map(|kept| kept.as_secs() / A_DAY),
        },
    )
}

/// Where the session's agent finds this server.
#[derive(Debug, PartialEq, Eq)]
struct Urls {
    poll: String,
    stream: String,
    gateway: String,
}

impl Urls {
    /// Under the configured address; without one relative, as the agent has just found this server, and made from `Host` where an address must
    /// be absolute.
    fn of(settings: &Settings, headers: &HeaderMap, session: &AgentSessionId) -> Self {
        if let Some(base) = settings.public_url.as_deref().map(|url| url.trim_end_matches('/')) {
            // `http` becomes `ws`, `https` becomes `wss`.
            let socket = base.strip_prefix("http").map_or_else(|| base.to_owned(), |rest| format!("ws{rest}"));
            return Self {
                poll: format!("{base}{POLL}"),
                stream: format!("{base}{STREAM}{session}"),
                gateway: format!("{socket}{GATEWAY}"),
            };
        }
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let is_secure = text("x-forwarded-proto").and_then(|protos| protos.split(',').next()).is_some_and(|proto| proto.trim() == "https");
        let scheme = if is_secure { "wss" } else { "ws" };
        let gateway =
            text("host").filter(|host| is_host(host)).map_or_else(|| GATEWAY.to_owned(), |host| format!("{scheme}://{host}{GATEWAY}"));
        Self { poll: POLL.to_owned(), stream: format!("{STREAM}{session}"), gateway }
    }
}

/// A host with an optional port, and nothing else that an address could hold.
fn is_host(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']'))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    use super::Urls;
    use crate::Settings;

    fn urls(public_url: Option<&str>, headers: &[(&str, &str)]) -> (String, String, String) {
        let settings = Settings { public_url: public_url.map(str::to_owned), ..Settings::default() };
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())).collect();
        let urls = Urls::of(&settings, &headers, &"sess_1".parse().unwrap());
        (urls.poll, urls.stream, urls.gateway)
    }

    #[test]
    fn without_a_configured_address_only_the_socket_is_absolute() {
        let (poll, stream, socket) = urls(None, &[("host", "127.0.0.1:4040")]);
        assert_eq!((poll.as_str(), stream.as_str()), ("/v1/inbox/poll-after-cursor", "/v1/streams/sse?session_id=sess_1"));
        assert_eq!(socket, "ws://127.0.0.1:4040/v1/gateway");
        let (_, _, socket) = urls(None, &[("host", "[::1]:80"), ("x-forwarded-proto", "https, http")]);
        assert_eq!(socket, "wss://[::1]:80/v1/gateway");
        for headers in [&[][..], &[("host", "a/b?c")]] {
            assert_eq!(urls(None, headers).2, "/v1/gateway");
        }
    }

    #[test]
    fn a_configured_address_wins_over_the_request() {
        let (poll, stream, socket) = urls(Some("https://doorstep.example.net/x/"), &[("host", "inside:80")]);
        assert_eq!(poll, "https://doorstep.example.net/x/v1/inbox/poll-after-cursor");
        assert_eq!(stream, "https://doorstep.example.net/x/v1/streams/sse?session_id=sess_1");
        assert_eq!(socket, "wss://doorstep.example.net/x/v1/gateway");
        assert_eq!(urls(Some("http://h"), &[]).2, "ws://h/v1/gateway");
    }
}
