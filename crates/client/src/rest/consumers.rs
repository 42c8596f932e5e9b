//! Consumers over REST: where they stand, polls and acknowledgements.
//!
//! An application rather takes [`Client::consumer`](crate::Client::consumer), which follows the rules of polling by itself.

use std::time::Duration;

use domain::{ConsumerName, PrincipalId, Seq, SyncEpoch};
use protocol::{ConsumerAck, ConsumerItem, ConsumerState, EventPage, Page};
use reqwest::Method;

use super::PageRequest;
use super::list::page;
use crate::transport::Transport;
use crate::{Client, ClientError};

impl Client {
    /// Where one of the caller's consumers stands. Takes nothing over.
    ///
    /// # Errors
    /// [`ClientError`]; `not_found` when the consumer was never connected.
    pub async fn consumer_state(&self, consumer: &ConsumerName) -> Result<ConsumerState, ClientError> {
        self.transport.answer(self.transport.call(Method::GET, &["v1", "agents", "me", "consumers", consumer.as_str()])).await
    }

    /// One poll. It takes the consumer over from a gateway session. `after` must be the `next_cursor` of a page that arrived and was not
    /// `unproven`.
    ///
    /// # Errors
    /// [`ClientError`]; `resync_required` when events were missed.
    pub async fn poll_events(
        &self,
        consumer: &ConsumerName,
        limit: u32,
        wait: Duration,
        after: Option<Seq>,
    ) -> Result<EventPage, ClientError> {
        poll_consumer(&self.transport, consumer, limit, wait, after, None).await
    }

    /// Acknowledges everything up to a position, also what was never delivered. Takes nothing over.
    ///
    /// # Errors
    /// [`ClientError`]; `validation_failed` with pointer `/seq` above the head.
    pub async fn ack_events(&self, consumer: &ConsumerName, ack: ConsumerAck) -> Result<ConsumerState, ClientError> {
        ack_consumer(&self.transport, consumer, ack).await
    }

    /// The consumers of an agent, for operators.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn consumers(&self, agent: &PrincipalId, request: &PageRequest) -> Result<Page<ConsumerItem>, ClientError> {
        page(&self.transport, &["v1", "agents", agent.as_str(), "consumers"], request).await
    }
}

pub(crate) async fn poll_consumer(
    transport: &Transport,
    consumer: &ConsumerName,
    limit: u32,
    wait: Duration,
    after: Option<Seq>,
    sync_epoch: Option<SyncEpoch>,
) -> Result<EventPage, ClientError> {
    let call = transport.call(Method::GET, &["v1", "agents", "me", "consumers", consumer.as_str(), "events"]).longer(wait);
    let call = call.query("limit", Some(limit)).query("wait_seconds", Some(wait.as_secs()));
    transport.answer(call.query("after", after).query("sync_epoch", sync_epoch)).await
}

pub(crate) async fn ack_consumer(transport: &Transport, consumer: &ConsumerName, ack: ConsumerAck) -> Result<ConsumerState, ClientError> {
    let call = transport.call(Method::POST, &["v1", "agents", "me", "consumers", consumer.as_str(), "ack"]);
    transport.answer(call.json(&ack)?).await
}
