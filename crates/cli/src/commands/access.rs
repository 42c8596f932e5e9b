//! `doorstep space`, `doorstep channel`, `doorstep grant`.

use clap::Subcommand;
use client::{ChannelId, ChannelRef, Client, GrantId, PageRequest, PrincipalId, SpaceId};
use protocol::admin::{Channel, Grant, GrantResource, NewChannel, NewGrant, NewSpace, Permission, Space};

use super::when;
use crate::arguments::word;
use crate::failure::Failure;
use crate::session::Session;

/// Spaces: groups of channels.
#[derive(Clone, Debug, Subcommand)]
pub enum SpaceCommand {
    /// Create a space.
    #[command(after_help = "Example:\n  doorstep space create support")]
    Create {
        /// Its name.
        id: SpaceId,
    },
    /// List spaces.
    #[command(after_help = "Example:\n  doorstep space ls")]
    Ls,
    /// Delete a space with its channels and every grant on them; their events stay in the log.
    #[command(after_help = "Example:\n  doorstep space rm support")]
    Rm {
        /// The space.
        id: SpaceId,
    },
}

/// Channels: where events are published.
#[derive(Clone, Debug, Subcommand)]
pub enum ChannelCommand {
    /// Create a channel.
    #[command(after_help = "Example:\n  doorstep channel create support/general")]
    Create {
        /// The channel, as space/channel.
        channel: ChannelRef,
        /// Create the space, too, when it is not there.
        #[arg(long)]
        with_space: bool,
    },
    /// List channels.
    #[command(after_help = "Examples:\n  doorstep channel ls\n  doorstep channel ls support")]
    Ls {
        /// Of this space only.
        space: Option<SpaceId>,
    },
    /// Delete a channel; its events stay.
    #[command(after_help = "Example:\n  doorstep channel rm support/general")]
    Rm {
        /// The channel, as space/channel.
        channel: ChannelRef,
    },
}

/// Grants: who may do what where.
#[derive(Clone, Debug, Subcommand)]
pub enum GrantCommand {
    /// Grant a permission.
    #[command(
        after_help = "Examples:\n  doorstep grant create agent_alpha support/general read\n  doorstep grant create producer support post"
    )]
    Create {
        /// Who.
        principal: PrincipalId,
        /// On what: space/channel, a space, or '*'.
        resource: GrantResource,
        /// What; each includes the weaker ones.
        #[arg(value_parser = word::<Permission>())]
        permission: Permission,
    },
    /// List grants.
    #[command(after_help = "Example:\n  doorstep grant ls --principal agent_alpha")]
    Ls {
        /// Of this principal only.
        #[arg(long, value_name = "ID")]
        principal: Option<PrincipalId>,
    },
    /// Take a grant back.
    #[command(after_help = "Example:\n  doorstep grant rm 0197f0ab-7c23-7e77-9f40-8d2a6c9f4e33")]
    Rm {
        /// The grant, as `grant ls` shows it.
        grant: GrantId,
    },
}

/// Runs `doorstep space`.
pub(crate) async fn space(command: SpaceCommand, session: &Session) -> Result<(), Failure> {
    let client = &session.client()?;
    match command {
        SpaceCommand::Create { id } => {
            let space = client.create_space(&NewSpace { id }).await?;
            session.item(&space, &[("space", space.id.to_string()), ("created", when(space.created_at))])
        }
        SpaceCommand::Ls => {
            let spaces = spaces(client).await?;
            session.list(&["SPACE", "CREATED"], &spaces, |space| vec![space.id.to_string(), when(space.created_at)])
        }
        SpaceCommand::Rm { id } => {
            client.delete_space(&id).await?;
            session.done("deleted", &id)
        }
    }
}

async fn spaces(client: &Client) -> Result<Vec<Space>, Failure> {
    Ok(client.all_pages(|page: PageRequest| async move { client.spaces(&page).await }).await?)
}

/// Runs `doorstep channel`.
pub(crate) async fn channel(command: ChannelCommand, session: &Session) -> Result<(), Failure> {
    let client = &session.client()?;
    match command {
        ChannelCommand::Create { channel, with_space } => {
            let space = SpaceId::parse(channel.space()).map_err(|error| Failure::Usage(error.to_string()))?;
            let id = ChannelId::parse(channel.channel()).map_err(|error| Failure::Usage(error.to_string()))?;
            if with_space {
                match client.create_space(&NewSpace { id: space.clone() }).await {
                    Err(error) if error.code() != Some(protocol::ProblemCode::AlreadyExists) => return Err(error.into()),
                    _ => {}
                }
            }
            let channel = client.create_channel(&space, &NewChannel { id }).await?;
            session.item(&channel, &[("channel", channel.channel.to_string()), ("created", when(channel.created_at))])
        }
        ChannelCommand::Ls { space } => {
            let spaces = match space {
                Some(space) => vec![space],
                None => spaces(client).await?.into_iter().map(|space| space.id).collect(),
            };
            let mut channels: Vec<Channel> = Vec::new();
            for space in &spaces {
                channels.extend(client.all_pages(|page: PageRequest| async move { client.channels(space, &page).await }).await?);
            }
            session.list(&["CHANNEL", "CREATED"], &channels, |channel| vec![channel.channel.to_string(), when(channel.created_at)])
        }
        ChannelCommand::Rm { channel } => {
            client.delete_channel(&channel).await?;
            session.done("deleted", &channel)
        }
    }
}

/// Runs `doorstep grant`.
pub(crate) async fn grant(command: GrantCommand, session: &Session) -> Result<(), Failure> {
    let client = &session.client()?;
    match command {
        GrantCommand::Create { principal, resource, permission } => {
            let grant = client.create_grant(&NewGrant { principal, resource, permission }).await?;
            let members = [
                ("grant", grant.grant_id.to_string()),
                ("principal", grant.principal.to_string()),
                ("resource", grant.resource.to_string()),
                ("permission", grant.permission.to_string()),
            ];
            session.item(&grant, &members)
        }
        GrantCommand::Ls { principal } => {
            let principal = principal.as_ref();
            let grants = client.all_pages(|page: PageRequest| async move { client.grants(principal, &page).await }).await?;
            session.list(&["GRANT", "PRINCIPAL", "RESOURCE", "PERMISSION", "CREATED"], &grants, |grant: &Grant| {
                vec![
                    grant.grant_id.to_string(),
                    grant.principal.to_string(),
                    grant.resource.to_string(),
                    grant.permission.to_string(),
                    when(grant.created_at),
                ]
            })
        }
        GrantCommand::Rm { grant } => {
            client.revoke_grant(grant).await?;
            session.done("revoked", &grant)
        }
    }
}
