//! The state machine of an item: every arrow there is, and no other (inbox.md, "State machine"). Pure: time and tokens are passed in.
//!
//! A transition either happens as a whole or answers why not and changes nothing. Whoever presents a lease has been checked against
//! [`Item::holds`] before.

use std::time::Duration;

use domain::{AgentSessionId, Timestamp};

use crate::{AckState, Attempt, AttemptOutcome, DeadLetterState, Generation, Item, Lease, LeaseHash, Rules};

/// Why an item became claimable again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequeueReason {
    /// Its worker gave it back.
    Released,
    /// Its lease passed, and so did its rest.
    LeaseExpired,
    /// Its rest is over.
    RetryDue,
    /// It was a dead letter and was given new attempts.
    Redriven,
    /// It was put aside and released.
    Unquarantined,
    /// The server took it back for a reason of its own.
    Interrupted,
}

impl RequeueReason {
    /// The word in `inbox.requeued`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::LeaseExpired => "lease_expired",
            Self::RetryDue => "retry_due",
            Self::Redriven => "redriven",
            Self::Unquarantined => "unquarantined",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What the log is to say of a transition. `Ended` and `Resting` leave no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It became claimable again: `inbox.requeued`.
    Requeued(RequeueReason),
    /// Its attempts are used up: `inbox.dead_lettered`.
    DeadLettered,
    /// It was put aside: `inbox.quarantined`.
    Quarantined,
    /// It waits for its next attempt.
    Resting,
    /// It is over: acknowledged, expired or discarded.
    Ended,
}

/// That no arrow leads from the item's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such transition from this state")]
pub struct NoArrow;

/// The result that a worker acknowledges with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckResult {
    /// It is done.
    Completed,
    /// It failed; it is tried again, or is a dead letter.
    Failed,
    /// Nobody needs to work on it.
    Discarded,
}

impl AckResult {
    /// The outcome that the attempt's history keeps.
    pub const fn outcome(self) -> AttemptOutcome {
        match self {
            Self::Completed => AttemptOutcome::Completed,
            Self::Failed => AttemptOutcome::Failed,
            Self::Discarded => AttemptOutcome::Discarded,
        }
    }
}

/// What a worker hands in with its result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Its line about the attempt.
    pub summary: Option<String>,
    /// What it made, as JSON text.
    pub result: Option<String>,
}

/// How an item is given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// The worker could not; the attempt counts.
    Counted {
        /// How long the item rests; claimable at once when absent.
        rest: Option<Duration>,
    },
    /// The worker wants it later; the attempt does not count.
    Snooze {
        /// How long the item rests; claimable at once when absent.
        rest: Option<Duration>,
    },
    /// The server's own reason; the attempt does not count, and the item is claimable at once.
    Interrupted,
}

impl Item {
    /// The generation that the next claim will have.
    pub const fn next_generation(&self) -> Generation {
        self.generation.next()
    }

    /// Whether `token` is the one of the item's present lease.
    pub fn holds(&self, token: &LeaseHash) -> bool {
        self.state == AckState::Claimed && self.lease_hash.as_ref() == Some(token)
    }

    /// The latest attempt, if it was ended by its own worker under `token`: how a repeated acknowledge or release is recognised.
    pub fn settled_by(&self, token: &LeaseHash) -> Option<&Attempt> {
        let own = self.state != AckState::Claimed && self.lease_hash.as_ref() == Some(token);
        self.history.last().filter(|attempt| own && attempt.number == self.delivery_attempts)
    }

    /// Available at `now`, or a retry that is due, and not expired: what a claim may take.
    pub fn is_claimable(&self, now: Timestamp) -> bool {
        let alive = self.facts.expires_at.is_none_or(|end| end > now);
        alive
            && match self.state {
                AckState::Available => true,
                AckState::RetryScheduled => self.next_retry_at.is_some_and(|at| at <= now),
                _ => false,
            }
    }

