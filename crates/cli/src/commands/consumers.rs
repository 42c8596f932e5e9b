//! `doorstep consumer`.

use clap::Subcommand;
use client::{ConsumerName, PageRequest, PrincipalId, Seq, SyncEpoch};
use protocol::{ConsumerAck, ConsumerHolder, ConsumerItem, ConsumerState};

use super::{cell, when};
use crate::arguments::seq;
use crate::failure::Failure;
use crate::session::Session;

/// Consumers: named positions of an agent in the log.
#[derive(Clone, Debug, Subcommand)]
pub enum ConsumerCommand {
    /// List the consumers of an agent with their lag. For operators.
    #[command(after_help = "Example:\n  doorstep consumer ls agent_alpha")]
    Ls {
        /// The agent.
        agent: PrincipalId,
    },
    /// Show where a consumer of the token's agent stands.
    #[command(after_help = "Example:\n  doorstep consumer show default")]
    Show {
        /// The consumer.
        #[arg(default_value = ConsumerName::DEFAULT)]
        consumer: ConsumerName,
    },
    /// Acknowledge everything up to a position, also what was never delivered: skips it.
    #[command(after_help = "Example:\n  doorstep consumer ack default 184392")]
    Ack {
        /// The consumer.
        consumer: ConsumerName,
        /// The position.
        #[arg(value_parser = seq)]
        seq: Seq,
        /// The epoch that the position belongs to; another one is refused.
        #[arg(long, value_name = "UUID")]
        sync_epoch: Option<SyncEpoch>,
    },
}

/// Runs `doorstep consumer`.
pub(crate) async fn run(command: ConsumerCommand, session: &Session) -> Result<(), Failure> {
    let client = &session.client()?;
    match command {
        ConsumerCommand::Ls { agent } => {
            let agent = &agent;
            let consumers = client.all_pages(|page: PageRequest| async move { client.consumers(agent, &page).await }).await?;
            session.list(&["CONSUMER", "ACKED", "HEAD", "LAG", "IN FLIGHT", "LAST HOLDER", "UPDATED"], &consumers, |item: &ConsumerItem| {
                let ConsumerState { consumer, acked_seq, head_seq, lag, in_flight, holder: held } = &item.state;
                vec![
                    consumer.to_string(),
                    acked_seq.to_string(),
                    head_seq.to_string(),
                    lag.to_string(),
                    cell(in_flight.as_ref()),
                    holder(held.as_ref()),
                    when(item.updated_at),
                ]
            })
        }
        ConsumerCommand::Show { consumer } => show(session, &client.consumer_state(&consumer).await?),
        ConsumerCommand::Ack { consumer, seq, sync_epoch } => {
            show(session, &client.ack_events(&consumer, ConsumerAck { seq, sync_epoch }).await?)
        }
    }
}

fn show(session: &Session, state: &ConsumerState) -> Result<(), Failure> {
    let members = [
        ("consumer", state.consumer.to_string()),
        ("acked", state.acked_seq.to_string()),
        ("head", state.head_seq.to_string()),
        ("lag", state.lag.to_string()),
        ("in flight", cell(state.in_flight.as_ref())),
        ("last holder", holder(state.holder.as_ref())),
    ];
    session.item(state, &members)
}

fn holder(holder: Option<&ConsumerHolder>) -> String {
    let Some(holder) = holder else { return String::new() };
    match holder.taken_at {
        Some(since) => format!("{} since {}", holder.kind, when(since)),
        None => holder.kind.to_string(),
    }
}
