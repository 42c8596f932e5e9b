//! The whole API as one router.

use axum::Router;
use protocol::ProblemCode;

use crate::documents;
use crate::refusal::Refusal;
use crate::request::{ContextLayer, RequestIds};
use crate::routes;
use crate::services::{ApiState, Services};

/// Every route over `services`, with the context of requests around it.
pub fn router(services: Services) -> Router {
    let context = ContextLayer::new(RequestIds::new(services.ids.as_ref()), services.metrics.clone());
    let (routes, openapi) = routes::all().split_for_parts();
    let state = ApiState::new(services, documents::openapi_text(openapi).into(), documents::asyncapi_text().into());
    routes.fallback(unknown_path).method_not_allowed_fallback(wrong_method).with_state(state).layer(context)
}

async fn unknown_path() -> Refusal {
    Refusal::new(ProblemCode::NotFound, "there is no such path")
}

async fn wrong_method() -> Refusal {
    Refusal::new(ProblemCode::MethodNotAllowed, "the path does not have this method; Allow lists those it has")
}
