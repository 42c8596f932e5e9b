//! `doorstep serve`: the life of one server process.

mod cluster;
mod doorbells;
mod first_start;
mod lifecycle;
pub(crate) mod master_key;
mod metrics;
mod node;
mod ports;
mod staging;
mod totals;

use std::io::Write as _;
use std::process::ExitCode;

use crate::command::{USAGE, complain};
use crate::config::{self, Config, Sources};
use crate::logging;

pub(crate) use doorbells::LogTails;
pub(crate) use first_start::{OWNER_TOKEN_FILE, write_private};
pub(crate) use master_key::{MASTER_KEY_FILE, NEXT_MASTER_KEY_FILE};
pub(crate) use ports::NoCalls;

/// Why the server could not start or go on, as a sentence for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ServeError(String);

impl ServeError {
    /// What failed, and why.
    fn new(what: &str, cause: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {cause}"))
    }
}

/// Runs the server until it is asked to stop.
pub(crate) fn run(sources: &Sources) -> ExitCode {
    let config = match config::load(sources) {
        Ok(config) => config,
        Err(error) => {
            complain(&error.to_string());
            return ExitCode::from(USAGE);
        }
    };
    if let Err(fault) = logging::start(&config) {
        complain(&fault);
        return ExitCode::from(USAGE);
    }
    match serve(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn serve(config: Config) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ServeError::new("the runtime cannot start", error))?;
    runtime.block_on(lifecycle::live(config))
}

/// The one line on standard output: scripts wait for it.
fn announce(address: std::net::SocketAddr) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening on http://{address}")?;
    out.flush()
}
