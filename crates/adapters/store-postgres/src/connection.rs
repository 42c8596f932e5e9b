//! How this node connects: address, session settings, and what may be told of the address.

use std::str::FromStr;
use std::time::Duration;

use sqlx_core::Error;
use sqlx_core::connection::{ConnectOptions, Connection as _};
use sqlx_postgres::{PgConnectOptions, PgConnection};

use crate::PostgresOptions;
use crate::failure::OpenError;

/// The schema that holds everything of this store: the database may also be an application's.
pub(crate) const SCHEMA: &str = "doorstep";
/// Statements that each connection keeps prepared; more than this crate has.
const PREPARED: usize = 512;
/// How long a transaction may wait for its next statement. No unit does anything outside of the database: one that waits has lost its node, and holds what others
/// need.
const IDLE: Duration = Duration::from_secs(10);
/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(5);

/// Reads the URL and sets up what every session of this node has in common.
pub(crate) fn connect_options(options: &PostgresOptions) -> Result<PgConnectOptions, OpenError> {
    // What the driver does not know it logs with its value, which may be a password.
    if let Some(unknown) = unknown_parameter(&options.url) {
        return Err(OpenError::Url { reason: format!("the parameter {unknown} is not known") });
    }
    // What the driver says may repeat the URL, and the URL holds a password.
    let parsed = PgConnectOptions::from_str(&options.url)
        .map_err(|_| OpenError::Url { reason: "it is not of the form postgres://user@host:port/name".to_owned() })?;
    let millis = |duration: Duration| duration.as_millis().max(1).to_string();
    let settings = [
        ("search_path", SCHEMA.to_owned()),
        ("statement_timeout", millis(options.statement_timeout)),
        ("lock_timeout", millis(options.lock_timeout)),
        ("idle_in_transaction_session_timeout", millis(IDLE)),
        ("default_transaction_isolation", "read committed".to_owned()),
        // That something is there already is no news.
        ("client_min_messages", "warning".to_owned()),
        ("plan_cache_mode", "force_generic_plan".to_owned()),
        // Short statements, whose costs are sometimes guessed too high: compiling one takes longer than running it.
        ("jit", "off".to_owned()),
    ];
    let connect = parsed.application_name(&format!("doorstep/{}", options.node)).options(settings).statement_cache_capacity(PREPARED);
    Ok(connect.disable_statement_logging())
}

/// Parameters of the URL that the driver knows.
const PARAMETERS: [&str; 18] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// The name of a parameter that the driver does not know.
fn unknown_parameter(url: &str) -> Option<&str> {
    let (_, query) = url.split_once('?')?;
    let mut names = query.split('&').filter_map(|pair| pair.split('=').next()).filter(|name| !name.is_empty());
    names.find(|name| !PARAMETERS.contains(name) && !name.starts_with("options["))
}

/// Host and name of the database, without user and password.
pub(crate) fn described(options: &PgConnectOptions) -> String {
    let name = options.get_database().unwrap_or_else(|| options.get_username());
    match options.get_socket() {
        Some(socket) => format!("{}:{}/{name}", socket.display(), options.get_port()),
        None => format!("{}:{}/{name}", options.get_host(), options.get_port()),
    }
}

/// Opens one connection.
pub(crate) async fn open(options: &PgConnectOptions) -> Result<PgConnection, Error> {
    match tokio::time::timeout(CONNECT, PgConnection::connect_with(options)).await {
        Ok(connected) => connected,
        Err(_) => Err(Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "no connection in time"))),
    }
}

#[cfg(test)]
mod tests {
    use super::connect_options;
    use crate::PostgresOptions;

    #[test]
    fn a_parameter_that_is_not_known_is_refused_by_its_name_alone() {
        for url in ["postgres://h/d?sslpassword=hunter2", "postgres://h/d?sslmode=disable&pasword=hunter2"] {
            let refused = connect_options(&PostgresOptions::new(url)).unwrap_err().to_string();
            assert!(refused.contains("password") || refused.contains("pasword"), "{refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
        }
        assert!(connect_options(&PostgresOptions::new("postgres://h/d?sslmode=disable&application_name=x")).is_ok());
    }
}