    /// Where a claim finds it: a retry that is due stands where its return puts it.
    pub fn claim_key(&self, rules: &Rules) -> Timestamp {
        match self.next_retry_at {
            Some(at) if self.state == AckState::RetryScheduled => rules.claim_key(at, self.facts.priority),
            _ => self.claim_key,
        }
    }

    /// Claims it: the next generation, with the token that belongs to that. A retry that is due passes through `available`, and leaves no row.
    ///
    /// # Errors
    /// [`NoArrow`] when it is not claimable at `now`.
    pub fn claim(
        &mut self,
        now: Timestamp,
        lease: Duration,
        token: LeaseHash,
        session: Option<AgentSessionId>,
        rules: &Rules,
    ) -> Result<(), NoArrow> {
        if !self.is_claimable(now) {
            return Err(NoArrow);
        }
        self.state = AckState::Claimed;
        self.next_retry_at = None;
        self.generation = self.next_generation();
        self.delivery_attempts = self.delivery_attempts.saturating_add(1);
        self.lease_hash = Some(token);
        let attempt_deadline = now.plus(rules.attempt_deadline);
        self.lease = Some(Lease {
            until: now.plus(lease).min(attempt_deadline),
            attempt_deadline,
            claimed_at: now,
            heartbeat_at: now,
            session,
            backoff: rules.backoff(self.counted_attempts.saturating_add(1), token.dice()),
        });
        Ok(())
    }

    /// Extends the lease to `extend` from now, never beyond the attempt's deadline and never shorter than it is. Also past the lease's end, as
    /// long as nobody noticed; answers the new end.
    ///
    /// # Errors
    /// [`NoArrow`] when it is not claimed, or the attempt's deadline has passed.
    pub fn heartbeat(&mut self, now: Timestamp, extend: Duration) -> Result<Timestamp, NoArrow> {
        let lease = self.lease.as_mut().filter(|lease| lease.attempt_deadline > now).ok_or(NoArrow)?;
        lease.heartbeat_at = now;
        lease.until = lease.until.max(now.plus(extend)).min(lease.attempt_deadline);
        Ok(lease.until)
    }

    /// Its claim is answered once more, to a worker that asks again: that worker is heard of. See [`Item::is_unheard`].
    pub(crate) fn answer_again(&mut self, now: Timestamp) {
        if let Some(lease) = &mut self.lease {
            lease.heartbeat_at = now.max(lease.claimed_at.plus(Duration::from_micros(1))).max(lease.heartbeat_at);
        }
    }

