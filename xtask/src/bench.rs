//! `bench`: builds for release and measures. The rows and the floors themselves are the package `doorstep-bench`.

use crate::failure::Failure;
use crate::workspace::Workspace;
use crate::{output, process};

/// Builds the server and the bench for release, then runs the bench with `arguments`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    output::section("build for release");
    let cargo = || process::cargo(workspace.root());
    process::run(cargo().args(["build", "--release", "-p", "doorstep-server", "-p", "doorstep-bench"]))?;
    output::section("measure");
    process::run(cargo().args(["run", "--quiet", "--release", "-p", "doorstep-bench", "--"]).args(arguments))
}
