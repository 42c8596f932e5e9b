//! `doorstep events scheduled`.

use clap::Subcommand;
use client::{EventId, PageRequest};
use protocol::admin::ScheduledItem;

use super::{cell, when, words};
use crate::failure::Failure;
use crate::session::Session;

/// Events that wait for their time.
#[derive(Clone, Debug, Subcommand)]
pub enum ScheduledCommand {
    /// List what waits, and what failed when its time came.
    #[command(after_help = "Example:\n  doorstep events scheduled ls")]
    Ls,
    /// Take a scheduled event back.
    #[command(after_help = "Example:\n  doorstep events scheduled cancel 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70")]
    Cancel {
        /// The event.
        id: EventId,
    },
}

/// Runs `doorstep events scheduled`.
pub(crate) async fn run(command: ScheduledCommand, session: &Session) -> Result<(), Failure> {
    let client = &session.client()?;
    match command {
        ScheduledCommand::Ls => {
            let events = client.all_pages(|page: PageRequest| async move { client.scheduled(&page).await }).await?;
            let headers = ["ID", "TYPE", "AVAILABLE", "STATE", "CHANNEL", "AUDIENCE", "PUBLISHER", "FAILURE"];
            session.list(&headers, &events, |event: &ScheduledItem| {
                vec![
                    event.id.to_string(),
                    event.event_type.to_string(),
                    when(event.available_at),
                    event.state.to_string(),
                    cell(event.channel.as_ref()),
                    words(&event.audience),
                    event.publisher.to_string(),
                    cell(event.failure.as_ref()),
                ]
            })
        }
        ScheduledCommand::Cancel { id } => {
            client.cancel_scheduled(id).await?;
            session.done("cancelled", &id)
        }
    }
}
