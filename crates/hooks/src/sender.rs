//! The sender: makes the attempts of outstanding rings. Hooks take turns, tenants first; a turn makes one attempt after the other and ends with
//! the first that fails, so that a receiver that hangs holds up nobody but itself.

use std::sync::Arc;
use std::time::Duration;

use domain::{StoreError, Timestamp};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::gate::Gate;
use crate::places::{Condition, Place};
use crate::settling::{BATCH_MAX, Outcome, TURN_MAX};
use crate::{AttemptClass, Delivery, DueHook, DueQuery, GroupNumber, Hook, HookError, HookKey, Hooks};

/// Looks at what is due in one go before the sender waits again.
const ROUNDS: usize = 16;
/// Hooks that are asked for in one look, beyond those that there are places for.
const LOOK_AHEAD: usize = 64;
/// Rings of one hook that are taken in one turn.
const PER_TURN: usize = 64;
/// How often expired keys are looked for.
const HOUSEKEEPING: Duration = Duration::from_mins(1);
/// Keys that are removed in one step.
const PURGE_BATCH: usize = 500;
/// What an attempt is given to be written in while its group's lease lasts.
const WRITING: Duration = Duration::from_millis(500);
/// The shortest wait, so that what is due shortly after one another shares a look.
const SHORTEST: Duration = Duration::from_millis(5);

/// Sends what is due.
#[derive(Debug)]
pub struct Sender {
    hooks: Arc<Hooks>,
    tasks: TaskTracker,
}

/// What a turn hands over to be written, and by what it learns that it was.
type Written = (Vec<Outcome>, oneshot::Sender<()>);

impl Sender {
    /// A sender for these hooks.
    pub fn new(hooks: Arc<Hooks>) -> Self {
        Self { hooks, tasks: TaskTracker::new() }
    }

    /// Sends until `stop`, then waits for the attempts in flight: at most `hooks.attempt_timeout`.
    pub async fn run(&self, stop: CancellationToken) {
        let (sender, receiver) = mpsc::channel::<Written>(self.hooks.parts.settings.concurrency.max(1));
        let writer = self.tasks.spawn(write(Arc::clone(&self.hooks), receiver));
        let mut kept_at: Option<Instant> = None;
        while !stop.is_cancelled() {
            if kept_at.is_none_or(|at| at.elapsed() >= HOUSEKEEPING) {
                kept_at = Some(Instant::now());
                self.hooks.purge_keys().await;
            }
            let pause = self.look(&sender, &stop).await;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = self.hooks.due.notified() => {}
                () = sleep(pause) => {}
            }
        }
        // The writer ends when the last turn has let go of it.
        drop(sender);
        self.tasks.close();
        drop(writer);
        self.tasks.wait().await;
    }

    /// Begins turns of hooks that are due as long as there are places; answers how long to wait for what is next.
    async fn look(&self, sender: &mpsc::Sender<Written>, stop: &CancellationToken) -> Duration {
        let (parts, settings) = (&self.hooks.parts, &self.hooks.parts.settings);
        match self.begin_turns(sender, stop).await {
            Ok(()) => {}
            Err(error) => {
                parts.metrics.store_errors.increment();
                tracing::warn!(error = %error, "rings that are due could not be read; it is tried again");
                return settings.poll_interval;
            }
        }
        match parts.store.next_due(&self.hooks.sendable()).await {
            // What is due and did not get a place waits for the end of a turn, which wakes the sender.
            Ok(Some(due)) if due > parts.clock.now() => due.since(parts.clock.now()).clamp(SHORTEST, settings.poll_interval.max(SHORTEST)),
            _ => settings.poll_interval,
        }
    }

    async fn begin_turns(&self, sender: &mpsc::Sender<Written>, stop: &CancellationToken) -> Result<(), StoreError> {
        let (places, groups) = (&self.hooks.places, self.hooks.sendable());
        let mut passed_by = Vec::new();
        for _ in 0..ROUNDS {
            let free = places.free();
            if free == 0 {
                return Ok(());
            }
            let except = [places.hooks(), passed_by.clone()].concat();
            let full = places.full_tenants();
            let now = self.hooks.parts.clock.now();
            let hooks = free.saturating_add(LOOK_AHEAD);
            let query = DueQuery { now, hooks, per_hook: PER_TURN, groups: &groups, except: &except, except_tenants: &full };
            let due = self.hooks.parts.store.due(query).await?;
            if due.is_empty() {
                return Ok(());
            }
            for due in due {
                match places.take(&due.hook, Some(due.group), condition(&due)) {
                    Some(place) => {
                        let turn = Turn { hooks: Arc::clone(&self.hooks), due, place, sender: sender.clone(), stop: stop.clone() };
                        self.tasks.spawn(turn.run());
                    }
                    None => passed_by.push(due.hook.id),
                }
            }
        }
        Ok(())
    }
}

fn condition(due: &DueHook) -> Condition {
    let is_repeated = due.deliveries.first().is_some_and(|delivery| delivery.attempts > 0);
    if due.hook.health.exhausted_in_row > 0 || is_repeated { Condition::Failing } else { Condition::Healthy }
}

/// One hook's turn.
struct Turn {
    hooks: Arc<Hooks>,
    due: DueHook,
    place: Place,
    sender: mpsc::Sender<Written>,
    stop: CancellationToken,
}

/// Whether a turn goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    GoOn,
    End,
}

