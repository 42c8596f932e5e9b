//! The head rows of logs, as their tenants come and change.

use authz::{Tenant, TenantState};
use domain::{StoreError, TenantId};

use crate::codec;
use crate::db;
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

/// More tenants have no room in the numbers of their inboxes.
const MAX_TENANT_NUMBER: u64 = (1 << 31) - 1;

/// Makes the empty log of a tenant.
pub(crate) async fn create_head(tx: &mut WriteTx, tenant: &Tenant) -> Result<(), Failure> {
    let created = db::query(sql!("sync/create_head"))
        .bind(tenant.id.as_str())
        .bind(tenant.state.as_str())
        .bind(tenant.created_at.as_micros())
        .bind(tenant.epoch.uuid())
        .fetch_one(tx.connection())
        .await?;
    if codec::natural(&created, 0)? > MAX_TENANT_NUMBER {
        return Err(StoreError::Conflict("the store has numbered as many tenants as it can").into());
    }
    Ok(())
}

/// Changes a tenant's state; `false` when there is no such tenant. Waits for appends that run.
pub(crate) async fn set_state(tx: &mut WriteTx, tenant: &TenantId, state: TenantState) -> Result<bool, Failure> {
    let changed = db::query(sql!("sync/set_state")).bind(tenant.as_str()).bind(state.as_str()).execute(tx.connection()).await?;
    tx.change_head(tenant, |head| head.state = state);
    Ok(changed.rows_affected() > 0)
}
