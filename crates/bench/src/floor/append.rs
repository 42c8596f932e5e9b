//! The floor under publishing: rows of a payload and a key, committed durably in groups, by one thread that does nothing else.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempDir;

use crate::failure::Failure;

/// What the embedded store asks of its file too; see `docs/performance.md`.
const PRAGMAS: [(&str, &str); 7] = [
    ("page_size", "8192"),
    ("journal_mode", "wal"),
    ("synchronous", "full"),
    ("fullfsync", "1"),
    ("cache_size", "-16384"),
    ("wal_autocheckpoint", "2048"),
    ("temp_store", "memory"),
];

/// A database that only grows.
#[derive(Debug)]
pub(crate) struct AppendFloor {
    connection: Connection,
    next: i64,
    body: String,
    _directory: TempDir,
}

impl AppendFloor {
    /// An empty database in a directory of its own below `directory`, for rows of `bytes`.
    pub(crate) fn open(directory: &Path, bytes: usize) -> Result<Self, Failure> {
        let directory = tempfile::tempdir_in(directory).map_err(Failure::io("make a directory for the raw database"))?;
        let connection = Connection::open(directory.path().join("floor.db"))?;
        for (name, value) in PRAGMAS {
            connection.pragma_update(None, name, value)?;
        }
        connection.execute_batch("CREATE TABLE log (position INTEGER NOT NULL PRIMARY KEY, body TEXT NOT NULL) STRICT")?;
        Ok(Self { connection, next: 1, body: "x".repeat(bytes), _directory: directory })
    }

    /// Rows per second that are durable, `group` of them in each transaction.
    pub(crate) fn rate(&mut self, group: usize, window: Duration) -> Result<f64, Failure> {
        let begin = Instant::now();
        let first = self.next;
        while begin.elapsed() < window {
            self.commit(group)?;
        }
        Ok((self.next - first) as f64 / begin.elapsed().as_secs_f64())
    }

    fn commit(&mut self, group: usize) -> Result<(), Failure> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO log (position, body) VALUES (?1, ?2)")?;
            for _ in 0..group {
                insert.execute((self.next, &self.body))?;
                self.next += 1;
            }
        }
        Ok(transaction.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::AppendFloor;

    #[test]
    fn the_loop_is_as_durable_as_the_store_and_counts_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let mut floor = AppendFloor::open(directory.path(), 512).unwrap();
        assert!(floor.rate(64, Duration::from_millis(20)).unwrap() > 0.0);
        let value = |sql: &str| floor.connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(value("SELECT count(*) FROM log"), floor.next - 1);
        assert_eq!(value("SELECT count(*) % 64 FROM log"), 0);
        assert_eq!(value("SELECT min(length(body)) FROM log"), 512);
        assert_eq!(value("PRAGMA synchronous"), 2);
        assert_eq!(value("PRAGMA page_size"), 8192);
        let mode: String = floor.connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }
}
