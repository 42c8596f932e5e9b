//! `doorstep restore`: a data directory from a backup, with a new epoch.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use domain::{SystemClock, SystemIds};
use store_sqlite::{Target, UpkeepError};

use super::{configured_embedded, counted, failed};
use crate::command::ConfigSource;

/// What `doorstep restore` takes.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  doorstep restore /backups/doorstep.sqlite --data-dir /var/lib/doorstep-new\n\n\
    The log gets a new sync epoch; consumers above the restored head start at that head.")]
pub(crate) struct RestoreArguments {
    /// The backup.
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    /// Replace the store that is in the data directory. What is only in that store is lost.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    source: ConfigSource,
}

/// Restores a backup into the data directory.
pub(crate) fn restore(arguments: &RestoreArguments) -> ExitCode {
    let config = match configured_embedded(&arguments.source) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let target = if arguments.replace { Target::Replace } else { Target::Empty };
    match store_sqlite::restore(&arguments.backup, &config.data.dir, target, &SystemClock::new(), &SystemIds) {
        Ok(report) => {
            let directory = config.data.dir.display();
            let (tenants, events) = (counted(report.tenants, "tenant"), counted(report.events, "event"));
            let told = format!("{tenants} and {events} are in {directory}. The log has a new epoch.");
            let _ = writeln!(std::io::stdout().lock(), "{told}");
            ExitCode::SUCCESS
        }
        Err(error @ UpkeepError::Exists { .. }) => failed(&format!("{error}; choose another --data-dir, or say --replace to lose it")),
        Err(error) => failed(&error),
    }
}
