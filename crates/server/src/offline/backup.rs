//! `doorstep backup`: of the running server, or of the store when none runs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use store_sqlite::{OpenError, SqliteStore};

use super::{configured, counted, failed, has_store, open};
use crate::command::{ConfigSource, USAGE, complain, on_runtime};

/// What `doorstep backup` takes.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  doorstep backup /backups/doorstep.sqlite\n  doorstep backup /backups/doorstep.sqlite --data-dir /var/lib/doorstep\n\n\
    With --data-dir copies the store in it, which no server may have open. Otherwise asks the running server, which writes \
    the file where it runs; when none has the configured data directory open, copies its store."
)]
pub(crate) struct BackupArguments {
    /// The file to write. It must not exist.
    #[arg(value_name = "FILE")]
    to: PathBuf,
    #[command(flatten)]
    source: ConfigSource,
}

/// Where the backup is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The running server.
    Server,
    /// The store of the data directory, whoever may run.
    Store,
    /// The store where no server has it open, else the server.
    Either,
}

/// Whose backup is meant. An explicit directory is never passed over for a server that happens to be configured, nor the other way round.
fn whose(names_directory: bool, names_server: bool, names_server_by_flag: bool, has_store: bool) -> Result<Origin, &'static str> {
    match (names_directory, names_server) {
        (true, _) if names_server_by_flag => Err("--data-dir names a store, --url and --token a running server: give one of them"),
        (true, _) => Ok(Origin::Store),
        (false, true) => Ok(Origin::Server),
        (false, false) if has_store => Ok(Origin::Either),
        (false, false) => Ok(Origin::Server),
    }
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
    let (by_flag, named) = (options.names_server_by_flag(), options.names_server());
    let from = match whose(arguments.source.names_data_dir(), named, by_flag, has_store(&config.data.dir)) {
        Ok(Origin::Server) => return on_runtime(cli::backup(&to, options)),
        Ok(from) => from,
        Err(fault) => {
            complain(fault);
            return ExitCode::from(USAGE);
        }
    };
    match open(&config) {
        Ok(store) => on_runtime(copy(&store, &to)),
        Err(OpenError::InUse { .. }) if from == Origin::Either => on_runtime(cli::backup(&to, options)),
        Err(error @ OpenError::InUse { .. }) => failed(&format!("{error}; without --data-dir the running server is asked for the backup")),
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

#[cfg(test)]
mod tests {
    use super::{Origin, whose};

    #[test]
    fn a_directory_that_is_named_is_backed_up_and_nothing_else() {
        for (has_store, by_environment) in [(true, true), (true, false), (false, true), (false, false)] {
            assert_eq!(whose(true, by_environment, false, has_store), Ok(Origin::Store));
        }
        assert!(whose(true, true, true, true).is_err() && whose(true, false, true, true).is_err(), "both are named");
    }

    #[test]
    fn a_server_that_is_named_is_asked_and_the_configured_store_is_for_when_none_is() {
        assert_eq!(whose(false, true, true, true), Ok(Origin::Server));
        assert_eq!(whose(false, true, false, true), Ok(Origin::Server));
        assert_eq!(whose(false, false, false, true), Ok(Origin::Either));
        assert_eq!(whose(false, false, false, false), Ok(Origin::Server));
    }
}
