//! `bench`: builds for release and measures. The rows and the floors themselves are the package `doorstep-bench`.

use std::process::Command;

use crate::failure::Failure;
use crate::workspace::Workspace;
use crate::{output, process};

/// Builds the server and the bench for release, then runs the bench with `arguments`.
///
/// Both are built at once and the bench is started as a program: `cargo run` for the bench alone would choose other features for what
/// the two share, and compile it all a second time.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    output::section("build for release");
    process::run(process::cargo(workspace.root()).args(["build", "--release", "-p", "doorstep-server", "-p", "doorstep-bench"]))?;
    output::section("measure");
    let program = workspace.metadata().target_directory.join("release").join(format!("doorstep-bench{}", std::env::consts::EXE_SUFFIX));
    process::run(Command::new(program).current_dir(workspace.root()).args(arguments))
}
