//! What is known here of the leases that a process holds. Pure: instants are passed in, and all are of the local monotonic clock, so that it does
//! not matter how the clocks of two machines differ.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::EventId;
use protocol::Secret;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The shortest time between two heartbeats of a lease.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);
/// A lease that ends so near to its attempt's deadline is not extended any more; heartbeats then only ask whether it is still held.
const NEAR: Duration = Duration::from_millis(100);

/// Identifies a lease within its keeper.
pub(super) type Key = u64;

/// Why a worker has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseLoss {
    /// The server says that the lease is not held any more: it lapsed, or an operator took the item away.
    Taken,
    /// No heartbeat reached the server in time: the lease ends, or is about to (`LeaseKeeperOptions::lapse_notice`).
    Lapsed,
    /// The attempt's deadline has passed, beyond which no heartbeat extends a lease.
    DeadlinePassed,
}

impl std::fmt::Display for LeaseLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Taken => "the lease is not held any more",
            Self::Lapsed => "no heartbeat reached the server in time",
            Self::DeadlinePassed => "the attempt's deadline has passed",
        })
    }
}

/// How long a lease lasts from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTime {
    /// Until it ends without a heartbeat.
    pub lasts: Duration,
    /// Until nothing extends it any more.
    pub attempt_ends_in: Duration,
}

/// How early a worker is told of what ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notices {
    /// Of the attempt's deadline.
    pub(super) deadline: Duration,
    /// Of a lease that no heartbeat extends.
    pub(super) lapse: Duration,
}

/// What a heartbeat was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// The lease goes on.
    Extended(LeaseTime),
    /// It is lost.
    Lost,
}

/// What its worker sees of a lease.
#[derive(Clone, Debug, Default)]
pub(super) struct Signs {
    pub(super) lost: CancellationToken,
    pub(super) deadline_near: CancellationToken,
    pub(super) loss: std::sync::Arc<std::sync::OnceLock<LeaseLoss>>,
}

impl Signs {
    fn lose(&self, loss: LeaseLoss) {
        let _ = self.loss.set(loss);
        self.lost.cancel();
    }
}

/// One lease.
#[derive(Debug)]
struct Kept {
    event: EventId,
    token: Secret,
    /// When it was last known to be held.
    held_at: Instant,
    ends_at: Instant,
    /// How long before its end it counts as lost.
    spare: Duration,
    deadline: Instant,
    notice_at: Instant,
    /// The time between heartbeats while they still extend it.
    interval: Duration,
    signs: Signs,
}

impl Kept {
    fn renew(&mut self, at: Instant, time: LeaseTime) {
        let granted = at + time.lasts;
        // The server never shortens a lease, and an answer may overtake another.
        if granted >= self.ends_at || self.held_at <= at {
            (self.held_at, self.ends_at) = (at, granted);
        }
        if !self.is_final() {
            self.interval = (time.lasts / 3).max(SHORTEST_INTERVAL);
        }
    }

    /// Whether no heartbeat can extend it.
    fn is_final(&self) -> bool {
        self.ends_at + NEAR >= self.deadline
    }

    /// When its worker has to know that it ends. An end that comes with the deadline is told of by the notice.
    fn lost_at(&self) -> Instant {
        if self.is_final() { self.ends_at } else { self.ends_at - self.spare.min((self.ends_at - self.held_at) / 3) }
    }

    fn due_at(&self) -> Instant {
        self.held_at + self.interval
    }
}

/// All leases of a keeper.
#[derive(Debug, Default)]
pub(super) struct Leases {
    kept: BTreeMap<Key, Kept>,
    last: Key,
}

impl Leases {
    /// Begins to keep a lease that was granted at `at`.
    pub(super) fn keep(&mut self, event: EventId, token: Secret, at: Instant, time: LeaseTime, notices: Notices) -> (Key, Signs) {
        self.last += 1;
        let deadline = at + time.attempt_ends_in;
        // A tenth of the attempt at most, so that a short one is not over before it has begun.
        let notice_at = deadline - notices.deadline.min(time.attempt_ends_in / 10);
        let signs = Signs::default();
        let interval = (time.lasts / 3).max(SHORTEST_INTERVAL);
        let (ends_at, spare) = (at + time.lasts, notices.lapse);
        let kept = Kept { event, token, held_at: at, ends_at, spare, deadline, notice_at, interval, signs: signs.clone() };
        self.kept.insert(self.last, kept);
        (self.last, signs)
    }

    pub(super) fn let_go(&mut self, key: Key) {
        self.kept.remove(&key);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Tells workers what `now` has made of their leases, and forgets those that are lost.
    pub(super) fn pass(&mut self, now: Instant) {
        self.kept.retain(|_, kept| {
            if kept.notice_at <= now {
                kept.signs.deadline_near.cancel();
            }
            if kept.lost_at() > now {
                return true;
            }
            kept.signs.lose(if kept.is_final() { LeaseLoss::DeadlinePassed } else { LeaseLoss::Lapsed });
            false
        });
    }

    /// When the next heartbeat is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.kept.values().map(Kept::due_at).min()
    }

    /// The shortest time between two heartbeats of a lease.
    pub(super) fn shortest_interval(&self) -> Option<Duration> {
        self.kept.values().map(|kept| kept.interval).min()
    }

    /// When time next changes something that a worker has to know.
    pub(super) fn change_at(&self) -> Option<Instant> {
        let noticed = |kept: &Kept| kept.signs.deadline_near.is_cancelled();
        self.kept.values().map(|kept| if noticed(kept) { kept.lost_at() } else { kept.lost_at().min(kept.notice_at) }).min()
    }

