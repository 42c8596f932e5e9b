//! `createBackup`.

use authz::Action;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use protocol::ProblemCode;
use protocol::admin::{BackupReport, BackupRequest};

use crate::documents::WRITING;
use crate::refusal::Refusal;
use crate::request::{Authenticated, Query, parse_json};
use crate::routes::reply;
use crate::services::{ApiState, BackupError};

/// Make an online backup.
///
/// For the instance operator. Writes one file, consistent as of one instant, where the server runs; publishing and delivery go on meanwhile.
/// The answer comes when the file is complete and durable.
#[utoipa::path(
    post, path = "/v1/admin/backup", operation_id = "createBackup", tag = "operation",
    request_body(content = BackupRequest, description = "Where to."),
    responses((status = 201, description = "The backup is there.", body = BackupReport)),
    extensions(
        ("x-action" = json!(Action::AdminBackup.name())),
        ("x-problem-codes" = json!([[ProblemCode::StateConflict].as_slice(), &WRITING].concat())),
    )
)]
pub(crate) async fn create_backup(
    State(state): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Result<Response, Refusal> {
    Query::none(request.uri())?;
    let (parts, body) = request.into_parts();
    let (wanted, _) = parse_json::<BackupRequest>(&parts.headers, body, &state.settings).await?;
    state.admin.operate(&caller, Action::AdminBackup).await?;
    let report = state.backup.backup(&wanted.path).await?;
    reply::json(StatusCode::CREATED, &report)
}

impl From<BackupError> for Refusal {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Path(detail) => Self::invalid("/path", detail),
            BackupError::Running => Self::new(ProblemCode::StateConflict, "a backup is running already"),
            BackupError::NotHere => Self::new(ProblemCode::StateConflict, BackupError::NotHere.to_string()),
            BackupError::Store(error) => error.into(),
        }
    }
}
