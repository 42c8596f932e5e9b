//! What can go wrong here, and how a driver's error becomes the ports' one.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::StoreError;
use sqlx_core::Error;
use thiserror::Error as ThisError;

/// Why a store could not be opened.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is none that names a PostgreSQL database.
    #[error("database.url cannot be used: {reason}")]
    Url {
        /// What is wrong with it; never the URL itself.
        reason: String,
    },
    /// The server cannot be reached, or lets nobody in.
    #[error("the database {database} cannot be reached: {reason}")]
    Unreachable {
        /// Host and name, without credentials.
        database: String,
        /// What was said.
        reason: String,
    },
    /// The server is older than what this product needs.
    #[error("the database {database} runs PostgreSQL {found}; version {needed} or later is needed")]
    OldServer {
        /// Host and name.
        database: String,
        /// The server's major version.
        found: u32,
        /// The least major version.
        needed: u32,
    },
    /// The schema is not there, or older than what this release works on.
    #[error(
        "the schema of {database} is at version {found}, and this release needs {needed}; run `doorstep schema up`, or start with --migrate"
    )]
    OldSchema {
        /// Host and name.
        database: String,
        /// The newest applied version; 0 when there is none.
        found: i64,
        /// The version of this release.
        needed: i64,
    },
    /// The schema was written by a newer release.
    #[error(
        "the schema of {database} is at version {found}, and this release knows up to {known}; use the release that wrote it, or a newer one"
    )]
    NewerSchema {
        /// Host and name.
        database: String,
        /// The version of the schema.
        found: i64,
        /// The newest version that this release knows.
        known: i64,
    },
    /// The schema's history of migrations is not this product's.
    #[error("{database} was migrated differently: migration {version} has another content than this release's")]
    ForeignMigration {
        /// Host and name.
        database: String,
        /// The first migration that differs.
        version: i64,
    },
    /// Servers are connected, and what is asked for needs them to be stopped.
    #[error("servers are connected to {database} ({sessions} sessions); stop them first")]
    InUse {
        /// Host and name.
        database: String,
        /// Sessions of servers, on any node.
        sessions: i64,
    },
    /// Commits of this node's sessions would not wait for the disk.
    #[error(
        "synchronous_commit is off for sessions on {database}, and what is acknowledged could be lost; turn it on for the server, the role, the \
         database and the address"
    )]
    AsynchronousCommit {
        /// Host and name.
        database: String,
    },
    /// The store is being filled from another one, or that was interrupted.
    #[error("a migration into {database} has not ended; run `doorstep migrate` again, it goes on where it stopped")]
    Unfinished {
        /// Host and name.
        database: String,
    },
    /// The store contradicts itself; nothing of it is served.
    #[error("the store in {database} is damaged: {reason}")]
    Corrupt {
        /// Host and name.
        database: String,
        /// What contradicts what.
        reason: String,
    },
    /// Anything else that the server refused.
    #[error("the store in {database} cannot be opened: {reason}")]
    Failed {
        /// Host and name.
        database: String,
        /// What was said.
        reason: String,
    },
}

/// An error on its way to a port: the port's own, or the driver's that is still to be mapped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A word of the port.
    Store(StoreError),
    /// The driver's.
    Driver(Error),
}

/// Counts failures of connections in this process. A connection that was last used before such a failure is looked at before it is used again.
static TROUBLE: AtomicU64 = AtomicU64::new(0);

/// How many failures of connections there were.
pub(crate) fn trouble() -> u64 {
    TROUBLE.load(Ordering::Relaxed)
}

/// Notes that a connection did not answer: those that were used before are looked at.
pub(crate) fn note_trouble() {
    TROUBLE.fetch_add(1, Ordering::Relaxed);
}

impl Failure {
    /// Whether what was to be created is there.
    pub(crate) fn is_unique(&self) -> bool {
        self.is_code("23505")
    }

    /// Whether a foreign key was violated: what the row names is not there.
    pub(crate) fn is_foreign_key(&self) -> bool {
        self.is_code("23503")
    }

