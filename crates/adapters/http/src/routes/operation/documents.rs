//! `getOpenApi` and `getAsyncApi`.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;

use crate::refusal::Refusal;
use crate::request::Query;
use crate::routes::reply;
use crate::services::ApiState;

/// This document.
#[utoipa::path(
    get, path = "/v1/openapi.json", operation_id = "getOpenApi", tag = "operation",
    responses((status = 200, description = "OpenAPI 3.1, generated from the routes.", body = Value))
)]
pub(crate) async fn get_openapi(State(state): State<ApiState>, uri: Uri) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let (openapi, _) = state.documents();
    Ok(reply::encoded(StatusCode::OK, "application/json", openapi.clone()))
}

/// The document of the gateway's frames.
#[utoipa::path(
    get, path = "/v1/asyncapi.json", operation_id = "getAsyncApi", tag = "operation",
    responses((status = 200, description = "AsyncAPI 3, generated from the frames.", body = Value))
)]
pub(crate) async fn get_asyncapi(State(state): State<ApiState>, uri: Uri) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let (_, asyncapi) = state.documents();
    Ok(reply::encoded(StatusCode::OK, "application/json", asyncapi.clone()))
}
