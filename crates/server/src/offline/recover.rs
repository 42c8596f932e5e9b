//! `doorstep recover-owner`: a new token for an owner, from the store itself.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use authz::{Admin, AdminError, Authorizer, DEFAULT_TENANT, Principal, TokenSecret};
use clap::Args;
use domain::{SystemIds, TenantId};

use super::{configured, existing, failed};
use crate::command::{ConfigSource, on_runtime};
use crate::serve::{OWNER_TOKEN_FILE, write_private};
use crate::store::Store;

/// What `doorstep recover-owner` takes.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  doorstep recover-owner --data-dir /var/lib/doorstep\n\n\
    The server must be stopped. Whoever may write its data directory may do this; it is in the audit log. Older tokens keep working.")]
pub(crate) struct RecoverArguments {
    /// Of this tenant; the tenant `default` operates the instance.
    #[arg(long, value_name = "ID", default_value = DEFAULT_TENANT)]
    tenant: TenantId,
    #[command(flatten)]
    source: ConfigSource,
}

/// Makes a token and leaves it in the file of the first owner's.
pub(crate) fn recover_owner(arguments: &RecoverArguments) -> ExitCode {
    let config = match configured(&arguments.source) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let path = config.data.dir.join(OWNER_TOKEN_FILE);
    on_runtime(async {
        let store = match existing(&config).await {
            Ok(store) => store,
            Err(fault) => return failed(&fault),
        };
        let recovered = recover(&store, &arguments.tenant, &path).await;
        store.close().await;
        match recovered {
            Ok(owner) => {
                let _ = writeln!(std::io::stdout().lock(), "a new token of {} is in {}", owner.id, path.display());
                ExitCode::SUCCESS
            }
            Err(Fault::File(error)) => failed(&format!("the token cannot be kept in {}: {error}", path.display())),
            Err(Fault::Admin(AdminError::NotFound)) => failed(&format!("there is no tenant {} with an enabled owner", arguments.tenant)),
            Err(Fault::Admin(error)) => failed(&error),
        }
    })
}

async fn recover(store: &Store, tenant: &TenantId, path: &Path) -> Result<Principal, Fault> {
    let (ports, clock) = (&store.ports, store.clock.clone());
    let authorizer = Authorizer::new(ports.identities.clone(), clock.clone());
    let admin = Admin::new(authorizer, ports.identities.clone(), ports.administration.clone(), clock, Arc::new(SystemIds));
    let keep = |secret: &TokenSecret| write_private(path, secret.reveal()).map_err(Fault::File);
    admin.recover_owner(tenant, keep).await
}

/// What can go wrong.
enum Fault {
    File(std::io::Error),
    Admin(AdminError),
}

impl From<AdminError> for Fault {
    fn from(error: AdminError) -> Self {
        Self::Admin(error)
    }
}
