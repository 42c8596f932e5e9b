//! `doorstep inbox`: looking at inboxes, taking items by hand, and operating.

mod arguments;
mod hold;
mod look;
mod operate;

use clap::Subcommand;

pub use arguments::{BulkArguments, ClaimArguments, FilterArguments, LeaseArguments, ListArguments, TargetArguments};

pub(super) use operate::state as show_state;

use client::{EventId, PrincipalId, QueueName};
use protocol::{ClaimConcurrency, InboxPolicy, Label};

use crate::arguments::word;
use crate::duration;
use crate::failure::Failure;
use crate::session::Session;

/// Items that wait to be worked on. `doorstep work` is what works on them.
#[derive(Clone, Debug, Subcommand)]
pub enum InboxCommand {
    /// List items, ended ones too.
    #[command(
        after_help = "Examples:\n  doorstep inbox ls --state available\n  doorstep inbox ls --agent alpha --state dead_letter --json"
    )]
    Ls(ListArguments),
    /// Show an item with its attempts.
    #[command(after_help = "Example:\n  doorstep inbox show 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70")]
    Show(TargetArguments),
    /// Show an inbox as a whole: what waits, what has come to a stop, whether it is paused, whether its agent is there.
    #[command(after_help = "Examples:\n  doorstep inbox status\n  doorstep inbox status --agent alpha")]
    Status {
        /// Of this agent; of the token's own when absent. For operators.
        #[arg(long, value_name = "ID")]
        agent: Option<PrincipalId>,
    },
    /// Show what operators have decided about an inbox, or decide: with a flag, all of it is replaced.
    #[command(after_help = "Examples:\n  doorstep inbox policy alpha\n  doorstep inbox policy alpha --max-in-flight 4\n  \
                            doorstep inbox policy alpha --reset")]
    Policy {
        /// The agent.
        agent: PrincipalId,
        /// Most items that the agent may hold at once.
        #[arg(long, value_name = "N", value_parser = most)]
        max_in_flight: Option<std::num::NonZeroU32>,
        /// How many of its sessions may claim.
        #[arg(long, value_parser = word::<ClaimConcurrency>())]
        concurrency: Option<ClaimConcurrency>,
        /// Take back what was decided.
        #[arg(long, conflicts_with_all = ["max_in_flight", "concurrency"])]
        reset: bool,
    },
    /// Show the inbox's head, the position by which pollers see that something has come.
    #[command(after_help = "Examples:\n  doorstep inbox head\n  doorstep inbox head --etag '\"default:alpha:184392:6f1c1f0e\"'\n\n\
                            With --etag, exit code 3 and no output say that nothing has come since.")]
    Head {
        /// The tag of an earlier answer, as the field `etag` shows it.
        #[arg(long, value_name = "TAG")]
        etag: Option<String>,
    },
    /// Claim what comes next, or items by name. What is printed has the lease token.
    #[command(
        after_help = "Examples:\n  doorstep inbox claim --json\n  doorstep inbox claim --queue mail --limit 5 --lease 10m --wait 30s\n  \
                            doorstep inbox claim 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70\n\nExit code 3 says that nothing could be claimed."
    )]
    Claim(ClaimArguments),
    /// Extend a lease.
    #[command(after_help = "Example:\n  doorstep inbox heartbeat 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70 Qk5v --lease 10m")]
    Heartbeat {
        /// The item and its lease.
        #[command(flatten)]
        held: LeaseArguments,
        /// By how long from now; the server's `inbox.lease_default` when absent.
        #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
        lease: Option<std::time::Duration>,
    },
    /// Acknowledge an item: it is done.
    #[command(after_help = "Example:\n  doorstep inbox ack 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70 Qk5v --summary 'answered'")]
    Ack {
        /// The item and its lease.
        #[command(flatten)]
        held: LeaseArguments,
        /// A line about the attempt.
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
        /// What was made: any JSON.
        #[arg(long, value_name = "JSON")]
        output: Option<String>,
        /// Nobody needed to work on it.
        #[arg(long)]
        discard: bool,
    },
    /// Say that an attempt has failed: the item is tried again, or becomes a dead letter.
    #[command(
        after_help = "Example:\n  doorstep inbox fail 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70 Qk5v --summary 'the mail server did not answer'"
    )]
    Fail {
        /// The item and its lease.
        #[command(flatten)]
        held: LeaseArguments,
        /// A line about the attempt.
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
    },
    /// Give an item back.
    #[command(after_help = "Examples:\n  doorstep inbox release 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70 Qk5v\n  \
                            doorstep inbox release 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70 Qk5v --reason snooze --after 10m\n\n\
                            The reason `snooze` does not count as an attempt.")]
    Release {
        /// The item and its lease.
        #[command(flatten)]
        held: LeaseArguments,
        /// Why.
        #[arg(long, value_name = "WORD", value_parser = label)]
        reason: Option<Label>,
        /// How long it rests; claimable at once when absent.
        #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
        after: Option<std::time::Duration>,
    },
    /// Give dead letters new attempts. For operators.
    #[command(
        after_help = "Examples:\n  doorstep inbox redrive alpha --all --dry-run\n  doorstep inbox redrive alpha --queue mail --older-than 1h"
    )]
    Redrive(BulkArguments),
    /// Decide that nobody needs to work on items. For operators.
    #[command(after_help = "Examples:\n  doorstep inbox discard alpha --state dead_letter --dry-run\n  \
                            doorstep inbox discard alpha --event 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70")]
    Discard(BulkArguments),
    /// Put an item aside. For operators.
    #[command(after_help = "Example:\n  doorstep inbox quarantine 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70 --agent alpha")]
    Quarantine(TargetArguments),
    /// Make an item claimable again that was put aside. For operators.
    #[command(after_help = "Example:\n  doorstep inbox unquarantine 0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70 --agent alpha")]
    Unquarantine(TargetArguments),
    /// Hold an inbox back, or one of its queues: nothing can be claimed, nothing rings, nothing is lost. For operators.
    #[command(after_help = "Example:\n  doorstep inbox pause alpha --queue mail")]
    Pause {
        /// The agent.
        agent: PrincipalId,
        /// Only this queue.
        #[arg(long, short, value_name = "QUEUE")]
        queue: Option<QueueName>,
    },
    /// End a pause. For operators.
    #[command(after_help = "Example:\n  doorstep inbox resume alpha --queue mail")]
    Resume {
        /// The agent.
        agent: PrincipalId,
        /// Only this queue.
        #[arg(long, short, value_name = "QUEUE")]
        queue: Option<QueueName>,
    },
}

