//! From rows of the log to rings: which hooks a page concerns, and what is stored for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use domain::{Event, EventId, EventOrigin, PrincipalId, QueueName, Seq, StoreError, TenantId, Timestamp};
use inbox::{INBOX_REQUEUED, INBOX_RESUMED, Item, ItemFilter, ItemRange, Recipient};
use serde::Deserialize;

use crate::behind::{Standing, fold, most_queues};
use crate::hooks::Job;
use crate::managing::catch_up;
use crate::{
    Delivery, Generation, GroupNumber, Hook, HookError, HookId, HookKind, HookTx, Hooks, LogPosition, Reason, Settings, WebhookId,
};

/// Hooks that are read in one step when a position is lost.
const HOOKS_PER_STEP: usize = 200;

/// What a row of the log says to hooks.
#[derive(Clone, Debug)]
enum News {
    /// An item became claimable.
    Item(EventId, Reason),
    /// Everything, or a queue, is to be rung again.
    Resumed(Option<QueueName>),
}

/// What a page of the log makes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// Rings of notify hooks, by hook in the order of the log.
    rings: BTreeMap<HookId, Vec<Delivery>>,
    /// The latest news of callbacks.
    signals: BTreeMap<HookId, Delivery>,
    /// The catch-up of notify hooks that are behind, with how many rings it stands for.
    folds: BTreeMap<HookId, (Delivery, u64)>,
    /// The hooks that these belong to.
    hooks: BTreeMap<HookId, Hook>,
}

impl Plan {
    pub(crate) fn is_empty(&self) -> bool {
        self.rings.is_empty() && self.signals.is_empty() && self.folds.is_empty()
    }

    /// Has the catch-up of a hook stand for one more row.
    fn fold(&mut self, hook: &Hook, event: &Event) {
        self.hooks.entry(hook.id).or_insert_with(|| hook.clone());
        let count = self.folds.get(&hook.id).map_or(0, |(_, count)| *count);
        self.folds.insert(hook.id, (catch_up(hook, event.seq, event.created_at, event.created_at), count + 1));
    }

    fn add(&mut self, hook: &Hook, ring: Delivery) {
        self.hooks.entry(hook.id).or_insert_with(|| hook.clone());
        match hook.kind {
            HookKind::Notify => self.rings.entry(hook.id).or_default().push(ring),
            HookKind::Callback => drop(self.signals.insert(hook.id, ring)),
        }
    }
}

impl Hooks {
    /// What the rows of a page make, where these hooks are known to be behind. Reads, and writes nothing.
    pub(crate) async fn plan(&self, tenant: &TenantId, events: &[Arc<Event>], behind: &BTreeSet<HookId>) -> Result<Plan, StoreError> {
        let mut plan = Plan::default();
        let news: Vec<(&Event, News)> = events.iter().filter_map(|event| Some((&**event, news(event)?))).collect();
        let agents: BTreeSet<&PrincipalId> = news.iter().flat_map(|(event, _)| event.audience.as_slice()).collect();
        if agents.is_empty() {
            return Ok(plan);
        }
        let agents: Vec<PrincipalId> = agents.into_iter().cloned().collect();
        let mut by_agent: BTreeMap<PrincipalId, Vec<Hook>> = BTreeMap::new();
        for hook in self.parts.store.active_hooks(tenant, &agents).await? {
            by_agent.entry(hook.agent.clone()).or_default().push(hook);
        }
        for (agent, hooks) in by_agent {
            let recipient = Recipient { tenant: tenant.clone(), agent };
            let news: Vec<_> = news.iter().filter(|(event, _)| event.audience.contains(&recipient.agent)).collect();
            let is_behind = |hook: &Hook| behind.contains(&hook.id);
            // Whoever is for every queue need not know which it was.
            let (blind, hooks): (Vec<Hook>, Vec<Hook>) = hooks.into_iter().partition(|hook| is_behind(hook) && hook.queues.is_empty());
            for hook in &blind {
                news.iter().filter(|(event, _)| event.seq > hook.since).for_each(|(event, _)| plan.fold(hook, event));
            }
            if hooks.is_empty() {
                continue;
            }
            let items = self.items(&recipient, news.iter().map(|(_, news)| news)).await?;
            for (event, news) in news {
                for hook in hooks.iter().filter(|hook| event.seq > hook.since) {
                    match ring(hook, event, news, &items) {
                        Some(_) if is_behind(hook) => plan.fold(hook, event),
                        Some(ring) => plan.add(hook, ring),
                        None => {}
                    }
                }
            }
        }
        Ok(plan)
    }

