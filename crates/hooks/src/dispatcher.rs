//! The dispatcher: a durable, fenced consumer of every tenant's log that turns committed rows into outstanding rings. The log is its outbox: it
//! rings for nothing that is not committed, and what it has not looked at waits. Works for the tenants of the groups that are this node's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use domain::{StoreError, TenantId};
use sync::{Head, PageRange};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::behind::Standing;
use crate::hooks::Job;
use crate::planning::{Bounds, PageJob, ResetJob, Stepped, beginning};
use crate::{Generation, GroupNumber, HookError, HookId, HookTx, Hooks, LogPosition};

/// Tenants that are read in one step.
const TENANTS_PER_STEP: usize = 500;

/// Reads logs and stores rings.
#[derive(Debug)]
pub struct Dispatcher {
    hooks: Arc<Hooks>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    groups: BTreeMap<GroupNumber, Generation>,
    tenants: BTreeMap<TenantId, Reader>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("groups", &self.groups).field("tenants", &self.tenants.len()).finish()
    }
}

/// How far a tenant's log was looked at, by this dispatcher.
struct Reader {
    group: GroupNumber,
    /// What is stored.
    stored: Option<LogPosition>,
    /// What was looked at: ahead of that while nothing concerned a hook.
    looked: Option<LogPosition>,
    /// Hooks that are behind, as far as this dispatcher has seen it.
    behind: BTreeSet<HookId>,
    /// Has the tail tell of news.
    tail: Option<Box<dyn Send + Sync>>,
}

/// Whether a look at a tenant found everything there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Head,
    More,
    /// Somebody else holds the group by now.
    Fenced,
}

impl Dispatcher {
    /// A dispatcher for these hooks.
    pub fn new(hooks: Arc<Hooks>) -> Self {
        Self { hooks, state: Mutex::default() }
    }

    /// Dispatches until `stop`: when the bell rings, and every `hooks.poll_interval`.
    pub async fn run(&self, stop: CancellationToken) {
        let settings = &self.hooks.parts.settings;
        let mut poll_at = Instant::now();
        while !stop.is_cancelled() {
            let rung = self.hooks.bell.take();
            let is_poll = poll_at <= Instant::now();
            if is_poll {
                poll_at = Instant::now() + settings.poll_interval;
            }
            let outcome = if is_poll || rung.is_changed { self.look_at_all().await } else { self.look_at(rung.tenants).await };
            if let Err(error) = outcome {
                self.hooks.parts.metrics.store_errors.increment();
                tracing::warn!(error = %error, "logs could not be looked at for hooks; it is tried again");
                poll_at = Instant::now() + settings.poll_interval;
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = sleep_until(poll_at) => continue,
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.hooks.bell.wait() => sleep(settings.gather_interval).await,
                () = sleep_until(poll_at) => {}
            }
        }
    }

    /// Looks at every tenant that has hooks, until there is nothing more.
    ///
    /// # Errors
    /// The store's. What was stored until then stays.
    pub async fn look_at_all(&self) -> Result<(), StoreError> {
        let behind = self.refresh().await?;
        self.look_at(behind).await
    }

    /// Reads which tenants have hooks; answers those whose log has news.
    async fn refresh(&self) -> Result<BTreeSet<TenantId>, StoreError> {
        let (store, logs) = (&self.hooks.parts.store, &self.hooks.parts.logs);
        let held = self.hooks.leases.held();
        let mut state = self.state.lock().await;
        self.take(&mut state, &held).await?;
        let mut found = BTreeSet::new();
        let mut after: Option<TenantId> = None;
        loop {
            let page = store.tenants(&held, after.as_ref(), TENANTS_PER_STEP).await?;
            let is_last = page.len() < TENANTS_PER_STEP;
            after = page.last().map(|tenant| tenant.tenant.clone());
            for row in page {
                found.insert(row.tenant.clone());
                state.tenants.entry(row.tenant).or_insert(Reader {
                    group: row.group,
                    stored: row.position,
                    looked: row.position,
                    behind: BTreeSet::new(),
                    tail: None,
                });
            }
            if is_last {
                break;
            }
        }
        state.tenants.retain(|tenant, _| found.contains(tenant));
        self.keep_tails(&mut state).await;
        let found: Vec<TenantId> = found.into_iter().collect();
        let mut behind = BTreeSet::new();
        for tenants in found.chunks(TENANTS_PER_STEP) {
            for (tenant, head) in logs.heads(tenants).await? {
                if state.tenants.get(&tenant).is_some_and(|reader| !reader.is_at(&head)) {
                    behind.insert(tenant);
                }
            }
        }
        Ok(behind)
    }

