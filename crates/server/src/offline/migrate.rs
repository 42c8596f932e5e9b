//! `doorstep migrate`: everything of a data directory into a PostgreSQL database.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use domain::Clock;
use store_postgres::{DatabaseClock, PostgresOptions, PostgresStore};
use store_sqlite::SqliteStore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use transfer::{Bound, Report, Stage, Table, TransferError, transfer};

use super::{configured, counted, failed, open};
use crate::command::{ConfigSource, USAGE, complain, on_runtime};
use crate::config::Config;

/// What is read and written at once.
const BOUND: Bound = Bound { rows: 1000, bytes: 8 << 20 };
/// Between two lines about the same table.
const PAUSE: Duration = Duration::from_secs(2);

/// What `doorstep migrate` takes.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Example:\n  doorstep migrate --data-dir /var/lib/doorstep --database postgres://doorstep@db.example.net/doorstep\n\n\
    The server must be stopped, and the database must be empty. Nothing in the data directory is changed. When it is interrupted, run it again: it goes \
    on where it stopped. At the end every table is compared. Positions, cursors, epochs, keys and leases stay as they are, so nobody who is connected \
    notices; hooks need the same master key as before."
)]
pub(crate) struct MigrateArguments {
    #[command(flatten)]
    source: ConfigSource,
}

/// Moves everything, and tells how that goes.
pub(crate) fn migrate(arguments: &MigrateArguments) -> ExitCode {
    let config = match configured(&arguments.source) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let Some(options) = config.shared_store("migrate") else {
        complain("database.url is not set: say where to with --database");
        return ExitCode::from(USAGE);
    };
    // Opening it takes the data directory: a server that runs on it is found here.
    let source = match open(&config) {
        Ok(store) => store,
        Err(error) => return failed(&error),
    };
    on_runtime(async {
        let moved = checked_and_moved(&config, &source, options).await;
        source.close().await;
        match moved {
            Ok(()) => ExitCode::SUCCESS,
            Err(fault) => failed(&fault),
        }
    })
}

async fn checked_and_moved(config: &Config, source: &SqliteStore, options: PostgresOptions) -> Result<(), String> {
    let report = source.check().await.map_err(|error| error.to_string())?;
    if !report.is_sound() {
        return Err("the store in the data directory is damaged, and nothing was moved; `doorstep check` tells more".to_owned());
    }
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    let target = connected(options, &tracker, stop.clone()).await;
    let moved = match &target {
        Ok(target) => moved(config, source, target).await,
        Err(fault) => Err(fault.clone()),
    };
    if let Ok(target) = target {
        target.close().await;
    }
    stop.cancel();
    tracker.close();
    tracker.wait().await;
    moved
}

/// The target. A database without a schema gets it; an older one is somebody's, and left alone unless the configuration says otherwise.
async fn connected(mut options: PostgresOptions, tracker: &TaskTracker, stop: CancellationToken) -> Result<Arc<PostgresStore>, String> {
    let schema = store_postgres::schema::status(&options).await.map_err(|error| error.to_string())?;
    options.auto_migrate |= schema.version == 0;
    let clock: Arc<dyn Clock> = DatabaseClock::start(&options, tracker, stop).await.map_err(|error| error.to_string())?;
    PostgresStore::connect_to_fill(options, clock).await.map_err(|error| error.to_string())
}

async fn moved(config: &Config, source: &SqliteStore, target: &PostgresStore) -> Result<(), String> {
    let mut telling = Telling { last: None };
    match transfer(source, target, BOUND, &mut |stage| telling.hear(stage)).await {
        Ok(report) => {
            tell(&report, config, target);
            Ok(())
        }
        Err(TransferError::Finished) => {
            let told = format!("Everything in {} is in {} already.", config.data.dir.display(), target.database());
            let _ = writeln!(std::io::stdout().lock(), "{told}");
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn tell(report: &Report, config: &Config, target: &PostgresStore) {
    let mut out = std::io::stdout().lock();
    // The exit code tells, should nobody listen.
    for verified in report.tables.iter().filter(|verified| verified.tally.rows > 0) {
        let _ = writeln!(out, "{:<24} {:>12} rows, checksum {:032x}", verified.table.name(), verified.tally.rows, verified.tally.sum);
    }
    let rows = counted(report.tables.iter().map(|verified| verified.tally.rows).sum::<u64>(), "row");
    let (directory, database) = (config.data.dir.display(), target.database());
    let _ = writeln!(out, "{rows} of {directory} are in {database}, the same on both sides.");
    let _ = writeln!(out, "Start servers with --database from now on, with the same master key; {directory} must not be served again.");
}

/// Progress on standard error, at most a line every few seconds for one table.
struct Telling {
    last: Option<(Table, Instant)>,
}

impl Telling {
    fn hear(&mut self, stage: Stage) {
        let told = match stage {
            Stage::Begun => "copying".to_owned(),
            Stage::Resumed => "going on where an earlier run stopped".to_owned(),
            Stage::Copied(table, rows) => {
                let now = Instant::now();
                if self.last.is_some_and(|(last, at)| last == table && now.duration_since(at) < PAUSE) {
                    return;
                }
                self.last = Some((table, now));
                format!("{}: {} copied", table.name(), counted(rows, "row"))
            }
            Stage::Compared(table, rows) => format!("{}: {} compared", table.name(), counted(rows, "row")),
        };
        complain(&told);
    }
}
