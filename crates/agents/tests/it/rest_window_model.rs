//! The REST window against a naive model, with responses that get lost, acknowledgements that race and rights that change.
//!
//! The client is honest: it acknowledges only what it was told, and says `after` only of what it received. Everything else may go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use agents::{CursorRow, Holder, Plan, RestPoll, RestWindow, WindowLimits};
use domain::{Seq, SyncEpoch, Timestamp};
use proptest::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX: usize = 4;
const LIMITS: WindowLimits = WindowLimits { ack_timeout: TIMEOUT, max_inflight_events: MAX };

#[derive(Clone, Copy, Debug)]
enum After {
    Absent,
    Honest,
}

#[derive(Clone, Debug)]
enum Step {
    Publish(Vec<bool>),
    ChangeRight(prop::sample::Index),
    Pass(u64),
    Poll { limit: usize, after: After, lost: bool, racing_ack: Option<prop::sample::Index> },
    Ack(prop::sample::Index),
    GatewayInBetween(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop::collection::vec(prop::bool::weighted(0.8), 1..5).prop_map(Step::Publish),
        1 => any::<prop::sample::Index>().prop_map(Step::ChangeRight),
        2 => (1..40_u64).prop_map(Step::Pass),
        8 => (1..6_usize, prop_oneof![Just(After::Absent), Just(After::Honest)], any::<bool>(), prop::option::weighted(0.2, any::<prop::sample::Index>()))
            .prop_map(|(limit, after, lost, racing_ack)| Step::Poll { limit, after, lost, racing_ack }),
        5 => any::<prop::sample::Index>().prop_map(Step::Ack),
        1 => (0..4_usize).prop_map(Step::GatewayInBetween),
    ]
}

/// What an honest client knows.
#[derive(Debug, Default)]
struct Client {
    received: BTreeSet<u64>,
    /// Everything it may acknowledge.
    told: BTreeSet<u64>,
    /// The last `next_cursor` that it may use as `after`.
    position: Option<u64>,
}

/// The window as anyone would write it down first.
#[derive(Debug, Default)]
struct Model {
    read: u64,
    on_its_way: BTreeMap<u64, Timestamp>,
    /// Dispatched in this window, unacknowledged, above `read`.
    before: BTreeSet<u64>,
    /// The highest position that any answer, or another holder, may have told.
    told: u64,
    last_page: Option<LastPage>,
    /// More than the window can remember was dispatched: flags may be missing from here on.
    overflown: bool,
}

#[derive(Debug)]
struct LastPage {
    first: u64,
    last: u64,
    next_cursor: u64,
    told_before: u64,
    received: bool,
}

#[derive(Debug)]
struct World {
    /// Whether each event is admitted now; event `n` at index `n - 1`.
    admitted: Vec<bool>,
    always_admitted: Vec<bool>,
    now: Timestamp,
    row: CursorRow,
    client: Client,
    model: Model,
    /// Pages with events that went out; a run without any proves nothing.
    pages: usize,
}

fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

impl World {
    fn new() -> Self {
        let row = CursorRow {
            acked: Seq::ZERO,
            epoch: "00000000-0000-0000-0000-000000000000".parse::<SyncEpoch>().unwrap(),
            holder: Some(Holder::Rest),
            window_version: 1,
            window: RestWindow::default(),
        };
        Self {
            admitted: Vec::new(),
            always_admitted: Vec::new(),
            now: Timestamp::from_micros(1_000_000_000),
            row,
            client: Client::default(),
            model: Model::default(),
            pages: 0,
        }
    }

    fn head(&self) -> u64 {
        self.admitted.len() as u64
    }

