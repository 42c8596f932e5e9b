//! `doorstep backup` of a running server.

use protocol::admin::BackupRequest;

use crate::failure::Failure;
use crate::session::Session;

/// Has the server write a backup to `path`, as the server sees it.
pub(crate) async fn run(path: &str, session: &Session) -> Result<(), Failure> {
    let report = session.client()?.backup(&BackupRequest { path: path.to_owned() }).await?;
    let took = report.finished_at.since(report.started_at);
    let members = [
        ("backup", report.path.clone()),
        ("size", format!("{} bytes", report.size_bytes)),
        ("as of", report.started_at.to_string()),
        ("took", crate::duration::tell(took)),
    ];
    session.item(&report, &members)
}
