//! The ports of `sync`.

use async_trait::async_trait;
use domain::{Appended, Publication, StoreError, SyncEpoch, TenantId, Timestamp};
use sync::{Append, AppendAnswer, Head, LogStore, LogWrite, Page, PageRange, Retired};

use super::{appender, page, retention};
use crate::failure::Failure;
use crate::sql::sql;
use crate::store::PostgresStore;
use crate::tx::{LogHead, WriteTx};
use crate::{codec, db};

#[async_trait]
impl LogWrite for WriteTx {
    async fn append(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Appended>, StoreError> {
        Ok(WriteTx::append(self, tenant, publications).await?)
    }

    async fn log_head(&mut self, tenant: &TenantId) -> Result<Head, StoreError> {
        Ok(WriteTx::log_head(self, tenant).await?.into())
    }
}

#[async_trait]
impl Append for PostgresStore {
    async fn append(&self, tenant: &TenantId, publications: Vec<Publication>) -> Result<AppendAnswer, StoreError> {
        appender::append(&self.shared, tenant, publications).await
    }
}

#[async_trait]
impl LogStore for PostgresStore {
    async fn head(&self, tenant: &TenantId) -> Result<Option<Head>, StoreError> {
        let row = db::query(sql!("sync/head")).bind(tenant.as_str()).fetch_optional(&mut *self.reader().await?).await;
        let head = row.map_err(Failure::from)?.map(|row| LogHead::from_row(&row)).transpose()?;
        Ok(head.map(Head::from))
    }

    async fn heads(&self, tenants: &[TenantId]) -> Result<Vec<(TenantId, Head)>, StoreError> {
        let wanted: Vec<&str> = tenants.iter().map(TenantId::as_str).collect();
        let rows = db::query(sql!("sync/heads")).bind(&wanted).fetch_all(&mut *self.reader().await?).await.map_err(Failure::from)?;
        let heads = rows.iter().map(|row| {
            let epoch = SyncEpoch::new(codec::uuid(row, 3)?);
            Ok((codec::text(row, 0)?, Head { seq: codec::seq(row, 1)?, floor: codec::seq(row, 2)?, epoch }))
        });
        heads.collect::<Result<_, Failure>>().map_err(StoreError::from)
    }

    async fn page(&self, tenant: &TenantId, range: PageRange) -> Result<Page, StoreError> {
        Ok(page::page(&mut *self.reader().await?, tenant, range).await?)
    }

    async fn raise_floor(&self, tenant: &TenantId, older_than: Timestamp, limit: usize) -> Result<Retired, StoreError> {
        let (tenant, limit) = (tenant.clone(), limit.max(1));
        self.write("raise_floor", move |tx| {
            let tenant = tenant.clone();
            Box::pin(async move { retention::raise_floor(tx, &tenant, older_than, limit).await })
        })
        .await
    }

    async fn sweep(&self, tenant: &TenantId, raised_before: Timestamp, limit: usize) -> Result<Retired, StoreError> {
        let (tenant, limit) = (tenant.clone(), limit.max(1));
        let sweep = self.write("sweep", move |tx| {
            let tenant = tenant.clone();
            Box::pin(async move { retention::sweep(tx, &tenant, raised_before, limit).await })
        });
        let (retired, has_left) = sweep.await?;
        if has_left {
            // What is not dropped now goes with the next partition that is left.
            let shared = &self.shared;
            let dropped = shared.partitions.drop_idle(&shared.connect, shared.clock.now(), shared.options.patience()).await;
            if let Err(failure) = dropped {
                tracing::warn!(error = %StoreError::from(failure), "partitions of the log could not be dropped");
            }
        }
        Ok(retired)
    }

    async fn expire_keys(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        retention::expire_keys(self, now, limit).await
    }
}
