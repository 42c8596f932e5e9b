//! What became of rings is written in batches: many outcomes share one commit.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::{
    Actor, Audience, EnvelopeParts, EventId, EventOrigin, EventType, IdGenerator, Publication, Seq, StoreError, TenantId, Timestamp,
    encode_body,
};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::behind::{most_queues, tell_apart};
use crate::health::{Settled, settle};
use crate::hooks::Job;
use crate::managing::catch_up;
use crate::ringing::Attempted;
use crate::{
    AttemptClass, Delivery, DisabledCause, HOOK_DISABLED, Hook, HookError, HookId, HookState, HookTx, Hooks, Reason, Settings, WebhookId,
};

/// What became of a ring that was due.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// An attempt was made.
    Attempted {
        /// The ring as it was when it was taken.
        delivery: Delivery,
        /// The attempt.
        attempted: Attempted,
        /// Up to which position of the log it told.
        told: Seq,
    },
    /// Nobody needs it any more.
    Withdrawn(Delivery),
    /// Not before then.
    Postponed(Delivery, Timestamp),
    /// These instead.
    Expanded(Delivery, Vec<Delivery>),
}

impl Outcome {
    pub(crate) const fn delivery(&self) -> &Delivery {
        match self {
            Self::Attempted { delivery, .. } | Self::Withdrawn(delivery) | Self::Postponed(delivery, _) | Self::Expanded(delivery, _) => {
                delivery
            }
        }
    }
}

/// What a batch came to, for the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    exhausted: u64,
    withdrawn: u64,
    disabled: u64,
    verified: u64,
    unverified: u64,
    late: u64,
}

impl Hooks {
    /// Writes outcomes, all in one transaction, or one by one when one of them spoils it for the others.
    pub(crate) async fn settle_all(&self, mut outcomes: Vec<Outcome>) {
        let metrics = &self.parts.metrics;
        // Whoever touches several hooks does so in the order of their ids, so that nobody waits for each other; what concerns one stays in order.
        outcomes.sort_by_key(|outcome| outcome.delivery().hook);
        let job = |outcomes| SettleJob { outcomes, settings: Arc::new(self.parts.settings.clone()), ids: Arc::clone(&self.parts.ids) };
        let tally = match self.run("settle_rings", job(outcomes.clone())).await {
            Ok(tally) => tally,
            Err(_) if outcomes.len() > 1 => {
                for outcome in outcomes {
                    Box::pin(self.settle_all(vec![outcome])).await;
                }
                return;
            }
            Err(error) => {
                metrics.store_errors.increment();
                let ring = outcomes.first().map(|outcome| outcome.delivery().id.to_string());
                tracing::warn!(error = %error, ring.id = ring, "the outcome of a ring could not be written; it will be rung again");
                return;
            }
        };
        metrics.exhausted.add(tally.exhausted);
        metrics.withdrawn.add(tally.withdrawn);
        metrics.disabled.add(tally.disabled);
        metrics.verifications.add(tally.verified);
        metrics.verification_failures.add(tally.unverified);
        metrics.replays_rejected.add(tally.late);
    }
}

struct SettleJob {
    outcomes: Vec<Outcome>,
    settings: Arc<Settings>,
    ids: Arc<dyn IdGenerator>,
}

#[async_trait]
impl Job for SettleJob {
    type Answer = Tally;

    async fn run(&self, tx: &mut dyn HookTx) -> Result<Tally, HookError> {
        let mut batch = Batch { hooks: BTreeMap::new(), notices: Vec::new(), tally: Tally::default() };
        let mut log = Vec::new();
        for outcome in &self.outcomes {
            let delivery = outcome.delivery();
            let stored = tx.delivery(delivery.hook, &delivery.id).await?;
            match outcome {
                Outcome::Attempted { delivery, attempted, told } => {
                    log.push((delivery.hook, attempted.record.clone()));
                    self.attempted(tx, &mut batch, delivery, stored, attempted, *told).await?;
                }
                // Whoever moved its cause meanwhile has news that nobody looked at.
                Outcome::Withdrawn(delivery) if stored.as_ref().is_some_and(|stored| stored.cause == delivery.cause) => {
                    tx.remove_deliveries(delivery.hook, std::slice::from_ref(&delivery.id)).await?;
                    batch.tally.withdrawn += 1;
                }
                Outcome::Postponed(_, until) => {
                    if let Some(mut stored) = stored {
                        stored.next_at = *until;
                        tx.save_deliveries(&[stored]).await?;
                    }
                }
                Outcome::Expanded(catch_up, rings) => {
                    tell_apart(tx, catch_up, stored, rings.clone(), most_queues(&self.settings).saturating_add(1)).await?;
                }
                Outcome::Withdrawn(_) => {}
            }
        }
        for (_, change) in batch.hooks {
            if let Some((was, hook)) = change
                && was != hook
            {
                tx.save_hook(&hook).await?;
            }
        }
        tx.log_attempts(&log, self.settings.log_max).await?;
        // Last, because whoever appends holds up everybody who publishes until the end of the transaction.
        for (tenant, notice) in batch.notices {
            tx.append_hooks(&tenant, &[notice]).await?;
        }
        Ok(batch.tally)
    }
}

/// What the hooks of a batch have become: as they were, and as they are. `None` for one that is gone.
struct Batch {
    hooks: BTreeMap<HookId, Option<(Hook, Hook)>>,
    /// What the log is to say, in the order in which it happened.
    notices: Vec<(TenantId, Publication)>,
    tally: Tally,
}

impl Batch {
    async fn hook(&mut self, tx: &mut dyn HookTx, tenant: &TenantId, id: HookId) -> Result<Option<&mut Hook>, HookError> {
        let change = match self.hooks.entry(id) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(tx.hook(tenant, id).await?.map(|hook| (hook.clone(), hook))),
        };
        Ok(change.as_mut().map(|(_, hook)| hook))
    }
}

