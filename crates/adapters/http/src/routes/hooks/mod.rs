//! Notify hooks: signed doorbells for agents without a session (hooks-and-intake.md; seed 002).

mod create;
mod delete;
mod deliveries;
mod disable;
mod enable;
mod get;
mod keys;
mod list;
mod rotate;
mod test;
mod update;
pub(super) mod wire;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::services::ApiState;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list::list_notify_hooks, create::create_notify_hook))
        .routes(routes!(get::get_notify_hook, update::update_notify_hook, delete::delete_notify_hook))
        .routes(routes!(rotate::rotate_notify_hook))
        .routes(routes!(enable::enable_notify_hook))
        .routes(routes!(disable::disable_notify_hook))
        .routes(routes!(test::test_notify_hook))
        .routes(routes!(deliveries::list_notify_hook_deliveries))
        .routes(routes!(keys::get_signing_keys))
}
