//! Every arrow of the state machine and every missing one, against the table of the design page, written out anew.

use std::sync::Arc;
use std::time::Duration;

use domain::{EventId, EventType, Priority, QueueName, Timestamp, Work, WorkFor};
use inbox::{AckResult, AckState, Item, LeaseHash, NoArrow, RecipientNumber, Release, Report, RequeueReason, Rules, Step};
use uuid::Uuid;

use crate::memory::START;
use crate::world::{agent, seq};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    Claim,
    Complete,
    Fail,
    GiveUp,
    Release,
    ReleaseForLater,
    Snooze,
    SnoozeForLater,
    Interrupt,
    Heartbeat,
    Time,
    Quarantine,
    Unquarantine,
    Discard,
    Redrive,
}

impl Happening {
    pub(crate) const ALL: [Self; 15] = [
        Self::Claim,
        Self::Complete,
        Self::Fail,
        Self::GiveUp,
        Self::Release,
        Self::ReleaseForLater,
        Self::Snooze,
        Self::SnoozeForLater,
        Self::Interrupt,
        Self::Heartbeat,
        Self::Time,
        Self::Quarantine,
        Self::Unquarantine,
        Self::Discard,
        Self::Redrive,
    ];

    /// Asks the machine. `Ok(None)` when it moved without a step to report.
    pub(crate) fn apply(self, item: &mut Item, now: Timestamp) -> Result<Option<Step>, NoArrow> {
        let rules = Rules::default();
        let report = Report::default;
        let later = Some(REST);
        match self {
            Self::Claim => {
                let token = LeaseHash::of(&format!("token {}", item.next_generation().get()));
                item.claim(now, rules.lease_default, token, None, &rules).map(|()| None)
            }
            Self::Complete => item.acknowledge(now, AckResult::Completed, report(), &rules).map(Some),
            Self::Fail => item.acknowledge(now, AckResult::Failed, report(), &rules).map(Some),
            Self::GiveUp => item.acknowledge(now, AckResult::Discarded, report(), &rules).map(Some),
            Self::Release => item.release(now, &Release::Counted { rest: None }, report(), &rules).map(Some),
            Self::ReleaseForLater => item.release(now, &Release::Counted { rest: later }, report(), &rules).map(Some),
            Self::Snooze => item.release(now, &Release::Snooze { rest: None }, report(), &rules).map(Some),
            Self::SnoozeForLater => item.release(now, &Release::Snooze { rest: later }, report(), &rules).map(Some),
            Self::Interrupt => item.release(now, &Release::Interrupted, report(), &rules).map(Some),
            Self::Heartbeat => item.heartbeat(now, rules.lease_default).map(|_| None),
            Self::Time => item.settle(now, &rules).map(Some).ok_or(NoArrow),
            Self::Quarantine => item.quarantine(now, &rules).map(Some),
            Self::Unquarantine => item.unquarantine(now, &rules).map(Some),
            Self::Discard => item.discard(now, &rules).map(Some),
            Self::Redrive => item.redrive(now, &rules).map(Some),
        }
    }
}

pub(crate) const REST: Duration = Duration::from_mins(1);
const EXPIRY: Duration = Duration::from_mins(30);
/// Before a lease ends and a rest is over.
const EARLY: Duration = Duration::from_secs(10);
/// After a lease with its backoff, a rest, and the expiry.
const LATE: Duration = Duration::from_hours(1);

pub(crate) fn fresh(max_attempts: u32, expires_at: Option<Timestamp>) -> Item {
    let who = WorkFor { agent: agent("alpha"), queue: QueueName::default() };
    let work = Work {
        recipients: vec![who.clone()],
        priority: Priority::Normal,
        kind: None,
        source: None,
        summary: String::new(),
        available_at: START,
        claim_key: Rules::default().claim_key(START, Priority::Normal),
        expires_at,
        max_attempts,
    };
    let (event, event_type) = (EventId::new(Uuid::from_u128(1)), EventType::parse("a.b").unwrap());
    Item::new(RecipientNumber::new(1), &who, &work, event, seq(1), &event_type, None, START, 10)
}

