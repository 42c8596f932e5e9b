//! `doorstep backup`: of the running server, or of the store when none runs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use store_sqlite::{OpenError, SqliteStore};

use super::{configured_embedded, counted, failed, has_store, open};
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

/// How a running server is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// By a flag.
    ByFlag,
    /// By the environment or the client's file.
    Elsewhere,
    /// Not at all.
    No,
}

/// Whose backup is meant. An explicit directory is never passed over for a server that happens to be configured, nor the other way round.
fn whose(names_directory: bool, server: Named, has_store: bool) -> Result<Origin, &'static str> {
    match (names_directory, server) {
        (true, Named::ByFlag) => Err("--data-dir names a store, --url and --token a running server: give one of them"),
        (true, _) => Ok(Origin::Store),
        (false, Named::No) if has_store => Ok(Origin::Either),
        (false, _) => Ok(Origin::Server),
    }
}

/// Makes a backup.
pub(crate) fn backup(arguments: &BackupArguments, options: cli::GlobalOptions) -> ExitCode {
    let config = match configured_embedded(&arguments.source) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let to = match std::path::absolute(&arguments.to) {
        Ok(to) => to,
        Err(error) => return failed(&format!("{}: {error}", arguments.to.display())),
    };
    let server = match () {
        () if options.names_server_by_flag() => Named::ByFlag,
        () if options.names_server() => Named::Elsewhere,
        () => Named::No,
    };
    let from = match whose(arguments.source.names_data_dir(), server, has_store(&config.data.dir)) {
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
    use super::{Named, Origin, whose};

    #[test]
    fn a_directory_that_is_named_is_backed_up_and_nothing_else() {
        for has_store in [true, false] {
            for server in [Named::Elsewhere, Named::No] {
                assert_eq!(whose(true, server, has_store), Ok(Origin::Store));
            }
            assert!(whose(true, Named::ByFlag, has_store).is_err(), "both are named");
        }
    }

    #[test]
    fn a_server_that_is_named_is_asked_and_the_configured_store_is_for_when_none_is() {
        assert_eq!(whose(false, Named::ByFlag, true), Ok(Origin::Server));
        assert_eq!(whose(false, Named::Elsewhere, true), Ok(Origin::Server));
        assert_eq!(whose(false, Named::No, true), Ok(Origin::Either));
        assert_eq!(whose(false, Named::No, false), Ok(Origin::Server));
    }
}
