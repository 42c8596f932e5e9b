//! The events by which every process learns of a change: appended with the same row code as every other.

use async_trait::async_trait;
use authz::AccessLogWrite;
use domain::{Appended, Publication, Seq, StoreError, TenantId};

use crate::tx::WriteTx;

#[async_trait]
impl AccessLogWrite for WriteTx {
    async fn append_access(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Appended>, StoreError> {
        Ok(WriteTx::append(self, tenant, publications).await?)
    }

    async fn head(&mut self, tenant: &TenantId) -> Result<Seq, StoreError> {
        Ok(WriteTx::log_head(self, tenant).await?.seq)
    }
}