/// An item in `state`, on the shortest way there.
fn reached(state: AckState, max_attempts: u32, expires_at: Option<Timestamp>) -> Item {
    use Happening as H;
    let mut item = fresh(max_attempts, expires_at);
    let way: &[H] = match state {
        AckState::Available => &[],
        AckState::Claimed => &[H::Claim],
        AckState::RetryScheduled => &[H::Claim, H::SnoozeForLater],
        AckState::Acked => &[H::Claim, H::Complete],
        AckState::Discarded => &[H::Claim, H::GiveUp],
        AckState::Quarantined => &[H::Quarantine],
        AckState::DeadLetter => {
            for _ in 1..max_attempts {
                H::Claim.apply(&mut item, START).unwrap();
                H::Release.apply(&mut item, START).unwrap();
            }
            &[H::Claim, H::Fail]
        }
        AckState::Expired => {
            Arc::make_mut(&mut item.facts).expires_at = Some(START);
            H::Time.apply(&mut item, START).unwrap();
            Arc::make_mut(&mut item.facts).expires_at = expires_at;
            &[]
        }
    };
    for happening in way {
        happening.apply(&mut item, START).unwrap();
    }
    assert_eq!(item.state, state);
    item
}

/// The table of the design page.
fn arrow(from: AckState, happening: Happening, is_due: bool, is_expired: bool, is_last: bool) -> Option<AckState> {
    use AckState as S;
    use Happening as H;
    let after_attempt = |counts: bool, otherwise: S| match () {
        () if is_expired => S::Expired,
        () if counts && is_last => S::DeadLetter,
        () => otherwise,
    };
    match (from, happening) {
        (S::Available, H::Claim) => (!is_expired).then_some(S::Claimed),
        (S::Available, H::Time) => is_expired.then_some(S::Expired),
        (S::Claimed, H::Complete) => Some(S::Acked),
        (S::Claimed, H::Fail | H::ReleaseForLater) => Some(after_attempt(true, S::RetryScheduled)),
        (S::Claimed, H::Release) => Some(after_attempt(true, S::Available)),
        (S::Claimed, H::Snooze | H::Interrupt) => Some(after_attempt(false, S::Available)),
        (S::Claimed, H::SnoozeForLater) => Some(after_attempt(false, S::RetryScheduled)),
        (S::Claimed, H::Heartbeat) => Some(S::Claimed),
        // An hour after the lease its backoff is over too.
        (S::Claimed, H::Time) => is_due.then(|| after_attempt(true, S::Available)),
        (S::RetryScheduled, H::Claim) => (is_due && !is_expired).then_some(S::Claimed),
        (S::RetryScheduled, H::Time) => is_due.then_some(if is_expired { S::Expired } else { S::Available }),
        (S::Available | S::RetryScheduled | S::Claimed, H::Quarantine) => Some(S::Quarantined),
        (S::Claimed, H::GiveUp) | (S::Available | S::RetryScheduled | S::Claimed | S::Quarantined | S::DeadLetter, H::Discard) => {
            Some(S::Discarded)
        }
        (S::Quarantined, H::Unquarantine) | (S::DeadLetter, H::Redrive) => Some(S::Available),
        _ => None,
    }
}

#[test]
fn there_is_every_arrow_of_the_table_and_no_other() {
    let mut arrows = 0;
    for state in AckState::ALL {
        for happening in Happening::ALL {
            for (is_late, expires, max_attempts) in [
                (false, false, 5),
                (false, false, 1),
                (false, true, 5),
                (false, true, 1),
                (true, false, 5),
                (true, false, 1),
                (true, true, 5),
                (true, true, 1),
            ] {
                let expires_at = expires.then(|| START.plus(EXPIRY));
                let before = reached(state, max_attempts, expires_at);
                let now = START.plus(if is_late { LATE } else { EARLY });
                let wanted = arrow(state, happening, is_late, is_late && expires, max_attempts == 1);
                let mut item = before.clone();
                let context = format!("{state:?} {happening:?} late {is_late} expires {expires} of {max_attempts}");
                match happening.apply(&mut item, now) {
                    Ok(_) => assert_eq!(Some(item.state), wanted, "{context}"),
                    Err(NoArrow) => {
                        assert_eq!(wanted, None, "{context}");
                        assert_eq!(item, before, "what does not happen changes nothing: {context}");
                    }
                }
                let moves_generation = match (happening, state) {
                    (Happening::Claim, _) => true,
                    (Happening::Quarantine | Happening::Discard, state) => state.is_current(),
                    _ => false,
                };
                if wanted.is_some() {
                    arrows += 1;
                    assert_eq!(item.generation.get(), before.generation.get() + u64::from(moves_generation), "{context}");
                }
            }
        }
    }
    assert!(arrows > 100, "{arrows} arrows were looked at");
}

