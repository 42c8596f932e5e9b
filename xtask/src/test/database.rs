//! One PostgreSQL cluster for all tests of a run: each test makes a database of its own in it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::failure::Failure;
use crate::output;

/// Where tests look for it.
pub(super) const VARIABLE: &str = "DOORSTEP_TEST_POSTGRES";

/// A cluster; it goes when this value is dropped, and when this process ends in any other way.
pub(super) struct Database {
    server: Child,
    url: String,
}

impl Database {
    /// Starts `program`, which tells the URL on its first line. Nothing when the environment names a cluster already.
    pub(super) fn start(program: &Path) -> Result<Option<Self>, Failure> {
        if std::env::var_os(VARIABLE).is_some_and(|url| !url.is_empty()) {
            return Ok(None);
        }
        Self::spawn(program).map(Some)
    }

    fn spawn(program: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::because("start a throwaway PostgreSQL", error);
        let mut server = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut url = String::new();
        if let Some(told) = server.stdout.take() {
            BufReader::new(told).read_line(&mut url).map_err(failed)?;
        }
        let database = Self { server, url: url.trim().to_owned() };
        if database.url.is_empty() {
            return Err(Failure::new("no throwaway PostgreSQL could be started".to_owned()));
        }
        output::line("a throwaway PostgreSQL is running");
        Ok(database)
    }

    /// How tests connect to it.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The end of its input is the end of the cluster.
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::Database;

    fn script(directory: &std::path::Path, text: &str) -> std::path::PathBuf {
        let path = directory.join("program");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_cluster_is_named_by_its_first_line_and_ends_with_its_input() {
        let directory = tempfile::tempdir().unwrap();
        let ended = directory.path().join("ended");
        let program = script(directory.path(), &format!("#!/bin/sh\necho url\ncat\n: > {}\n", ended.display()));
        let database = Database::spawn(&program).unwrap();
        assert_eq!(database.url(), "url");
        drop(database);
        assert!(ended.exists());
    }

    #[test]
    fn a_cluster_that_tells_no_url_is_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Database::spawn(&script(directory.path(), "#!/bin/sh\nexit 1\n")).is_err());
    }
}
