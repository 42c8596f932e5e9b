//! The way back for whoever lost the last token: who holds the store's files may have a new one.

use domain::{TenantId, run_tx};

use super::scene::Scene;
use super::tokens::{add_token, token};
use super::{Admin, AdminError, unit};
use crate::{Keyset, Principal, Role, Scopes, TokenSecret};

/// Principals looked at in one step for finding an owner.
const PAGE: usize = 500;

impl Admin {
    /// Makes a new token for an owner of `tenant`, without a caller: for a process that has the store to itself and whose user could change
    /// every row of it anyway. Audited and announced like any other token. Answers whose it is.
    ///
    /// `keep` is handed the token before the store has it, as in [`Admin::bootstrap`].
    ///
    /// # Errors
    /// What `keep` answers; [`AdminError::NotFound`] when the tenant has no enabled owner; the store's.
    pub async fn recover_owner<E: From<AdminError>>(
        &self,
        tenant: &TenantId,
        keep: impl FnOnce(&TokenSecret) -> Result<(), E>,
    ) -> Result<Principal, E> {
        let owner = self.any_owner(tenant).await?.ok_or(AdminError::NotFound)?;
        let scene = Scene { tenant: tenant.clone(), actor: None, now: self.clock.now(), ids: std::sync::Arc::clone(&self.ids) };
        let issued = token(&scene, &owner, Scopes::of_kind(owner.kind), None)?;
        keep(&issued.secret)?;
        let work = unit(move |tx| {
            let (scene, record) = (scene.clone(), issued.record.clone());
            Box::pin(async move {
                let changes = add_token(tx, &scene, &record).await?;
                Ok::<_, AdminError>(scene.announce(tx, &changes).await?)
            })
        });
        run_tx(&*self.transactions, "owner.recover", work).await?;
        Ok(owner)
    }

    async fn any_owner(&self, tenant: &TenantId) -> Result<Option<Principal>, AdminError> {
        let mut after = None;
        loop {
            let page = self.store.principals(tenant, &Keyset { after, limit: PAGE }).await?;
            let Some(last) = page.last() else { return Ok(None) };
            after = Some(last.id.to_string());
            if let Some(owner) = page.into_iter().find(|principal| principal.enabled && principal.role == Role::Owner) {
                return Ok(Some(owner));
            }
        }
    }
}
