//! `doorstep presence`.

use std::time::Duration;

use clap::Subcommand;
use client::PrincipalId;
use protocol::{PresenceRequest, PresenceState, Seconds};

use super::inbox::show_state;
use crate::duration;
use crate::failure::Failure;
use crate::session::Session;

/// Whether an agent wants to be rung. While it is out its inbox fills all the same.
#[derive(Clone, Debug, Subcommand)]
pub enum PresenceCommand {
    /// The agent is there: what waits rings.
    #[command(after_help = "Example:\n  doorstep presence in")]
    In {
        /// This agent; the token's own when absent. For operators.
        #[arg(long, value_name = "ID")]
        agent: Option<PrincipalId>,
    },
    /// The agent is away: nothing rings.
    #[command(after_help = "Examples:\n  doorstep presence out\n  doorstep presence out --for 8h")]
    Out {
        /// After how long it is back by itself; when it says so when absent.
        #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse)]
        duration: Option<Duration>,
        /// This agent; the token's own when absent. For operators.
        #[arg(long, value_name = "ID")]
        agent: Option<PrincipalId>,
    },
}

/// Runs `doorstep presence`.
pub(crate) async fn run(command: PresenceCommand, session: &Session) -> Result<(), Failure> {
    let (agent, request) = match command {
        PresenceCommand::In { agent } => (agent, PresenceRequest { state: PresenceState::In, for_seconds: None }),
        PresenceCommand::Out { duration, agent } => {
            (agent, PresenceRequest { state: PresenceState::Out, for_seconds: duration.map(Seconds::of) })
        }
    };
    show_state(&session.client()?.set_presence(agent.as_ref(), &request).await?, session)
}
