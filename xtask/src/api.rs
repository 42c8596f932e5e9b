//! `api`: the OpenAPI and the AsyncAPI document, printed by the server's binary, committed under `api/`.

use std::process::Command;

use crate::document::{self, Mode};
use crate::failure::Failure;
use crate::process;
use crate::workspace::{Selection, Workspace};

/// The documents: what `doorstep api` calls them, and where they are committed.
const DOCUMENTS: [(&str, &str); 2] = [("openapi", "api/openapi.json"), ("asyncapi", "api/asyncapi.json")];

/// Writes or compares both documents. All of them are looked at before the first difference is reported.
pub(crate) fn run(workspace: &Workspace, mode: Mode, selection: Selection) -> Result<(), Failure> {
    let binary = workspace.build_binary(selection)?;
    let mut result = Ok(());
    for (name, path) in DOCUMENTS {
        let mut generated = process::capture(Command::new(&binary).args(["api", name]))?;
        if !generated.ends_with(b"\n") {
            generated.push(b'\n');
        }
        result = result.and(document::settle(workspace.root(), path, &generated, mode, "cargo xtask api"));
    }
    result
}
