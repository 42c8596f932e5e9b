//! `publishEvents`, and what is scheduled or staged.

use domain::{DeduplicationKey, EventId, IdGenerator as _, InvalidId, SystemIds};
use protocol::admin::{ScheduledItem, StagedItem};
use protocol::{EventInput, Page, PublishResponse};
use reqwest::Method;
use serde::Serialize;

use super::PageRequest;
use super::list::page;
use crate::{Client, ClientError};

/// [`protocol::EventBatch`] of events that stay the caller's, who may have to publish them again.
#[derive(Serialize)]
struct Batch<'a> {
    events: &'a [EventInput],
}

impl Client {
    /// Publishes events together or not at all, in this order; at most `publish.max_events`.
    ///
    /// A lost answer may be repeated without harm only when every event has a deduplication key: see [`fresh_deduplication_key`].
    ///
    /// # Errors
    /// [`ClientError`]; of a refusal, `pointer` names the event, as in `/events/3/type`.
    pub async fn publish(&self, events: &[EventInput]) -> Result<PublishResponse, ClientError> {
        // Always as a batch, so that pointers have one form.
        let body = Batch { events };
        self.transport.answer(self.transport.call(Method::POST, &["v1", "events"]).json(&body)?).await
    }

    /// Events that wait for their time, and those that failed when it came.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn scheduled(&self, request: &PageRequest) -> Result<Page<ScheduledItem>, ClientError> {
        page(&self.transport, &["v1", "events", "scheduled"], request).await
    }

    /// Events that applications handed in within their own transactions, and that are not in the log: failed, or still on their way.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn staged(&self, request: &PageRequest) -> Result<Page<StagedItem>, ClientError> {
        page(&self.transport, &["v1", "events", "staged"], request).await
    }

    /// Takes a scheduled event back; its deduplication key is free again.
    ///
    /// # Errors
    /// [`ClientError`]; `state_conflict` when it has just been appended.
    pub async fn cancel_scheduled(&self, id: EventId) -> Result<(), ClientError> {
        self.transport.done(self.transport.call(Method::DELETE, &["v1", "events", "scheduled", &id.to_string()])).await
    }
}

/// A deduplication key that nobody has used. An event that has one can be published again without harm when the answer was lost.
///
/// # Errors
/// Never in practice: the text that is made has the form of a key.
pub fn fresh_deduplication_key() -> Result<DeduplicationKey, InvalidId> {
    DeduplicationKey::parse(&format!("auto:{}", SystemIds.uuid()))
}

/// An `Idempotency-Key` that nobody has used, for [`Client::with_idempotency_key`].
pub fn fresh_idempotency_key() -> String {
    format!("auto:{}", SystemIds.uuid())
}
