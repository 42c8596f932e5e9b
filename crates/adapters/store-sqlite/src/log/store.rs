//! The reading port of `sync`.

use async_trait::async_trait;
use domain::{StoreError, SyncEpoch, TenantId, Timestamp};
use sync::{Head, LogStore, Page, PageRange, Retired};

use crate::codec;
use crate::identity::collect;
use crate::sql::sql;
use crate::store::SqliteStore;
use crate::tx::read_head;

#[async_trait]
impl LogStore for SqliteStore {
    async fn head(&self, tenant: &TenantId) -> Result<Option<Head>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |tx| Ok(read_head(tx.connection(), &tenant)?.map(Head::from))).await
    }

    async fn heads(&self, tenants: &[TenantId]) -> Result<Vec<(TenantId, Head)>, StoreError> {
        let wanted = serde_json::to_string(tenants).map_err(|_| StoreError::Unavailable)?;
        self.read(move |tx| {
            let mut statement = tx.prepare(sql!("sync/heads"))?;
            collect(statement.query([&wanted])?, |row| {
                let epoch = SyncEpoch::new(codec::uuid(row, 3)?);
                Ok((codec::text(row, 0)?, Head { seq: codec::seq(row, 1)?, floor: codec::seq(row, 2)?, epoch }))
            })
        })
        .await
    }

    async fn page(&self, tenant: &TenantId, range: PageRange) -> Result<Page, StoreError> {
        let tenant = tenant.clone();
        self.read(move |tx| {
            let (connection, interner) = tx.parts();
            super::page(connection, interner, &tenant, range)
        })
        .await
    }

    async fn raise_floor(&self, tenant: &TenantId, older_than: Timestamp, limit: usize) -> Result<Retired, StoreError> {
        let tenant = tenant.clone();
        self.write("raise_floor", move |tx| super::raise_floor(tx, &tenant, older_than, limit.max(1))).await
    }

    async fn sweep(&self, tenant: &TenantId, raised_before: Timestamp, limit: usize) -> Result<Retired, StoreError> {
        let tenant = tenant.clone();
        self.write("sweep", move |tx| super::sweep(tx, &tenant, raised_before, limit.max(1))).await
    }

    async fn expire_keys(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.write("expire_keys", move |tx| super::expire_keys(tx, now, limit)).await
    }
}
