//! The client commands of the doorstep binary.
//!
//! Architecture invariant: everything here is a caller of `client`; no command knows the server's inside or opens its store.

mod arguments;
mod commands;
mod duration;
mod failure;
mod follow;
mod listen;
mod options;
mod process;
mod publish;
mod session;
mod settings;
mod signals;
mod subject;
mod table;
mod terminal;
mod watch;
mod work;

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

pub use commands::access::{ChannelCommand, GrantCommand, SpaceCommand};
pub use commands::audit::AuditArguments;
pub use commands::consumers::ConsumerCommand;
pub use commands::events::{EventsCommand, ListArguments};
pub use commands::hooks::HooksCommand;
pub use commands::inbox::{
    BulkArguments, ClaimArguments, FilterArguments, InboxCommand, LeaseArguments, ListArguments as ItemListArguments, TargetArguments,
};
pub use commands::presence::PresenceCommand;
pub use commands::principals::{PrincipalCommand, TokenCommand};
pub use commands::scheduled::ScheduledCommand;
pub use commands::tenants::TenantCommand;
pub use follow::FollowArguments;
pub use listen::ListenArguments;
pub use options::{ColorChoice, GlobalOptions};
pub use publish::PublishArguments;
pub use settings::Environment;
pub use terminal::Terminal;
pub use watch::WatchArguments;
pub use work::WorkArguments;

use failure::{EXIT_CODES, Failure, WORK_EXIT_CODES};
use listen::VARIABLES as LISTEN_VARIABLES;
use session::Session;
use subject::Subject;
use work::VARIABLES;

/// A command that calls a server.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Publish events from a file, from standard input, or one from flags.
    #[command(after_help = format!("Examples:
  doorstep publish events.jsonl
  producer | doorstep publish --quiet
  doorstep publish --type message.created --channel support/general --payload '{{\"text\": \"Hello\"}}'
  doorstep publish --type reminder.due --audience sam --at +15m

Prints one JSON object per event: its id and seq, or that it is scheduled. Requests are repeated while the server cannot \
take events; deduplication keys make sure that nothing is published twice.

{EXIT_CODES}"))]
    Publish(Box<PublishArguments>),
    /// Follow a consumer of the token's agent: print its events, or run a command for each.
    #[command(after_help = format!("Examples:
  doorstep follow
  doorstep follow --consumer nightly --poll --idle-timeout 10s
  doorstep follow --exec ./work.sh --on-failure retry

Prints one event a line as JSON and acknowledges what it has written; with --exec what the command has done. What was not \
acknowledged comes again. SIGINT or SIGTERM ends it once what is under way is done; a second one at once.

{EXIT_CODES}"))]
    Follow(FollowArguments),
    /// Work off the agent's inbox: run a command for each item, under a lease that is kept while it runs.
    #[command(after_help = format!("Examples:
  doorstep work -- ./answer.sh
  doorstep work --queue mail --concurrency 4 --timeout 15m -- python3 answer.py
  doorstep work --once -- claude -p 'Work on the item on standard input.'
  doorstep work --idle-timeout 0s --quiet -- ./nightly.sh

The command gets its item as one line of JSON on standard input and as variables. Exit code 0 completes the item; the end of standard \
output becomes its summary. 75 gives it back for later (--snooze) without counting the attempt. Everything else fails it with the end \
of standard error as its summary: it is tried again after a backoff, until it is a dead letter. When the lease is lost, the command's \
process group is stopped, since somebody else may begin. Prints a line for each item.

SIGINT or SIGTERM ends it once running commands are done, at the latest after --drain-timeout; a second one at once.

{VARIABLES}

{WORK_EXIT_CODES}"))]
    Work(WorkArguments),
    /// Print a line of JSON whenever the agent's inbox rings.
    #[command(after_help = format!("Examples:
  doorstep watch
  doorstep watch --limit 1

A ring is a hint that there is something to do; it is not the record. The stream connects again by itself.

{EXIT_CODES}"))]
    Watch(WatchArguments),
    /// Receive the rings of a hook: verify them, and run a command when it rings.
    #[command(after_help = format!("Examples:
  doorstep listen --secret-file hook.secret
  doorstep listen --secret-file hook.secret --exec 'doorstep work --once --quiet -- ./run.sh'

