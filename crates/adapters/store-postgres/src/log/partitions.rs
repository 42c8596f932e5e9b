//! The partitions of the log: made before they are needed, dropped when nobody's rows in them count any more.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use domain::{StoreError, Timestamp};
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_postgres::PgConnectOptions;
use tokio::sync::Mutex;

use super::append::slot_of;
use crate::failure::Failure;
use crate::session::Session;
use crate::sql::sql;
use crate::{codec, connection, db};

/// How long making a partition may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The partitions that this process knows to be there.
#[derive(Default)]
pub(crate) struct Partitions {
    known: RwLock<BTreeSet<i32>>,
    /// One at a time makes or drops some. Appends do not wait for it: dropping may have to wait for whoever still reads.
    changing: Mutex<()>,
}

impl Partitions {
    /// Sees to it that what is appended at `now` has its partition, and what is appended a day later too. On a connection of its own: a transaction that
    /// is under way must not wait for another.
    pub(crate) async fn ensure(&self, connect: &PgConnectOptions, now: Timestamp) -> Result<(), Failure> {
        let slot = slot_of(now);
        if self.is_known(slot) {
            return Ok(());
        }
        let _alone = self.changing.lock().await;
        if self.is_known(slot) {
            return Ok(());
        }
        let slots = [slot, slot.saturating_add(1)];
        let mut connection = connection::open(connect).await?;
        let make = db::query(sql!("sync/make_partition")).bind(&slots[..]).execute(&mut connection);
        // A connection that has gone silent must not keep every log waiting.
        tokio::time::timeout(PATIENCE, make).await.map_err(|_| Failure::from(StoreError::Unavailable))??;
        self.known.write().unwrap_or_else(PoisonError::into_inner).extend(slots);
        Ok(())
    }

    /// What was made may be gone: a failover can lose it.
    pub(crate) fn forget(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn is_known(&self, slot: i32) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).contains(&slot)
    }

    /// Drops the partitions of days before yesterday in which no tenant has rows that count. Appends and reads go on meanwhile. A statement may take
    /// `patience`: whoever needs a new partition waits for it.
    pub(crate) async fn drop_idle(&self, connect: &PgConnectOptions, now: Timestamp, patience: Duration) -> Result<usize, Failure> {
        let _alone = self.changing.lock().await;
        let mut connection = Session::new(connection::open(connect).await?);
        connection.bound(Some(patience));
        let rows = db::query(sql!("sync/idle_partitions")).bind(slot_of(now).saturating_sub(1)).fetch_all(&mut connection).await?;
        for row in &rows {
            let slot: i32 = codec::get(row, 0)?;
            let (is_attached, is_half) = (codec::get::<bool>(row, 1)?, codec::get::<bool>(row, 2)?);
            self.known.write().unwrap_or_else(PoisonError::into_inner).remove(&slot);
            if is_attached {
                let text = if is_half { sql!("sync/finish_detaching") } else { sql!("sync/detach_partition") };
                alter(&mut connection, text, slot).await?;
            }
            alter(&mut connection, sql!("sync/drop_partition"), slot).await?;
            tracing::info!(log.slot = slot, "a partition of the log was dropped");
        }
        Ok(rows.len())
    }
}

/// A statement about one partition. Its name is made of a number alone.
async fn alter(connection: &mut Session, text: &str, slot: i32) -> Result<(), Failure> {
    let text = AssertSqlSafe(text.replace("{slot}", &slot.to_string()));
    sqlx_core::raw_sql::raw_sql(text).execute(connection).await?;
    Ok(())
}
