//! The programs that testing needs, looked for before anything is built, with what to do when one is missing.

use std::path::Path;
use std::process::Command;

use super::packages;
use crate::failure::Failure;
use crate::{output, process};

/// What runs the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// cargo-nextest: a process for each test, and a shorter run.
    Nextest,
    /// cargo's own.
    Cargo,
}

/// Checks the tools and chooses the runner.
pub(crate) fn check(root: &Path) -> Result<Runner, Failure> {
    require(
        "a C compiler (for SQLite and ring)",
        Command::new(c_compiler()).arg("--version"),
        "install one: on Debian, `apt-get install gcc`",
    )?;
    require("cargo", process::cargo(root).arg("--version"), "install Rust from https://rustup.rs")?;
    packages::provide("initdb", "postgresql", "the shared store")?;
    packages::provide("faketime", "faketime", "nodes whose clocks are wrong")?;
    packages::provide("nats-server", "nats-server", "hints between nodes")?;
    let nextest = process::version_line(process::cargo(root).args(["nextest", "--version"]));
    output::line(&format!("runner: {}", nextest.as_deref().unwrap_or("cargo test (cargo-nextest is not installed)")));
    Ok(if nextest.is_some() { Runner::Nextest } else { Runner::Cargo })
}

fn require(what: &str, command: &mut Command, remedy: &str) -> Result<(), Failure> {
    let version = process::version_line(command).ok_or_else(|| Failure::new(format!("{what} is missing; {remedy}")))?;
    output::line(&format!("{what}: {version}"));
    Ok(())
}

/// The compiler that build scripts will call.
fn c_compiler() -> String {
    std::env::var("CC").ok().filter(|compiler| !compiler.is_empty()).unwrap_or_else(|| "cc".to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::require;

    #[test]
    fn a_missing_tool_is_named_with_its_remedy() {
        let failure = require("a frobnicator", &mut Command::new("no-such-program-anywhere"), "install one").unwrap_err();
        assert_eq!(failure.to_string(), "a frobnicator is missing; install one");
        assert!(require("a shell", Command::new("sh").args(["-c", "echo 1"]), "").is_ok());
    }
}
