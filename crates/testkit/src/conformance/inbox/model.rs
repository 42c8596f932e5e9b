//! Everything that an inbox can be asked, against a list of items that the same machine moved.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::{EventId, Priority, Timestamp};
use inbox::{AckResult, AckState, Backlog, Item, ItemFilter, LeaseHash, PollRange, QueueFilter, Release, Report, Rules, Step};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::conformance::waiting;

use super::{except, only, part, queue};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, seq};

const QUEUES: [&str; 3] = ["a", "b", "c"];
const PRIORITIES: [Priority; 4] = [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent];

#[derive(Clone, Debug)]
enum Change {
    Publish { queue: usize, priority: usize, expires: Option<u8>, attempts: u32 },
    Claim { nth: usize, seconds: u8 },
    Acknowledge { nth: usize, result: AckResult },
    Release { nth: usize, rest: Option<u8>, snooze: bool },
    Heartbeat { nth: usize, seconds: u8 },
    Quarantine { nth: usize },
    Unquarantine { nth: usize },
    Discard { nth: usize },
    Redrive { nth: usize },
    Settle,
    Wait { seconds: u8 },
}

fn change() -> impl Strategy<Value = Change> {
    let result = prop_oneof![Just(AckResult::Completed), Just(AckResult::Failed), Just(AckResult::Discarded)];
    prop_oneof![
        5 => (0..QUEUES.len(), 0..PRIORITIES.len(), proptest::option::of(1..60_u8), 1..3_u32)
            .prop_map(|(queue, priority, expires, attempts)| Change::Publish { queue, priority, expires, attempts }),
        5 => (0..4_usize, 1..60_u8).prop_map(|(nth, seconds)| Change::Claim { nth, seconds }),
        3 => (0..4_usize, result).prop_map(|(nth, result)| Change::Acknowledge { nth, result }),
        2 => (0..4_usize, proptest::option::of(0..60_u8), any::<bool>())
            .prop_map(|(nth, rest, snooze)| Change::Release { nth, rest, snooze }),
        1 => (0..4_usize, 1..60_u8).prop_map(|(nth, seconds)| Change::Heartbeat { nth, seconds }),
        1 => (0..4_usize).prop_map(|nth| Change::Quarantine { nth }),
        1 => (0..4_usize).prop_map(|nth| Change::Unquarantine { nth }),
        1 => (0..4_usize).prop_map(|nth| Change::Discard { nth }),
        1 => (0..4_usize).prop_map(|nth| Change::Redrive { nth }),
        2 => Just(Change::Settle),
        2 => (1..90_u8).prop_map(|seconds| Change::Wait { seconds }),
    ]
}

fn seconds(seconds: u8) -> Duration {
    Duration::from_secs(u64::from(seconds))
}

fn filters() -> [QueueFilter; 4] {
    [QueueFilter::default(), only(&["a"]), only(&["c", "a"]), except(&["b"])]
}

/// The agent's items as they should be.
struct Model<'a> {
    fixture: &'a Fixture,
    agent: String,
    rules: Rules,
    items: Vec<Item>,
}

