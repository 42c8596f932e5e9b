//! What both ways of claiming share: who may, the tokens, repeats under an `Idempotency-Key`, and handing out.

use std::time::Duration;

use authz::Caller;
use domain::{AgentSessionId, EventId, Seq, StoreError, Timestamp};
use ring::rand::{SecureRandom, SystemRandom};

use crate::change::{Change, Tally};
use crate::{
    AckState, Backlog, ClaimKey, ClaimRecord, Claimed, Concurrency, Inbox, InboxError, Item, LeaseKey, LeaseToken, NoArrow, QueueFilter,
    Recipient, Settings,
};

/// On which terms items are claimed.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) lease: Option<Duration>,
    pub(crate) session: Option<AgentSessionId>,
    pub(crate) key: Option<ClaimKey>,
    /// Becomes the tenant's lease key if it has none.
    offered: LeaseKey,
}

/// What was claimed in a transaction.
pub(crate) struct Taken {
    pub(crate) items: Vec<(Item, LeaseToken)>,
    pub(crate) at: Timestamp,
    pub(crate) tally: Tally,
    pub(crate) is_replay: bool,
}

impl Terms {
    /// # Errors
    /// [`InboxError::Invalid`] for a key that is empty or too long.
    pub(crate) fn new(lease: Option<Duration>, session: Option<AgentSessionId>, key: Option<ClaimKey>) -> Result<Self, InboxError> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| StoreError::Unavailable)?;
        if key.as_ref().is_some_and(|key| key.key.is_empty() || key.key.len() > 256) {
            return Err(InboxError::invalid("", "an Idempotency-Key has 1 to 256 characters"));
        }
        Ok(Self { lease, session, key, offered: LeaseKey::new(bytes) })
    }

    /// Whether this session may claim.
    pub(crate) fn check_session(&self, change: &Change<'_>) -> Result<(), InboxError> {
        let row = &change.row;
        let is_allowed = match row.policy.concurrency {
            Concurrency::ManySessions => true,
            Concurrency::SingleActiveSession => self.session.is_some() && self.session == row.active_session,
        };
        if is_allowed { Ok(()) } else { Err(InboxError::SessionNotActive) }
    }

    /// How many more items the agent may hold, of `wanted`.
    pub(crate) async fn room(change: &mut Change<'_>, wanted: usize) -> Result<usize, InboxError> {
        let Some(most) = change.row.policy.max_in_flight else { return Ok(wanted) };
        let held = change.tx.claimed(change.row.number, u64::from(most)).await?;
        let room = u64::from(most).saturating_sub(held);
        Ok(wanted.min(usize::try_from(room).unwrap_or(usize::MAX)))
    }

    /// The tenant's lease key.
    pub(crate) async fn lease_key(&self, change: &mut Change<'_>) -> Result<LeaseKey, InboxError> {
        Ok(change.tx.lease_key(&change.row.recipient.tenant, &self.offered).await?)
    }

    /// Claims one item.
    pub(crate) fn take(&self, item: &mut Item, key: &LeaseKey, change: &Change<'_>) -> Result<LeaseToken, NoArrow> {
        let rules = &change.kit.settings.rules;
        let token = key.token(&change.row.recipient.agent, item.facts.event_id, item.next_generation());
        item.claim(change.now, rules.lease(self.lease), token.hash(), self.session.clone(), rules)?;
        Ok(token)
    }

    /// What a repeat of the same request is answered: the claims that are still held at the generation that they were given at; `None` when
    /// there was none, or nothing of it is left (inbox.md, `claimNext`).
    pub(crate) async fn replay(&self, change: &mut Change<'_>) -> Result<Option<Vec<(Item, LeaseToken)>>, InboxError> {
        let Some(key) = &self.key else { return Ok(None) };
        let Some(record) = change.tx.claim_record(change.row.number, &key.key).await? else { return Ok(None) };
        if record.created_at.plus(change.kit.settings.claim_record_retention) <= change.now {
            return Ok(None);
        }
        if record.request_hash != key.request_hash {
            return Err(InboxError::IdempotencyConflict);
        }
        let events: Vec<EventId> = record.claims.iter().map(|(event, _)| *event).collect();
        let found = change.tx.find(change.row.number, &events).await?;
        let lease_key = self.lease_key(change).await?;
        let mut held = Vec::new();
        for (item, (_, generation)) in found.into_iter().zip(&record.claims) {
            let held_still = |item: &Item| item.state == AckState::Claimed && item.generation == *generation;
            let Some(mut item) = item.filter(held_still) else { continue };
            let is_over = item.due_at().is_none_or(|due| due <= change.now);
            if is_over && !item.forgive(change.now, change.kit.started_at) {
                continue;
            }
            // Who asks again may hold it from now on: the first answer, if it is still on its way to nobody, takes nothing back.
            item.answer_again(change.now);
            change.moved(item.clone(), None);
            let token = lease_key.token(&change.row.recipient.agent, item.facts.event_id, item.generation);
            held.push((item, token));
        }
        Ok((!held.is_empty()).then_some(held))
    }

    /// Remembers what the key stands for. An empty answer stands for nothing: its repeat claims afresh.
    pub(crate) async fn record(&self, change: &mut Change<'_>, taken: &[(Item, LeaseToken)]) -> Result<(), InboxError> {
        let Some(key) = self.key.as_ref().filter(|_| !taken.is_empty()) else { return Ok(()) };
        let claims = taken.iter().map(|(item, _)| (item.facts.event_id, item.generation)).collect();
        let record = ClaimRecord { request_hash: key.request_hash, claims, created_at: change.now };
        Ok(change.tx.put_claim_record(change.row.number, &key.key, &record).await?)
    }
}

