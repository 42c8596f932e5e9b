//! The published packages that verify what hooks send: fetched before the tests begin, so that a machine which cannot have them says so at once.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::{output, process};

/// Leaves them out.
const WITHOUT: &str = "DOORSTEP_TEST_WITHOUT_PUBLISHED";
/// Fetches and runs them, below the root.
const SCRIPT: &str = "crates/server/tests/published/run";
/// Where the test looks for them, below the build folder: cargo's folder for what integration tests keep.
const PACKAGES: &str = "tmp/published";

/// Fetches what is not there yet.
pub(crate) fn prepare(root: &Path, build_folder: &Path) -> Result<(), Failure> {
    if std::env::var_os(WITHOUT).is_some() {
        output::line(&format!("published packages of Standard Webhooks: left out by {WITHOUT}"));
        return Ok(());
    }
    process::run(Command::new("sh").arg(root.join(SCRIPT)).arg(build_folder.join(PACKAGES)).arg("prepare"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{SCRIPT, WITHOUT};

    #[test]
    fn the_script_is_there_and_names_what_leaves_it_out() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(std::fs::read_to_string(root.join(SCRIPT)).unwrap().contains(WITHOUT));
    }
}