impl SettleJob {
    async fn attempted(
        &self,
        tx: &mut dyn HookTx,
        batch: &mut Batch,
        delivery: &Delivery,
        stored: Option<Delivery>,
        attempted: &Attempted,
        told: Seq,
    ) -> Result<(), HookError> {
        let now = tx.now();
        let (mut tally, mut told_of) = (batch.tally, None);
        let Some(hook) = batch.hook(tx, &delivery.tenant, delivery.hook).await? else { return Ok(()) };
        let Some(mut ring) = stored.or_else(|| (delivery.reason == Reason::Test).then(|| delivery.clone())) else {
            // It was cleared while it was on its way: only good news counts.
            if attempted.record.class == AttemptClass::Delivered {
                hook.health.exhausted_in_row = 0;
            }
            return Ok(());
        };
        if delivery.reason == Reason::Test {
            note_test(hook, attempted);
            return Ok(());
        }
        let settled = settle(hook, &mut ring, &attempted.record, attempted.retry_after, now, &self.settings);
        match settled {
            Settled::Again(_) => tx.save_deliveries(std::slice::from_ref(&ring)).await?,
            Settled::Delivered | Settled::Exhausted | Settled::Disabled(_) => {
                tx.remove_deliveries(ring.hook, std::slice::from_ref(&ring.id)).await?;
            }
        }
        match settled {
            Settled::Delivered if ring.reason == Reason::Challenge => {
                if verify(tx, hook, &ring.id).await? {
                    tally.verified += 1;
                } else {
                    tally.late += 1;
                }
            }
            // The head moved while the signal was on its way, or another is wanted after one that was lost.
            Settled::Delivered if ring.reason == Reason::Signal && ring.cause > told => {
                tx.add_deliveries(&[catch_up(hook, ring.cause, now, now)]).await?;
            }
            Settled::Exhausted => {
                tally.exhausted += 1;
                tally.unverified += u64::from(ring.reason == Reason::Challenge);
            }
            Settled::Disabled(cause) => {
                tally.exhausted += 1;
                tally.disabled += 1;
                tally.withdrawn += tx.clear_deliveries(hook.id).await?;
                told_of = Some((hook.tenant.clone(), disabled(hook, cause, EventId::new(self.ids.uuid()), now)?));
                tracing::warn!(
                    tenant.id = %hook.tenant, agent.id = %hook.agent, hook.id = %hook.id, hook.host = %hook.url, hook.cause = cause.as_str(),
                    "a hook is disabled"
                );
            }
            Settled::Delivered | Settled::Again(_) => {}
        }
        batch.tally = tally;
        batch.notices.extend(told_of);
        Ok(())
    }
}

/// A test changes the health of a hook only for the better.
fn note_test(hook: &mut Hook, attempted: &Attempted) {
    let record = &attempted.record;
    hook.health.last_status = record.status;
    hook.health.last_attempt_at = hook.health.last_attempt_at.max(Some(record.at));
    if record.class == AttemptClass::Delivered {
        hook.health.exhausted_in_row = 0;
    }
}

/// The challenge was answered rightly; `false` when it is not the open one any more. The caller saves the hook.
pub(crate) async fn verify(tx: &mut dyn HookTx, hook: &mut Hook, challenge: &WebhookId) -> Result<bool, HookError> {
    let now = tx.now();
    let is_open = hook.challenge.as_ref().is_some_and(|open| open.delivery == *challenge && now < open.expires_at);
    if !is_open || hook.state != HookState::PendingVerification {
        return Ok(false);
    }
    let head = tx.head_of_log(&hook.tenant).await?.seq;
    tx.remove_deliveries(hook.id, std::slice::from_ref(challenge)).await?;
    hook.state = HookState::Active;
    hook.challenge = None;
    hook.since = head;
    hook.health.exhausted_in_row = 0;
    tx.add_deliveries(&[catch_up(hook, head, now, now)]).await?;
    Ok(true)
}

/// `hook.disabled`, for the agent and its operators.
fn disabled(hook: &Hook, cause: DisabledCause, id: EventId, now: Timestamp) -> Result<Publication, StoreError> {
    const UNWRITABLE: StoreError = StoreError::Conflict("an event of hooks cannot be written");
    #[derive(Serialize)]
    struct Payload<'a> {
        hook_id: HookId,
        kind: &'static str,
        agent_id: &'a domain::PrincipalId,
        host: &'a str,
        cause: &'static str,
    }
    let payload =
        Payload { hook_id: hook.id, kind: hook.kind.as_str(), agent_id: &hook.agent, host: hook.url.host(), cause: cause.as_str() };
    let event_type = EventType::parse(HOOK_DISABLED).map_err(|_| UNWRITABLE)?;
    let (actor, audience) = (Actor::server(), [hook.agent.clone()]);
    let payload = to_raw_value(&payload).map_err(|_| UNWRITABLE)?;
    let parts = EnvelopeParts { audience: &audience, payload: Some(&payload), ..EnvelopeParts::new(id, &event_type, now, &actor) };
    let body = encode_body(&parts).map_err(|_| UNWRITABLE)?;
    let (channel, audience, origin) = (None, Audience::new(&audience), EventOrigin::Server);
    Ok(Publication { id, event_type, channel, audience, origin, created_at: now, body, deduplication: None, work: None })
}

/// How long the outcomes of a turn may wait for each other.
pub(crate) const BATCH_MAX: usize = 64;
/// How long a turn of one hook may last before others get one.
pub(crate) const TURN_MAX: Duration = Duration::from_millis(500);
