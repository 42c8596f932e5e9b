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
    rung: Mutex<BTreeSet<TenantId>>,
    wake: Notify,
}

impl HookBell {
    /// Sees committed events of a tenant, in order, after authorizer and inbox bells did. Cheap: nothing is read.
    pub fn observe(&self, tenant: &TenantId, events: &[Arc<Event>]) {
        if events.iter().any(|event| concerns(event)) {
            self.ring(tenant);
        }
    }

    /// Has the dispatcher look at a tenant.
    pub(crate) fn ring(&self, tenant: &TenantId) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        if !rung.contains(tenant) {
            rung.insert(tenant.clone());
        }
        drop(rung);
        self.wake.notify_one();
    }

    /// The tenants that were rung for since the last call, as soon as there is one. Cancel safe.
    pub(crate) async fn rung(&self) -> BTreeSet<TenantId> {
        loop {
            let rung = std::mem::take(&mut *self.rung.lock().unwrap_or_else(PoisonError::into_inner));
            if !rung.is_empty() {
                return rung;
            }
            self.wake.notified().await;
        }
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
