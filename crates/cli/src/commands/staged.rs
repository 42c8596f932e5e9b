//! `doorstep events staged`.

use client::PageRequest;
use protocol::admin::StagedItem;

use super::{cell, when, words};
use crate::failure::Failure;
use crate::session::Session;

/// Runs `doorstep events staged`.
pub(crate) async fn run(session: &Session) -> Result<(), Failure> {
    let client = &session.client()?;
    let events = client.all_pages(|page: PageRequest| async move { client.staged(&page).await }).await?;
    let headers = ["ID", "TYPE", "STAGED", "STATE", "CHANNEL", "AUDIENCE", "PUBLISHER", "FAILURE"];
    session.list(&headers, &events, |event: &StagedItem| {
        vec![
            event.id.to_string(),
            cell(event.event_type.as_ref()),
            when(event.staged_at),
            event.state.to_string(),
            cell(event.channel.as_ref()),
            words(&event.audience),
            event.publisher.to_string(),
            cell(event.failure.as_ref()),
        ]
    })
}
