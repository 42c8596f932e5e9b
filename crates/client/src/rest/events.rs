//! `listEvents`: the log for people and apps, who keep their own cursor.

use domain::{Seq, SyncEpoch};
use protocol::EventPage;
use reqwest::Method;

use crate::transport::Transport;
use crate::{Client, ClientError};

impl Client {
    /// The events after a position, as far as the caller may see them. `next_cursor` is the next `after`.
    ///
    /// # Errors
    /// [`ClientError`]; `resync_required` when the position cannot be served.
    pub async fn list_events(
        &self,
        after: Option<Seq>,
        limit: Option<u32>,
        sync_epoch: Option<SyncEpoch>,
    ) -> Result<EventPage, ClientError> {
        list(&self.transport, after, limit, sync_epoch).await
    }
}

/// A page after `after`, for a reader that catches up.
pub(crate) async fn event_page(transport: &Transport, after: Seq, limit: u32, epoch: Option<SyncEpoch>) -> Result<EventPage, ClientError> {
    list(transport, Some(after), Some(limit), epoch).await
}

async fn list(transport: &Transport, after: Option<Seq>, limit: Option<u32>, epoch: Option<SyncEpoch>) -> Result<EventPage, ClientError> {
    let call = transport.call(Method::GET, &["v1", "events"]);
    transport.answer(call.query("after", after).query("limit", limit).query("sync_epoch", epoch)).await
}
