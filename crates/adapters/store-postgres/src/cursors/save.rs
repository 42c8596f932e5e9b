//! Saving and verifying many cursors with one statement.

use std::collections::HashMap;
use std::sync::Arc;

use agents::{ConsumerKey, Save, SaveOutcome};
use domain::{Seq, StoreError, Timestamp};
use uuid::Uuid;

use super::rows::holder_uuid;
use crate::codec::{self, from_seq};
use crate::db::{self, Session};
use crate::failure::Failure;
use crate::sql::sql;
use crate::store::PostgresStore;

impl PostgresStore {
    /// Verifications alone read; a batch with an acknowledgement in it is a transaction.
    pub(super) async fn save_cursors(&self, saves: &[Save]) -> Result<Vec<SaveOutcome>, StoreError> {
        if saves.is_empty() {
            return Ok(Vec::new());
        }
        if saves.iter().all(|save| save.acked.is_none()) {
            let now = self.clock().now();
            let mut connection = self.reader().await?;
            return Ok(save(&mut connection, saves, now).await?);
        }
        let saves: Arc<[Save]> = saves.into();
        self.write("save_cursors", move |tx| {
            let saves = Arc::clone(&saves);
            Box::pin(async move {
                let now = tx.now();
                save(tx.connection(), &saves, now).await
            })
        })
        .await
    }
}

/// Saves what is still held, and answers the outcomes in the order of `saves`.
async fn save(connection: &mut Session, saves: &[Save], now: Timestamp) -> Result<Vec<SaveOutcome>, Failure> {
    let rows = db::query(sql!("agents/save"))
        .bind(saves.iter().map(|save| save.key.tenant.as_str()).collect::<Vec<_>>())
        .bind(saves.iter().map(|save| save.key.agent.as_str()).collect::<Vec<_>>())
        .bind(saves.iter().map(|save| save.key.name.as_str()).collect::<Vec<_>>())
        .bind(saves.iter().map(|save| holder_uuid(save.holder)).collect::<Vec<_>>())
        .bind(saves.iter().map(|save| save.acked.map(from_seq)).collect::<Vec<_>>())
        .bind(now.as_micros())
        .fetch_all(connection)
        .await?;
    let mut stored: HashMap<(ConsumerKey, Uuid), Seq> = HashMap::with_capacity(rows.len());
    for row in &rows {
        let key = ConsumerKey { tenant: codec::text(row, 0)?, agent: codec::text(row, 1)?, name: codec::text(row, 2)? };
        stored.insert((key, codec::uuid(row, 3)?), codec::seq(row, 4)?);
    }
    let outcome = |save: &Save| stored.get(&(save.key.clone(), holder_uuid(save.holder))).copied();
    Ok(saves.iter().map(|save| outcome(save).map_or(SaveOutcome::Replaced, SaveOutcome::Held)).collect())
}