    /// Takes the groups that are this node's now, and forgets the others. Positions are read after their group was taken: nobody else moves them by then.
    async fn take(&self, state: &mut State, held: &[GroupNumber]) -> Result<(), StoreError> {
        state.groups.retain(|group, _| held.contains(group));
        let State { groups, tenants } = state;
        tenants.retain(|_, reader| groups.contains_key(&reader.group));
        for group in held {
            if !groups.contains_key(group) {
                groups.insert(*group, self.store("take_hook_group", TakeJob(*group)).await?);
            }
        }
        Ok(())
    }

    async fn keep_tails(&self, state: &mut State) {
        let most = self.hooks.parts.settings.tails_max;
        for (tenant, reader) in state.tenants.iter_mut().take(most).filter(|(_, reader)| reader.tail.is_none()) {
            match self.hooks.parts.tails.keep(tenant).await {
                Ok(tail) => reader.tail = Some(tail),
                Err(error) => tracing::debug!(tenant.id = %tenant, error = %error, "no tail; the log is polled"),
            }
        }
    }

    /// Looks at these tenants, as far as they have hooks; one page of each in turn.
    async fn look_at(&self, mut tenants: BTreeSet<TenantId>) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        tenants.retain(|tenant| state.tenants.contains_key(tenant));
        let mut failure = None;
        while !tenants.is_empty() {
            for tenant in tenants.clone() {
                match self.step(&mut state, &tenant).await {
                    Ok(Reached::More) => {}
                    Ok(Reached::Head) => drop(tenants.remove(&tenant)),
                    Ok(Reached::Fenced) => {
                        tracing::warn!(tenant.id = %tenant, "hooks are dispatched by somebody else by now; the group is forgotten");
                        state.forget_group_of(&tenant);
                        failure = Some(StoreError::Conflict("fenced off"));
                    }
                    Err(StoreError::TenantInactive) => {
                        state.tenants.remove(&tenant);
                        tenants.remove(&tenant);
                    }
                    Err(error) => {
                        // One log that cannot be read keeps no other from its turn.
                        tracing::warn!(tenant.id = %tenant, error = %error, "the log could not be looked at for hooks");
                        tenants.remove(&tenant);
                        failure = Some(error);
                    }
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Looks at one page of a tenant's log.
    async fn step(&self, state: &mut State, tenant: &TenantId) -> Result<Reached, StoreError> {
        let (parts, settings) = (&self.hooks.parts, &self.hooks.parts.settings);
        let Some(reader) = state.tenants.get(tenant) else { return Ok(Reached::Head) };
        let group = reader.group;
        let Some(generation) = state.groups.get(&group).copied() else { return Ok(Reached::Head) };
        if self.hooks.leases.remaining(group).is_zero() {
            return Ok(Reached::Head);
        }
        let looked = match reader.looked {
            Some(looked) => looked,
            None => self.begin(tenant).await?,
        };
        let range = PageRange { after: looked.seq, up_to: None, max_events: settings.page.max(1), max_bytes: settings.page_bytes };
        let page = parts.logs.page(tenant, range).await?;
        if page.head.epoch != looked.epoch || page.is_below_floor(looked.seq) || looked.seq > page.head.seq {
            parts.metrics.positions_lost.increment();
            tracing::warn!(tenant.id = %tenant, position.seq = looked.seq.get(), "the position of hooks in the log is lost; what waits is rung for");
            let hooks = self.hooks.everything(tenant).await?;
            let stepped = self.store("reset_hook_position", ResetJob { tenant: tenant.clone(), group, generation, hooks }).await?;
            return Ok(self.note(state, tenant, stepped));
        }
        let seq = page.events.last().map_or(looked.seq, |event| event.seq);
        let position = LogPosition { epoch: looked.epoch, seq };
        let plan = self.hooks.plan(tenant, &page.events, &reader.behind).await?;
        let is_worth_storing = reader.stored.is_none_or(|stored| seq.since(stored.seq) >= settings.page as u64);
        let reached = if seq >= page.head.seq { Reached::Head } else { Reached::More };
        if plan.is_empty() && !is_worth_storing {
            if let Some(reader) = state.tenants.get_mut(tenant) {
                reader.looked = Some(position);
            }
            return Ok(reached);
        }
        let job = PageJob { tenant: tenant.clone(), group, generation, position, plan, bounds: Bounds::of(settings) };
        let stepped = self.store("store_rings", job).await?;
        Ok(match self.note(state, tenant, stepped) {
            Reached::Head => reached,
            other => other,
        })
    }

    /// Where a tenant begins that was never looked at.
    async fn begin(&self, tenant: &TenantId) -> Result<LogPosition, StoreError> {
        let head = self.hooks.parts.logs.head(tenant).await?.ok_or(StoreError::TenantInactive)?;
        let hooks = self.hooks.everything(tenant).await?;
        Ok(LogPosition { epoch: head.epoch, seq: beginning(&hooks, head.seq) })
    }

    fn note(&self, state: &mut State, tenant: &TenantId, stepped: Option<Stepped>) -> Reached {
        let Some(stepped) = stepped else { return Reached::Fenced };
        if let Some(reader) = state.tenants.get_mut(tenant) {
            (reader.stored, reader.looked) = (stepped.position, stepped.position);
            reader.note(&stepped.standings, self.hooks.parts.settings.max_per_tenant);
        }
        let metrics = &self.hooks.parts.metrics;
        metrics.rings.add(stepped.rings);
        metrics.collapsed.add(stepped.collapsed);
        if stepped.rings > 0 {
            self.hooks.due.notify_one();
        }
        Reached::Head
    }

    async fn store<J: Job>(&self, name: &'static str, job: J) -> Result<J::Answer, StoreError> {
        self.hooks.run(name, job).await.map_err(|error| match error {
            HookError::Store(error) => error,
            _ => StoreError::RolledBack,
        })
    }
}

impl State {
    /// What is known of a tenant's group is somebody else's doing by now.
    fn forget_group_of(&mut self, tenant: &TenantId) {
        let Some(group) = self.tenants.get(tenant).map(|reader| reader.group) else { return };
        self.groups.remove(&group);
        self.tenants.retain(|_, reader| reader.group != group);
    }
}

impl Reader {
    /// Remembers which hooks are behind, of at most so many.
    fn note(&mut self, standings: &[(HookId, Standing)], most: usize) {
        for (hook, standing) in standings {
            match standing {
                Standing::Behind => drop(self.behind.insert(*hook)),
                Standing::Abreast => drop(self.behind.remove(hook)),
            }
        }
        // Of hooks that are gone nobody tells. Whoever is forgotten is found out about again.
        if self.behind.len() > most {
            self.behind.clear();
        }
    }

    /// Whether there is nothing to look at.
    fn is_at(&self, head: &Head) -> bool {
        self.looked.is_some_and(|looked| looked.epoch == head.epoch && looked.seq == head.seq)
    }
}

struct TakeJob(GroupNumber);

#[async_trait]
impl Job for TakeJob {
    type Answer = Generation;

    async fn run(&self, tx: &mut dyn HookTx) -> Result<Generation, HookError> {
        Ok(tx.take_group(self.0).await?)
    }
}