    /// The leases of the next heartbeat: the most urgent ones, at most `most`.
    pub(super) fn batch(&self, most: usize) -> Vec<(Key, EventId, Secret)> {
        let mut all: Vec<_> = self.kept.iter().collect();
        all.sort_by_key(|(_, kept)| kept.due_at());
        all.into_iter().take(most.max(1)).map(|(key, kept)| (*key, kept.event, kept.token.clone())).collect()
    }

    /// Books the answer to a heartbeat that was sent at `at`.
    pub(super) fn beaten(&mut self, key: Key, at: Instant, beat: Beat) {
        match beat {
            Beat::Extended(time) => {
                if let Some(kept) = self.kept.get_mut(&key) {
                    kept.renew(at, time);
                }
            }
            Beat::Lost => {
                if let Some(kept) = self.kept.remove(&key) {
                    kept.signs.lose(LeaseLoss::Taken);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::Secret;
    use tokio::time::Instant;

    use super::{Beat, LeaseLoss, LeaseTime, Leases, Notices};

    const NOTICES: Notices = Notices { deadline: Duration::from_secs(10), lapse: Duration::ZERO };

    fn time(lasts: u64, attempt: u64) -> LeaseTime {
        LeaseTime { lasts: Duration::from_secs(lasts), attempt_ends_in: Duration::from_secs(attempt) }
    }

    fn event() -> domain::EventId {
        "0197f0ab-44f7-7f1a-b0ef-000000000001".parse().unwrap()
    }

    fn kept(leases: &mut Leases, at: Instant, time: LeaseTime) -> (super::Key, super::Signs) {
        leases.keep(event(), Secret::new("lease".to_owned()), at, time, NOTICES)
    }

    #[test]
    fn a_heartbeat_is_due_after_a_third_of_the_lease() {
        let (mut leases, start) = (Leases::default(), Instant::now());
        let (key, _) = kept(&mut leases, start, time(120, 3_600));
        assert_eq!(leases.due_at(), Some(start + Duration::from_secs(40)));
        leases.beaten(key, start + Duration::from_secs(40), Beat::Extended(time(30, 3_560)));
        assert_eq!(leases.due_at(), Some(start + Duration::from_secs(50)), "the server grants less than before");
    }

    #[test]
    fn a_lease_is_held_until_its_own_end_and_not_longer() {
        let (mut leases, start) = (Leases::default(), Instant::now());
        let (_, signs) = kept(&mut leases, start, time(60, 3_600));
        leases.pass(start + Duration::from_millis(59_999));
        assert!(!signs.lost.is_cancelled());
        assert_eq!(leases.change_at(), Some(start + Duration::from_mins(1)));
        leases.pass(start + Duration::from_mins(1));
        assert!(signs.lost.is_cancelled() && leases.is_empty());
        assert_eq!(signs.loss.get(), Some(&LeaseLoss::Lapsed));
    }

    #[test]
    fn a_lease_that_nobody_extends_is_told_of_before_its_end_but_not_before_heartbeats_had_their_chance() {
        let start = Instant::now();
        for (lapse, expected) in [(10, 50), (60, 40)] {
            let (mut leases, notices) = (Leases::default(), Notices { lapse: Duration::from_secs(lapse), ..NOTICES });
            let (_, signs) = leases.keep(event(), Secret::new("lease".to_owned()), start, time(60, 3_600), notices);
            assert_eq!(leases.change_at(), Some(start + Duration::from_secs(expected)));
            leases.pass(start + Duration::from_secs(expected));
            assert_eq!(signs.loss.get(), Some(&LeaseLoss::Lapsed));
        }
    }

    #[test]
    fn the_deadline_is_told_before_it_comes_and_ends_the_lease() {
        let (mut leases, start) = (Leases::default(), Instant::now());
        let (key, signs) = kept(&mut leases, start, time(60, 120));
        leases.beaten(key, start + Duration::from_secs(59), Beat::Extended(time(61, 61)));
        assert_eq!(leases.change_at(), Some(start + Duration::from_secs(110)));
        leases.pass(start + Duration::from_secs(110));
        assert!(signs.deadline_near.is_cancelled() && !signs.lost.is_cancelled());
        assert_eq!(leases.change_at(), Some(start + Duration::from_mins(2)));
        leases.pass(start + Duration::from_mins(2));
        assert_eq!(signs.loss.get(), Some(&LeaseLoss::DeadlinePassed));
    }

    #[test]
    fn a_lease_that_cannot_be_extended_is_not_asked_about_more_and_more_often() {
        let (mut leases, start) = (Leases::default(), Instant::now());
        let (key, _) = kept(&mut leases, start, time(30, 60));
        let mut at = start;
        for _ in 0..4 {
            let due = leases.due_at().unwrap();
            assert!(due - at >= Duration::from_secs(10), "{:?}", due - at);
            at = due;
            let left = (start + Duration::from_mins(1)) - at;
            leases.beaten(key, at, Beat::Extended(LeaseTime { lasts: left.min(Duration::from_secs(30)), attempt_ends_in: left }));
        }
    }

    #[test]
    fn the_most_urgent_leases_go_first() {
        let (mut leases, start) = (Leases::default(), Instant::now());
        let keys: Vec<_> = [90, 30, 60].map(|lasts| kept(&mut leases, start, time(lasts, 3_600)).0).into();
        let batch: Vec<_> = leases.batch(2).into_iter().map(|(key, ..)| key).collect();
        assert_eq!(batch, [keys[1], keys[2]]);
    }

    #[test]
    fn a_lease_that_the_server_took_is_lost_at_once() {
        let (mut leases, start) = (Leases::default(), Instant::now());
        let (key, signs) = kept(&mut leases, start, time(60, 3_600));
        leases.beaten(key, start, Beat::Lost);
        assert_eq!(signs.loss.get(), Some(&LeaseLoss::Taken));
        assert!(leases.is_empty());
    }
}
