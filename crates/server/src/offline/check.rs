//! `doorstep check`: every row's checksum, and the engine's own check of its file.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;
use store_sqlite::CheckReport;

use super::{configured_embedded, counted, failed, open};
use crate::command::{ConfigSource, on_runtime};

/// What `doorstep check` takes.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  doorstep check --data-dir /var/lib/doorstep\n\nExit code 1 when anything is damaged.")]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    source: ConfigSource,
}

/// Checks the store of a stopped server.
pub(crate) fn check(arguments: &CheckArguments) -> ExitCode {
    let config = match configured_embedded(&arguments.source) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let store = match open(&config) {
        Ok(store) => store,
        Err(error) => return failed(&error),
    };
    on_runtime(async {
        let report = store.check().await;
        store.close().await;
        match report {
            Ok(report) => tell(&report),
            Err(error) => failed(&error),
        }
    })
}

fn tell(report: &CheckReport) -> ExitCode {
    let mut out = std::io::stdout().lock();
    // The exit code tells, should nobody listen.
    let (tenants, events) = (counted(report.tenants, "tenant"), counted(report.events, "event"));
    let _ = writeln!(out, "{tenants}, {events}, {}, {} read", counted(report.items, "inbox item"), counted(report.hooks, "hook"));
    for damage in &report.damaged {
        let tenant = damage.tenant.as_ref().map_or_else(|| "no tenant".to_owned(), |tenant| format!("tenant {tenant}"));
        let _ = writeln!(out, "damaged: {tenant}, event {}: {}", damage.seq, damage.reason);
    }
    for complaint in &report.engine {
        let _ = writeln!(out, "damaged file: {complaint}");
    }
    if report.is_sound() {
        let _ = writeln!(out, "Everything is as it was written.");
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(out, "{} damaged or missing. Restore a backup.", counted(report.damages, "row"));
    ExitCode::FAILURE
}
