//! What became of a commit whose answer was lost. Asked on a connection that nobody else uses.
//!
//! The server remembers the fate of every recent transaction by its number. After a crash it may give a number that left no trace to another transaction,
//! so "committed" is believed only from a session that is older than the transaction in question, for then there was no crash; otherwise
//! the log itself is asked for what the transaction appended. "Not committed" is always the truth once the transaction is not running any more.

use std::time::Duration;

use domain::StoreError;
use sqlx_core::connection::Connection as _;
use sqlx_postgres::PgConnection;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::sql::sql;
use crate::store::Shared;
use crate::tx::AppendedEvents;
use crate::{codec, connection, db};

/// How long the outcome is asked for, while the server is away or the transaction still runs.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long one question may take.
const ANSWER: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    RolledBack,
    Unknown,
}

/// A session that was there before.
struct Witness {
    connection: PgConnection,
    since: Instant,
    backend: i32,
}

/// Finds out. One question at a time.
#[derive(Default)]
pub(crate) struct Doubt {
    witness: Mutex<Option<Witness>>,
}

/// What the server says of a transaction's number.
enum Status {
    Committed { is_certain: bool },
    RolledBack,
    Running,
    Forgotten,
}

impl Doubt {
    /// Takes the session that will testify. Without one nothing is certain of transactions that begin before the first question.
    pub(crate) async fn prepare(&self, shared: &Shared) -> Result<(), Failure> {
        let mut witness = self.witness.lock().await;
        if witness.is_none() {
            *witness = Some(Witness::call(shared).await?);
        }
        Ok(())
    }

    /// Lets the witness go.
    pub(crate) async fn close(&self) {
        if let Some(witness) = self.witness.lock().await.take() {
            let _ = tokio::time::timeout(ANSWER, witness.connection.close()).await;
        }
    }

    /// What became of transaction `xid`, which began at `began` and appended `appended`.
    pub(crate) async fn outcome(&self, shared: &Shared, xid: &str, began: Instant, appended: &[AppendedEvents]) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            // A witness that does not answer is left, and another one called.
            let asked = tokio::time::timeout(ANSWER, self.ask(shared, xid, began)).await;
            match asked.unwrap_or_else(|_| Err(Failure::Store(StoreError::Unavailable))) {
                Ok(Status::RolledBack) => return Outcome::RolledBack,
                Ok(Status::Committed { is_certain: true }) => return Outcome::Committed,
                Ok(Status::Committed { is_certain: false }) if !appended.is_empty() => match self.log_holds(shared, appended).await {
                    Ok(true) => return Outcome::Committed,
                    Ok(false) => return Outcome::RolledBack,
                    Err(_) => {}
                },
                Ok(Status::Committed { .. } | Status::Forgotten) => return Outcome::Unknown,
                Ok(Status::Running) | Err(_) => {}
            }
            tokio::time::sleep(PAUSE).await;
        }
        Outcome::Unknown
    }

    async fn ask(&self, shared: &Shared, xid: &str, began: Instant) -> Result<Status, Failure> {
        let mut slot = self.witness.lock().await;
        let mut witness = match slot.take() {
            Some(witness) => witness,
            None => Witness::call(shared).await?,
        };
        let status = witness.status(xid, began).await;
        if !matches!(&status, Err(failure) if failure.is_connection()) {
            *slot = Some(witness);
        }
        status
    }

    /// Whether every appended event is where the transaction put it.
    async fn log_holds(&self, shared: &Shared, appended: &[AppendedEvents]) -> Result<bool, Failure> {
        let mut lease = shared.pool.lend_to_read().await?;
        for each in appended {
            let seqs: Vec<i64> = each.events.iter().map(|event| codec::from_seq(event.seq)).collect();
            let ids: Vec<uuid::Uuid> = each.events.iter().map(|event| event.id.uuid()).collect();
            let found: i64 = db::scalar(sql!("sync/holds")).bind(each.number).bind(&seqs).bind(&ids).fetch_one(&mut *lease).await?;
            if found != codec::from_count(each.events.len()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Witness {
    async fn call(shared: &Shared) -> Result<Self, Failure> {
        let mut connection = connection::open(&shared.connect).await?;
        let backend = db::scalar(sql!("store/backend")).fetch_one(&mut connection).await?;
        Ok(Self { connection, since: Instant::now(), backend })
    }

    async fn status(&mut self, xid: &str, began: Instant) -> Result<Status, Failure> {
        let asked = db::query(sql!("store/outcome")).bind(xid).fetch_one(&mut self.connection).await;
        let row = match asked.map_err(Failure::from) {
            Ok(row) => row,
            // "transaction ID is in the future": the server that gave it has crashed, and nothing of it was kept.
            Err(failure) if failure.is_code("22023") => return Ok(Status::RolledBack),
            Err(failure) => return Err(failure),
        };
        // A pooler may have put another session behind this connection.
        let is_the_same = codec::get::<i32>(&row, 1)? == self.backend;
        Ok(match codec::get::<Option<&str>>(&row, 0)? {
            Some("committed") => Status::Committed { is_certain: is_the_same && self.since < began },
            Some("aborted") => Status::RolledBack,
            Some(_) => Status::Running,
            None => Status::Forgotten,
        })
    }
}
