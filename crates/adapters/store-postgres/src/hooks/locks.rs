//! Locks of hooks.

use std::collections::BTreeSet;

use domain::TenantId;
use hooks::HookId;

use crate::codec;
use crate::db;
use crate::failure::Failure;
use crate::sql::sql;
use crate::tx::WriteTx;

/// The hooks that a transaction has locked, as the columns of statements about several.
#[derive(Default)]
pub(super) struct Locked {
    pub(super) tenants: Vec<String>,
    pub(super) hooks: Vec<uuid::Uuid>,
}

impl Locked {
    /// The tenant of one of them.
    pub(super) fn tenant_of(&self, hook: HookId) -> Option<&str> {
        let place = self.hooks.iter().position(|each| *each == hook.uuid())?;
        self.tenants.get(place).map(String::as_str)
    }
}

/// Locks hooks in the order of their ids; those that are gone are left out.
pub(super) async fn lock_all(tx: &mut WriteTx, hooks: impl IntoIterator<Item = HookId>) -> Result<Locked, Failure> {
    let hooks: Vec<_> = hooks.into_iter().collect::<BTreeSet<_>>().into_iter().map(HookId::uuid).collect();
    let mut locked = Locked::default();
    if hooks.is_empty() {
        return Ok(locked);
    }
    for row in db::query(sql!("hooks/lock_hooks")).bind(hooks).fetch_all(tx.connection()).await? {
        locked.hooks.push(codec::uuid(&row, 0)?);
        locked.tenants.push(codec::get(&row, 1)?);
    }
    Ok(locked)
}

/// Locks a hook and answers its tenant; `None` when it is gone.
pub(super) async fn lock(tx: &mut WriteTx, hook: HookId) -> Result<Option<TenantId>, Failure> {
    let rows = db::query(sql!("hooks/lock_hooks")).bind(vec![hook.uuid()]).fetch_optional(tx.connection()).await?;
    rows.map(|row| codec::text(&row, 1)).transpose()
}
