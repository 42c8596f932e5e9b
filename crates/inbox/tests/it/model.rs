//! The machine against a model that is as naive as can be, over random sequences of what may happen, with time passing in between.

use std::time::Duration;

use domain::Timestamp;
use inbox::{AckState, Item, Rules};
use proptest::prelude::*;

use crate::arrows::{Happening, REST, fresh};
use crate::memory::START;

/// What the model knows of an item. Times are microseconds.
#[derive(Clone, Debug)]
struct Naive {
    state: AckState,
    generation: u64,
    deliveries: u32,
    counted: u32,
    max_attempts: u32,
    expires_at: Option<i64>,
    lease_until: i64,
    deadline: i64,
    /// Read from the item after each claim: the model does not throw dice.
    backoff: i64,
    retry_at: i64,
    available_since: i64,
    attempts: usize,
}

impl Naive {
    fn expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    fn back(&mut self, at: i64) {
        self.state = AckState::Available;
        self.available_since = at;
    }

    /// After an attempt: where to, if it neither expired nor used up the attempts.
    fn over(&mut self, now: i64, counts: bool, rest: Option<i64>) {
        self.attempts += 1;
        self.counted += u32::from(counts);
        if self.expired(now) {
            self.state = AckState::Expired;
        } else if counts && self.counted >= self.max_attempts {
            self.state = AckState::DeadLetter;
        } else if let Some(at) = rest {
            self.state = AckState::RetryScheduled;
            self.retry_at = at;
        } else {
            self.back(now);
        }
    }

    fn time(&mut self, now: i64) -> bool {
        match self.state {
            AckState::Claimed => {
                let end = self.lease_until.min(self.deadline);
                if end > now {
                    return false;
                }
                self.over(now, true, Some(end + self.backoff));
                if self.state == AckState::RetryScheduled && self.retry_at <= now {
                    self.back(self.retry_at);
                }
                true
            }
            AckState::Available | AckState::RetryScheduled if self.expired(now) => {
                self.state = AckState::Expired;
                true
            }
            AckState::RetryScheduled if self.retry_at <= now => {
                self.back(self.retry_at);
                true
            }
            _ => false,
        }
    }

    fn claim(&mut self, now: i64) -> bool {
        let due = self.state == AckState::RetryScheduled && self.retry_at <= now;
        if self.expired(now) || !(self.state == AckState::Available || due) {
            return false;
        }
        let rules = Rules::default();
        self.state = AckState::Claimed;
        self.generation += 1;
        self.deliveries += 1;
        self.lease_until = now + micros(rules.lease_default);
        self.deadline = now + micros(rules.attempt_deadline);
        true
    }

    fn take_away(&mut self, to: AckState) -> bool {
        match self.state {
            AckState::Claimed => self.attempts += 1,
            AckState::Available | AckState::RetryScheduled => {}
            AckState::Quarantined | AckState::DeadLetter if to == AckState::Discarded => {
                self.state = to;
                return true;
            }
            _ => return false,
        }
        self.generation += 1;
        self.state = to;
        true
    }

    /// Whether it happens.
    fn apply(&mut self, happening: Happening, now: i64) -> bool {
        use Happening as H;
        let claimed = self.state == AckState::Claimed;
        let later = Some(now + micros(REST));
        match happening {
            H::Claim => return self.claim(now),
            H::Time => return self.time(now),
            H::Quarantine => return self.take_away(AckState::Quarantined),
            H::Discard => return self.take_away(AckState::Discarded),
            H::Unquarantine if self.state == AckState::Quarantined => self.back(now),
            H::Redrive if self.state == AckState::DeadLetter => {
                self.counted = 0;
                self.back(now);
            }
            H::Heartbeat if claimed && self.deadline > now => {
                self.lease_until = self.lease_until.max(now + micros(Rules::default().lease_default)).min(self.deadline);
            }
            H::Complete | H::GiveUp if claimed => {
                self.attempts += 1;
                self.state = if happening == H::Complete { AckState::Acked } else { AckState::Discarded };
            }
            H::Fail if claimed => self.over(now, true, Some(now + self.backoff)),
            H::Release if claimed => self.over(now, true, None),
            H::ReleaseForLater if claimed => self.over(now, true, later),
            H::Snooze | H::Interrupt if claimed => self.over(now, false, None),
            H::SnoozeForLater if claimed => self.over(now, false, later),
            _ => return false,
        }
        true
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap()
}

fn check(item: &Item, naive: &Naive) {
    assert_eq!(item.state, naive.state);
    assert_eq!(item.generation.get(), naive.generation);
    assert_eq!((item.delivery_attempts, item.counted_attempts), (naive.deliveries, naive.counted));
    assert_eq!(item.history.len(), naive.attempts.min(Rules::default().history_max));
    assert_eq!(item.state == AckState::Claimed, item.lease.is_some());
    assert_eq!(item.state.is_ended(), item.ended_at.is_some());
    assert_eq!(item.next_retry_at.map(Timestamp::as_micros), (naive.state == AckState::RetryScheduled).then_some(naive.retry_at));
    if let Some(lease) = &item.lease {
        assert_eq!((lease.until.as_micros(), lease.attempt_deadline.as_micros()), (naive.lease_until, naive.deadline));
    }
    if item.state == AckState::Available {
        let place = Rules::default().claim_key(Timestamp::from_micros(naive.available_since), item.facts.priority);
        assert_eq!(item.claim_key, place);
    }
}

/// Claims and time are what most happens.
fn happenings() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => Just(Happening::Claim),
        4 => Just(Happening::Time),
        10 => prop::sample::select(Happening::ALL.to_vec()),
    ]
}

fn pauses() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(0), 6 => 1_u64..90, 4 => 90_u64..1_200, 1 => 40_000_u64..50_000]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_does_what_the_model_does(
        steps in prop::collection::vec((happenings(), pauses()), 1..60),
        max_attempts in 1_u32..6,
        expires_in in prop::option::of(1_u64..4_000),
    ) {
        let expires_at = expires_in.map(|seconds| START.plus(Duration::from_secs(seconds)));
        let mut item = fresh(max_attempts, expires_at);
        let mut naive = Naive {
            state: AckState::Available, generation: 0, deliveries: 0, counted: 0, max_attempts,
            expires_at: expires_at.map(Timestamp::as_micros), lease_until: 0, deadline: 0, backoff: 0, retry_at: 0,
            available_since: START.as_micros(), attempts: 0,
        };
        let mut now = START;
        for (happening, pause) in steps {
            now = now.plus(Duration::from_secs(pause));
            let before = item.clone();
            let happens = naive.apply(happening, now.as_micros());
            let answer = happening.apply(&mut item, now);
            prop_assert_eq!(answer.is_ok(), happens, "{:?} from {:?}", happening, before.state);
            if !happens {
                prop_assert_eq!(&item, &before);
            }
            if let Some(lease) = &item.lease {
                naive.backoff = micros(lease.backoff);
                prop_assert!(lease.backoff <= Rules::default().retry_cap);
            }
            check(&item, &naive);
            if let (true, Some(due)) = (happening == Happening::Time, item.due_at()) {
                prop_assert!(due > now, "what time has settled is not due again at once");
            }
        }
    }
}