    async fn items(&self, recipient: &Recipient, news: impl Iterator<Item = &News>) -> Result<BTreeMap<EventId, Item>, StoreError> {
        let ids: BTreeSet<EventId> = news.filter_map(|news| if let News::Item(event, _) = news { Some(*event) } else { None }).collect();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        // Named events are found by their keys: nothing is scanned.
        let range = ItemRange { after: None, limit: ids.len(), scan_max: usize::MAX, bytes_max: usize::MAX };
        let filter = ItemFilter { event_ids: ids.into_iter().collect(), ..ItemFilter::default() };
        let items = self.parts.inboxes.items(recipient, &filter, range).await?.items;
        Ok(items.into_iter().map(|item| (item.facts.event_id, item)).collect())
    }

    /// Every active hook of a tenant, to be rung for what waits.
    pub(crate) async fn everything(&self, tenant: &TenantId) -> Result<Vec<Hook>, StoreError> {
        let mut hooks: Vec<Hook> = Vec::new();
        loop {
            let after = hooks.last().map(|hook| hook.id);
            let more = self.parts.store.all_active_hooks(tenant, after, HOOKS_PER_STEP).await?;
            let is_last = more.len() < HOOKS_PER_STEP;
            hooks.extend(more);
            if is_last {
                return Ok(hooks);
            }
        }
    }
}

fn news(event: &Event) -> Option<News> {
    match (event.origin, event.event_type.as_str()) {
        (EventOrigin::Work, _) => Some(News::Item(event.id, Reason::Created)),
        (EventOrigin::Server, INBOX_REQUEUED) => payload(event)?.event_id.map(|id| News::Item(id, Reason::Requeued)),
        (EventOrigin::Server, INBOX_RESUMED) => Some(News::Resumed(payload(event)?.queue)),
        _ => None,
    }
}

/// What is read of the payload of the inbox's own events.
#[derive(Default, Deserialize)]
struct Payload {
    event_id: Option<EventId>,
    queue: Option<QueueName>,
}

fn payload(event: &Event) -> Option<Payload> {
    #[derive(Deserialize)]
    struct Envelope {
        payload: Payload,
    }
    let text = [b"{", &event.body[..]].concat();
    let envelope: Option<Envelope> = serde_json::from_slice(&text).ok();
    if envelope.is_none() {
        tracing::warn!(event.id = %event.id, event.seq = event.seq.get(), "an event of the inbox cannot be read; no hook is rung for it");
    }
    Some(envelope?.payload)
}

/// The ring of a hook for a row; `None` for what is none of its business by now.
fn ring(hook: &Hook, event: &Event, news: &News, items: &BTreeMap<EventId, Item>) -> Option<Delivery> {
    let (seq, at) = (event.seq, event.created_at);
    let blank = catch_up(hook, seq, at, at);
    match news {
        News::Item(id, reason) => {
            let item = items.get(id).filter(|item| item.ring_seq == seq && hook.is_for(&item.facts.queue))?;
            Some(match hook.kind {
                HookKind::Callback => blank,
                HookKind::Notify => Delivery {
                    id: WebhookId::of_item(hook.id, seq, *id),
                    reason: *reason,
                    event: Some(*id),
                    queue: Some(item.facts.queue.clone()),
                    ..blank
                },
            })
        }
        News::Resumed(Some(queue)) if hook.kind == HookKind::Notify => hook.is_for(queue).then(|| Delivery {
            id: WebhookId::of_backlog(hook.id, Some(queue), seq, at),
            queue: Some(queue.clone()),
            ..blank
        }),
        News::Resumed(_) => Some(blank),
    }
}

/// What a step of the dispatcher came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stepped {
    /// Rings that are new.
    pub(crate) rings: u64,
    /// Rings that collapsed.
    pub(crate) collapsed: u64,
    /// Where the tenant stands now.
    pub(crate) position: Option<LogPosition>,
    /// Hooks that fell behind or were so, and how they stand now.
    pub(crate) standings: Vec<(HookId, Standing)>,
}

/// Stores the rings of a page and moves the position past it, both or neither, and only in the name of who holds the group. `None` for a holder
/// that was fenced off.
pub(crate) struct PageJob {
    pub(crate) tenant: TenantId,
    pub(crate) group: GroupNumber,
    pub(crate) generation: Generation,
    pub(crate) position: LogPosition,
    pub(crate) plan: Plan,
    pub(crate) bounds: Bounds,
}

/// How many rings of one hook may be outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Of one whose last ring was not given up.
    healthy: u64,
    /// Of the others.
    failing: u64,
    /// Of one that is behind: its catch-up, one for each queue, and one to see that there are more.
    behind: usize,
}

