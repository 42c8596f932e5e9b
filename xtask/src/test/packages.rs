//! Server programs that tests start: looked for, installed where that can be done without asking, else named with what to install.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::{output, process};

/// Where Debian puts programs of servers: not on everybody's `PATH`.
const SERVER_PROGRAMS: &str = "/usr/sbin";
/// Where it puts those of each version of PostgreSQL.
const POSTGRESQL: &str = "/usr/lib/postgresql";

/// Has `program` there, from the Debian package of this name when it is missing.
pub(super) fn provide(program: &str, package: &str, what_for: &str) -> Result<(), Failure> {
    if find(program).is_none() {
        let missing = || Failure::new(format!("{program} is missing ({what_for}); on Debian: `apt-get install {package}`"));
        if !can_install() {
            return Err(missing());
        }
        output::line(&format!("{program} is missing ({what_for}); it is installed"));
        let install = |arguments: &[&str]| process::run(apt().args(arguments));
        install(&["install", "-y", "--no-install-recommends", package])
            .or_else(|_| install(&["update"]).and_then(|()| install(&["install", "-y", "--no-install-recommends", package])))?;
    }
    let found = find(program).ok_or_else(|| Failure::new(format!("{program} is still missing although {package} was installed")))?;
    output::line(&format!("{program}: {}", found.display()));
    Ok(())
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain([PathBuf::from(SERVER_PROGRAMS)]).chain(versions());
    directories.map(|directory| directory.join(program)).find(|candidate| candidate.is_file())
}

fn versions() -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(POSTGRESQL).into_iter().flatten().flatten().map(|version| version.path().join("bin"))
}

/// Debian, and nobody has to be asked for a password.
fn can_install() -> bool {
    let user = process::version_line(Command::new("id").arg("-u"));
    Path::new("/etc/debian_version").is_file() && user.as_deref() == Some("0")
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

#[cfg(test)]
mod tests {
    use super::{find, provide};

    #[test]
    fn a_program_that_is_there_is_found_and_one_that_is_nowhere_is_not() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-anywhere").is_none());
        assert!(provide("sh", "dash", "a shell").is_ok());
    }
}
