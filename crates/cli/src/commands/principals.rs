//! `doorstep principal`, `doorstep token`.

use std::num::NonZeroU64;
use std::time::Duration;

use clap::Subcommand;
use client::{PageRequest, PrincipalId, TokenId};
use protocol::DisplayName;
use protocol::admin::{NewPrincipal, NewToken, Principal, PrincipalChange, PrincipalKind, Role, Scope, TokenItem};

use super::{cell, when, words, yes_no};
use crate::arguments::word;
use crate::duration;
use crate::failure::Failure;
use crate::session::Session;

/// People, apps and agents.
#[derive(Clone, Debug, Subcommand)]
pub enum PrincipalCommand {
    /// Create a principal.
    #[command(after_help = "Example:\n  doorstep principal create agent agent_alpha --name 'Agent Alpha'")]
    Create {
        /// What it is.
        #[arg(value_parser = word::<PrincipalKind>())]
        kind: PrincipalKind,
        /// Its id: a-z, 0-9, '_', '.' and '-'.
        id: PrincipalId,
        /// A name for people.
        #[arg(long, value_parser = display_name)]
        name: Option<DisplayName>,
        /// What it may administer; `member` is nothing.
        #[arg(long, value_parser = word::<Role>())]
        role: Option<Role>,
    },
    /// List principals.
    #[command(after_help = "Example:\n  doorstep principal ls")]
    Ls,
    /// Show a principal.
    #[command(after_help = "Example:\n  doorstep principal show agent_alpha")]
    Show {
        /// The principal.
        id: PrincipalId,
    },
    /// Change a principal's name or role.
    #[command(after_help = "Example:\n  doorstep principal update sam --role operator")]
    Update {
        /// The principal.
        id: PrincipalId,
        /// A name for people.
        #[arg(long, value_parser = display_name, required_unless_present = "role")]
        name: Option<DisplayName>,
        /// What it may administer.
        #[arg(long, value_parser = word::<Role>())]
        role: Option<Role>,
    },
    /// Let a principal act again.
    #[command(after_help = "Example:\n  doorstep principal enable agent_alpha")]
    Enable {
        /// The principal.
        id: PrincipalId,
    },
    /// Stop a principal from acting; its connections are closed.
    #[command(after_help = "Example:\n  doorstep principal disable agent_alpha")]
    Disable {
        /// The principal.
        id: PrincipalId,
    },
    /// Delete a principal with its tokens, grants and consumers.
    #[command(after_help = "Example:\n  doorstep principal rm agent_alpha")]
    Rm {
        /// The principal.
        id: PrincipalId,
    },
}

/// Access tokens.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token. It is printed this once.
    #[command(after_help = "Examples:\n  doorstep token create agent_alpha --scopes consume --expires-in 90d\n  \
                            doorstep token create producer > producer.token")]
    Create {
        /// Whose it is.
        principal: PrincipalId,
        /// What it may be used for; several with commas. Everything that its principal may do when absent.
        #[arg(long, value_delimiter = ',', value_parser = word::<Scope>())]
        scopes: Vec<Scope>,
        /// After how long it is refused.
        #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
        expires_in: Option<Duration>,
    },
    /// List the tokens of a principal, without their secrets.
    #[command(after_help = "Example:\n  doorstep token ls agent_alpha")]
    Ls {
        /// Whose.
        principal: PrincipalId,
    },
    /// Revoke a token; its connections are closed.
    #[command(after_help = "Example:\n  doorstep token revoke agent_alpha 0197f0ab-6b12-7d66-8e3f-7c1f5b8e3d22")]
    Revoke {
        /// Whose it is.
        principal: PrincipalId,
        /// The token, as `token ls` shows it.
        #[arg(value_name = "TOKEN")]
        token_id: TokenId,
    },
}

fn display_name(text: &str) -> Result<DisplayName, &'static str> {
    DisplayName::parse(text.to_owned())
}

