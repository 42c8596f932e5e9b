//! Log lines on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Starts logging for the whole process.
///
/// # Errors
/// A sentence for people when `log.filter` is not valid.
pub(crate) fn start(config: &Config) -> Result<(), String> {
    let filter = EnvFilter::try_new(&config.log.filter).map_err(|error| format!("log.filter: {error}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start in one process (a test) keeps the first.
    let _ = match config.log.format {
        LogFormat::Text => builder.with_ansi(is_coloured()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Colour on a terminal, unless `NO_COLOR` is set to something (no-color.org).
fn is_coloured() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