    fn admitted_after(&self, position: u64) -> impl Iterator<Item = u64> + '_ {
        (position + 1..=self.head()).filter(|event| self.admitted[*event as usize - 1])
    }

    fn acknowledge(&mut self, index: prop::sample::Index) {
        let told: Vec<_> = self.client.told.iter().copied().collect();
        if !told.is_empty() {
            self.row.acked = self.row.acked.max(seq(*index.get(&told)));
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Publish(events) => {
                self.admitted.extend(events);
                self.always_admitted.extend(events);
            }
            Step::ChangeRight(index) if !self.admitted.is_empty() => {
                let at = index.index(self.admitted.len());
                self.admitted[at] = !self.admitted[at];
                self.always_admitted[at] = false;
            }
            Step::ChangeRight(_) => {}
            Step::Pass(seconds) => self.now = self.now.plus(Duration::from_secs(*seconds)),
            Step::Ack(index) => self.acknowledge(*index),
            Step::Poll { limit, after, lost, racing_ack } => self.poll(*limit, *after, *lost, *racing_ack),
            Step::GatewayInBetween(count) => self.gateway_in_between(*count),
        }
    }

    /// A gateway session takes over, delivers some events to the same program, and polls take over again.
    fn gateway_in_between(&mut self, count: usize) {
        let delivered: Vec<_> = self.admitted_after(self.row.acked.get()).take(count).collect();
        self.client.told.extend(&delivered);
        self.client.received.extend(&delivered);
        self.row.window = RestWindow::default();
        self.row.window_version += 1;
        let overflown = self.model.overflown;
        self.model = Model { overflown, ..Model::default() };
    }

    fn poll(&mut self, limit: usize, after: After, lost: bool, racing_ack: Option<prop::sample::Index>) {
        let acked = self.row.acked.get();
        let after = match after {
            After::Absent => None,
            After::Honest => self.client.position,
        };
        let mut poll = RestPoll::begin(&self.row, after.map(seq), seq(self.head()), self.now, LIMITS).unwrap();
        self.model_begin(acked, after);

        let plan = poll.plan(limit);
        let budget = limit.min(MAX.saturating_sub(self.model.on_its_way.len()));
        let page = match plan {
            Plan::Unproven => {
                self.check_unproven_is_justified(acked, after);
                assert_eq!(poll.next_cursor().get(), acked, "an unproven answer tells the acknowledged position");
                assert!(poll.is_unproven());
                Vec::new()
            }
            Plan::Full => {
                assert_eq!(budget, 0, "only a full window is full");
                Vec::new()
            }
            Plan::Read { after, budget: granted } => {
                assert_eq!((after.get(), granted), (self.model.read, budget), "reading goes on where the model stands");
                self.dispatch(&mut poll, budget)
            }
        };
        if !poll.is_unproven() {
            for event in self.model.on_its_way.range(..=poll.next_cursor().get()).map(|(event, _)| *event) {
                let must = self.always_admitted[event as usize - 1] && !page.contains(&event);
                assert!(!must || self.client.received.contains(&event), "{event} would be acknowledged without having arrived");
            }
        }
        assert!(poll.in_flight() <= MAX);
        assert!(poll.change().is_none_or(|window| window.in_flight.len() <= 2 * MAX), "what a window remembers is bounded");
        if let Some(index) = racing_ack {
            self.acknowledge(index);
        }
        let is_unproven = poll.is_unproven();
        let next_cursor = poll.next_cursor().get();
        if let Some(window) = poll.change() {
            self.row.window = window;
            self.row.window_version += 1;
        } else {
            assert!(page.is_empty(), "a page is always stored");
        }
        if !is_unproven {
            self.model.told = self.model.told.max(next_cursor);
        }
        if !lost {
            self.receive(&page, next_cursor, is_unproven);
        }
        if let Some(last_page) = self.model.last_page.as_mut().filter(|_| !page.is_empty()) {
            self.pages += 1;
            last_page.received = !lost;
        }
    }

    fn receive(&mut self, page: &[u64], next_cursor: u64, is_unproven: bool) {
        self.client.received.extend(page);
        self.client.told.extend(page);
        if !is_unproven {
            self.client.told.insert(next_cursor);
            self.client.position = Some(next_cursor);
        }
    }

    fn model_begin(&mut self, acked: u64, after: Option<u64>) {
        let head = self.head();
        let model = &mut self.model;
        if self.row.window == RestWindow::default() {
            model.told = head;
        }
        model.read = model.read.max(acked);
        model.on_its_way.retain(|event, _| *event > acked);
        model.before.retain(|event| *event > acked);
        let overdue = model.on_its_way.values().any(|dispatched| dispatched.plus(TIMEOUT) <= self.now);
        let restart = if overdue { Some(acked) } else { after.map(|after| after.max(acked)).filter(|after| *after < model.read) };
        if let Some(position) = restart {
            model.read = position;
            model.before.extend(model.on_its_way.split_off(&(position + 1)).into_keys());
            model.last_page = None;
        }
    }

    /// An honest client whose last response arrived, and who says so, is never refused.
    fn check_unproven_is_justified(&self, acked: u64, after: Option<u64>) {
        let page = self.model.last_page.as_ref().expect("only a page can be unproven");
        let says_so = after == Some(page.next_cursor);
        let acknowledged_part = acked >= page.first && page.first > page.told_before;
        let acknowledged_all = acked >= page.last;
        assert!(
            !says_so && !acknowledged_part && !acknowledged_all,
            "{page:?} is proven at {acked}, {after:?} (arrived: {})",
            page.received
        );
    }

    fn dispatch(&mut self, poll: &mut RestPoll, budget: usize) -> Vec<u64> {
        let read = self.model.read;
        let page: Vec<_> = self.admitted_after(read).take(budget).collect();
        let was_cut = page.len() == budget;
        let checked = if was_cut { *page.last().unwrap() } else { self.head() };
        for event in &page {
            assert!(!self.model.on_its_way.contains_key(event), "{event} is on its way and must not come again yet");
            let flagged = poll.is_redelivery(seq(*event));
            let dispatched_before = self.model.before.contains(event);
            assert!(
                flagged == dispatched_before || (self.model.overflown && !flagged),
                "{event}: flagged {flagged}, dispatched before {dispatched_before}"
            );
        }
        let page_seqs: Vec<_> = page.iter().copied().map(seq).collect();
        poll.record(&page_seqs, seq(checked), self.now);
        assert_eq!(poll.next_cursor().get(), checked);
        let model = &mut self.model;
        if let (Some(&first), Some(&last)) = (page.first(), page.last()) {
            model.last_page = Some(LastPage { first, last, next_cursor: checked, told_before: model.told.max(read), received: false });
        }
        model.read = checked;
        model.on_its_way.extend(page.iter().map(|event| (*event, self.now)));
        model.before.retain(|event| *event > checked);
        model.overflown |= model.on_its_way.len() + model.before.len() > 2 * MAX;
        page
    }

    /// Everything that waits reaches a client that goes on reading, and nothing that was always admitted was skipped.
    fn finish(&mut self) {
        let start_acked = self.row.acked.get();
        for _ in 0..=2 * self.head() + 8 {
            self.now = self.now.plus(TIMEOUT / 4);
            self.poll(MAX, After::Honest, false, None);
            let last = self.client.told.last().copied().unwrap_or_default();
            self.row.acked = self.row.acked.max(seq(last.min(self.model.read)));
        }
        assert_eq!(self.row.acked.get(), self.head().max(start_acked), "reading never gets stuck");
        for event in 1..=self.head() {
            assert!(!self.always_admitted[event as usize - 1] || self.client.received.contains(&event), "{event} was skipped");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn no_event_is_lost_repeated_early_or_flagged_wrongly(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in &steps {
            let acked = world.row.acked;
            world.apply(step);
            assert!(world.row.acked >= acked);
        }
        world.finish();
        prop_assert!(world.pages > 0 || world.client.received.is_empty() || world.admitted_after(0).next().is_none() || world.row.acked.get() > 0);
    }
}
