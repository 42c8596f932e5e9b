//! The administration use cases: each authorises, validates, writes in one transaction, audits what was before and after, and leaves the
//! events in the log by which every process learns of the change.

mod error;
mod grants;
mod idempotency;
mod listing;
mod principals;
mod recovery;
mod scene;
mod spaces;
mod tenants;
mod tokens;
mod trail;

use std::sync::Arc;

use domain::{BoxFuture, Clock, IdGenerator, PrincipalId, TenantId, Transactions, run_tx};

pub use error::AdminError;
pub use grants::NewGrant;
pub use idempotency::{AnswerOf, IdempotencyKey, Idempotent, Made, Outcome};
pub use listing::Listing;
pub use principals::{Me, NewPrincipal, PrincipalPatch};
pub use tenants::{CreatedTenant, NewTenant};
pub use tokens::{IssuedToken, NewToken};

use crate::{AccessChange, Action, AdminTx, Authorizer, Caller, Denied, DeniedReason, IdentityStore, Principal, Role, Settings, Target};
use scene::Scene;

/// What a unit of work answers: its result, and the changes that this process's memory must learn of before the caller is answered.
type Done<T> = Result<(T, Vec<AccessChange>), AdminError>;

/// The transaction of a use case.
type Tx = dyn AdminTx;

/// Lets a closure be recognised as a unit of work.
fn unit<T, F>(work: F) -> F
where
    F: for<'t> Fn(&'t mut Tx) -> BoxFuture<'t, T> + Clone + Send + Sync + 'static,
{
    work
}

/// The administration of tenants, principals, tokens, spaces, channels and grants, and the audit log.
#[derive(Clone)]
pub struct Admin {
    authorizer: Arc<Authorizer>,
    store: Arc<dyn IdentityStore>,
    transactions: Arc<dyn Transactions<dyn AdminTx>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGenerator>,
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admin").finish_non_exhaustive()
    }
}

impl Admin {
    /// The use cases over these ports; settings are the authorizer's.
    pub fn new(
        authorizer: Arc<Authorizer>,
        store: Arc<dyn IdentityStore>,
        transactions: Arc<dyn Transactions<dyn AdminTx>>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGenerator>,
    ) -> Self {
        Self { authorizer, store, transactions, clock, ids }
    }

    fn settings(&self) -> &Settings {
        self.authorizer.settings()
    }

    /// The circumstances of a change that `caller` makes to its tenant.
    fn scene(&self, caller: &Caller) -> Scene {
        Scene { tenant: caller.tenant.clone(), actor: Some(caller.principal.clone()), now: self.clock.now(), ids: Arc::clone(&self.ids) }
    }

    async fn authorize(&self, caller: &Caller, action: Action, target: Target<'_>) -> Result<(), AdminError> {
        Ok(self.authorizer.authorize(caller, action, target).await?)
    }

    /// Runs a unit of work; afterwards, and before its answer is handed out, this process's memory learns of the changes. A refusal that
    /// only the transaction could find is audited like any other.
    async fn change<T, F>(&self, caller: &Caller, tried: (Action, Target<'_>), mut work: F) -> Result<T, AdminError>
    where
        T: Send + 'static,
        F: for<'t> FnMut(&'t mut Tx) -> BoxFuture<'t, Done<T>> + Send + 'static,
    {
        let done = run_tx(&*self.transactions, tried.0.name(), move |tx| work(tx)).await;
        match done {
            Ok((answer, changes)) => {
                self.learn(&caller.tenant, &changes).await;
                Ok(answer)
            }
            Err(error) => {
                self.note(caller, tried, &error);
                Err(error)
            }
        }
    }

    /// Audits a refusal that `authorize` did not see.
    fn note(&self, caller: &Caller, (action, target): (Action, Target<'_>), error: &AdminError) {
        if let AdminError::Denied(Denied::NotFound | Denied::Forbidden(_)) = error {
            self.authorizer.note_denial(caller, action, target);
        }
    }

    /// Applies committed changes to this process's memory, so that whoever made them finds them in force. When that fails nothing wrong is
    /// remembered, and the tail applies them again.
    async fn learn(&self, tenant: &TenantId, changes: &[AccessChange]) {
        if changes.is_empty() {
            return;
        }
        if let Err(error) = self.authorizer.apply(tenant, changes).await {
            tracing::warn!(error = %error, "a committed change of rights could not be read back; the log's tail will");
        }
    }
}

/// Whether somebody with role `actor` may touch roles and tokens of somebody with role `subject`: owners everybody's, operators those of
/// members and their own (conventions, "Identity and authorisation").
fn outranks(actor: &Principal, subject: &Principal) -> bool {
    actor.role == Role::Owner || subject.id == actor.id || (actor.role == Role::Operator && subject.role == Role::Member)
}

const FORBIDDEN: AdminError = AdminError::Denied(Denied::Forbidden(DeniedReason::PermissionMissing));

/// The acting principal as the transaction sees it; one that is disabled or gone by now may nothing.
async fn acting(tx: &mut Tx, tenant: &TenantId, actor: &PrincipalId) -> Result<Principal, AdminError> {
    tx.principal(tenant, actor).await?.filter(|principal| principal.enabled).ok_or(FORBIDDEN)
}