impl Bounds {
    pub(crate) fn of(settings: &Settings) -> Self {
        let healthy = settings.outstanding_max.max(1) as u64;
        let failing = healthy.min(settings.outstanding_failing_max.max(1) as u64);
        Self { healthy, failing, behind: most_queues(settings).saturating_add(2) }
    }

    const fn on(&self, hook: &Hook) -> u64 {
        if hook.health.exhausted_in_row > 0 { self.failing } else { self.healthy }
    }
}

#[async_trait]
impl Job for PageJob {
    type Answer = Option<Stepped>;

    async fn run(&self, tx: &mut dyn HookTx) -> Result<Option<Stepped>, HookError> {
        if !tx.advance(&self.tenant, self.group, self.generation, self.position).await? {
            return Ok(None);
        }
        let mut stepped = Stepped { position: Some(self.position), ..Stepped::default() };
        // All of them, in order: whoever changes rings of several hooks locks them by id.
        let hooks: Vec<HookId> = self.plan.hooks.keys().copied().collect();
        let outstanding: BTreeMap<HookId, u64> = tx.outstanding(&hooks).await?.into_iter().collect();
        for (id, rings) in &self.plan.rings {
            let count = outstanding.get(id).copied().unwrap_or(0) + rings.len() as u64;
            let (Some(hook), Some(last)) = (self.plan.hooks.get(id), rings.last()) else { continue };
            if count > self.bounds.on(hook) {
                stepped.collapsed += tx.clear_deliveries(*id).await? + rings.len() as u64;
                stepped.rings += tx.add_deliveries(&[catch_up(hook, last.cause, last.created_at, last.next_at)]).await?;
                stepped.standings.push((*id, Standing::Behind));
            } else {
                stepped.rings += tx.add_deliveries(rings).await?;
            }
        }
        for (id, (news, count)) in &self.plan.folds {
            let folded = fold(tx, news, self.bounds.behind).await?;
            stepped.rings += folded.rings;
            stepped.collapsed += count.saturating_sub(folded.rings);
            stepped.standings.push((*id, folded.standing));
        }
        for (id, signal) in &self.plan.signals {
            stepped.rings += coalesce(tx, *id, signal).await?;
        }
        Ok(Some(stepped))
    }
}

/// A callback has one outstanding signal: later news only moves its cause.
async fn coalesce(tx: &mut dyn HookTx, hook: HookId, signal: &Delivery) -> Result<u64, HookError> {
    let outstanding = tx.deliveries(hook, 2).await?;
    match outstanding.into_iter().find(|ring| ring.reason == Reason::Signal) {
        Some(mut ring) if ring.cause < signal.cause => {
            ring.cause = signal.cause;
            tx.save_deliveries(&[ring]).await?;
            Ok(0)
        }
        Some(_) => Ok(0),
        None => Ok(tx.add_deliveries(std::slice::from_ref(signal)).await?),
    }
}

/// The position is lost: it becomes the head, and every hook is rung for what waits.
pub(crate) struct ResetJob {
    pub(crate) tenant: TenantId,
    pub(crate) group: GroupNumber,
    pub(crate) generation: Generation,
    pub(crate) hooks: Vec<Hook>,
}

#[async_trait]
impl Job for ResetJob {
    type Answer = Option<Stepped>;

    async fn run(&self, tx: &mut dyn HookTx) -> Result<Option<Stepped>, HookError> {
        let (head, now): (_, Timestamp) = (tx.head_of_log(&self.tenant).await?, tx.now());
        let position = LogPosition { epoch: head.epoch, seq: head.seq };
        if !tx.advance(&self.tenant, self.group, self.generation, position).await? {
            return Ok(None);
        }
        let mut stepped = Stepped { position: Some(position), ..Stepped::default() };
        for hook in &self.hooks {
            stepped.rings += match hook.kind {
                HookKind::Notify => tx.add_deliveries(&[catch_up(hook, head.seq, now, now)]).await?,
                HookKind::Callback => coalesce(tx, hook.id, &catch_up(hook, head.seq, now, now)).await?,
            };
        }
        Ok(Some(stepped))
    }
}

/// Where a tenant begins that has no position: at the earliest instant from which a hook is to be rung. `head` was read before the hooks were, so
/// that what comes after it concerns hooks that come later too.
pub(crate) fn beginning(hooks: &[Hook], head: Seq) -> Seq {
    hooks.iter().map(|hook| hook.since).min().map_or(head, |since| since.min(head))
}
