//! Commands that print documents: the configuration in force, its reference, the API descriptions.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Subcommand;

use crate::command::{ConfigSource, USAGE};
use crate::config;

/// What `doorstep config` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say whether the configuration is valid: exit code 0, or 2 with every fault.
    Check(ConfigSource),
    /// Print the configuration in force as TOML.
    Show(ConfigSource),
    /// Print the configuration reference as Markdown.
    #[command(hide = true)]
    Docs,
}

/// What `doorstep api` can print.
#[derive(Debug, Subcommand)]
pub(crate) enum ApiCommand {
    /// The REST interface as OpenAPI.
    Openapi,
    /// The gateway's frames as AsyncAPI.
    Asyncapi,
}

/// Runs `doorstep config …`.
pub(crate) fn config(command: &ConfigCommand) -> ExitCode {
    let source = match command {
        ConfigCommand::Docs => return print(&config::reference()),
        ConfigCommand::Check(source) | ConfigCommand::Show(source) => source,
    };
    match config::load(&source.sources()) {
        Ok(config) if matches!(command, ConfigCommand::Show(_)) => print(&config.to_toml()),
        Ok(_) => print("The configuration is valid.\n"),
        Err(error) => {
            crate::command::complain(&error.to_string());
            ExitCode::from(USAGE)
        }
    }
}

/// Runs `doorstep api …`.
pub(crate) fn api(command: &ApiCommand) -> ExitCode {
    let text = match command {
        ApiCommand::Openapi => serde_json::to_string_pretty(&http_api::openapi_document()),
        ApiCommand::Asyncapi => serde_json::to_string_pretty(&http_api::asyncapi()),
    };
    match text {
        Ok(text) => print(&(text + "\n")),
        Err(error) => {
            crate::command::complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
