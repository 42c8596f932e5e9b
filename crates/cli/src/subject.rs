//! What a command is about: by which a refusal, which says neither, is told with what was asked for and with what it needs.

use client::{ClientError, told};
use protocol::{ProblemCode, Reason};

use crate::commands::access::{ChannelCommand, GrantCommand, SpaceCommand};
use crate::commands::consumers::ConsumerCommand;
use crate::commands::events::EventsCommand;
use crate::commands::principals::{PrincipalCommand, TokenCommand};
use crate::commands::scheduled::ScheduledCommand;
use crate::commands::tenants::TenantCommand;
use crate::{Command, InboxCommand};

/// What a command is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subject {
    /// What it asks for, when that has a name.
    thing: Option<String>,
    /// The scopes that it needs.
    scopes: &'static str,
    kind: Kind,
}

/// What sort of rights a command needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// To post.
    Publishing,
    /// To be the agent.
    Being,
    /// To look into an inbox, one's own or as an operator.
    Inbox,
    /// Anything else.
    #[default]
    Other,
}

impl Subject {
    /// What `command` is about.
    pub(crate) fn of(command: &Command) -> Self {
        let of = |kind, scopes| Self { thing: None, scopes, kind };
        let named = |thing| Self { thing, scopes: "admin", kind: Kind::Other };
        match command {
            Command::Publish(_) => of(Kind::Publishing, "publish"),
            Command::Follow(_) => of(Kind::Being, "consume"),
            Command::Work(_) => of(Kind::Being, "inbox.claim, inbox.heartbeat, inbox.ack and inbox.release"),
            Command::Watch(_) => of(Kind::Being, "stream.subscribe"),
            Command::Inbox(command) => Self { thing: command.thing(), scopes: command.scope(), kind: Kind::Inbox },
            Command::Presence(_) => of(Kind::Inbox, ""),
            Command::Events(EventsCommand::Scheduled(command)) => {
                let ScheduledCommand::Cancel { id } = command else { return of(Kind::Other, "publish") };
                Self { thing: Some(format!("scheduled event {id}")), ..of(Kind::Other, "publish") }
            }
            Command::Events(EventsCommand::Staged) => of(Kind::Other, "publish"),
            Command::Events(EventsCommand::Ls(_)) => of(Kind::Other, "read"),
            Command::Consumer(command) => match command {
                ConsumerCommand::Ls { agent } => named(Some(format!("agent {agent}"))),
                ConsumerCommand::Show { consumer } | ConsumerCommand::Ack { consumer, .. } => {
                    Self { thing: Some(format!("consumer {consumer}")), ..of(Kind::Being, "consume") }
                }
            },
            Command::Principal(command) => named(principal(command)),
            Command::Token(command) => named(Some(token(command))),
            Command::Space(command) => named(space(command)),
            Command::Channel(command) => named(channel(command)),
            Command::Grant(command) => named(grant(command)),
            Command::Tenant(command) => Self { scopes: "instance", ..named(tenant(command)) },
            Command::Nodes => of(Kind::Other, "instance"),
            _ => Self::default(),
        }
    }

    /// The error as a sentence, with what was asked for where it says no more than that there is, or is not, such a thing.
    pub(crate) fn tell(&self, error: &ClientError) -> String {
        let text = told(error);
        let place = error.problem().and_then(|problem| problem.pointer.as_ref());
        match (&self.thing, error.code()) {
            (Some(thing), Some(ProblemCode::NotFound | ProblemCode::AlreadyExists)) if place.is_none() => format!("{thing}: {text}"),
            _ => text,
        }
    }

    /// What may help, where the refusal alone does not say.
    pub(crate) fn hint(&self, error: &ClientError) -> Option<String> {
        let reason = error.problem()?.reason.as_ref()?.known()?;
        match (reason, self.kind) {
            (Reason::SubjectKindNotAllowed, Kind::Being) => {
                Some("only agents can do that; `doorstep me` shows whose the token is".to_owned())
            }
            (Reason::SubjectKindNotAllowed, Kind::Inbox) => {
                Some("only agents have an inbox of their own; --agent says whose is meant, where the command has it".to_owned())
            }
            (Reason::SubjectKindNotAllowed, _) => Some("`doorstep me` shows whose the token is".to_owned()),
            (Reason::ScopeMissing, _) if !self.scopes.is_empty() => {
                Some(format!("the token needs {}; `doorstep me` shows the scopes it has", scopes(self.scopes)))
            }
            (Reason::PermissionMissing, Kind::Publishing) => {
                let text = "publishing needs the permission `post` on the channel, or on `*` for an event without a channel: \
                            doorstep grant create PRINCIPAL CHANNEL post";
                Some(text.to_owned())
            }
            (Reason::PermissionMissing | Reason::RoleMissing, _) => {
                Some("`doorstep me` shows the token's role; owners and operators give roles and grants".to_owned())
            }
            _ => None,
        }
    }
}

