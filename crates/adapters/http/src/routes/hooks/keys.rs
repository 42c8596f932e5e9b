//! `getSigningKeys`.

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use protocol::{ProblemCode, SigningKeys};

use super::wire;
use crate::refusal::Refusal;
use crate::request::Query;
use crate::routes::reply;
use crate::services::ApiState;

/// The server's public signing keys.
///
/// A JSON Web Key Set (RFC 7517): receivers that registered a public key verify requests with them (RFC 9421, `keyid`). The next key is here
/// before it signs, and those before stay a while.
#[utoipa::path(
    get, path = "/.well-known/doorstep-keys", operation_id = "getSigningKeys", tag = "hooks",
    responses((status = 200, description = "By when they begin to sign.", body = SigningKeys)),
    extensions(("x-problem-codes" = json!([ProblemCode::SecretsUnavailable, ProblemCode::Overloaded, ProblemCode::Unavailable])))
)]
pub(crate) async fn get_signing_keys(State(state): State<ApiState>, uri: Uri) -> Result<Response, Refusal> {
    Query::none(&uri)?;
    let keys = state.hooks.keys().await?;
    reply::ok(&SigningKeys { keys: keys.iter().map(wire::signing_key).collect() })
}
