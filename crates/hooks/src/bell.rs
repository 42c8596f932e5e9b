//! The bell of the dispatcher: rung by the tail when a committed row may concern a hook. It carries nothing but the tenant's name.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use domain::{Event, EventOrigin, TenantId};
use tokio::sync::Notify;

/// What events of the inbox begin with.
const INBOX_PREFIX: &str = "inbox.";

/// Wakes the dispatcher.
#[derive(Debug, Default)]
pub struct HookBell {
    rung: Mutex<Rung>,
    wake: Notify,
}

/// What rang since somebody looked.
#[derive(Debug, Default)]
pub(crate) struct Rung {
    /// Tenants whose log has news.
    pub(crate) tenants: BTreeSet<TenantId>,
    /// A hook was made, enabled or removed: the tenants that have hooks are other ones.
    pub(crate) is_changed: bool,
}

impl HookBell {
    /// Sees committed events of a tenant, in order, after authorizer and inbox bells did. Cheap: nothing is read.
    pub fn observe(&self, tenant: &TenantId, events: &[Arc<Event>]) {
        if events.iter().any(|event| concerns(event)) {
            self.ring(tenant);
        }
    }

    /// Hooks of a tenant are other ones than before.
    pub(crate) fn change(&self, tenant: &TenantId) {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner).is_changed = true;
        self.ring(tenant);
    }

    fn ring(&self, tenant: &TenantId) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        if !rung.tenants.contains(tenant) {
            rung.tenants.insert(tenant.clone());
        }
        drop(rung);
        self.wake.notify_one();
    }

    /// Waits until something rang since [`HookBell::take`]. Cancel safe.
    pub(crate) async fn wait(&self) {
        while self.rung.lock().unwrap_or_else(PoisonError::into_inner).tenants.is_empty() {
            self.wake.notified().await;
        }
    }

    /// What rang since the last call.
    pub(crate) fn take(&self) -> Rung {
        std::mem::take(&mut *self.rung.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether a row may concern a hook.
pub(crate) fn concerns(event: &Event) -> bool {
    match event.origin {
        EventOrigin::Work => true,
        EventOrigin::Server => event.event_type.as_str().starts_with(INBOX_PREFIX),
        EventOrigin::Published => false,
    }
}
