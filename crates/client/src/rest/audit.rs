//! The audit log.

use domain::PrincipalId;
use protocol::Page;
use protocol::admin::{AuditDecision, AuditItem};
use reqwest::Method;

use super::PageRequest;
use crate::{Client, ClientError};

/// Which entries of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this actor.
    pub actor: Option<PrincipalId>,
    /// Of this action, such as `events.publish`.
    pub action: Option<String>,
    /// With this decision.
    pub decision: Option<AuditDecision>,
}

impl Client {
    /// Entries of the audit log.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn audit(&self, filter: &AuditFilter, request: &PageRequest) -> Result<Page<AuditItem>, ClientError> {
        let call = request.apply(self.transport.call(Method::GET, &["v1", "audit"]));
        let call = call.query("actor", filter.actor.as_ref()).query("action", filter.action.as_ref());
        self.transport.answer(call.query("decision", filter.decision)).await
    }
}