impl Turn {
    async fn run(self) {
        let Self { hooks, due, place, sender, stop } = self;
        let (mut hook, mut keys) = (due.hook, due.keys);
        let began = Instant::now();
        let mut outcomes = Vec::new();
        for (number, delivery) in due.deliveries.into_iter().enumerate() {
            // An attempt that outlasted the lease might meet the next holder's.
            if !hooks.is_sendable(due.group) {
                break;
            }
            if number > 0 {
                if began.elapsed() >= TURN_MAX || stop.is_cancelled() {
                    break;
                }
                // What is about to be rung is read again: it may have been disabled, moved or given another key.
                match reread(&hooks, &hook).await {
                    Ok(Some(fresh)) => (hook, keys) = fresh,
                    Ok(None) | Err(_) => break,
                }
            }
            match step(&hooks, &hook, &keys, due.group, delivery).await {
                Ok(None) => break,
                Ok(Some((outcome, course))) => {
                    outcomes.push(outcome);
                    if course == Course::End {
                        break;
                    }
                }
                Err(error) => {
                    hooks.parts.metrics.store_errors.increment();
                    tracing::warn!(hook.id = %hook.id, error = %error, "a ring could not be looked at; it is tried again");
                    sleep(hooks.parts.settings.poll_interval).await;
                    break;
                }
            }
        }
        let (done, written) = oneshot::channel();
        if !outcomes.is_empty() && sender.send((outcomes, done)).await.is_ok() {
            // Until then the store still says that they are due.
            let _ = written.await;
        }
        drop(place);
        hooks.due.notify_one();
    }
}

async fn reread(hooks: &Hooks, hook: &Hook) -> Result<Option<(Hook, Vec<HookKey>)>, StoreError> {
    let Some(fresh) = hooks.parts.store.hook(&hook.tenant, hook.id).await? else { return Ok(None) };
    Ok(Some((fresh, hooks.parts.store.keys(hook.id).await?)))
}

/// Looks at one ring, and makes its attempt if it is still worth making; nothing when it is too late for that.
async fn step(
    hooks: &Hooks,
    hook: &Hook,
    keys: &[HookKey],
    group: GroupNumber,
    delivery: Delivery,
) -> Result<Option<(Outcome, Course)>, HookError> {
    let now = hooks.parts.clock.now();
    Ok(Some(match hooks.gate(hook, &delivery, now).await? {
        Gate::Withdraw => (Outcome::Withdrawn(delivery), Course::GoOn),
        Gate::Wait(until) => (Outcome::Postponed(delivery, until), Course::End),
        Gate::Expand(rings) => (Outcome::Expanded(delivery, rings), Course::GoOn),
        // The gate has asked the store, which may have taken long: another node may have the group by now.
        Gate::Ring { .. } if !hooks.is_sendable(group) => return Ok(None),
        Gate::Ring { body, told } => match hooks.attempt(hook, keys, &delivery, body).await {
            Ok(attempted) => {
                // One at a time after a failure; and what was learnt about the rate is not in the row that was read.
                let went_well = attempted.record.class == AttemptClass::Delivered && hook.max_rate_per_minute.is_none();
                let course = if went_well && hook.health.exhausted_in_row == 0 { Course::GoOn } else { Course::End };
                (Outcome::Attempted { delivery, attempted, told }, course)
            }
            Err(HookError::Secrets(error)) => {
                tracing::warn!(hook.id = %hook.id, error = %error, "a ring cannot be signed; it waits");
                (Outcome::Postponed(delivery, unsigned_until(hooks, now)), Course::End)
            }
            Err(error) => return Err(error),
        },
    }))
}

/// When a ring that cannot be signed is looked at again: its receiver is not to blame.
fn unsigned_until(hooks: &Hooks, now: Timestamp) -> Timestamp {
    now.plus(hooks.parts.settings.retry_after_max)
}

/// Writes what turns hand over, as much of it as waits in one transaction.
async fn write(hooks: Arc<Hooks>, mut receiver: mpsc::Receiver<Written>) {
    let mut waiting = Vec::new();
    while receiver.recv_many(&mut waiting, BATCH_MAX).await > 0 {
        let (outcomes, done): (Vec<_>, Vec<_>) = waiting.drain(..).unzip();
        hooks.settle_all(outcomes.concat()).await;
        for done in done {
            // Whoever waits no more has no use for it.
            let _ = done.send(());
        }
    }
}

impl Hooks {
    /// The groups whose rings may be sent from here now.
    fn sendable(&self) -> Vec<GroupNumber> {
        self.leases.held().into_iter().filter(|group| self.is_sendable(*group)).collect()
    }

    /// Whether an attempt that begins now ends, and is written, while the group still is this node's.
    fn is_sendable(&self, group: GroupNumber) -> bool {
        self.leases.remaining(group) >= self.parts.settings.attempt_timeout.saturating_add(WRITING)
    }

    /// Removes keys whose overlap is over.
    async fn purge_keys(&self) {
        loop {
            match self.run("purge_hook_keys", PurgeJob).await {
                Ok(count) if count < PURGE_BATCH as u64 => return,
                Ok(_) => {}
                Err(error) => {
                    self.parts.metrics.store_errors.increment();
                    tracing::warn!(error = %error, "expired keys of hooks could not be removed; it is tried again");
                    return;
                }
            }
        }
    }
}

struct PurgeJob;

#[async_trait::async_trait]
impl crate::hooks::Job for PurgeJob {
    type Answer = u64;

    async fn run(&self, tx: &mut dyn crate::HookTx) -> Result<u64, HookError> {
        let now = tx.now();
        Ok(tx.purge_keys(now, PURGE_BATCH).await?)
    }
}
