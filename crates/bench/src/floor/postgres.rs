//! The floor under claiming: the loop with `SKIP LOCKED` that programs write over PostgreSQL, driven by its own `pgbench` on a throwaway cluster.

use std::io::ErrorKind;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::failure::Failure;

/// Where distributions put the server's programs, newest first where there are several.
const PLACES: [&str; 6] = [
    "/usr/lib/postgresql/18/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/15/bin",
    "/usr/bin",
    "/usr/local/bin",
];

/// What is asked of the cluster: durable as it comes, and room for its caches as the embedded store has.
const SETTINGS: &str = "listen_addresses = ''\nfsync = on\nsynchronous_commit = on\nshared_buffers = '256MB'\nmax_wal_size = '4GB'\n";

const SCHEMA: &str = "
CREATE TABLE items (id bigserial PRIMARY KEY, state smallint NOT NULL DEFAULT 0, lease timestamptz, body text NOT NULL) WITH (fillfactor = 70);
CREATE INDEX items_claimable ON items (id) WHERE state = 0;
CREATE TABLE ended (id bigint PRIMARY KEY, ended_at timestamptz NOT NULL);
";

/// One claim of `N` and its acknowledgement, each durable.
const LOOP: &str = "
WITH next AS (SELECT id FROM items WHERE state = 0 ORDER BY id LIMIT N FOR UPDATE SKIP LOCKED),
     held AS (UPDATE items SET state = 1, lease = now() + interval '2 minutes' FROM next WHERE items.id = next.id RETURNING items.id, body)
SELECT coalesce(array_agg(id), '{}')::text AS ids, coalesce(sum(length(body)), 0) AS bytes FROM held \\gset
WITH gone AS (DELETE FROM items WHERE id = ANY(:ids::bigint[]) AND state = 1 RETURNING id)
INSERT INTO ended SELECT id, now() FROM gone;
";

/// A running cluster. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct ClaimFloor {
    programs: PathBuf,
    directory: TempDir,
    /// Who runs it: PostgreSQL refuses the superuser of the system.
    user: Option<(u32, u32)>,
}

impl ClaimFloor {
    /// Starts a cluster in a directory of its own below `directory`; `None` where PostgreSQL is not installed.
    pub(crate) fn start(directory: &Path) -> Result<Option<Self>, Failure> {
        let Some(programs) = PLACES.iter().map(PathBuf::from).find(|place| place.join("initdb").exists() && place.join("pgbench").exists())
        else {
            return Ok(None);
        };
        let directory =
            tempfile::Builder::new().prefix("pg").tempdir_in(directory).map_err(Failure::io("make a directory for PostgreSQL"))?;
        let user = if rustix::process::geteuid().is_root() { Some(unprivileged()) } else { None };
        if let Some((uid, gid)) = user {
            chown(directory.path(), Some(uid), Some(gid)).map_err(Failure::io("hand PostgreSQL its directory"))?;
        }
        let floor = Self { programs, directory, user };
        floor.run("initdb", &["-D", "data", "-A", "trust", "-U", "bench", "--no-instructions"])?;
        let settings = format!("{SETTINGS}unix_socket_directories = '{}'\n", floor.directory.path().display());
        std::fs::write(floor.directory.path().join("data/postgresql.auto.conf"), settings).map_err(Failure::io("configure PostgreSQL"))?;
        floor.run("pg_ctl", &["-D", "data", "-w", "-l", "log", "start"])?;
        floor.sql(SCHEMA)?;
        Ok(Some(floor))
    }

    /// Items per second that are claimed and acknowledged, `batch` at once by `workers`.
    pub(crate) fn rate(&self, batch: usize, workers: usize, body_bytes: usize, window: Duration) -> Result<f64, Failure> {
        // More than can be worked off: an empty table would be fast and mean nothing.
        let items = window.as_millis().max(1_000) * 200;
        self.sql(&format!(
            "TRUNCATE items, ended; INSERT INTO items (body) SELECT repeat('x', {body_bytes}) FROM generate_series(1, {items}); ANALYZE items; CHECKPOINT;"
        ))?;
        let script = self.directory.path().join("loop.sql");
        std::fs::write(&script, LOOP.replace("LIMIT N", &format!("LIMIT {batch}"))).map_err(Failure::io("write the loop"))?;
        let (workers, seconds) = (workers.to_string(), window.as_secs().max(1).to_string());
        let told = self.run(
            "pgbench",
            &[&self.host()[..], &["-n", "-M", "prepared", "-f", "loop.sql", "-c", &workers, "-j", "2", "-T", &seconds, "postgres"]]
                .concat(),
        )?;
        let left: u64 = self.sql("SELECT count(*) FROM items")?.trim().parse().unwrap_or(0);
        if left == 0 {
            return Err(Failure::Wrong("PostgreSQL ran out of items".to_owned()));
        }
        let rate = told.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
        rate.map(|rate| rate * batch as f64).ok_or_else(|| Failure::Wrong(format!("pgbench said no rate: {told}")))
    }

    fn host(&self) -> [&str; 4] {
        ["-h", self.directory.path().to_str().unwrap_or("."), "-U", "bench"]
    }

    fn sql(&self, text: &str) -> Result<String, Failure> {
        self.run("psql", &[&self.host()[..], &["-X", "-q", "-t", "-v", "ON_ERROR_STOP=1", "-c", text, "postgres"]].concat())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, Failure> {
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir(self.directory.path()).env("LC_ALL", "C").stdin(Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        // `pg_ctl` leaves the server running, which must not keep our pipes.
        if program == "pg_ctl" {
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().map_err(Failure::io("run pg_ctl"))?;
            return if status.success() { Ok(String::new()) } else { Err(Failure::Wrong(format!("pg_ctl ended with {status}"))) };
        }
        let output = command.output().map_err(Failure::io("run a program of PostgreSQL"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Failure::Wrong(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())))
    }
}

impl Drop for ClaimFloor {
    fn drop(&mut self) {
        // A cluster that never started has nothing to stop.
        let _ = self.run("pg_ctl", &["-D", "data", "-w", "-m", "immediate", "stop"]);
    }
}

/// The user and group of PostgreSQL's own account, else those of nobody.
fn unprivileged() -> (u32, u32) {
    let accounts = std::fs::read_to_string("/etc/passwd").or_else(|error| match error.kind() {
        ErrorKind::NotFound => Ok(String::new()),
        _ => Err(error),
    });
    let accounts = accounts.unwrap_or_default();
    let numbers = accounts.lines().find(|line| line.starts_with("postgres:")).and_then(|line| {
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    numbers.unwrap_or((65_534, 65_534))
}

#[cfg(test)]
mod tests {
    use super::{ClaimFloor, LOOP, unprivileged};

    #[test]
    fn the_loop_has_one_place_for_the_size_of_a_batch() {
        assert_eq!(LOOP.matches("LIMIT N").count(), 1);
        assert_ne!(unprivileged().0, 0);
    }

    #[test]
    fn where_postgresql_is_installed_the_floor_counts_what_it_claims() {
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        // Elsewhere the row is shown without its floor.
        let Some(floor) = ClaimFloor::start(directory.path()).unwrap() else { return };
        assert!(floor.rate(50, 2, 512, std::time::Duration::from_secs(1)).unwrap() > 0.0);
    }
}
