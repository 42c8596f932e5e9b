//! `doorstep demo`: the whole story with a real server process, a real crash and a real client, each step with what was seen.

mod stage;
mod story;
mod teller;

use std::process::ExitCode;

use clap::Args;

use crate::command;

/// What `doorstep demo` takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct DemoArguments {
    /// Keep the temporary directory with the server's data and log, and say where it is.
    #[arg(long)]
    keep: bool,
}

/// Something is not as it should be, as a sentence for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unexpected(String);

impl Unexpected {
    /// A failure of what the demo stands on, with its causes.
    pub(crate) fn because(what: &str, error: &dyn std::error::Error) -> Self {
        let mut text = format!("{what}: {error}");
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        Self(text)
    }
}

/// Tells the story; exit code 1 if anything differs from what it should be.
pub(crate) fn run(arguments: &DemoArguments) -> ExitCode {
    let directory = match tempfile::Builder::new().prefix("doorstep-demo-").tempdir() {
        Ok(directory) => directory,
        Err(error) => {
            command::complain(&format!("no temporary directory: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let code = command::on_runtime(async {
        let mut teller = teller::Teller::new();
        let outcome = story::tell(&mut teller, directory.path()).await;
        teller.end(outcome)
    });
    if arguments.keep {
        let kept = directory.keep();
        command::complain(&format!("data and log are kept in {}", kept.display()));
    }
    code
}
