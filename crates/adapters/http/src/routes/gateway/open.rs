//! `openGateway`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use protocol::{ProblemCode, Secret};

use crate::refusal::Refusal;
use crate::request::{Query, bearer};
use crate::server::{Open, RemoteAddress, WatchedStream};
use crate::services::ApiState;
use crate::websocket::{Handshake, WebSocket, upgrade_required};

/// Open the gateway.
///
/// A WebSocket (RFC 6455) with JSON text frames; the AsyncAPI document at `/v1/asyncapi.json` describes them. The token comes in the header
/// `Authorization` of this request or in the frame `identify` or `resume`, never in the address.
#[utoipa::path(
    get, path = "/v1/gateway", operation_id = "openGateway", tag = "gateway",
    responses((status = 101, description = "The connection speaks WebSocket from here on.")),
    extensions(("x-problem-codes" = json!([ProblemCode::Unauthenticated, ProblemCode::UpgradeRequired])))
)]
pub(crate) async fn open_gateway(State(state): State<ApiState>, request: Request) -> Result<Response, Refusal> {
    Query::none(request.uri())?;
    let (mut parts, _) = request.into_parts();
    let credential = bearer(&parts.headers)?.map(|token| Secret::new(token.to_owned()));
    let Some(handshake) = Handshake::of(&mut parts) else { return Ok(upgrade_required()) };
    let (accept, upgrade) = handshake.split();
    let remote = parts.extensions.get::<RemoteAddress>().map(|remote| remote.0.ip());
    let open = parts.extensions.remove::<Arc<Open>>();
    state.tasks.spawn(live(upgrade, credential, remote, open, state.clone()));
    Ok(Handshake::answer(accept))
}

/// The life of the connection once it is a WebSocket. `open` counts it as an open connection as long.
async fn live(upgrade: OnUpgrade, credential: Option<Secret>, remote: Option<IpAddr>, open: Option<Arc<Open>>, state: ApiState) {
    let upgraded = match upgrade.await {
        Ok(upgraded) => upgraded,
        Err(error) => return tracing::debug!(error.cause = %error, "a connection broke during its upgrade"),
    };
    let Ok(raw) = upgraded.downcast::<TokioIo<WatchedStream>>() else {
        return tracing::error!("an upgraded connection is not one of this server's");
    };
    let max_frame_bytes = state.settings.max_frame_bytes;
    let socket = Box::pin(WebSocket::new(raw.io.into_inner().into_socket(), raw.read_buf, max_frame_bytes)).await;
    state.gateway.serve(socket, credential, remote).await;
    drop(open);
}

#[cfg(test)]
mod tests {
    use super::live;

    /// What the task of a connection occupies, whatever it does at the moment.
    fn size_of_task<A, B, C, D, E, F: Future>(_: fn(A, B, C, D, E) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_task_of_an_idle_connection_is_small() {
        let bytes = size_of_task(live);
        assert!(bytes <= 3 * 1024, "{bytes} bytes");
    }
}
