//! `getMetrics`.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;

use crate::metrics::{EXPOSITION_MEDIA_TYPE, MetricSource, render};
use crate::refusal::Refusal;
use crate::request::Query;
use crate::routes::reply;
use crate::services::ApiState;

/// The metrics, as Prometheus reads them.
///
/// OpenMetrics text. Public like the health checks: it names no principal, and tenants only beside their backlogs. Do not let it out where that is
/// too much.
#[utoipa::path(
    get, path = "/metrics", operation_id = "getMetrics", tag = "operation",
    responses((
        status = 200, description = "Every metric's present value.", body = String,
        content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    ))
)]
pub(crate) async fn get_metrics(State(state): State<ApiState>, uri: Uri) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let own: &dyn MetricSource = state.metrics.as_ref();
    let others = state.metric_sources.iter().map(AsRef::as_ref);
    let text = render(std::iter::once(own).chain(others)).map_err(Refusal::internal)?;
    Ok(reply::encoded(StatusCode::OK, EXPOSITION_MEDIA_TYPE, text))
}
