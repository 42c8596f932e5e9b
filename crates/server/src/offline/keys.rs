//! `doorstep keys rotate`: another master key for a stopped server's store.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use authz::Authorizer;
use clap::{Args, Subcommand};
use domain::SystemIds;
use hooks::{Hooks, HooksParts, MasterVault};

use super::{configured, counted, existing, failed};
use crate::command::{ConfigSource, on_runtime};
use crate::config::Config;
use crate::serve::{LogTails, MASTER_KEY_FILE, NEXT_MASTER_KEY_FILE, NoCalls, master_key};
use crate::store::Store;

/// What is done with the key that seals secrets at rest.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum KeysCommand {
    /// Seal every stored secret with another master key.
    Rotate(RotateArguments),
}

/// What `doorstep keys rotate` takes.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  doorstep keys rotate --data-dir /var/lib/doorstep\n\n\
    The server must be stopped. Without security.master_key or security.master_key_file the key is <data>/master-key: a new one is made and the \
    old one is gone afterwards. Where the configuration gives the key, give the new one there and the old one in \
    security.previous_master_key_files first; this command then seals everything with the new one, and the old one can be taken out.")]
pub(crate) struct RotateArguments {
    #[command(flatten)]
    source: ConfigSource,
}

/// Does it.
pub(crate) fn keys(command: &KeysCommand) -> ExitCode {
    let KeysCommand::Rotate(arguments) = command;
    let config = match configured(&arguments.source) {
        Ok(config) => config,
        Err(code) => return code,
    };
    on_runtime(async {
        let store = match existing(&config).await {
            Ok(store) => store,
            Err(fault) => return failed(&fault),
        };
        let resealed = rotate(&config, &store).await;
        store.close().await;
        match resealed {
            Ok(count) => {
                let _ = writeln!(std::io::stdout().lock(), "{} sealed with the new master key", counted(count, "secret"));
                ExitCode::SUCCESS
            }
            Err(fault) => failed(&fault),
        }
    })
}

/// Each step can be repeated after a crash: until the last, the store's secrets open with the old key or the one in the file of the next.
async fn rotate(config: &Config, store: &Store) -> Result<u64, String> {
    let is_own = config.security.master_key.0.is_none() && config.security.master_key_file.0.is_none();
    if !is_own {
        return reseal(config, store, master_key::vault(config)?).await;
    }
    let (path, next) = (config.data.dir.join(MASTER_KEY_FILE), config.data.dir.join(NEXT_MASTER_KEY_FILE));
    let mut previous = vec![];
    if path.try_exists().map_err(|error| error.to_string())? {
        previous.push(master_key::read(&path)?);
    }
    if !next.try_exists().map_err(|error| error.to_string())? {
        master_key::make(&next)?;
    }
    let count = reseal(config, store, MasterVault::new(master_key::read(&next)?, previous)).await?;
    std::fs::rename(&next, &path).map_err(|error| format!("the new key cannot take the old one's place: {error}"))?;
    Ok(count)
}

async fn reseal(config: &Config, store: &Store, vault: MasterVault) -> Result<u64, String> {
    let (ports, clock) = (store.ports.clone(), store.clock.clone());
    let authorizer = Authorizer::new(ports.identities.clone(), clock.clone());
    let hooks = Hooks::new(HooksParts {
        store: ports.hooks,
        transactions: ports.hook_changes,
        inboxes: ports.inboxes,
        logs: ports.logs,
        tails: Arc::new(LogTails::default()),
        authorizer,
        identities: ports.identities,
        outbound: Arc::new(NoCalls),
        vault: Arc::new(vault),
        clock,
        ids: Arc::new(SystemIds),
        metrics: Arc::default(),
        settings: config.hooks(),
    });
    hooks.reseal().await.map_err(|error| error.to_string())
}
