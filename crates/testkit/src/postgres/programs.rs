//! The server programs of PostgreSQL: where they are, and as whom they must run.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian and its relatives, Red Hat's, and Homebrew put them.
const PLACES: [&str; 4] = ["/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt", "/usr/local/opt"];
/// What a machine without them can do.
const REMEDY: &str =
    "install the PostgreSQL server (15 or later): on Debian, `apt-get install postgresql`; or name a running one in DOORSTEP_TEST_POSTGRES";

/// The installed server programs.
#[derive(Clone, Debug)]
pub struct ServerPrograms {
    directory: PathBuf,
    /// Whom they run as, when this process may not run them: the server refuses to be root.
    user: Option<(u32, u32)>,
}

impl ServerPrograms {
    /// Finds the newest ones.
    ///
    /// # Errors
    /// A sentence with what to install.
    pub fn find() -> Result<Self, String> {
        let mut found: Vec<(u32, PathBuf)> = PLACES.iter().flat_map(|place| versions(Path::new(place))).collect();
        found.extend(on_path().map(|directory| (0, directory)));
        found.sort();
        let Some((_, directory)) = found.pop() else { return Err(format!("no PostgreSQL server programs were found; {REMEDY}")) };
        Ok(Self { directory, user: unprivileged()? })
    }

    /// Whom they run as, when that is not this process's own user.
    pub fn user(&self) -> Option<(u32, u32)> {
        self.user
    }

    /// A program, to be run as the right user.
    pub fn command(&self, program: &str) -> Command {
        self.as_user(Command::new(self.directory.join(program)))
    }

    /// The directory of the programs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn as_user(&self, mut command: Command) -> Command {
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        // A locale that is not installed would stop the programs.
        command.env("LC_ALL", "C").current_dir("/");
        command
    }
}

/// `place/15/bin`, `place/postgresql@15/bin` and the like, with their versions.
fn versions(place: &Path) -> Vec<(u32, PathBuf)> {
    let parent = if place.ends_with("pgsql") { Path::new("/usr") } else { place };
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let version = |name: &str| name.rsplit(['@', '-']).next().and_then(|digits| digits.parse::<u32>().ok());
    let candidates = entries.flatten().filter_map(|entry| {
        let directory = entry.path().join("bin");
        let number = version(entry.file_name().to_str()?)?;
        (number >= 15 && directory.join("initdb").is_file()).then_some((number, directory))
    });
    candidates.collect()
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|directory| directory.join("initdb").is_file() && directory.join("postgres").is_file())
}

/// When this process is root: the user `postgres`, or `nobody`.
fn unprivileged() -> Result<Option<(u32, u32)>, String> {
    let own = std::fs::metadata("/proc/self").map_or(1, |own| own.uid());
    if own != 0 {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd").map_err(|error| format!("/etc/passwd cannot be read: {error}"))?;
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    match ids("postgres").or_else(|| ids("nobody")) {
        Some(user) => Ok(Some(user)),
        None => Err("the PostgreSQL server refuses to run as root, and there is neither a user postgres nor nobody".to_owned()),
    }
}