fn scopes(names: &str) -> String {
    if names.contains(' ') { format!("the scopes {names}") } else { format!("the scope {names}") }
}

fn principal(command: &PrincipalCommand) -> Option<String> {
    match command {
        PrincipalCommand::Ls => None,
        PrincipalCommand::Create { id, .. }
        | PrincipalCommand::Show { id }
        | PrincipalCommand::Update { id, .. }
        | PrincipalCommand::Enable { id }
        | PrincipalCommand::Disable { id }
        | PrincipalCommand::Rm { id } => Some(format!("principal {id}")),
    }
}

fn token(command: &TokenCommand) -> String {
    match command {
        TokenCommand::Create { principal, .. } | TokenCommand::Ls { principal } => format!("principal {principal}"),
        TokenCommand::Revoke { principal, token_id } => format!("token {token_id} of principal {principal}"),
    }
}

fn space(command: &SpaceCommand) -> Option<String> {
    match command {
        SpaceCommand::Ls => None,
        SpaceCommand::Create { id } | SpaceCommand::Rm { id } => Some(format!("space {id}")),
    }
}

fn channel(command: &ChannelCommand) -> Option<String> {
    match command {
        ChannelCommand::Ls { space } => space.as_ref().map(|space| format!("space {space}")),
        ChannelCommand::Create { channel, .. } | ChannelCommand::Rm { channel } => Some(format!("channel {channel}")),
    }
}

fn grant(command: &GrantCommand) -> Option<String> {
    match command {
        GrantCommand::Ls { principal } => principal.as_ref().map(|principal| format!("principal {principal}")),
        GrantCommand::Create { principal, resource, .. } => Some(format!("grant of {resource} to {principal}")),
        GrantCommand::Rm { grant } => Some(format!("grant {grant}")),
    }
}

fn tenant(command: &TenantCommand) -> Option<String> {
    match command {
        TenantCommand::Ls => None,
        TenantCommand::Create { id, .. } | TenantCommand::Suspend { id } | TenantCommand::Activate { id } => Some(format!("tenant {id}")),
    }
}

impl InboxCommand {
    /// What it asks for, when that has a name.
    fn thing(&self) -> Option<String> {
        match self {
            Self::Ls(arguments) => arguments.agent().map(|agent| format!("agent {agent}")),
            Self::Status { agent } => agent.as_ref().map(|agent| format!("agent {agent}")),
            Self::Policy { agent, .. } | Self::Pause { agent, .. } | Self::Resume { agent, .. } => Some(format!("agent {agent}")),
            Self::Redrive(arguments) | Self::Discard(arguments) => Some(format!("agent {}", arguments.agent())),
            Self::Show(target) | Self::Quarantine(target) | Self::Unquarantine(target) => Some(target.to_string()),
            Self::Ack { held, .. } | Self::Fail { held, .. } | Self::Release { held, .. } | Self::Heartbeat { held, .. } => {
                Some(format!("item {}", held.event()))
            }
            Self::Head { .. } | Self::Claim(_) => None,
        }
    }

    /// The scope that it needs.
    const fn scope(&self) -> &'static str {
        match self {
            Self::Ls(arguments) if arguments.agent().is_none() => "inbox.poll",
            Self::Show(target) if !target.is_of_another() => "inbox.poll",
            Self::Status { agent: None } | Self::Head { .. } => "inbox.poll",
            Self::Claim(_) => "inbox.claim",
            Self::Heartbeat { .. } => "inbox.heartbeat",
            Self::Ack { .. } | Self::Fail { .. } => "inbox.ack",
            Self::Release { .. } => "inbox.release",
            _ => "admin",
        }
    }
}
