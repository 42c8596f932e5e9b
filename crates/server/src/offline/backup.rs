//! `doorstep backup`: of the running server, or of the store when none runs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use store_sqlite::{OpenError, SqliteStore};

use super::{configured, counted, failed, has_store, open};
use crate::command::{ConfigSource, on_runtime};

/// What `doorstep backup` takes.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  doorstep backup /backups/doorstep.sqlite\n  doorstep backup /backups/doorstep.sqlite --data-dir /var/lib/doorstep\n\n\
    Asks the running server, which writes the file where it runs; when none has the data directory open, copies its store."
)]
pub(crate) struct BackupArguments {
    /// The file to write. It must not exist.
    #[arg(value_name = "FILE")]
    to: PathBuf,
    #[command(flatten)]
    source: ConfigSource,
}

/// Makes a backup.
pub(crate) fn backup(arguments: &BackupArguments, options: cli::GlobalOptions) -> ExitCode {
    let config = match configured(&arguments.source) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let to = match std::path::absolute(&arguments.to) {
        Ok(to) => to,
        Err(error) => return failed(&format!("{}: {error}", arguments.to.display())),
    };
    // Who names a server means that server, not the directory that happens to be here.
    if options.names_server() || !has_store(&config.data.dir) {
        return on_runtime(cli::backup(&to, options));
    }
    match open(&config) {
        Ok(store) => on_runtime(copy(&store, &to)),
        Err(OpenError::InUse { .. }) => on_runtime(cli::backup(&to, options)),
        Err(error) => failed(&error),
    }
}

async fn copy(store: &SqliteStore, to: &Path) -> ExitCode {
    let report = store.backup(to).await;
    store.close().await;
    match report {
        Ok(report) => {
            let (tenants, events) = (counted(report.tenants, "tenant"), counted(report.events, "event"));
            let told = format!("{tenants} and {events}, {} bytes, are in {}.", report.bytes, to.display());
            let _ = writeln!(std::io::stdout().lock(), "{told}");
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}
