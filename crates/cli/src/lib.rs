//! The client commands of the doorstep binary.
//!
//! Architecture invariant: everything here is a caller of `client`; no command knows the server's inside or opens its store.

mod arguments;
mod commands;
mod duration;
mod failure;
mod follow;
mod options;
mod publish;
mod session;
mod settings;
mod table;
mod terminal;

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

pub use commands::access::{ChannelCommand, GrantCommand, SpaceCommand};
pub use commands::audit::AuditArguments;
pub use commands::consumers::ConsumerCommand;
pub use commands::events::{EventsCommand, ListArguments};
pub use commands::principals::{PrincipalCommand, TokenCommand};
pub use commands::scheduled::ScheduledCommand;
pub use commands::tenants::TenantCommand;
pub use follow::FollowArguments;
pub use options::{ColorChoice, GlobalOptions};
pub use publish::PublishArguments;
pub use settings::Environment;
pub use terminal::Terminal;

use failure::{EXIT_CODES, Failure};
use session::Session;

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

/// Runs a command on the process's own streams. Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 the consumer was taken over.
pub async fn run(command: Command, options: GlobalOptions) -> ExitCode {
    run_on(command, options, Terminal::of_process()).await
}

/// The same on other streams.
pub async fn run_on(command: Command, options: GlobalOptions, terminal: Terminal) -> ExitCode {
    let session = Session::new(options, terminal);
    let result = dispatch(command, &session).await;
    conclude(&session, result)
}

/// Has the configured server make an online backup in `path`, as the server sees it.
pub async fn backup(path: &Path, options: GlobalOptions) -> ExitCode {
    let session = Session::new(options, Terminal::of_process());
    let result = match path.to_str() {
        Some(path) => commands::backup::run(path, &session).await,
        None => Err(Failure::Usage("the path is not UTF-8".to_owned())),
    };
    conclude(&session, result)
}

async fn dispatch(command: Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Publish(arguments) => publish::run(*arguments, session).await,
        Command::Follow(arguments) => follow::run(arguments, session).await,
        Command::Events(command) => commands::events::run(command, session).await,
        Command::Consumer(command) => commands::consumers::run(command, session).await,
        Command::Principal(command) => commands::principals::principal(command, session).await,
        Command::Token(command) => commands::principals::token(command, session).await,
        Command::Space(command) => commands::access::space(command, session).await,
        Command::Channel(command) => commands::access::channel(command, session).await,
        Command::Grant(command) => commands::access::grant(command, session).await,
        Command::Tenant(command) => commands::tenants::run(command, session).await,
        Command::Audit(arguments) => commands::audit::run(arguments, session).await,
        Command::Me => commands::who::me(session).await,
        Command::Health => commands::who::health(session).await,
    }
}

fn conclude(session: &Session, result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            session.complain(&failure);
            failure.exit_code()
        }
    }
}
