//! Tenants, for the operator of the instance.

use domain::TenantId;
use protocol::Page;
use protocol::admin::{NewTenant, Tenant, TenantChange, TenantCreated};
use reqwest::Method;

use super::PageRequest;
use super::list::page;
use crate::{Client, ClientError};

impl Client {
    /// Creates a tenant with its first owner, whose token is in the answer and nowhere else.
    ///
    /// # Errors
    /// [`ClientError`]; `already_exists`.
    pub async fn create_tenant(&self, tenant: &NewTenant) -> Result<TenantCreated, ClientError> {
        self.transport.answer(self.creating(&["v1", "tenants"]).json(tenant)?).await
    }

    /// Every tenant.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn tenants(&self, request: &PageRequest) -> Result<Page<Tenant>, ClientError> {
        page(&self.transport, &["v1", "tenants"], request).await
    }

    /// Suspends a tenant or serves it again.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn change_tenant(&self, id: &TenantId, change: &TenantChange) -> Result<Tenant, ClientError> {
        self.transport.answer(self.transport.call(Method::PATCH, &["v1", "tenants", id.as_str()]).json(change)?).await
    }
}
