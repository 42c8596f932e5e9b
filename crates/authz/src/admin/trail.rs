//! The audit log: reading it, and noting operations that are done elsewhere.

use super::listing::{Listing, probe};
use super::scene::NOTHING;
use super::{Admin, AdminError, unit};
use crate::{Action, AuditEntry, AuditFilter, Caller, Keyset, Target};

impl Admin {
    /// Audit entries, newest first.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn audit(&self, caller: &Caller, filter: &AuditFilter, keyset: &Keyset) -> Result<Listing<AuditEntry>, AdminError> {
        self.authorize(caller, Action::AuditRead, Target::Tenant).await?;
        let probe = probe(keyset, self.settings().list_max);
        let items = self.store.audit(&caller.tenant, filter, &probe).await?;
        Ok(Listing::of(&probe, items, |entry| entry.id.to_string()))
    }

    /// Authorises an operation on the instance that is done elsewhere (a backup) and notes that it was asked for.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn operate(&self, caller: &Caller, action: Action) -> Result<(), AdminError> {
        self.authorize(caller, action, Target::Instance).await?;
        let scene = self.scene(caller);
        let work = unit(move |tx| {
            let scene = scene.clone();
            Box::pin(async move {
                scene.audit(tx, action, Target::Instance.to_string(), NOTHING, NOTHING).await?;
                Ok(((), Vec::new()))
            })
        });
        self.change(caller, (action, Target::Instance), work).await
    }
}
