//! The inbox: what agents do with their own, call by call.
//!
//! An application rather takes [`InboxWorker`](crate::InboxWorker), which follows the rules of claiming by itself.

use std::time::Duration;

use domain::AgentSessionId;
use protocol::{
    AckDone, AcknowledgeRequest, AcknowledgeResponse, ClaimNextRequest, ClaimNextResponse, ClaimRequest, ClaimResponse, HeartbeatRequest,
    HeartbeatResponse, InboxHead, InboxItem, PollRequest, PollResponse, ReleaseRequest, SessionSubscribed, SubscribeRequest,
};
use reqwest::Method;

use crate::{Client, ClientError};

/// Where an inbox stands, and by what it is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaggedHead {
    /// Where it stands.
    pub head: InboxHead,
    /// The `ETag` to ask with the next time.
    pub etag: Option<String>,
}

impl Client {
    /// Opens a session: who is told of work, and how.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn subscribe_session(&self, request: &SubscribeRequest) -> Result<SessionSubscribed, ClientError> {
        self.transport.answer(self.transport.call(Method::POST, &["v1", "agent-sessions", "subscribe"]).json(request)?).await
    }

    /// The items after a position. Changes nothing.
    ///
    /// # Errors
    /// [`ClientError`]; `cursor_reset_required` when items after the position are gone.
    pub async fn poll_inbox(&self, request: &PollRequest) -> Result<PollResponse, ClientError> {
        let wait = request.wait_seconds.map(protocol::Seconds::duration).unwrap_or_default();
        let call = self.transport.call(Method::POST, &["v1", "inbox", "poll-after-cursor"]).longer(wait);
        self.transport.answer(call.json(request)?).await
    }

    /// The inbox's head, unless it is still the one that `etag` stands for: the cheapest question there is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn inbox_head(&self, etag: Option<&str>) -> Result<Option<TaggedHead>, ClientError> {
        let call = self.transport.call(Method::GET, &["v1", "inbox", "head"]);
        let answer = self.transport.changed(call, etag).await?;
        Ok(answer.map(|(head, etag)| TaggedHead { head, etag }))
    }

    /// Claims items by name. With [`Client::with_idempotency_key`] a repeat is answered with what is still held.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn claim_items(&self, request: &ClaimRequest) -> Result<ClaimResponse, ClientError> {
        self.transport.answer(self.creating(&["v1", "inbox", "claim"]).json(request)?).await
    }

    /// Claims what comes next. With [`Client::with_idempotency_key`] a repeat is answered with what is still held.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn claim_next(&self, request: &ClaimNextRequest) -> Result<ClaimNextResponse, ClientError> {
        let wait = request.wait_seconds.map(protocol::Seconds::duration).unwrap_or_default();
        self.transport.answer(self.creating(&["v1", "inbox", "claim-next"]).longer(wait).json(request)?).await
    }

    /// Tells what became of items. A repeat with the same token and result is a success.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn acknowledge(&self, request: &AcknowledgeRequest) -> Result<AcknowledgeResponse, ClientError> {
        self.transport.answer(self.transport.call(Method::POST, &["v1", "inbox", "acknowledge"]).json(request)?).await
    }

    /// The same for one item.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn acknowledge_item(&self, ack: protocol::AckItem) -> Result<AckDone, ClientError> {
        let request = AcknowledgeRequest { tenant_id: None, recipient_id: None, session_id: None, acks: vec![ack] };
        let done = self.acknowledge(&request).await?.acks.into_iter().next();
        done.ok_or_else(|| ClientError::Unexpected { status: 200, detail: "the answer says nothing of the item".to_owned() })
    }

    /// Gives an item back.
    ///
    /// # Errors
    /// [`ClientError`]; `lease_lost`.
    pub async fn release(&self, request: &ReleaseRequest) -> Result<InboxItem, ClientError> {
        self.transport.answer(self.transport.call(Method::POST, &["v1", "inbox", "release"]).json(request)?).await
    }

    /// Extends leases.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn heartbeat(&self, request: &HeartbeatRequest) -> Result<HeartbeatResponse, ClientError> {
        self.transport.answer(self.transport.call(Method::POST, &["v1", "inbox", "heartbeat"]).json(request)?).await
    }

    /// Opens the stream of signals of a session.
    pub(crate) async fn signal_stream(&self, session: &AgentSessionId, last_id: Option<&str>) -> Result<reqwest::Response, ClientError> {
        let call = self.transport.call(Method::GET, &["v1", "streams", "sse"]).query("session_id", Some(session));
        self.transport.events(call, last_id).await
    }
}

/// Whole seconds for the wire: at least one, since a wish that is too short would be refused.
pub(crate) fn seconds(duration: Duration) -> protocol::Seconds {
    protocol::Seconds::of(duration.max(Duration::from_secs(1)))
}