    /// Whether the connection failed rather than the statement: nobody has heard the answer, if there was one.
    pub(crate) fn is_connection(&self) -> bool {
        match self {
            Self::Store(_) => false,
            Self::Driver(error) => breaks_connection(error),
        }
    }

    /// Whether the server said this SQLSTATE.
    pub(crate) fn is_code(&self, state: &str) -> bool {
        match self {
            Self::Driver(Error::Database(error)) => error.code().is_some_and(|code| code == state),
            _ => false,
        }
    }

    /// Stored data that cannot be read as what it should be.
    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Store(StoreError::Corrupt(what.into()))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if breaks_connection(&error) {
            TROUBLE.fetch_add(1, Ordering::Relaxed);
        }
        Self::Driver(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => error,
            Failure::Driver(error) => map(&error),
        }
    }
}

/// Whether a connection that said this is of no use any more.
pub(crate) fn breaks_connection(error: &Error) -> bool {
    match error {
        Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::WorkerCrashed => true,
        Error::Database(error) => error.code().is_some_and(|code| code.starts_with("08") || code.starts_with("57P") || code == "25P03"),
        _ => false,
    }
}

/// The port's word for a driver's error. What it does not say goes to the log, once, here.
fn map(error: &Error) -> StoreError {
    let mapped = match error {
        Error::Database(error) => by_state(error.code().as_deref().unwrap_or_default()),
        Error::ColumnDecode { .. } | Error::Decode(_) | Error::RowNotFound => {
            StoreError::Corrupt("a stored value has another type than its column".to_owned())
        }
        _ => StoreError::Unavailable,
    };
    let state = match error {
        Error::Database(error) => error.code().unwrap_or_default().into_owned(),
        _ => String::new(),
    };
    match &mapped {
        StoreError::Full => tracing::error!(error = %error, "the database has no room"),
        StoreError::Corrupt(_) => tracing::error!(error = %error, sql.state = state, "the database is corrupt"),
        StoreError::Unavailable => tracing::error!(error = %error, sql.state = state, "the database failed"),
        StoreError::Conflict(_) if state.starts_with("22") => {
            tracing::error!(error = %error, sql.state = state, "the database refused a value");
        }
        _ => tracing::debug!(error = %error, sql.state = state, "the database refused"),
    }
    mapped
}

/// What an SQLSTATE is to a port (PostgreSQL, appendix A).
fn by_state(state: &str) -> StoreError {
    match state {
        "40001" | "40P01" | "55P03" => StoreError::Transient,
        "53100" => StoreError::Full,
        "53300" | "53400" => StoreError::Overloaded,
        "XX001" | "XX002" => StoreError::Corrupt("the database reports damaged data".to_owned()),
        "54000" => StoreError::Conflict("larger than the store can hold"),
        // Rules hold such values off; if one comes through, it is the fault of this request and not of those beside it.
        _ if state.starts_with("22") => StoreError::Conflict("a value that the store cannot hold"),
        _ if state.starts_with("23") => StoreError::Conflict("a stored row forbids it"),
        _ => StoreError::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use domain::StoreError;

    use super::by_state;

    #[test]
    fn the_servers_states_become_the_ports_words() {
        for state in ["40001", "40P01", "55P03"] {
            assert_eq!(by_state(state), StoreError::Transient, "{state}");
        }
        for state in ["23505", "23503", "23514"] {
            assert!(matches!(by_state(state), StoreError::Conflict(_)), "{state}");
        }
        for state in ["54000", "22021", "22P05"] {
            assert!(matches!(by_state(state), StoreError::Conflict(_)), "{state}");
        }
        assert_eq!(by_state("53100"), StoreError::Full);
        assert_eq!(by_state("53300"), StoreError::Overloaded);
        for state in ["XX001", "XX002"] {
            assert!(matches!(by_state(state), StoreError::Corrupt(_)), "{state}");
        }
        for state in ["57P01", "08006", "42P01", "25P02", "57014", ""] {
            assert_eq!(by_state(state), StoreError::Unavailable, "{state}");
        }
    }
}
