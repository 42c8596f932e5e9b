//! Callback registrations: signed requests when the head of an inbox moved (hooks-and-intake.md; seed 000, "Optional callback registration").

mod delete;
mod disable;
mod enable;
mod get;
mod list;
mod register;
mod rotate;
mod verify;
mod wire;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::ApiState;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list::list_callbacks, register::register_callback))
        .routes(routes!(get::get_callback, delete::delete_callback))
        .routes(routes!(verify::verify_callback))
        .routes(routes!(enable::enable_callback))
        .routes(routes!(disable::disable_callback))
        .routes(routes!(rotate::rotate_callback))
}