impl Model<'_> {
    fn now(&self) -> Timestamp {
        self.fixture.now()
    }

    /// The place of the `nth` item in one of these states.
    fn pick(&self, nth: usize, states: &[AckState]) -> Option<usize> {
        let places: Vec<_> = (0..self.items.len()).filter(|place| states.contains(&self.items[*place].state)).collect();
        places.get(nth % places.len().max(1)).copied()
    }

    async fn publish(&mut self, queue_name: usize, priority: usize, expires: Option<u8>, attempts: u32) {
        let mut work = self.fixture.work(&[&format!("{}/{}", self.agent, QUEUES[queue_name])]);
        work.priority = PRIORITIES[priority];
        work.claim_key = self.rules.claim_key(self.now(), work.priority);
        work.expires_at = expires.map(|after| self.now().plus(seconds(after)));
        work.max_attempts = attempts;
        let job = self.fixture.job_of(work.clone());
        let (id, position) = self.fixture.publish(job.clone()).await;
        let number = self.fixture.opened(&self.agent).await.number;
        let (at, bytes) = (job.created_at, job.body.len());
        self.items.push(Item::new(number, &work.recipients[0], &work, id, position, &job.event_type, None, at, bytes));
    }

    /// Moves one item in the model and in the store; what returns rings at a new position.
    async fn change(&mut self, place: usize, change: impl FnOnce(&mut Item, Timestamp, &Rules) -> Option<Step>) {
        let now = self.now();
        let mut item = self.items[place].clone();
        let Some(step) = change(&mut item, now, &self.rules) else { return };
        if matches!(step, Step::Requeued(_)) {
            let (tenant, event) = (self.fixture.tenant.clone(), self.fixture.event("requeued"));
            let appended = self.fixture.inbox(move |tx| {
                let (tenant, event) = (tenant.clone(), event.clone());
                Box::pin(async move { tx.append_inbox(&tenant, &[event]).await })
            });
            item.ring_seq = appended.await.unwrap()[0];
        }
        self.fixture.put(vec![item.clone()]).await.unwrap();
        self.items[place] = item;
    }

    async fn apply(&mut self, change: Change) {
        use AckState as State;
        match change {
            Change::Publish { queue, priority, expires, attempts } => self.publish(queue, priority, expires, attempts).await,
            Change::Wait { seconds: by } => self.fixture.clock.advance(seconds(by)),
            Change::Settle => {
                for place in 0..self.items.len() {
                    self.change(place, Item::settle).await;
                }
            }
            Change::Claim { nth, seconds: lease } => {
                let Some(place) = self.pick(nth, &[State::Available, State::RetryScheduled]) else { return };
                let token = LeaseHash::of(&nth.to_string());
                self.change(place, |item, now, rules| item.claim(now, seconds(lease), token, None, rules).ok().map(|()| Step::Resting))
                    .await;
            }
            Change::Acknowledge { nth, result } => {
                let Some(place) = self.pick(nth, &[State::Claimed]) else { return };
                let report = Report { summary: Some("done".to_owned()), result: None };
                self.change(place, |item, now, rules| item.acknowledge(now, result, report, rules).ok()).await;
            }
            Change::Release { nth, rest, snooze } => {
                let Some(place) = self.pick(nth, &[State::Claimed]) else { return };
                let rest = rest.map(seconds);
                let release = if snooze { Release::Snooze { rest } } else { Release::Counted { rest } };
                self.change(place, |item, now, rules| item.release(now, &release, Report::default(), rules).ok()).await;
            }
            Change::Heartbeat { nth, seconds: by } => {
                let Some(place) = self.pick(nth, &[State::Claimed]) else { return };
                self.change(place, |item, now, _| item.heartbeat(now, seconds(by)).ok().map(|_| Step::Resting)).await;
            }
            Change::Quarantine { nth } => {
                let Some(place) = self.pick(nth, &[State::Available, State::Claimed, State::RetryScheduled]) else { return };
                self.change(place, |item, now, rules| item.quarantine(now, rules).ok()).await;
            }
            Change::Unquarantine { nth } => {
                let Some(place) = self.pick(nth, &[State::Quarantined]) else { return };
                self.change(place, |item, now, rules| item.unquarantine(now, rules).ok()).await;
            }
            Change::Discard { nth } => {
                let Some(place) = self.pick(nth, &[State::Available, State::Claimed, State::Quarantined, State::DeadLetter]) else {
                    return;
                };
                self.change(place, |item, now, rules| item.discard(now, rules).ok()).await;
            }
            Change::Redrive { nth } => {
                let Some(place) = self.pick(nth, &[State::DeadLetter]) else { return };
                self.change(place, |item, now, rules| item.redrive(now, rules).ok()).await;
            }
        }
    }

    /// The items that `matches`, in the order of `key`.
    fn expect<K: Ord>(&self, matches: impl Fn(&Item) -> bool, key: impl Fn(&Item) -> K) -> Vec<Item> {
        let mut items: Vec<_> = self.items.iter().filter(|item| matches(item)).cloned().collect();
        items.sort_by_key(|item| key(item));
        items
    }

    async fn check(&self) {
        self.check_selection().await;
        self.check_listing().await;
        self.check_poll().await;
        for filter in filters() {
            self.check_backlog(&filter).await;
        }
    }

    async fn check_selection(&self) {
        let (fixture, agent, now) = (self.fixture, self.agent.as_str(), self.now());
        for filter in filters() {
            let available = |item: &Item| item.state == AckState::Available && filter.admits(&item.facts.queue);
            let expected = self.expect(available, |item| (item.claim_key, item.facts.event_id));
            assert_eq!(fixture.available(agent, filter.clone(), 99).await, expected);
            let few = expected.len().min(2);
            assert_eq!(fixture.available(agent, filter.clone(), 2).await, expected[..few]);
        }
        let due = self.expect(|item| item.due_at().is_some_and(|due| due <= now), |item| (item.due_at(), item.facts.event_id));
        assert_eq!(fixture.due_items(agent, now, None, 99).await, due);
        if let Some(first) = due.first() {
            let after = (first.due_at().unwrap(), first.facts.event_id);
            let few = due.len().min(3);
            assert_eq!(fixture.due_items(agent, now, Some(after), 2).await, due[1..few]);
        }
        let next = self.items.iter().filter_map(Item::due_at).min();
        assert_eq!(fixture.next_due_item(agent).await, next);
        let ids: Vec<EventId> = self.items.iter().map(|item| item.facts.event_id).collect();
        let expected: Vec<_> = self.items.iter().cloned().map(Some).collect();
        assert_eq!(fixture.find(agent, &ids).await, expected);
    }

    async fn check_listing(&self) {
        let (fixture, recipient) = (self.fixture, self.fixture.recipient(&self.agent));
        let by_event = |item: &Item| item.facts.event_id;
        for states in [vec![], vec![AckState::DeadLetter, AckState::Quarantined], vec![AckState::Acked, AckState::Available]] {
            for queue in [None, Some(queue("b"))] {
                let filter = ItemFilter { states: states.clone(), queue, ..ItemFilter::default() };
                let expected = self.expect(|item| filter.matches(item), by_event);
                assert_eq!(fixture.store.items(&recipient, &filter, part(None, 99)).await.unwrap().items, expected);
                let after = expected.first().map(by_event);
                let rest = self.expect(|item| filter.matches(item) && Some(by_event(item)) > after, by_event);
                assert_eq!(fixture.store.items(&recipient, &filter, part(after, 2)).await.unwrap().items, rest[..rest.len().min(2)]);
                let hot = self.expect(|item| filter.matches(item) && !item.state.is_ended(), by_event);
                assert_eq!(fixture.matching(&self.agent, filter, None, 99).await, hot);
            }
        }
    }

    async fn check_poll(&self) {
        let recipient = self.fixture.recipient(&self.agent);
        let current = self.expect(|item| item.state.is_current(), |item| item.ring_seq);
        let middle = current.get(current.len() / 2).map_or(seq(0), |item| item.ring_seq);
        for (after, claimable_only, queues) in
            [(seq(0), false, QueueFilter::default()), (middle, false, except(&["a"])), (seq(0), true, only(&["a", "b"]))]
        {
            let range = PollRange { after, limit: 3, claimable_only, queues, scan_max: usize::MAX };
            let wanted = |item: &&Item| {
                item.ring_seq > after && range.queues.admits(&item.facts.queue) && (!claimable_only || item.state == AckState::Available)
            };
            let expected: Vec<_> = current.iter().filter(wanted).map(|item| Item { history: Vec::new(), ..item.clone() }).collect();
            let page = self.fixture.store.poll(&recipient, &range).await.unwrap();
            assert_eq!(page.items, expected[..expected.len().min(3)]);
            assert_eq!((page.more, page.oldest), (expected.len() > 3, current.first().map(|item| item.ring_seq)));
        }
    }

    async fn check_backlog(&self, filter: &QueueFilter) {
        let now = self.now();
        let admitted = || self.items.iter().filter(|item| filter.admits(&item.facts.queue));
        let count = |matches: &dyn Fn(&Item) -> bool| admitted().filter(|item| matches(item)).count() as u64;
        let resting = |item: &Item| item.state == AckState::RetryScheduled && item.due_at() > Some(now);
        let claimed = |item: &Item| item.state == AckState::Claimed;
        let expected = Backlog {
            available: count(&|item| item.is_claimable(now)),
            claimed: count(&claimed),
            resting: count(&resting),
            next_due: admitted().filter(|item| claimed(item) || resting(item)).filter_map(Item::due_at).min(),
        };
        let recipient = self.fixture.recipient(&self.agent);
        assert_eq!(self.fixture.store.backlog(&recipient, filter, now, 99).await, Ok(expected));
    }
}

pub(crate) async fn an_inbox_answers_as_a_list_of_its_items_would(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let cases = AtomicU64::new(0);
    let wanted = harness.cases(48);
    let config = ProptestConfig { cases: wanted, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&proptest::collection::vec(change(), 1..30), |changes| {
        // Each case has an inbox of its own.
        let agent = format!("agent{}", cases.fetch_add(1, Ordering::Relaxed));
        let mut model = Model { fixture: &fixture, agent, rules: Rules::default(), items: Vec::new() };
        waiting(async {
            for change in changes {
                model.apply(change).await;
                model.check().await;
            }
        });
        Ok(())
    });
    outcome.unwrap();
    assert!(cases.load(Ordering::Relaxed) >= u64::from(wanted));
}
