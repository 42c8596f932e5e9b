//! The schema as operators see it: which version it is, what is missing, bringing it up to date.

use domain::{Clock, Timestamp};
use sqlx_postgres::{PgConnectOptions, PgConnection};

use crate::failure::{Failure, OpenError};
use crate::migrations::{self, MIGRATIONS};
use crate::sql::sql;
use crate::{PostgresOptions, codec, connection, db};

/// The oldest server that this product works with.
const OLDEST_SERVER: u32 = 15;

/// What is known of a database's schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Host and name of the database, without credentials.
    pub database: String,
    /// The newest applied version; 0 when there is none.
    pub version: i64,
    /// The version that this release works on.
    pub known: i64,
    /// What `up` would apply: versions and names, in order.
    pub missing: Vec<(i64, &'static str)>,
}

impl Schema {
    /// Whether this release can work on it.
    pub fn is_current(&self) -> bool {
        self.version == self.known
    }
}

/// How a database keeps what it is given.
struct Keeping {
    /// Commits of this session wait for the disk.
    waits: bool,
    /// The server sees to it that what is on the disk is there.
    is_synced: bool,
}

/// Reads how the database keeps things, and refuses one that would not keep texts as they are.
async fn keeping(connect: &PgConnectOptions, connection: &mut PgConnection) -> Result<Keeping, OpenError> {
    let asked = db::query(sql!("store/durability")).fetch_one(connection).await.map_err(Failure::from);
    let settings = asked.and_then(|row| {
        let keeping = Keeping { waits: codec::get(&row, 0)?, is_synced: codec::get(&row, 1)? };
        Ok((keeping, codec::get::<String>(&row, 2)?))
    });
    let (keeping, encoding) = settings.map_err(|failure| failed(connect, failure))?;
    if encoding != "UTF8" {
        let reason = format!("its encoding is {encoding}; make the database with ENCODING 'UTF8'");
        return Err(OpenError::Failed { database: connection::described(connect), reason });
    }
    Ok(keeping)
}

/// Refuses sessions whose commits do not wait for the disk: what such a commit acknowledges may be gone after a crash.
pub(crate) async fn check_durability(connect: &PgConnectOptions) -> Result<(), OpenError> {
    let mut connection = open(connect).await?;
    let database = connection::described(connect);
    let keeping = keeping(connect, &mut connection).await?;
    if !keeping.waits {
        return Err(OpenError::AsynchronousCommit { database });
    }
    if !keeping.is_synced {
        tracing::warn!(
            database.name = database,
            "the database server runs with fsync = off: a crash of its machine may lose or damage everything"
        );
    }
    Ok(())
}

/// Looks at the schema and changes nothing.
///
/// # Errors
/// [`OpenError`] when the database cannot be reached, or was migrated by somebody else or a newer release.
pub async fn status(options: &PostgresOptions) -> Result<Schema, OpenError> {
    let connect = connection::connect_options(options)?;
    let mut connection = open(&connect).await?;
    look(&connect, &mut connection).await
}

/// Brings the schema up to date; answers the versions that were applied. Any number of processes may do so at once.
///
/// # Errors
/// As [`status`].
pub async fn up(options: &PostgresOptions, clock: &dyn Clock) -> Result<Vec<i64>, OpenError> {
    let connect = connection::connect_options(options)?;
    let mut connection = open(&connect).await?;
    keeping(&connect, &mut connection).await?;
    look(&connect, &mut connection).await?;
    migrations::up(&mut connection, clock.now()).await.map_err(|failure| failed(&connect, failure))
}

/// What opening the store asks: is the schema this release's.
pub(crate) async fn prepare(connect: &PgConnectOptions, options: &PostgresOptions, now: Timestamp) -> Result<(), OpenError> {
    let mut connection = open(connect).await?;
    let schema = look(connect, &mut connection).await?;
    if schema.is_current() {
        return Ok(());
    }
    if !options.auto_migrate {
        return Err(OpenError::OldSchema { database: schema.database, found: schema.version, needed: schema.known });
    }
    let applied = migrations::up(&mut connection, now).await.map_err(|failure| failed(connect, failure))?;
    tracing::info!(schema.from = schema.version, schema.to = schema.known, migrations = applied.len(), "the schema was brought up to date");
    Ok(())
}

async fn open(connect: &PgConnectOptions) -> Result<PgConnection, OpenError> {
    let database = connection::described(connect);
    let connection = connection::open(connect).await.map_err(|error| match error {
        sqlx_core::Error::Database(said) => OpenError::Unreachable { database: database.clone(), reason: said.message().to_owned() },
        error => OpenError::Unreachable { database: database.clone(), reason: error.to_string() },
    })?;
    let found = connection.server_version_num().unwrap_or_default() / 10_000;
    if found < OLDEST_SERVER {
        return Err(OpenError::OldServer { database, found, needed: OLDEST_SERVER });
    }
    Ok(connection)
}

async fn look(connect: &PgConnectOptions, connection: &mut PgConnection) -> Result<Schema, OpenError> {
    let database = connection::described(connect);
    let applied = migrations::applied(connection).await.map_err(|failure| failed(connect, failure))?;
    let (version, known) = (applied.last().map_or(0, |(version, _)| *version), migrations::known());
    if version > known {
        return Err(OpenError::NewerSchema { database, found: version, known });
    }
    for (version, checksum) in applied {
        if !MIGRATIONS.iter().any(|migration| migration.version == version && migration.checksum() == checksum) {
            return Err(OpenError::ForeignMigration { database, version });
        }
    }
    let missing = MIGRATIONS.iter().filter(|migration| migration.version > version).map(|each| (each.version, each.name));
    Ok(Schema { database, version, known, missing: missing.collect() })
}

/// What the server refused while the store was opened.
pub(crate) fn failed(connect: &PgConnectOptions, failure: Failure) -> OpenError {
    let reason = match failure {
        Failure::Store(error) => error.to_string(),
        Failure::Driver(error) => error.to_string(),
    };
    OpenError::Failed { database: connection::described(connect), reason }
}
