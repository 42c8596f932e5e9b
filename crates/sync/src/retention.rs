//! Retention: removes what is older than `sync.event_retention`, and deduplication keys that expired, in small steps and fairly over all tenants.
//!
//! The floor is raised first; the rows go at least `sync.retention_grace` later, so that a reader that began before is not cut off.

use std::fmt;
use std::sync::Arc;

use authz::{IdentityStore, Keyset, TenantState};
use domain::{Clock, StoreError, TenantId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{LogStore, RetentionMetrics, Settings};

const TENANTS_PER_PAGE: usize = 500;

/// The retention task of this process.
pub struct Retention {
    store: Arc<dyn LogStore>,
    identities: Arc<dyn IdentityStore>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    metrics: RetentionMetrics,
}

impl fmt::Debug for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retention").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// A tenant with what may still be due in a pass.
struct Due {
    tenant: TenantId,
    may_raise: bool,
    may_sweep: bool,
}

impl Retention {
    /// Retention over these ports; nothing happens before [`Retention::start`] or [`Retention::pass`].
    pub fn new(store: Arc<dyn LogStore>, identities: Arc<dyn IdentityStore>, clock: Arc<dyn Clock>, settings: Settings) -> Arc<Self> {
        Arc::new(Self { store, identities, clock, settings, metrics: RetentionMetrics::default() })
    }

    /// Starts the task: a pass each `sync.retention_interval`, until `cancel`.
    pub fn start(self: &Arc<Self>, tracker: &TaskTracker, cancel: CancellationToken) {
        let retention = Arc::clone(self);
        tracker.spawn(async move { retention.run(cancel).await });
    }

    /// A pass each `sync.retention_interval`, until `cancel`.
    pub async fn run(&self, cancel: CancellationToken) {
        let passes = async {
            loop {
                self.pass().await;
                tokio::time::sleep(self.settings.retention_interval).await;
            }
        };
        cancel.run_until_cancelled(passes).await;
    }

    /// What was counted.
    pub fn metrics(&self) -> &RetentionMetrics {
        &self.metrics
    }

    /// Does everything that is due now. Each round gives every tenant one step, so that a large log delays no other. What fails is left to the next pass.
    pub async fn pass(&self) {
        match self.tenants().await {
            Ok(mut due) => {
                while !due.is_empty() {
                    for each in &mut due {
                        self.step(each).await;
                    }
                    due.retain(|each| each.may_raise || each.may_sweep);
                }
            }
            Err(error) => self.failed("list", None, &error),
        }
        self.expire_keys().await;
        self.metrics.passes.increment();
    }

    async fn tenants(&self) -> Result<Vec<Due>, StoreError> {
        let mut due = Vec::new();
        let mut keyset = Keyset { after: None, limit: TENANTS_PER_PAGE };
        loop {
            let page = self.identities.tenants(&keyset).await?;
            let Some(last) = page.last() else { return Ok(due) };
            keyset.after = Some(last.id.to_string());
            let is_last = page.len() < TENANTS_PER_PAGE;
            let may_raise = self.settings.event_retention.is_some();
            let kept = page.into_iter().filter(|tenant| tenant.state != TenantState::Deleting);
            due.extend(kept.map(|tenant| Due { tenant: tenant.id, may_raise, may_sweep: true }));
            if is_last {
                return Ok(due);
            }
        }
    }

    async fn step(&self, due: &mut Due) {
        let limit = self.settings.retention_chunk.max(1);
        if let Some(retention) = self.settings.event_retention.filter(|_| due.may_raise) {
            let older_than = self.clock.now().minus(retention);
            let began = Instant::now();
            let raised = self.store.raise_floor(&due.tenant, older_than, limit).await;
            due.may_raise = self.settle("raise_floor", &due.tenant, raised.map(|raised| raised.more));
            rest(began).await;
        }
        if due.may_sweep {
            let raised_before = self.clock.now().minus(self.settings.retention_grace);
            let began = Instant::now();
            let swept = self.store.sweep(&due.tenant, raised_before, limit).await;
            if let Ok(swept) = &swept {
                self.metrics.removed_events.add(swept.removed);
            }
            due.may_sweep = self.settle("sweep", &due.tenant, swept.map(|swept| swept.more));
            rest(began).await;
        }
    }

    /// Whether a step has to be repeated in this pass. A tenant that is gone needs none.
    fn settle(&self, step: &'static str, tenant: &TenantId, outcome: Result<bool, StoreError>) -> bool {
        match outcome {
            Ok(more) => more,
            Err(StoreError::TenantInactive) => false,
            Err(error) => {
                self.failed(step, Some(tenant), &error);
                false
            }
        }
    }

    async fn expire_keys(&self) {
        let limit = self.settings.retention_chunk.max(1);
        loop {
            let began = Instant::now();
            match self.store.expire_keys(self.clock.now(), limit).await {
                Ok(expired) => {
                    self.metrics.expired_keys.add(expired);
                    if expired < limit as u64 {
                        return;
                    }
                }
                Err(error) => return self.failed("expire_keys", None, &error),
            }
            rest(began).await;
        }
    }

    fn failed(&self, step: &'static str, tenant: Option<&TenantId>, error: &StoreError) {
        self.metrics.failures.increment();
        tracing::warn!(step, tenant.id = tenant.map(TenantId::as_str), error = %error, "a step of retention failed; the next pass does it");
    }
}

/// Leaves the store to others for as long as a step took.
async fn rest(began: Instant) {
    tokio::time::sleep(began.elapsed()).await;
}
