//! The command line.

use std::ffi::OsString;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::{ENVIRONMENT_PREFIX, Sources};
use crate::documents::{ApiCommand, ConfigCommand};
use crate::{demo, documents, offline, serve};

/// The exit code of configuration and usage errors.
pub(crate) const USAGE: u8 = 2;

/// The command line of the binary.
#[derive(Debug, Parser)]
#[command(
    name = "doorstep",
    version,
    about = "Doorstep holds work for agents that are not always home, and rings when it arrives.",
    propagate_version = true
)]
struct Doorstep {
    #[command(flatten)]
    global: cli::GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server.
    Serve(ServeArguments),
    /// Tell the whole story in one process and one temporary directory.
    Demo(demo::DemoArguments),
    /// Scan every row of a stopped server's store.
    Check(offline::CheckArguments),
    /// Make a backup of the running server, or of a stopped one's store.
    Backup(offline::BackupArguments),
    /// Make a data directory from a backup.
    Restore(offline::RestoreArguments),
    /// Make a new token for an owner of a stopped server, for who has lost the last one.
    RecoverOwner(offline::RecoverArguments),
    /// Look at the schema of the PostgreSQL database, or change it.
    #[command(subcommand)]
    Schema(offline::SchemaCommand),
    /// Move everything of a stopped server's data directory into a PostgreSQL database.
    Migrate(offline::MigrateArguments),
    /// Change the key that seals secrets at rest.
    #[command(subcommand)]
    Keys(offline::KeysCommand),
    /// Check or show the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the API descriptions.
    #[command(subcommand, hide = true)]
    Api(ApiCommand),
    #[command(flatten)]
    Client(cli::Command),
}

/// Where the configuration comes from.
#[derive(Default, Clone, Args)]
pub(crate) struct ConfigSource {
    /// The configuration file; without it `doorstep.toml` of the working directory, if there is one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The data directory (`data.dir`).
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The PostgreSQL database (`database.url`), such as `postgres://doorstep@db.example.net/doorstep`. A password is better in the environment:
    /// `DOORSTEP__DATABASE__URL`.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    database: Option<String>,
}

/// What `doorstep serve` takes.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    source: ConfigSource,
    /// The address to listen on (`server.listen`); port 0 takes a free one.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Bring an older schema of the PostgreSQL database up to date first (`database.auto_migrate`).
    #[arg(long)]
    migrate: bool,
}

impl std::fmt::Debug for ConfigSource {
    /// Without the database's address, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigSource").field("config", &self.config).field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

impl ConfigSource {
    /// Whether a flag names the data directory.
    pub(crate) const fn names_data_dir(&self) -> bool {
        self.data_dir.is_some()
    }

    /// As the configuration wants it, with the process's environment.
    pub(crate) fn sources(&self) -> Sources {
        let ours = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let environment = ours.filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX)).collect();
        let directory = self.data_dir.iter().map(|dir| ("data.dir", dir.display().to_string()));
        let flags = directory.chain(self.database.iter().map(|url| ("database.url", url.clone()))).collect();
        Sources { file: self.config.clone(), environment, flags }
    }
}

impl ServeArguments {
    /// As the configuration wants it.
    pub(crate) fn sources(&self) -> Sources {
        let mut sources = self.source.sources();
        sources.flags.extend(self.migrate.then(|| ("database.auto_migrate", "true".to_owned())));
        sources.flags.extend(self.listen.iter().map(|address| ("server.listen", address.to_string())));
        sources
    }
}

/// Runs the command of the process's arguments.
pub fn main() -> ExitCode {
    run(std::env::args_os())
}

fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let parsed = match Doorstep::try_parse_from(arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE));
        }
    };
    match parsed.command {
        Command::Serve(arguments) => serve::run(&arguments.sources()),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Check(arguments) => offline::check(&arguments),
        Command::Backup(arguments) => offline::backup(&arguments, parsed.global),
        Command::Restore(arguments) => offline::restore(&arguments),
        Command::RecoverOwner(arguments) => offline::recover_owner(&arguments),
        Command::Schema(command) => offline::schema(&command),
        Command::Migrate(arguments) => offline::migrate(&arguments),
        Command::Keys(command) => offline::keys(&command),
        Command::Config(command) => documents::config(&command),
        Command::Api(command) => documents::api(&command),
        Command::Client(command) => on_runtime(cli::run(command, parsed.global)),
    }
}

/// Runs a client command to its end.
pub(crate) fn on_runtime(work: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => {
            complain(&format!("the runtime cannot start: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Says what is wrong, one line each, on standard error.
pub(crate) fn complain(text: &str) {
    let mut out = std::io::stderr().lock();
    for line in text.lines() {
        let _ = writeln!(out, "doorstep: {line}");
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::Doorstep;

    #[test]
    fn the_command_line_is_consistent() {
        Doorstep::command().debug_assert();
    }

    #[test]
    fn help_is_a_command_too() {
        let help = Doorstep::try_parse_from(["doorstep", "help", "serve"]).unwrap_err();
        assert_eq!((help.kind(), help.exit_code()), (clap::error::ErrorKind::DisplayHelp, 0));
    }
}
