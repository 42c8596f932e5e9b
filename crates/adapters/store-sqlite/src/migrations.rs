//! The schema's history: embedded, append-only, applied in one transaction and recorded with a checksum.

use std::path::Path;

use domain::Timestamp;
use rusqlite::{Connection, TransactionBehavior, params};

use crate::failure::OpenError;
use crate::sql::sql;

/// One step of the schema.
struct Migration {
    version: i64,
    name: &'static str,
    text: &'static str,
}

const MIGRATIONS: [Migration; 6] = [
    Migration { version: 1, name: "initial", text: include_str!("../../../../migrations/sqlite/0001_initial.sql") },
    Migration { version: 2, name: "inbox", text: include_str!("../../../../migrations/sqlite/0002_inbox.sql") },
    Migration { version: 3, name: "hooks", text: include_str!("../../../../migrations/sqlite/0003_hooks.sql") },
    Migration { version: 4, name: "publish function", text: include_str!("../../../../migrations/sqlite/0004_publish_function.sql") },
    Migration { version: 5, name: "nodes", text: include_str!("../../../../migrations/sqlite/0005_nodes.sql") },
    Migration { version: 6, name: "append what is new", text: include_str!("../../../../migrations/sqlite/0006_append_new.sql") },
];

/// The schema version that this release writes.
pub(crate) const KNOWN: i64 = 6;

/// Brings the schema up to date.
///
/// # Errors
/// [`OpenError::NewerSchema`], [`OpenError::ForeignMigration`], or what the engine says.
pub(crate) fn migrate(connection: &mut Connection, path: &Path, now: Timestamp) -> Result<(), OpenError> {
    let failed = |error| OpenError::from_sqlite(path, &error);
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    if found > KNOWN {
        return Err(OpenError::NewerSchema { path: path.to_path_buf(), found, known: KNOWN });
    }
    if found > 0 {
        verify(connection, path)?;
    }
    if found < KNOWN {
        apply(connection, found, now).map_err(failed)?;
    }
    Ok(())
}

/// Whether what was applied is what this release would have applied.
fn verify(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |error| OpenError::from_sqlite(path, &error);
    let mut statement = connection.prepare(sql!("store/migrations")).map_err(failed)?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?))).map_err(failed)?;
    for row in rows {
        let (version, recorded) = row.map_err(failed)?;
        let own = MIGRATIONS.iter().find(|migration| migration.version == version);
        if own.is_none_or(|migration| checksum(migration) != recorded) {
            return Err(OpenError::ForeignMigration { path: path.to_path_buf(), version });
        }
    }
    Ok(())
}

fn apply(connection: &mut Connection, found: i64, now: Timestamp) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(sql!("store/create_migrations"), [])?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        transaction.execute_batch(migration.text)?;
        let values = params![migration.version, migration.name, checksum(migration), now.as_micros()];
        transaction.execute(sql!("store/record_migration"), values)?;
    }
    transaction.pragma_update(None, "user_version", KNOWN)?;
    transaction.commit()
}

fn checksum(migration: &Migration) -> u32 {
    crc32fast::hash(migration.text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, MIGRATIONS};

    #[test]
    fn versions_count_up_from_one() {
        for (index, migration) in MIGRATIONS.iter().enumerate() {
            assert_eq!(usize::try_from(migration.version), Ok(index + 1), "{}", migration.name);
        }
        assert_eq!(usize::try_from(KNOWN), Ok(MIGRATIONS.len()));
    }
}