#[test]
fn every_return_says_why() {
    use Happening as H;
    let late = START.plus(LATE);
    for (state, happening, reason) in [
        (AckState::Claimed, H::Release, RequeueReason::Released),
        (AckState::Claimed, H::Snooze, RequeueReason::Released),
        (AckState::Claimed, H::Interrupt, RequeueReason::Interrupted),
        (AckState::Claimed, H::Time, RequeueReason::LeaseExpired),
        (AckState::RetryScheduled, H::Time, RequeueReason::RetryDue),
        (AckState::Quarantined, H::Unquarantine, RequeueReason::Unquarantined),
        (AckState::DeadLetter, H::Redrive, RequeueReason::Redriven),
    ] {
        let mut item = reached(state, 5, None);
        assert_eq!(happening.apply(&mut item, late), Ok(Some(Step::Requeued(reason))), "{state:?} {happening:?}");
    }
}

#[test]
fn only_failures_lapses_and_ordinary_releases_count() {
    use Happening as H;
    for (happening, counts) in [
        (H::Fail, 1),
        (H::Release, 1),
        (H::ReleaseForLater, 1),
        (H::Time, 1),
        (H::Snooze, 0),
        (H::SnoozeForLater, 0),
        (H::Interrupt, 0),
        (H::Complete, 0),
        (H::Quarantine, 0),
    ] {
        let mut item = reached(AckState::Claimed, 5, None);
        happening.apply(&mut item, START.plus(LATE)).unwrap();
        assert_eq!((item.counted_attempts, item.delivery_attempts), (counts, 1), "{happening:?}");
        assert_eq!(item.history.len(), 1, "{happening:?}");
    }
}

#[test]
fn a_lapsed_lease_rests_from_its_end_whoever_notices() {
    let mut item = reached(AckState::Claimed, 5, None);
    let lease = item.lease.clone().unwrap();
    item.settle(lease.until, &Rules::default()).unwrap();
    if item.state == AckState::RetryScheduled {
        assert_eq!(item.next_retry_at, Some(lease.until.plus(lease.backoff)));
    }
    let mut late = reached(AckState::Claimed, 5, None);
    late.settle(START.plus(LATE), &Rules::default()).unwrap();
    assert_eq!(late.claim_key, Rules::default().claim_key(lease.until.plus(lease.backoff), Priority::Normal));
}

#[test]
fn no_heartbeat_extends_a_lease_beyond_the_attempts_deadline() {
    let rules = Rules::default();
    let mut item = reached(AckState::Claimed, 5, None);
    let deadline = START.plus(rules.attempt_deadline);
    let mut now = START;
    while item.lease.as_ref().unwrap().until < deadline {
        now = item.lease.as_ref().unwrap().until.minus(Duration::from_secs(1));
        item.heartbeat(now, rules.lease_max).unwrap();
    }
    assert_eq!(item.lease.as_ref().unwrap().until, deadline);
    assert_eq!(item.heartbeat(now, rules.lease_max), Ok(deadline));
    assert_eq!(item.heartbeat(deadline, rules.lease_max), Err(NoArrow));
    assert_eq!(item.due_at(), Some(deadline));
}

#[test]
fn a_heartbeat_never_shortens_a_lease() {
    let mut item = reached(AckState::Claimed, 5, None);
    let until = item.lease.as_ref().unwrap().until;
    assert_eq!(item.heartbeat(START, Duration::from_secs(1)), Ok(until));
}