fn most(text: &str) -> Result<std::num::NonZeroU32, String> {
    text.parse()
        .map_err(|_| "a whole number from 1; `inbox pause` lets an agent hold nothing new, and --reset as many as it wants".to_owned())
}

fn label(text: &str) -> Result<Label, &'static str> {
    Label::parse(text.to_owned())
}

/// Runs `doorstep inbox`.
pub(crate) async fn run(command: InboxCommand, session: &Session) -> Result<(), Failure> {
    let client = &session.client()?;
    match command {
        InboxCommand::Ls(arguments) => look::list(client, arguments, session).await,
        InboxCommand::Show(target) => look::show(client, &target, session).await,
        InboxCommand::Head { etag } => look::head(client, etag.as_deref(), session).await,
        InboxCommand::Status { agent } => operate::status(client, agent, session).await,
        InboxCommand::Policy { agent, max_in_flight, concurrency, reset } => {
            let policy = InboxPolicy { max_in_flight, concurrency };
            let changes = reset || policy != InboxPolicy::default();
            let policy = if changes { client.set_inbox_policy(&agent, &policy).await? } else { client.inbox_policy(&agent).await? };
            operate::policy(policy, session)
        }
        InboxCommand::Claim(arguments) => hold::claim(client, arguments, session).await,
        InboxCommand::Heartbeat { held, lease } => hold::heartbeat(client, held, lease, session).await,
        InboxCommand::Ack { held, summary, output, discard } => {
            let result = if discard { protocol::AckResult::Discarded } else { protocol::AckResult::Completed };
            hold::acknowledge(client, held, result, summary, output, session).await
        }
        InboxCommand::Fail { held, summary } => hold::acknowledge(client, held, protocol::AckResult::Failed, summary, None, session).await,
        InboxCommand::Release { held, reason, after } => hold::release(client, held, reason, after, session).await,
        InboxCommand::Redrive(arguments) => operate::bulk(client, operate::Bulk::Redrive, arguments, session).await,
        InboxCommand::Discard(arguments) => operate::bulk(client, operate::Bulk::Discard, arguments, session).await,
        InboxCommand::Quarantine(target) => look::shown(&client.quarantine_item(&operate::target(target)?).await?, session),
        InboxCommand::Unquarantine(target) => look::shown(&client.unquarantine_item(&operate::target(target)?).await?, session),
        InboxCommand::Pause { agent, queue } => operate::state(&client.pause_inbox(&operate::pause(agent, queue)).await?, session),
        InboxCommand::Resume { agent, queue } => operate::state(&client.resume_inbox(&operate::pause(agent, queue)).await?, session),
    }
}

/// The event of an item in a message.
fn not_done(event: EventId, outcome: &impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("item {event}: {outcome}"))
}
