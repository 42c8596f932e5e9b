//! `config-docs`: the reference of every configuration key, printed by the server's binary from its own structs.

use std::process::Command;

use crate::document::{self, Mode};
use crate::failure::Failure;
use crate::process;
use crate::workspace::{Selection, Workspace};

/// Where the reference is committed.
pub(crate) const REFERENCE: &str = "docs/operations/configuration.md";

/// Writes or compares the reference.
pub(crate) fn run(workspace: &Workspace, mode: Mode, selection: Selection) -> Result<(), Failure> {
    let binary = workspace.build_binary(selection)?;
    let generated = process::capture(Command::new(&binary).args(["config", "docs"]))?;
    document::settle(workspace.root(), REFERENCE, &generated, mode, "cargo xtask config-docs")
}
