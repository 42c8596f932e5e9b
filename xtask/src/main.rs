//! Development tasks: `cargo xtask arch | api | config-docs | test | bench | ci`.
//!
//! This crate knows the shape of the workspace and the tools around it. It uses no crate of the product, so that it builds and
//! judges even when the product does not compile.

mod api;
mod arch;
mod bench;
mod ci;
mod cli;
mod config_docs;
mod document;
mod failure;
mod output;
mod process;
mod test;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::error(&failure.to_string());
            ExitCode::FAILURE
        }
    }
}
