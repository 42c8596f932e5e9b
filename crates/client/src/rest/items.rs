//! Looking at inboxes, and what operators do with them.

use domain::{EventId, EventType, PrincipalId, QueueName, Timestamp};
use protocol::{AckState, BulkRequest, BulkResponse, InboxItem, InboxPolicy, InboxState, ItemTarget, Page, PauseRequest, PresenceRequest};
use reqwest::Method;
use serde::Serialize;

use super::PageRequest;
use crate::{Client, ClientError};

/// Which items of a list. What is absent does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemFilter {
    /// Of this agent; of the caller when absent. For operators.
    pub recipient: Option<PrincipalId>,
    /// In this state.
    pub state: Option<AckState>,
    /// In this queue.
    pub queue: Option<QueueName>,
    /// Of this type.
    pub event_type: Option<EventType>,
    /// Made before this instant.
    pub created_before: Option<Timestamp>,
    /// Made at or after this instant.
    pub created_after: Option<Timestamp>,
}

impl Client {
    /// Items of an inbox, ended ones too. Changes nothing.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn inbox_items(&self, filter: &ItemFilter, request: &PageRequest) -> Result<Page<InboxItem>, ClientError> {
        let call = request.apply(self.transport.call(Method::GET, &["v1", "inbox", "items"]));
        let call = call.query("recipient_id", filter.recipient.as_ref()).query("state", filter.state.map(AckState::as_str));
        let call = call.query("queue", filter.queue.as_ref()).query("event_type", filter.event_type.as_ref());
        let call = call.query("created_before", filter.created_before).query("created_after", filter.created_after);
        self.transport.answer(call).await
    }

    /// One item in any state.
    ///
    /// # Errors
    /// [`ClientError`]; `not_found`.
    pub async fn inbox_item(&self, recipient: Option<&PrincipalId>, event: EventId) -> Result<InboxItem, ClientError> {
        let call = self.transport.call(Method::GET, &["v1", "inbox", "items", &event.to_string()]);
        self.transport.answer(call.query("recipient_id", recipient)).await
    }

    /// An inbox as a whole: what waits, whether it is paused, whether its agent wants to be rung.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn inbox_state(&self, recipient: Option<&PrincipalId>) -> Result<InboxState, ClientError> {
        self.transport.answer(self.transport.call(Method::GET, &["v1", "inbox"]).query("recipient_id", recipient)).await
    }

    /// What operators have decided about an agent's inbox.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn inbox_policy(&self, agent: &PrincipalId) -> Result<InboxPolicy, ClientError> {
        self.transport.answer(self.transport.call(Method::GET, &["v1", "agents", agent.as_str(), "inbox-policy"])).await
    }

    /// Decides about an agent's inbox: replaces all of what was decided before. For operators.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn set_inbox_policy(&self, agent: &PrincipalId, policy: &InboxPolicy) -> Result<InboxPolicy, ClientError> {
        let call = self.transport.call(Method::PUT, &["v1", "agents", agent.as_str(), "inbox-policy"]);
        self.transport.answer(call.json(policy)?).await
    }

    /// Gives dead letters new attempts. For operators.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn redrive_items(&self, request: &BulkRequest) -> Result<BulkResponse, ClientError> {
        self.operate("redrive", request).await
    }

    /// Decides that nobody needs to work on items. For operators.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn discard_items(&self, request: &BulkRequest) -> Result<BulkResponse, ClientError> {
        self.operate("discard", request).await
    }

    /// Puts an item aside. For operators.
    ///
    /// # Errors
    /// [`ClientError`]; `state_conflict`.
    pub async fn quarantine_item(&self, target: &ItemTarget) -> Result<InboxItem, ClientError> {
        self.operate("quarantine", target).await
    }

    /// Makes an item claimable again that was put aside. For operators.
    ///
    /// # Errors
    /// [`ClientError`]; `state_conflict`.
    pub async fn unquarantine_item(&self, target: &ItemTarget) -> Result<InboxItem, ClientError> {
        self.operate("unquarantine", target).await
    }

    /// Holds an inbox back, or one of its queues: nothing is claimable, nothing rings, nothing is lost. For operators.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn pause_inbox(&self, request: &PauseRequest) -> Result<InboxState, ClientError> {
        self.operate("pause", request).await
    }

    /// Ends a pause. For operators.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn resume_inbox(&self, request: &PauseRequest) -> Result<InboxState, ClientError> {
        self.operate("resume", request).await
    }

    /// Says whether an agent wants to be rung: the caller, or any for operators.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn set_presence(&self, agent: Option<&PrincipalId>, request: &PresenceRequest) -> Result<InboxState, ClientError> {
        let agent = agent.map_or("me", PrincipalId::as_str);
        self.transport.answer(self.transport.call(Method::PUT, &["v1", "agents", agent, "presence"]).json(request)?).await
    }

    async fn operate<T: serde::de::DeserializeOwned>(&self, what: &str, request: &impl Serialize) -> Result<T, ClientError> {
        self.transport.answer(self.transport.call(Method::POST, &["v1", "inbox", what]).json(request)?).await
    }
}
