//! `doorstep schema`: the schema of the PostgreSQL database, which no server changes by itself.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use domain::SystemClock;
use store_postgres::PostgresOptions;

use super::{configured, counted, failed};
use crate::command::{ConfigSource, USAGE, complain, on_runtime};

/// What is done with the schema.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SchemaCommand {
    /// Tell which version the schema has and what this release misses. Changes nothing.
    #[command(after_help = "Exit code 0 when the schema is this release's, 1 when it is not.")]
    Status(SchemaArguments),
    /// Bring the schema up to date. Servers of the release before may be running.
    Up(SchemaArguments),
    /// Give every log a new epoch: after a restore to an earlier point, or a failover that lost the end of the log. No server may be running.
    NewEpoch(SchemaArguments),
}

/// What `doorstep schema` takes.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  doorstep schema up --database postgres://doorstep@db.example.net/doorstep")]
pub(crate) struct SchemaArguments {
    #[command(flatten)]
    source: ConfigSource,
}

/// Does it.
pub(crate) fn schema(command: &SchemaCommand) -> ExitCode {
    let (SchemaCommand::Status(arguments) | SchemaCommand::Up(arguments) | SchemaCommand::NewEpoch(arguments)) = command;
    let config = match configured(&arguments.source) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let Some(options) = config.shared_store("schema") else {
        complain(
            "no PostgreSQL database is named: give --database or set database.url; the embedded store is brought up to date when it is opened",
        );
        return ExitCode::from(USAGE);
    };
    on_runtime(async {
        match command {
            SchemaCommand::Status(_) => status(&options).await,
            SchemaCommand::Up(_) => up(&options).await,
            SchemaCommand::NewEpoch(_) => new_epoch(&options).await,
        }
    })
}

async fn status(options: &PostgresOptions) -> ExitCode {
    let schema = match store_postgres::schema::status(options).await {
        Ok(schema) => schema,
        Err(error) => return failed(&error),
    };
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}: schema version {}, this release works on {}", schema.database, schema.version, schema.known);
    for (version, name) in &schema.missing {
        let _ = writeln!(out, "missing: {version} {name}");
    }
    if schema.is_current() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn up(options: &PostgresOptions) -> ExitCode {
    match store_postgres::schema::up(options, &SystemClock::new()).await {
        Ok(applied) => {
            let _ = writeln!(std::io::stdout().lock(), "{} applied", counted(applied.len() as u64, "migration"));
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

async fn new_epoch(options: &PostgresOptions) -> ExitCode {
    match store_postgres::new_epoch(options, &SystemClock::new()).await {
        Ok(logs) => {
            let _ = writeln!(std::io::stdout().lock(), "{} got a new epoch", counted(logs, "log"));
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}
