//! `doorstep tenant`, for the operator of the instance.

use clap::Subcommand;
use client::{PageRequest, PrincipalId, TenantId};
use protocol::admin::{NewTenant, Tenant, TenantChange, TenantState};

use super::when;
use crate::failure::Failure;
use crate::session::Session;

/// Tenants: isolated from each other, each with a log of its own. For the operator of the instance.
#[derive(Clone, Debug, Subcommand)]
pub enum TenantCommand {
    /// Create a tenant with its first owner, whose token is printed this once.
    #[command(after_help = "Example:\n  doorstep tenant create acme > acme-owner.token")]
    Create {
        /// Its name.
        id: TenantId,
        /// The name of its first owner; `owner` when absent.
        #[arg(long, value_name = "ID")]
        owner: Option<PrincipalId>,
    },
    /// List tenants.
    #[command(after_help = "Example:\n  doorstep tenant ls")]
    Ls,
    /// Refuse a tenant's requests and close its connections.
    #[command(after_help = "Example:\n  doorstep tenant suspend acme")]
    Suspend {
        /// The tenant.
        id: TenantId,
    },
    /// Serve a suspended tenant again.
    #[command(after_help = "Example:\n  doorstep tenant activate acme")]
    Activate {
        /// The tenant.
        id: TenantId,
    },
}

/// Runs `doorstep tenant`.
pub(crate) async fn run(command: TenantCommand, session: &Session) -> Result<(), Failure> {
    let client = &session.client()?;
    match command {
        TenantCommand::Create { id, owner } => {
            let created = client.create_tenant(&NewTenant { id, owner }).await?;
            if session.options.json {
                return session.json(&created);
            }
            let told = format!(
                "tenant {}; its owner {} has token {}, which is shown this once",
                created.tenant.id, created.owner, created.token_id
            );
            session.note(&told);
            match &created.token {
                Some(token) => session.line(token.expose()),
                None => Err(Failure::Failed("the server has not sent the owner's token".to_owned())),
            }
        }
        TenantCommand::Ls => {
            let tenants = client.all_pages(|page: PageRequest| async move { client.tenants(&page).await }).await?;
            session.list(&["TENANT", "STATE", "HEAD", "CREATED"], &tenants, |tenant: &Tenant| {
                vec![tenant.id.to_string(), tenant.state.to_string(), tenant.head_seq.to_string(), when(tenant.created_at)]
            })
        }
        TenantCommand::Suspend { id } => show(session, &client.change_tenant(&id, &TenantChange { state: TenantState::Suspended }).await?),
        TenantCommand::Activate { id } => show(session, &client.change_tenant(&id, &TenantChange { state: TenantState::Active }).await?),
    }
}

fn show(session: &Session, tenant: &Tenant) -> Result<(), Failure> {
    let members = [
        ("tenant", tenant.id.to_string()),
        ("state", tenant.state.to_string()),
        ("head", tenant.head_seq.to_string()),
        ("created", when(tenant.created_at)),
    ];
    session.item(tenant, &members)
}
