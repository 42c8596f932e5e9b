//! The first start of an empty store: the tenant `default`, its owner, and the owner's token in a file.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use authz::{Admin, AdminError, TokenSecret};

use super::ServeError;

/// The file in the data directory that the first start leaves, readable by the server's user only.
pub(crate) const OWNER_TOKEN_FILE: &str = "owner-token";

/// Makes the first tenant and its owner when there is none.
///
/// The token is on the disk before it is in the store: a crash in between leaves a token that opens nothing, never an owner without a token.
pub(super) async fn prepare(admin: &Admin, data: &Path) -> Result<(), ServeError> {
    let path = data.join(OWNER_TOKEN_FILE);
    let kept = AtomicBool::new(false);
    let keep = |secret: &TokenSecret| {
        kept.store(true, Ordering::Relaxed);
        write_private(&path, secret.reveal()).map_err(FirstStart::File)
    };
    match admin.bootstrap(keep).await {
        Ok(true) => tracing::info!(file.path = %path.display(), "first start: the owner's token is in this file"),
        // Another node came first, and what was written here opens nothing.
        Ok(false) if kept.load(Ordering::Relaxed) => {
            std::fs::remove_file(&path).map_err(|error| ServeError::new(&format!("{} cannot be removed", path.display()), error))?;
        }
        Ok(false) => {}
        Err(FirstStart::File(error)) => {
            return Err(ServeError::new(&format!("the owner's token cannot be kept in {}", path.display()), error));
        }
        Err(FirstStart::Admin(error)) => return Err(ServeError::new("the first start cannot make the owner", error)),
    }
    Ok(())
}

/// What can go wrong.
enum FirstStart {
    File(std::io::Error),
    Admin(AdminError),
}

impl From<AdminError> for FirstStart {
    fn from(error: AdminError) -> Self {
        Self::Admin(error)
    }
}

/// Writes a file that only this user can read, durably.
pub(crate) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{text}")?;
    file.sync_all()
}