/// Whether `item` still fits into an answer that has `bytes` of envelopes and histories already; one always does.
pub(crate) fn fits(settings: &Settings, bytes: &mut usize, item: &Item) -> bool {
    let envelope = usize::try_from(item.facts.envelope_bytes).unwrap_or(usize::MAX);
    let sum = bytes.saturating_add(envelope).saturating_add(item.history_bytes());
    let fits = *bytes == 0 || sum <= settings.claim_max_bytes;
    if fits {
        *bytes = sum.max(1);
    }
    fits
}

impl Inbox {
    /// Adds the envelopes, read outside the writer, and says how much of `queues` is left, where it is asked for. When they cannot be read, what was
    /// claimed is given back.
    pub(crate) async fn hand_out(
        &self,
        caller: &Caller,
        recipient: &Recipient,
        taken: Vec<(Item, LeaseToken)>,
        at: Timestamp,
        queues: Option<&QueueFilter>,
    ) -> Result<(Vec<Claimed>, Option<Backlog>), InboxError> {
        if taken.is_empty() {
            return Ok((Vec::new(), None));
        }
        let wanted: Vec<(Seq, EventId)> = taken.iter().map(|(item, _)| (item.facts.inbox_seq, item.facts.event_id)).collect();
        let (store, most) = (&self.parts.store, self.settings().backlog_count_max);
        let read = match queues {
            Some(queues) => {
                let read = store.envelopes_and_backlog(recipient, &wanted, queues, self.parts.clock.now(), most).await;
                read.map(|(envelopes, backlog)| (envelopes, Some(backlog)))
            }
            None => store.envelopes(&recipient.tenant, &wanted).await.map(|envelopes| (envelopes, None)),
        };
        let (envelopes, backlog) = match read {
            Ok(read) => read,
            Err(error) => {
                let claims = taken.into_iter().map(|(item, token)| (item.facts.event_id, token)).collect();
                if let Err(error) = self.give_back_unread(caller, claims).await {
                    tracing::warn!(error = %error, "items that could not be handed out are held until their leases end");
                }
                return Err(error.into());
            }
        };
        let claims = taken.into_iter().zip(envelopes.into_iter().chain(std::iter::repeat(None)));
        let claims = claims.map(|((item, token), envelope)| {
            let expires_in = item.lease.as_ref().map(|lease| lease.until.since(at)).unwrap_or_default();
            Claimed { item, token, expires_in, envelope }
        });
        Ok((claims.collect(), backlog))
    }

    pub(crate) fn count_claims(&self, taken: &Taken) {
        let metrics = &self.parts.metrics;
        taken.tally.count(metrics);
        if taken.is_replay {
            metrics.claims_replayed.increment();
        } else {
            metrics.claims.add(taken.items.len() as u64);
        }
    }
}
