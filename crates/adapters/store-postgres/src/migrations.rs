//! The schema's history: embedded, append-only, recorded with checksums. The numbers are those of every other store.

use domain::Timestamp;
use sqlx_postgres::PgConnection;

use crate::failure::Failure;
use crate::sql::sql;
use crate::{codec, db};

/// One step of the schema.
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) name: &'static str,
    text: &'static str,
}

/// The text of `migrations/postgres/<name>.sql`.
macro_rules! migration {
    ($version:literal, $name:literal, $file:literal) => {
        Migration { version: $version, name: $name, text: include_str!(concat!("../../../../migrations/postgres/", $file, ".sql")) }
    };
}

pub(crate) const MIGRATIONS: &[Migration] = &[
    migration!(1, "initial", "0001_initial"),
    migration!(2, "inbox", "0002_inbox"),
    migration!(3, "hooks", "0003_hooks"),
    migration!(4, "publish function", "0004_publish_function"),
    migration!(5, "nodes", "0005_nodes"),
    migration!(6, "append what is new", "0006_append_new"),
];

/// The schema version that this release works on.
pub(crate) fn known() -> i64 {
    MIGRATIONS.last().map_or(0, |last| last.version)
}

impl Migration {
    pub(crate) fn checksum(&self) -> i64 {
        i64::from(crc32fast::hash(self.text.as_bytes()))
    }
}

/// What was applied: versions with the checksums of their texts.
pub(crate) async fn applied(connection: &mut PgConnection) -> Result<Vec<(i64, i64)>, Failure> {
    let is_there: bool = db::scalar(sql!("store/has_migrations")).fetch_one(&mut *connection).await?;
    if !is_there {
        return Ok(Vec::new());
    }
    let rows = db::query(sql!("store/migrations")).fetch_all(connection).await?;
    rows.iter().map(|row| Ok((codec::get(row, 0)?, codec::get(row, 1)?))).collect()
}

/// Applies what is missing, each step in a transaction of its own, one process at a time. Answers the versions that it applied.
pub(crate) async fn up(connection: &mut PgConnection, now: Timestamp) -> Result<Vec<i64>, Failure> {
    let mut done = Vec::new();
    loop {
        db::script(sql!("store/begin_migration")).execute(&mut *connection).await?;
        db::script(sql!("store/create_schema")).execute(&mut *connection).await?;
        db::script(sql!("store/create_migrations")).execute(&mut *connection).await?;
        let newest = applied(connection).await?.last().map_or(0, |(version, _)| *version);
        let next = MIGRATIONS.iter().find(|migration| migration.version > newest);
        if let Some(migration) = next {
            db::script(migration.text).execute(&mut *connection).await?;
            let record = db::query(sql!("store/record_migration")).bind(migration.version).bind(migration.name);
            record.bind(migration.checksum()).bind(now.as_micros()).execute(&mut *connection).await?;
            done.push(migration.version);
        }
        db::script(sql!("store/commit")).execute(&mut *connection).await?;
        if next.is_none() {
            return Ok(done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MIGRATIONS;

    #[test]
    fn versions_rise() {
        assert!(MIGRATIONS.is_sorted_by(|one, next| one.version < next.version));
    }
}
