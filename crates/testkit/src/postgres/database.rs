//! A database of its own for a test, copied from a template that was prepared once.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;

use sqlx_core::connection::Connection as _;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_postgres::{PgConnectOptions, PgConnection};

use super::cluster::Cluster;

/// A database; dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    /// How to connect to it as the superuser.
    pub url: String,
    name: String,
    admin: String,
}

impl Cluster {
    /// An empty database.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn empty_database(&self) -> TestDatabase {
        self.copy_of(connect(&self.url_of("postgres")).await, "template0").await
    }

    /// A database as `prepare` makes one from an empty one. It is prepared once per cluster and `template` (a name that changes with what it does),
    /// also when many processes ask at once, and copied for each caller.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn database(&self, template: &str, prepare: impl AsyncFnOnce(&str)) -> TestDatabase {
        let name = format!("doorstep_template_{template}");
        let mut admin = connect(&self.url_of("postgres")).await;
        // One at a time: whoever comes second finds it made.
        run(&mut admin, format!("SELECT pg_advisory_lock(hashtext('{name}'))")).await;
        let is_there = sqlx_core::query_scalar::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)");
        let is_there: bool = is_there.bind(&name).fetch_one(&mut admin).await.expect("a look at the databases");
        if !is_there {
            let unfinished = format!("{name}_unfinished");
            run(&mut admin, format!("DROP DATABASE IF EXISTS {unfinished} WITH (FORCE)")).await;
            run(&mut admin, format!("CREATE DATABASE {unfinished} TEMPLATE template0")).await;
            prepare(&self.url_of(&unfinished)).await;
            wait_until_unused(&mut admin, &unfinished).await;
            run(&mut admin, format!("ALTER DATABASE {unfinished} RENAME TO {name}")).await;
        }
        run(&mut admin, "SELECT pg_advisory_unlock_all()".to_owned()).await;
        self.copy_of(admin, &name).await
    }

    async fn copy_of(&self, mut admin: PgConnection, template: &str) -> TestDatabase {
        let random = RandomState::new().build_hasher().finish();
        let name = format!("doorstep_test_{}_{random:016x}", std::process::id());
        run(&mut admin, format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")).await;
        let _ = admin.close().await;
        TestDatabase { url: self.url_of(&name), name, admin: self.url_of("postgres") }
    }
}

impl TestDatabase {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A connection to it, past the store, with the store's schema in sight.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn connection(&self) -> PgConnection {
        let mut connection = connect(&self.url).await;
        run(&mut connection, "SET search_path = doorstep, public".to_owned()).await;
        connection
    }

    /// A connection to the database of the superuser.
    ///
    /// # Panics
    /// When the server refuses.
    pub async fn admin(&self) -> PgConnection {
        connect(&self.admin).await
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (admin, name) = (self.admin.clone(), self.name.clone());
        // A thread of its own: a drop may happen within a runtime, and after one.
        let remove = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let options = PgConnectOptions::from_str(&admin).expect("a URL");
                // A server that the test has ended takes its databases along.
                let Ok(mut connection) = PgConnection::connect_with(&options).await else { return };
                // With sessions still there, the server would look again only after a tenth of a second.
                end_sessions(&mut connection, &name).await;
                let statement = AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
                let _ = sqlx_core::raw_sql::raw_sql(statement).execute(&mut connection).await;
            });
        };
        if let Ok(thread) = std::thread::Builder::new().name("drop-database".to_owned()).spawn(remove) {
            let _ = thread.join();
        }
    }
}

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("a connection to the test's server")
}

async fn run(connection: &mut PgConnection, statement: String) {
    if let Err(error) = sqlx_core::raw_sql::raw_sql(AssertSqlSafe(statement.clone())).execute(connection).await {
        panic!("{statement}: {error}");
    }
}

/// Cuts the sessions of a database and waits a little until they are gone.
async fn end_sessions(admin: &mut PgConnection, name: &str) {
    for _ in 0..50 {
        let ended =
            sqlx_core::query_scalar::query_scalar("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1");
        let ended: Result<i64, _> = ended.bind(name).fetch_one(&mut *admin).await;
        if !matches!(ended, Ok(1..)) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

/// A database can be renamed and copied while nobody is connected to it; sessions end a moment after they were closed.
async fn wait_until_unused(admin: &mut PgConnection, name: &str) {
    for _ in 0..500 {
        let sessions = sqlx_core::query_scalar::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE datname = $1");
        let sessions: i64 = sessions.bind(name).fetch_one(&mut *admin).await.expect("a look at the sessions");
        if sessions == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("somebody stays connected to {name}");
}
