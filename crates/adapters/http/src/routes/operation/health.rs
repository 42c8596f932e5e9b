//! `getHealth` and `getReadiness`.

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use protocol::ProblemCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::refusal::Refusal;
use crate::request::Query;
use crate::routes::reply;
use crate::services::ApiState;

/// That the process is healthy or ready.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"status": "ok"}))]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

const OK: Health = Health { status: "ok" };

/// Whether the process lives.
///
/// Asks nothing but the process itself: for a supervisor that restarts what does not answer.
#[utoipa::path(
    get, path = "/healthz", operation_id = "getHealth", tag = "operation",
    responses((status = 200, description = "It lives.", body = Health))
)]
pub(crate) async fn get_health(uri: Uri) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    reply::ok(&OK)
}

/// Whether the server can serve.
///
/// The store is reachable, its migrations are current, tails run, and the server is not draining: for a load balancer. Readiness goes first when
/// the server stops.
#[utoipa::path(
    get, path = "/readyz", operation_id = "getReadiness", tag = "operation",
    responses((status = 200, description = "It can.", body = Health)),
    extensions(("x-problem-codes" = json!([ProblemCode::Unavailable])))
)]
pub(crate) async fn get_readiness(State(state): State<ApiState>, uri: Uri) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    match state.readiness.check().await {
        Ok(()) => reply::ok(&OK),
        Err(missing) => {
            let parts: Vec<_> = missing.iter().map(|missing| missing.part).collect();
            Err(Refusal::new(ProblemCode::Unavailable, format!("not ready: {}", parts.join(", "))))
        }
    }
}