Each ring is verified (Standard Webhooks or HTTP Message Signatures) and answered with 202 before the command begins. A ring that comes \
again, and rings while the command runs, start nothing more than one further run. Challenges of callbacks are answered. Without --exec \
rings are printed, one a line.

{LISTEN_VARIABLES}

SIGINT or SIGTERM ends it once the command is done; a second one at once.

{EXIT_CODES}"))]
    Listen(ListenArguments),
    /// Items that wait to be worked on.
    #[command(subcommand)]
    Inbox(InboxCommand),
    /// Notify hooks: URLs that are called when an item becomes claimable.
    #[command(subcommand)]
    Hooks(HooksCommand),
    /// Whether the agent wants to be rung.
    #[command(subcommand)]
    Presence(PresenceCommand),
    /// The log, for people and apps.
    #[command(subcommand)]
    Events(EventsCommand),
    /// Consumers: where they stand, and skipping ahead.
    #[command(subcommand)]
    Consumer(ConsumerCommand),
    /// People, apps and agents.
    #[command(subcommand)]
    Principal(PrincipalCommand),
    /// Access tokens.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Spaces: groups of channels.
    #[command(subcommand)]
    Space(SpaceCommand),
    /// Channels: where events are published.
    #[command(subcommand)]
    Channel(ChannelCommand),
    /// Grants: who may do what where.
    #[command(subcommand)]
    Grant(GrantCommand),
    /// Tenants, for the operator of the instance.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// The server processes over the store, for the operator of the instance; the one that answers is marked.
    #[command(after_help = "Example:\n  doorstep nodes")]
    Nodes,
    /// The audit log: changes, and denied requests.
    #[command(after_help = "Example:\n  doorstep audit --decision deny --limit 20")]
    Audit(AuditArguments),
    /// Who the token is, and what it may do.
    #[command(after_help = "Example:\n  doorstep me")]
    Me,
    /// Whether the server runs and serves.
    #[command(after_help = "Example:\n  doorstep health --url http://127.0.0.1:7420")]
    Health,
}

/// Runs a command on the process's own streams. Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 the consumer was taken over, or there was
/// nothing to do, 4 the token is not accepted.
pub async fn run(command: Command, options: GlobalOptions) -> ExitCode {
    run_on(command, options, Terminal::of_process()).await
}

/// The same on other streams.
pub async fn run_on(command: Command, options: GlobalOptions, terminal: Terminal) -> ExitCode {
    let session = Session::new(options, terminal);
    let subject = Subject::of(&command);
    let result = dispatch(command, &session).await;
    conclude(&session, result, &subject)
}

/// Has the configured server make an online backup in `path`, as the server sees it.
pub async fn backup(path: &Path, options: GlobalOptions) -> ExitCode {
    let session = Session::new(options, Terminal::of_process());
    let result = match path.to_str() {
        Some(path) => commands::backup::run(path, &session).await,
        None => Err(Failure::Usage("the path is not UTF-8".to_owned())),
    };
    conclude(&session, result, &Subject::default())
}

async fn dispatch(command: Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Publish(arguments) => publish::run(*arguments, session).await,
        Command::Follow(arguments) => follow::run(arguments, session).await,
        Command::Work(arguments) => work::run(arguments, session).await,
        Command::Watch(arguments) => watch::run(arguments, session).await,
        Command::Listen(arguments) => listen::run(arguments, session).await,
        Command::Inbox(command) => commands::inbox::run(command, session).await,
        Command::Hooks(command) => commands::hooks::run(command, session).await,
        Command::Presence(command) => commands::presence::run(command, session).await,
        Command::Events(command) => commands::events::run(command, session).await,
        Command::Consumer(command) => commands::consumers::run(command, session).await,
        Command::Principal(command) => commands::principals::principal(command, session).await,
        Command::Token(command) => commands::principals::token(command, session).await,
        Command::Space(command) => commands::access::space(command, session).await,
        Command::Channel(command) => commands::access::channel(command, session).await,
        Command::Grant(command) => commands::access::grant(command, session).await,
        Command::Tenant(command) => commands::tenants::run(command, session).await,
        Command::Nodes => commands::nodes::run(session).await,
        Command::Audit(arguments) => commands::audit::run(arguments, session).await,
        Command::Me => commands::who::me(session).await,
        Command::Health => commands::who::health(session).await,
    }
}

fn conclude(session: &Session, result: Result<(), Failure>, subject: &Subject) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            session.complain(&failure, subject);
            failure.exit_code()
        }
    }
}
