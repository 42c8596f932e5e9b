//! Places for attempts: how many run at the same time, in all, per tenant, per host, and one per hook. Hooks that are known to fail share half
//! of the places, so that they never take what healthy ones need.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use domain::TenantId;
use tokio::sync::Notify;

use crate::{GroupNumber, Hook, HookId, Settings};

/// Whether a hook is known to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Its last ring was delivered, and this is a first attempt.
    Healthy,
    /// Its last ring was exhausted, or this is a repeated attempt.
    Failing,
}

#[derive(Debug, Default)]
struct Taken {
    hooks: HashSet<HookId>,
    hosts: HashMap<String, usize>,
    tenants: HashMap<TenantId, usize>,
    groups: HashMap<GroupNumber, usize>,
    failing: usize,
    failing_by_tenant: HashMap<TenantId, usize>,
}

/// The places of one sender.
#[derive(Debug)]
pub(crate) struct Places {
    taken: Mutex<Taken>,
    /// A group's last place was given back.
    quiet: Notify,
    most: usize,
    most_per_tenant: usize,
    most_per_host: usize,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    hook: HookId,
    host: String,
    tenant: TenantId,
    group: Option<GroupNumber>,
    condition: Condition,
}

impl Places {
    pub(crate) fn new(settings: &Settings) -> Arc<Self> {
        Arc::new(Self {
            taken: Mutex::default(),
            quiet: Notify::new(),
            most: settings.concurrency.max(1),
            most_per_tenant: settings.concurrency_per_tenant.max(1),
            most_per_host: settings.concurrency_per_host.max(1),
        })
    }

    /// A place for the hook, if there is one; for a ring of its tenant's group, or for one that its owner asks for here and now.
    pub(crate) fn take(self: &Arc<Self>, hook: &Hook, group: Option<GroupNumber>, condition: Condition) -> Option<Place> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (host, tenant) = (hook.url.host(), &hook.tenant);
        let count = |counts: &HashMap<TenantId, usize>| counts.get(tenant).copied().unwrap_or(0);
        let is_full = taken.hooks.contains(&hook.id)
            || taken.hooks.len() >= self.most
            || count(&taken.tenants) >= self.most_per_tenant
            || taken.hosts.get(host).copied().unwrap_or(0) >= self.most_per_host;
        let is_ward_full = condition == Condition::Failing
            && (taken.failing >= half(self.most) || count(&taken.failing_by_tenant) >= half(self.most_per_tenant));
        if is_full || is_ward_full {
            return None;
        }
        taken.hooks.insert(hook.id);
        add(&mut taken.hosts, host.to_owned());
        add(&mut taken.tenants, tenant.clone());
        if let Some(group) = group {
            add(&mut taken.groups, group);
        }
        if condition == Condition::Failing {
            taken.failing += 1;
            add(&mut taken.failing_by_tenant, tenant.clone());
        }
        drop(taken);
        Some(Place { places: Arc::clone(self), hook: hook.id, host: host.to_owned(), tenant: tenant.clone(), group, condition })
    }

    /// How many more may be taken at all.
    pub(crate) fn free(&self) -> usize {
        self.most.saturating_sub(self.taken.lock().unwrap_or_else(PoisonError::into_inner).hooks.len())
    }

    /// The hooks that have one.
    pub(crate) fn hooks(&self) -> Vec<HookId> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).hooks.iter().copied().collect()
    }

    /// Waits until no place is taken for the group.
    pub(crate) async fn quiet(&self, group: GroupNumber) {
        loop {
            let mut given_back = std::pin::pin!(self.quiet.notified());
            // From here on no wake-up is missed.
            given_back.as_mut().enable();
            if !self.taken.lock().unwrap_or_else(PoisonError::into_inner).groups.contains_key(&group) {
                return;
            }
            given_back.await;
        }
    }

    /// The tenants that can have no more.
    pub(crate) fn full_tenants(&self) -> Vec<TenantId> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let full = taken.tenants.iter().filter(|(_, count)| **count >= self.most_per_tenant);
        full.map(|(tenant, _)| tenant.clone()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.hooks.remove(&self.hook);
        subtract(&mut taken.hosts, &self.host);
        subtract(&mut taken.tenants, &self.tenant);
        if let Some(group) = &self.group {
            subtract(&mut taken.groups, group);
            if !taken.groups.contains_key(group) {
                self.places.quiet.notify_waiters();
            }
        }
        if self.condition == Condition::Failing {
            taken.failing = taken.failing.saturating_sub(1);
            subtract(&mut taken.failing_by_tenant, &self.tenant);
        }
    }
}

/// At least one of several.
const fn half(most: usize) -> usize {
    most.div_ceil(2)
}

fn add<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K) {
    *counts.entry(key).or_insert(0) += 1;
}

fn subtract<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}
