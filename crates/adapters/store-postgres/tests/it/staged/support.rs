//! A store with a tenant, a channel and agents; an application's role and sessions; movers.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use authz::PrincipalKind;
use domain::{ChannelRef, Event};
use doorstep_store_postgres::PostgresStore;
use intake::{MoveTx, Mover, MoverParts, ScheduleBell, Settings, Staged, StagedHint, StagedStore};
use sqlx_core::connection::ConnectOptions;
use sqlx_core::executor::Executor;
use sqlx_core::row::Row;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_postgres::{PgConnectOptions, PgConnection};
use sync::LogStore;
use testkit::ManualClock;
use testkit::conformance::support::{Fixture, START, range};
use testkit::postgres::TestDatabase;
use uuid::Uuid;

use crate::conformance::Opened;

/// The tenant `acme` with the channel `s/c` and the agents `alpha` and `beta`, and a role that may publish to it.
pub(crate) struct World {
    pub(crate) fixture: Fixture,
    pub(crate) store: Arc<PostgresStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) role: String,
    pub(crate) database: Arc<TestDatabase>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let opened = Opened::in_new_database(clock.clone()).await;
        let (store, database) = (opened.store.clone(), opened.database.clone());
        let fixture = Fixture::over(Box::new(opened), clock.clone());
        for tenant in ["acme", "other"] {
            fixture.create_tenant(tenant).await;
        }
        for agent in ["alpha", "beta"] {
            fixture.create_principal(agent, PrincipalKind::Agent).await;
        }
        let role = format!("app_{}", database.name());
        let world = Self { fixture, store, clock, role, database };
        world.run("INSERT INTO spaces VALUES ('acme', 's', 0)").await;
        world.run("INSERT INTO channels VALUES ('acme', 's', 'c', 0)").await;
        world.run("CREATE TABLE public.orders (id INTEGER)").await;
        let role = &world.role;
        world.run(&format!("CREATE ROLE {role} LOGIN")).await;
        world.run(&format!("GRANT ALL ON public.orders TO {role}")).await;
        world.run(&format!("GRANT EXECUTE ON FUNCTION public.doorstep_publish(TEXT, JSONB) TO {role}")).await;
        world.run(&format!("INSERT INTO public.doorstep_publishers VALUES ('{role}', 'acme')")).await;
        world
    }

    /// Runs a statement as the superuser.
    pub(crate) async fn run(&self, statement: &str) {
        run(&mut self.database.connection().await, statement).await.unwrap();
    }

    /// Another node over the same database.
    pub(crate) async fn node(&self) -> Arc<PostgresStore> {
        Opened::over(self.database.clone(), self.clock.clone()).await.store
    }

    /// A session of the application.
    pub(crate) async fn app(&self) -> PgConnection {
        session(&self.database, &self.role).await
    }

    pub(crate) fn mover(&self) -> Mover {
        mover(&self.store, &self.clock, Settings::default())
    }

    /// Moves what waits, once.
    pub(crate) async fn move_all(&self) {
        self.mover().move_all().await.unwrap();
    }

    /// The ids of the log, in order.
    pub(crate) async fn log(&self) -> Vec<Uuid> {
        self.events().await.iter().map(|event| event.id.uuid()).collect()
    }

    pub(crate) async fn events(&self) -> Vec<Arc<Event>> {
        self.store.page(&self.fixture.tenant, range(0)).await.unwrap().events
    }

    /// What is staged.
    pub(crate) async fn staged(&self) -> Vec<Staged> {
        self.store.staged(&self.fixture.tenant, None, None, 1_000).await.unwrap()
    }

    /// Takes the channel away.
    pub(crate) async fn forget_channel(&self) {
        self.run("DELETE FROM channels").await;
    }
}

pub(crate) fn mover(store: &Arc<PostgresStore>, clock: &Arc<ManualClock>, settings: Settings) -> Mover {
    let staged: Arc<dyn StagedStore> = store.clone();
    let transactions: Arc<dyn domain::Transactions<dyn MoveTx>> = store.clone();
    Mover::new(MoverParts {
        staged,
        transactions,
        clock: clock.clone(),
        hint: StagedHint::default(),
        bell: ScheduleBell::default(),
        metrics: Arc::default(),
        settings: Settings { staged_interval: Duration::from_millis(5), ..settings },
    })
}

/// A session of a role.
pub(crate) async fn session(database: &TestDatabase, role: &str) -> PgConnection {
    PgConnectOptions::from_str(&database.url).unwrap().username(role).connect().await.unwrap()
}

pub(crate) async fn run(session: &mut PgConnection, statement: &str) -> Result<(), sqlx_core::Error> {
    session.execute(AssertSqlSafe(statement.to_owned())).await.map(drop)
}

/// Calls the function; answers the id, or the SQLSTATE and what was said.
pub(crate) async fn publish(session: &mut PgConnection, tenant: &str, event: &str) -> Result<Uuid, (String, String)> {
    let statement = sqlx_core::query::query("SELECT public.doorstep_publish($1, $2::TEXT::JSONB)");
    match statement.bind(tenant).bind(event).fetch_one(session).await {
        Ok(row) => Ok(row.get(0)),
        Err(sqlx_core::Error::Database(error)) => Err((error.code().unwrap_or_default().into_owned(), error.message().to_owned())),
        Err(error) => panic!("{error}"),
    }
}

/// An event to `s/c`.
pub(crate) fn event(text: &str) -> String {
    format!(r#"{{"type": "order.placed", "channel": "s/c", "payload": {{"text": "{text}"}}}}"#)
}

/// The same with a deduplication key.
pub(crate) fn keyed(key: &str, text: &str) -> String {
    format!(r#"{{"type": "order.placed", "channel": "s/c", "deduplication_key": "{key}", "payload": {{"text": "{text}"}}}}"#)
}

pub(crate) fn channel() -> ChannelRef {
    ChannelRef::parse("s/c").unwrap()
}
