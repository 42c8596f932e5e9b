//! The circumstances of one change, and what every change leaves behind beside itself: an audit entry and events.

use std::sync::Arc;

use domain::{
    Actor, Audience, EnvelopeParts, EventId, EventOrigin, EventType, IdGenerator, PrincipalId, Publication, StoreError, TenantId,
    Timestamp, encode_body,
};
use serde::Serialize;

use super::Tx;
use crate::{ACCESS_CHANGED, AGENT_UPDATED, AccessChange, Action, AuditDecision, AuditEntry, Principal, PrincipalKind};

/// Who changes something, where and when.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) tenant: TenantId,
    /// Absent for what the server does by itself.
    pub(super) actor: Option<PrincipalId>,
    pub(super) now: Timestamp,
    pub(super) ids: Arc<dyn IdGenerator>,
}

/// No value: there was nothing before, or there is nothing after.
pub(super) const NOTHING: Option<&()> = None;

impl Scene {
    /// Notes what was done.
    pub(super) async fn audit(
        &self,
        tx: &mut Tx,
        action: Action,
        target: String,
        before: Option<&(impl Serialize + Sync)>,
        after: Option<&(impl Serialize + Sync)>,
    ) -> Result<(), StoreError> {
        let entry = AuditEntry {
            id: 0,
            at: self.now,
            actor: self.actor.clone(),
            action: action.name().to_owned(),
            target,
            decision: AuditDecision::Allow,
            count: 1,
            before: before.map(json).transpose()?,
            after: after.map(json).transpose()?,
        };
        tx.audit(&self.tenant, &entry).await
    }

    /// Appends an `access.changed` per change, each addressed to the principal concerned.
    pub(super) async fn announce(&self, tx: &mut Tx, changes: &[AccessChange]) -> Result<(), StoreError> {
        let publications: Result<Vec<_>, _> =
            changes.iter().map(|change| self.publication(ACCESS_CHANGED, change.audience(), change)).collect();
        self.append(tx, publications?).await
    }

    /// Appends one `access.changed` addressed to `audience`.
    pub(super) async fn announce_to(&self, tx: &mut Tx, audience: Audience, change: &AccessChange) -> Result<(), StoreError> {
        let publication = self.publication(ACCESS_CHANGED, audience, change)?;
        self.append(tx, vec![publication]).await
    }

    /// Appends an `agent.updated` with the agent's present record, addressed to it. For other kinds of principals nothing.
    pub(super) async fn announce_agent(&self, tx: &mut Tx, agent: &Principal) -> Result<(), StoreError> {
        if agent.kind != PrincipalKind::Agent {
            return Ok(());
        }
        let audience = Audience::new(std::slice::from_ref(&agent.id));
        let publication = self.publication(AGENT_UPDATED, audience, &PrincipalRecord::of(agent))?;
        self.append(tx, vec![publication]).await
    }

    async fn append(&self, tx: &mut Tx, publications: Vec<Publication>) -> Result<(), StoreError> {
        if !publications.is_empty() {
            tx.append_access(&self.tenant, &publications).await?;
        }
        Ok(())
    }

    fn publication(&self, event_type: &str, audience: Audience, payload: &impl Serialize) -> Result<Publication, StoreError> {
        let unwritable = |_| StoreError::Conflict("an event of the server's own cannot be written");
        let event_type = EventType::parse(event_type).map_err(|_| StoreError::Conflict("not an event type"))?;
        let payload = serde_json::value::to_raw_value(payload).map_err(unwritable)?;
        let (id, actor) = (EventId::new(self.ids.uuid()), Actor::server());
        let parts = EnvelopeParts {
            audience: audience.as_slice(),
            payload: Some(&payload),
            ..EnvelopeParts::new(id, &event_type, self.now, &actor)
        };
        let body = encode_body(&parts).map_err(unwritable)?;
        let (channel, origin, created_at) = (None, EventOrigin::Server, self.now);
        Ok(Publication { id, event_type, channel, audience, origin, created_at, body, deduplication: None, work: None })
    }
}

fn json(value: &(impl Serialize + Sync)) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|_| StoreError::Conflict("an audit entry cannot be written"))
}

/// A principal as the audit log and `agent.updated` show it.
#[derive(Debug, Serialize)]
pub(super) struct PrincipalRecord<'a> {
    id: &'a PrincipalId,
    kind: PrincipalKind,
    role: crate::Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<&'a str>,
    enabled: bool,
}

impl<'a> PrincipalRecord<'a> {
    pub(super) fn of(principal: &'a Principal) -> Self {
        let Principal { id, kind, role, display_name, enabled, created_at: _ } = principal;
        Self { id, kind: *kind, role: *role, display_name: display_name.as_deref(), enabled: *enabled }
    }
}
