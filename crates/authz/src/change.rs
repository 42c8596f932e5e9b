//! `access.changed`: how a change of identities or rights stands in the log, and how every process learns of it.

use domain::{Audience, Event, EventOrigin, PrincipalId, TokenId};
use serde::{Deserialize, Serialize};

use crate::{Permission, Resource};

/// The type of the event by which every process learns that rights have changed.
pub const ACCESS_CHANGED: &str = "access.changed";
/// The type of the event that says that an agent's own record has changed.
pub const AGENT_UPDATED: &str = "agent.updated";

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// A grant was created.
    #[serde(rename = "grant.created")]
    GrantCreated,
    /// A grant was revoked, or went with its space or channel.
    #[serde(rename = "grant.revoked")]
    GrantRevoked,
    /// A token was created.
    #[serde(rename = "token.created")]
    TokenCreated,
    /// A token was revoked.
    #[serde(rename = "token.revoked")]
    TokenRevoked,
    /// A principal may act again.
    #[serde(rename = "principal.enabled")]
    PrincipalEnabled,
    /// A principal may not act any more.
    #[serde(rename = "principal.disabled")]
    PrincipalDisabled,
    /// A principal is gone, with its tokens and grants.
    #[serde(rename = "principal.deleted")]
    PrincipalDeleted,
    /// A principal has another role.
    #[serde(rename = "principal.role")]
    PrincipalRole,
    /// A space is gone, with its channels.
    #[serde(rename = "space.deleted")]
    SpaceDeleted,
    /// A channel is gone.
    #[serde(rename = "channel.deleted")]
    ChannelDeleted,
    /// The tenant is not served any more.
    #[serde(rename = "tenant.suspended")]
    TenantSuspended,
    /// The tenant is served again.
    #[serde(rename = "tenant.resumed")]
    TenantResumed,
    /// The tenant is being removed.
    #[serde(rename = "tenant.deleting")]
    TenantDeleting,
    /// A word of a newer version: everything remembered of the tenant is read anew.
    #[serde(other, rename = "unrecognised")]
    Unrecognised,
}

/// The payload of an `access.changed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessChange {
    /// What has changed.
    pub change: Change,
    /// The principal concerned: whose rights or token, or who removed a space or channel. Absent for changes of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<PrincipalId>,
    /// The resource of a grant, or the space or channel that is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The permission of a grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    /// The token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<TokenId>,
}

impl AccessChange {
    /// A change that concerns nobody in particular.
    pub const fn of(change: Change) -> Self {
        Self { change, principal: None, resource: None, permission: None, token_id: None }
    }

    /// A change that concerns `principal`.
    pub fn concerning(change: Change, principal: &PrincipalId) -> Self {
        Self { principal: Some(principal.clone()), ..Self::of(change) }
    }

    /// Names the resource.
    #[must_use]
    pub fn at(mut self, resource: &Resource) -> Self {
        self.resource = Some(resource.to_string());
        self
    }

    /// The change that `event` reports, if it is the server's own `access.changed`. One that cannot be read is [`Change::Unrecognised`].
    pub(crate) fn reported_by(event: &Event) -> Option<Self> {
        if event.origin != EventOrigin::Server || event.event_type.as_str() != ACCESS_CHANGED {
            return None;
        }
        Some(Self::decode(&event.body).unwrap_or_else(|| {
            tracing::warn!(event.id = %event.id, "an access.changed cannot be read; everything remembered of the tenant is read anew");
            Self::of(Change::Unrecognised)
        }))
    }

    fn decode(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Envelope {
            payload: AccessChange,
        }
        let text = [b"{", body].concat();
        serde_json::from_slice::<Envelope>(&text).ok().map(|envelope| envelope.payload)
    }

    /// To whom the event is addressed.
    pub(crate) fn audience(&self) -> Audience {
        self.principal.as_ref().map_or_else(Audience::default, |principal| Audience::new(std::slice::from_ref(principal)))
    }
}

#[cfg(test)]
mod tests {
    use domain::PrincipalId;

    use super::{AccessChange, Change};
    use crate::Resource;

    #[test]
    fn the_payload_has_the_documented_form() {
        let agent = PrincipalId::parse("alpha").unwrap();
        let change = AccessChange::concerning(Change::GrantRevoked, &agent).at(&Resource::All);
        let text = serde_json::to_string(&change).unwrap();
        assert_eq!(text, r#"{"change":"grant.revoked","principal":"alpha","resource":"*"}"#);
        assert_eq!(AccessChange::decode(format!(r#""id":"x","payload":{text}}}"#).as_bytes()), Some(change));
    }

    #[test]
    fn a_word_of_a_newer_version_is_unrecognised_and_not_ignored() {
        let body = br#""payload":{"change":"principal.moved","principal":"alpha","extra":1}}"#;
        assert_eq!(AccessChange::decode(body).unwrap().change, Change::Unrecognised);
        assert_eq!(AccessChange::decode(b"nonsense"), None);
    }
}