    /// Whether nothing was heard of its worker since the claim: only then can the claim be taken back because its answer did not arrive.
    pub(crate) fn is_unheard(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.heartbeat_at <= lease.claimed_at)
    }

    /// Ends the attempt with its worker's result, also past the lease's end, as long as nobody noticed.
    ///
    /// # Errors
    /// [`NoArrow`] when it is not claimed.
    pub fn acknowledge(&mut self, now: Timestamp, result: AckResult, report: Report, rules: &Rules) -> Result<Step, NoArrow> {
        let lease = self.end_attempt(now, result.outcome(), report, rules)?;
        Ok(match result {
            AckResult::Completed => self.end(AckState::Acked, now),
            AckResult::Discarded => self.end(AckState::Discarded, now),
            AckResult::Failed => self.after_counted(now, Some(now.plus(lease.backoff))),
        })
    }

    /// Ends the attempt without a result.
    ///
    /// # Errors
    /// [`NoArrow`] when it is not claimed.
    pub fn release(&mut self, now: Timestamp, release: &Release, report: Report, rules: &Rules) -> Result<Step, NoArrow> {
        let (outcome, rest) = match release {
            Release::Counted { rest } => (AttemptOutcome::Released, *rest),
            Release::Snooze { rest } => (AttemptOutcome::Snoozed, *rest),
            Release::Interrupted => (AttemptOutcome::Interrupted, None),
        };
        self.end_attempt(now, outcome, report, rules)?;
        let retry_at = rest.map(|rest| now.plus(rest.min(rules.retry_cap)));
        let step = match release {
            Release::Counted { .. } => self.after_counted(now, retry_at),
            Release::Snooze { .. } | Release::Interrupted => self.rest_or_return(now, retry_at),
        };
        Ok(match (step, release) {
            (Step::Requeued(_), Release::Interrupted) => self.come_back(now, RequeueReason::Interrupted, rules),
            (Step::Requeued(reason), _) => self.come_back(now, reason, rules),
            (step, _) => step,
        })
    }

    /// The server was away until `since`: a lease whose worker could not be heard since before then lasts from then for as long as it had when its
    /// worker was last heard of, never beyond the attempt's deadline, and its worker counts as heard of at `since`: each restart is forgiven once. A restart burns no attempt.
    /// Answers whether the lease was extended.
    pub fn forgive(&mut self, now: Timestamp, since: Timestamp) -> bool {
        let Some(lease) = self.lease.as_mut().filter(|lease| lease.heartbeat_at < since) else { return false };
        let until = since.plus(lease.until.since(lease.heartbeat_at)).min(lease.attempt_deadline);
        let extends = until > now && until > lease.until;
        if extends {
            lease.until = until;
            lease.heartbeat_at = since;
        }
        extends
    }

    /// What time has made of it by `now`: a lease that lapsed, a retry that is due, an expiry. `None` when nothing is due. The sweeper and a claim
    /// that comes first decide alike, because both ask here.
    pub fn settle(&mut self, now: Timestamp, rules: &Rules) -> Option<Step> {
        if self.due_at().is_none_or(|due| due > now) {
            return None;
        }
        if let Some(lease) = self.lease.clone() {
            let lapsed_at = lease.ends_at();
            // It is claimed, so the arrow is there.
            let _ = self.end_attempt(lapsed_at, AttemptOutcome::LeaseExpired, Report::default(), rules);
            let step = self.after_counted(now, Some(lapsed_at.plus(lease.backoff)));
            return Some(match step {
                Step::Resting if self.next_retry_at.is_some_and(|at| at <= now) => self.come_back(now, RequeueReason::LeaseExpired, rules),
                step => step,
            });
        }
        if self.facts.expires_at.is_some_and(|end| end <= now) {
            return Some(self.end(AckState::Expired, now));
        }
        Some(self.come_back(now, RequeueReason::RetryDue, rules))
    }

    /// Puts it aside.
    ///
    /// # Errors
    /// [`NoArrow`] unless it is current.
    pub fn quarantine(&mut self, now: Timestamp, rules: &Rules) -> Result<Step, NoArrow> {
        self.take_away(now, rules)?;
        self.state = AckState::Quarantined;
        self.dead_letter = DeadLetterState::Quarantined;
        Ok(Step::Quarantined)
    }

    /// Ends what is put aside: it is claimable again.
    ///
    /// # Errors
    /// [`NoArrow`] unless it is quarantined.
    pub fn unquarantine(&mut self, now: Timestamp, rules: &Rules) -> Result<Step, NoArrow> {
        if self.state != AckState::Quarantined {
            return Err(NoArrow);
        }
        self.dead_letter = if self.was_redriven() { DeadLetterState::Redriven } else { DeadLetterState::None };
        Ok(self.come_back(now, RequeueReason::Unquarantined, rules))
    }

    /// Whether its attempts were counted anew once: its history has more that count than it counts.
    fn was_redriven(&self) -> bool {
        let counts = |attempt: &&Attempt| {
            matches!(attempt.outcome, AttemptOutcome::Failed | AttemptOutcome::Released | AttemptOutcome::LeaseExpired)
        };
        self.history.iter().filter(counts).count() > usize::try_from(self.counted_attempts).unwrap_or(usize::MAX)
    }

    /// Decides that nobody needs to work on it.
    ///
    /// # Errors
    /// [`NoArrow`] when it has ended.
    pub fn discard(&mut self, now: Timestamp, rules: &Rules) -> Result<Step, NoArrow> {
        match self.state {
            AckState::Quarantined | AckState::DeadLetter => {}
            _ => self.take_away(now, rules)?,
        }
        Ok(self.end(AckState::Discarded, now))
    }

    /// Gives a dead letter new attempts: the same row, its history kept.
    ///
    /// # Errors
    /// [`NoArrow`] unless it is a dead letter.
    pub fn redrive(&mut self, now: Timestamp, rules: &Rules) -> Result<Step, NoArrow> {
        if self.state != AckState::DeadLetter {
            return Err(NoArrow);
        }
        self.counted_attempts = 0;
        self.dead_letter = DeadLetterState::Redriven;
        Ok(self.come_back(now, RequeueReason::Redriven, rules))
    }

    /// Takes a current item from whoever has it: a token that was given is worth nothing any more.
    fn take_away(&mut self, now: Timestamp, rules: &Rules) -> Result<(), NoArrow> {
        match self.state {
            AckState::Claimed => _ = self.end_attempt(now, AttemptOutcome::Revoked, Report::default(), rules)?,
            AckState::Available | AckState::RetryScheduled => {}
            _ => return Err(NoArrow),
        }
        self.next_retry_at = None;
        self.generation = self.next_generation();
        self.lease_hash = None;
        Ok(())
    }

    /// Moves the lease into the history.
    fn end_attempt(&mut self, ended_at: Timestamp, outcome: AttemptOutcome, report: Report, rules: &Rules) -> Result<Lease, NoArrow> {
        let lease = self.lease.take().ok_or(NoArrow)?;
        self.history.push(Attempt {
            number: self.delivery_attempts,
            session: lease.session.clone(),
            claimed_at: lease.claimed_at,
            heartbeat_at: lease.heartbeat_at,
            ended_at,
            outcome,
            summary: report.summary,
            result: report.result,
        });
        let excess = self.history.len().saturating_sub(rules.history_max.max(1));
        self.history.drain(..excess);
        let older = self.history.len().saturating_sub(rules.results_kept);
        for attempt in self.history.iter_mut().take(older) {
            attempt.result = None;
        }
        Ok(lease)
    }

    /// After an attempt that counts: expired, a dead letter, at rest, or to come back at once.
    fn after_counted(&mut self, now: Timestamp, retry_at: Option<Timestamp>) -> Step {
        self.counted_attempts = self.counted_attempts.saturating_add(1);
        if self.facts.expires_at.is_some_and(|end| end <= now) {
            return self.end(AckState::Expired, now);
        }
        if self.counted_attempts >= self.facts.max_attempts {
            self.state = AckState::DeadLetter;
            self.dead_letter = DeadLetterState::DeadLettered;
            return Step::DeadLettered;
        }
        self.rest_or_return(now, retry_at)
    }

    fn rest_or_return(&mut self, now: Timestamp, retry_at: Option<Timestamp>) -> Step {
        if self.facts.expires_at.is_some_and(|end| end <= now) {
            return self.end(AckState::Expired, now);
        }
        match retry_at {
            Some(at) => {
                self.state = AckState::RetryScheduled;
                self.next_retry_at = Some(at);
                Step::Resting
            }
            None => Step::Requeued(RequeueReason::Released),
        }
    }

    /// It is claimable again, and stands where the time of its return puts it.
    fn come_back(&mut self, now: Timestamp, reason: RequeueReason, rules: &Rules) -> Step {
        let returned_at = self.next_retry_at.take().unwrap_or(now);
        self.state = AckState::Available;
        self.claim_key = rules.claim_key(returned_at, self.facts.priority);
        Step::Requeued(reason)
    }

    fn end(&mut self, state: AckState, now: Timestamp) -> Step {
        self.state = state;
        self.next_retry_at = None;
        self.ended_at = Some(now);
        Step::Ended
    }
}
