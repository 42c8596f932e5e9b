//! Operating the instance.

use domain::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An online backup to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with a path")]
#[schema(example = json!({"path": "/var/backups/doorstep/2026-07-12.db"}))]
pub struct BackupRequest {
    /// The file to write, as the server sees it: absolute, and not there yet.
    pub path: String,
}

/// A backup that was made: consistent as of one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "path": "/var/backups/doorstep/2026-07-12.db", "size_bytes": 104_857_600, "started_at": "2026-07-12T16:22:03.123Z",
    "finished_at": "2026-07-12T16:22:04.456Z"
}))]
pub struct BackupReport {
    /// The file that was written.
    pub path: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// When it began.
    #[schema(value_type = crate::schema::Timestamp)]
    pub started_at: Timestamp,
    /// When it was complete and durable.
    #[schema(value_type = crate::schema::Timestamp)]
    pub finished_at: Timestamp,
}