/// Runs `doorstep principal`.
pub(crate) async fn principal(command: PrincipalCommand, session: &Session) -> Result<(), Failure> {
    let client = session.client()?;
    let change = |id: PrincipalId, change: PrincipalChange| {
        let client = client.clone();
        async move { client.change_principal(&id, &change).await }
    };
    let shown = match command {
        PrincipalCommand::Create { kind, id, name, role } => {
            client.create_principal(&NewPrincipal { kind, id, display_name: name, role }).await?
        }
        PrincipalCommand::Show { id } => client.principal(&id).await?,
        PrincipalCommand::Update { id, name, role } => {
            change(id, PrincipalChange { display_name: name, role, ..PrincipalChange::default() }).await?
        }
        PrincipalCommand::Enable { id } => change(id, PrincipalChange { enabled: Some(true), ..PrincipalChange::default() }).await?,
        PrincipalCommand::Disable { id } => change(id, PrincipalChange { enabled: Some(false), ..PrincipalChange::default() }).await?,
        PrincipalCommand::Rm { id } => {
            client.delete_principal(&id).await?;
            return session.done("deleted", &id);
        }
        PrincipalCommand::Ls => return list(session).await,
    };
    let members = [
        ("id", shown.id.to_string()),
        ("kind", shown.kind.to_string()),
        ("role", shown.role.to_string()),
        ("name", cell(shown.display_name.as_ref())),
        ("enabled", yes_no(shown.enabled)),
        ("created", when(shown.created_at)),
    ];
    session.item(&shown, &members)
}

async fn list(session: &Session) -> Result<(), Failure> {
    let client = &session.client()?;
    let principals = client.all_pages(|page: PageRequest| async move { client.principals(&page).await }).await?;
    session.list(&["ID", "KIND", "ROLE", "ENABLED", "CREATED", "NAME"], &principals, |principal: &Principal| {
        vec![
            principal.id.to_string(),
            principal.kind.to_string(),
            principal.role.to_string(),
            yes_no(principal.enabled),
            when(principal.created_at),
            cell(principal.display_name.as_ref()),
        ]
    })
}

/// Runs `doorstep token`.
pub(crate) async fn token(command: TokenCommand, session: &Session) -> Result<(), Failure> {
    let client = &session.client()?;
    match command {
        TokenCommand::Create { principal, scopes, expires_in } => {
            let expires_in_seconds = expires_in.map(seconds).transpose()?;
            let new = NewToken { scopes: (!scopes.is_empty()).then_some(scopes), expires_in_seconds };
            let created = client.create_token(&principal, &new).await?;
            if session.options.json {
                return session.json(&created);
            }
            // The secret alone goes to standard output, ready to be kept in a file or variable.
            let until = created.expires_at.map_or_else(|| "does not expire".to_owned(), |at| format!("expires {at}"));
            let told = format!("token {} of {principal}: {}, {until}; it is shown this once", created.token_id, words(&created.scopes));
            session.note(&told);
            match &created.token {
                Some(token) => session.line(token.expose()),
                None => Err(Failure::Failed("the server has not sent the token".to_owned())),
            }
        }
        TokenCommand::Ls { principal } => {
            let principal = &principal;
            let tokens = client.all_pages(|page: PageRequest| async move { client.tokens(principal, &page).await }).await?;
            session.list(&["TOKEN", "PREFIX", "SCOPES", "CREATED", "EXPIRES", "LAST USED", "REVOKED"], &tokens, |token: &TokenItem| {
                let time = |instant: Option<client::Timestamp>| instant.map(when).unwrap_or_default();
                vec![
                    token.token_id.to_string(),
                    token.prefix.clone(),
                    words(&token.scopes),
                    when(token.created_at),
                    time(token.expires_at),
                    time(token.last_used_at),
                    time(token.revoked_at),
                ]
            })
        }
        TokenCommand::Revoke { principal, token_id } => {
            client.revoke_token(&principal, token_id).await?;
            session.done("revoked", &token_id)
        }
    }
}

fn seconds(duration: Duration) -> Result<NonZeroU64, Failure> {
    NonZeroU64::new(duration.as_secs()).ok_or_else(|| Failure::Usage("--expires-in is at least 1s".to_owned()))
}
