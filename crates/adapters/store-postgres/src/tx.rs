//! The one transaction type: it implements every port that writes, over a connection of its own.

mod commit;
mod run;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use authz::TenantState;
use domain::{Event, Seq, StoreError, SyncEpoch, TenantId, Timestamp};
use sqlx_core::row::Row as _;
use sqlx_postgres::PgRow;
use tokio::time::Instant;

use crate::failure::{Failure, note_trouble};
use crate::inbox::Held;
use crate::metrics::StoreMetrics;
use crate::pool::{Lease, Pool};
use crate::session::Session;
use crate::sql::sql;
use crate::store::Shared;
use crate::{codec, db};

pub(crate) use run::{run, run_on};

/// How long the begin of a transaction may take; it waits for nothing.
const BEGIN: Duration = Duration::from_secs(5);

/// A connection that does not answer, as the driver tells of one that is gone.
fn silent() -> Failure {
    sqlx_core::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time")).into()
}

/// What is known of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogHead {
    pub(crate) number: i64,
    pub(crate) seq: Seq,
    pub(crate) floor: Seq,
    pub(crate) epoch: SyncEpoch,
    pub(crate) state: TenantState,
}

impl LogHead {
    pub(crate) fn is_active(&self) -> bool {
        self.state == TenantState::Active
    }

    pub(crate) fn from_row(row: &PgRow) -> Result<Self, Failure> {
        Ok(Self {
            number: codec::get(row, 0)?,
            seq: codec::seq(row, 1)?,
            floor: codec::seq(row, 2)?,
            epoch: SyncEpoch::new(codec::uuid(row, 3)?),
            state: codec::word(row, 4, TenantState::parse)?,
        })
    }
}

impl From<LogHead> for sync::Head {
    fn from(head: LogHead) -> Self {
        Self { seq: head.seq, floor: head.floor, epoch: head.epoch }
    }
}

/// Events that a transaction appended to one log, in order.
pub(crate) struct AppendedEvents {
    pub(crate) tenant: TenantId,
    pub(crate) number: i64,
    pub(crate) epoch: SyncEpoch,
    pub(crate) events: Vec<Arc<Event>>,
}

/// What a unit of work sees: a connection in an open transaction (READ COMMITTED), with what is known of the logs it touched.
///
/// Locks are taken in one order: administration of the tenant, the inbox's row, items, the head row last.
pub(crate) struct WriteTx {
    lease: Lease,
    shared: Arc<Shared>,
    /// The transaction's number at the server.
    xid: String,
    began: Instant,
    heads: HashMap<TenantId, LogHead>,
    appended: Vec<AppendedEvents>,
    administered: Vec<TenantId>,
    inboxes: Held,
    /// How many requests share it.
    units: u64,
}

impl WriteTx {
    /// The connection, in its transaction.
    pub(crate) fn connection(&mut self) -> &mut Session {
        &mut self.lease
    }

    /// The store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// What this transaction knows of inboxes.
    pub(crate) fn inboxes(&mut self) -> &mut Held {
        &mut self.inboxes
    }

    pub(crate) fn metrics(&self) -> &StoreMetrics {
        &self.shared.metrics
    }

    /// Waits for whoever else changes the administration of `tenant`, until this transaction ends. What counts rows to decide ("the last owner")
    /// relies on it. Taken before any other lock, once.
    pub(crate) async fn lock_administration(&mut self, tenant: &TenantId) -> Result<(), Failure> {
        if !self.administered.contains(tenant) {
            db::query(sql!("store/lock_administration")).bind(tenant.as_str()).execute(&mut *self.lease).await?;
            self.administered.push(tenant.clone());
        }
        Ok(())
    }

    /// The head row of a tenant's log as this transaction knows it; read without a lock the first time.
    pub(crate) async fn log_head(&mut self, tenant: &TenantId) -> Result<LogHead, Failure> {
        match self.heads.get(tenant) {
            Some(head) => Ok(*head),
            None => self.read_head(sql!("sync/head"), tenant).await,
        }
    }

    /// The head row, locked until this transaction ends. The last lock that a transaction takes.
    pub(crate) async fn lock_head(&mut self, tenant: &TenantId) -> Result<LogHead, Failure> {
        self.read_head(sql!("sync/lock_head"), tenant).await
    }

    /// [`WriteTx::log_head`] for a tenant that must be served.
    pub(crate) async fn active_head(&mut self, tenant: &TenantId) -> Result<LogHead, Failure> {
        let head = self.log_head(tenant).await?;
        if head.is_active() { Ok(head) } else { Err(StoreError::TenantInactive.into()) }
    }

    async fn read_head(&mut self, statement: &'static str, tenant: &TenantId) -> Result<LogHead, Failure> {
        let row = db::query(statement).bind(tenant.as_str()).fetch_optional(&mut *self.lease).await?;
        let head = LogHead::from_row(&row.ok_or(Failure::Store(StoreError::TenantInactive))?)?;
        self.heads.insert(tenant.clone(), head);
        Ok(head)
    }

    /// Changes what is known of a log after its row was changed by a statement.
    pub(crate) fn change_head(&mut self, tenant: &TenantId, change: impl FnOnce(&mut LogHead)) {
        if let Some(head) = self.heads.get_mut(tenant) {
            change(head);
        }
    }

    /// Notes what an append did to a log: `head` is the row as it is now.
    pub(crate) fn note_appended(&mut self, tenant: &TenantId, head: LogHead, events: Vec<Arc<Event>>) {
        self.heads.insert(tenant.clone(), head);
        if events.is_empty() {
            return;
        }
        match self.appended.iter_mut().find(|each| each.tenant == *tenant) {
            Some(known) => known.events.extend(events),
            None => self.appended.push(AppendedEvents { tenant: tenant.clone(), number: head.number, epoch: head.epoch, events }),
        }
    }

    /// How many requests share this transaction, when it is not one.
    pub(crate) fn set_units(&mut self, units: usize) {
        self.units = units as u64;
    }

    pub(crate) async fn begin(shared: &Arc<Shared>, pool: &Pool) -> Result<Self, Failure> {
        let mut lease = pool.lend().await?;
        lease.set_open(true);
        let began = Instant::now();
        let Ok(begun) = tokio::time::timeout(BEGIN, db::script(sql!("store/begin")).fetch_one(&mut *lease)).await else {
            lease.set_unsure();
            note_trouble();
            return Err(silent());
        };
        let row = begun?;
        let xid = row.try_get(0)?;
        let shared = Arc::clone(shared);
        let (heads, appended, administered) = (HashMap::new(), Vec::new(), Vec::new());
        Ok(Self { lease, shared, xid, began, heads, appended, administered, inboxes: Held::default(), units: 1 })
    }
}
