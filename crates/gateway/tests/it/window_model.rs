//! The delivery window against a naive model that keeps the whole history and works everything out from it.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::Seq;
use doorstep_gateway::{DeliveryWindow, WindowLimits};
use proptest::prelude::*;
use tokio::time::Instant;

const TIMEOUT: Duration = Duration::from_secs(10);
const ADVANCE_EVERY: u64 = 4;

/// What can happen to a consumer.
#[derive(Clone, Debug)]
enum Step {
    /// Events are appended; the bits say which the consumer may see.
    Publish(u8, u8),
    /// From now on the consumer sees exactly the numbers that leave this remainder by three.
    ChangeRights(u8),
    /// The runner reads at most so many events and offers them.
    Page(u8),
    /// The consumer acknowledges, at this share of the head.
    Ack(u8),
    /// So many seconds pass.
    Pass(u8),
    /// The runner looks at the deadline.
    Expire,
    /// Dispatches from this share of the head on are purged before they left.
    Purge(u8),
    /// The position could not be served.
    Resync,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1..6_u8, any::<u8>()).prop_map(|(count, seen)| Step::Publish(count, seen)),
        1 => (0..3_u8).prop_map(Step::ChangeRights),
        6 => (1..8_u8).prop_map(Step::Page),
        3 => any::<u8>().prop_map(Step::Ack),
        2 => (1..12_u8).prop_map(Step::Pass),
        3 => Just(Step::Expire),
        1 => any::<u8>().prop_map(Step::Purge),
        1 => Just(Step::Resync),
    ];
    proptest::collection::vec(step, 1..80)
}

/// One dispatch as it happened.
#[derive(Clone, Copy, Debug)]
struct Dispatched {
    seq: u64,
    pass: usize,
    at: Instant,
}

/// Everything that ever happened; nothing is kept that could be worked out.
struct Model {
    max_inflight: usize,
    start: u64,
    first_head: u64,
    visible: Vec<bool>,
    acks: Vec<u64>,
    history: Vec<Dispatched>,
    pass: usize,
    read: u64,
    last_frame: u64,
    completed: bool,
}

impl Model {
    fn head(&self) -> u64 {
        self.visible.len() as u64
    }

    fn admits(&self, seq: u64) -> bool {
        self.visible[usize::try_from(seq - 1).unwrap()]
    }

    fn acked(&self) -> u64 {
        self.acks.iter().copied().fold(self.start, u64::max)
    }

    fn in_flight(&self) -> Vec<Dispatched> {
        let acked = self.acked();
        self.history.iter().copied().filter(|sent| sent.pass == self.pass && sent.seq > acked).collect()
    }

    fn was_sent_in_an_earlier_pass(&self, seq: u64) -> bool {
        self.history.iter().any(|sent| sent.seq == seq && sent.pass < self.pass)
    }

    fn bound(&self) -> u64 {
        if self.completed { self.head() } else { self.first_head.min(self.head()) }
    }

    /// What a page of at most `count` events must bring: dispatches with their flag, then the cursor frame.
    fn page(&mut self, count: usize, now: Instant) -> (Vec<(u64, bool)>, Option<u64>) {
        let numbers: Vec<u64> = (self.read + 1..=self.bound()).take(count).collect();
        let budget = self.max_inflight - self.in_flight().len();
        let admitted: Vec<u64> = numbers.iter().copied().filter(|seq| self.admits(*seq)).collect();
        let sent: Vec<u64> = admitted.iter().copied().take(budget).collect();
        let flagged = sent.iter().map(|seq| (*seq, self.was_sent_in_an_earlier_pass(*seq))).collect();
        self.history.extend(sent.iter().map(|seq| Dispatched { seq: *seq, pass: self.pass, at: now }));
        if let Some(last) = sent.last() {
            (self.read, self.last_frame) = (*last, *last);
        }
        if admitted.len() > sent.len() {
            return (flagged, None);
        }
        self.read = numbers.last().copied().unwrap_or(self.read);
        let skipped = self.read.saturating_sub(self.last_frame);
        let due = if self.completed { skipped >= ADVANCE_EVERY } else { skipped > 0 };
        if due {
            self.last_frame = self.read;
        }
        (flagged, due.then_some(self.read))
    }

    fn caught_up(&mut self) -> Option<u64> {
        let due = !self.completed && self.read >= self.first_head;
        self.completed |= due;
        due.then_some(self.first_head)
    }

    fn ack(&mut self, seq: u64) -> bool {
        let advanced = seq > self.acked();
        if advanced {
            self.acks.push(seq);
            self.read = self.read.max(seq);
            self.last_frame = self.last_frame.max(seq);
        }
        advanced
    }

    fn deadline(&self) -> Option<Instant> {
        self.in_flight().iter().min_by_key(|sent| sent.seq).map(|sent| sent.at + TIMEOUT)
    }

    fn expire(&mut self, now: Instant) -> bool {
        let due = self.deadline().is_some_and(|deadline| deadline <= now);
        if due {
            self.pass += 1;
            self.read = self.acked();
        }
        due
    }

    fn purge(&mut self, from: u64) {
        let acked = self.acked();
        let pass = self.pass;
        let told_was_purged = self.last_frame >= from;
        self.history.retain(|sent| sent.pass < pass || sent.seq <= acked || sent.seq < from);
        if told_was_purged {
            self.last_frame = self.in_flight().iter().map(|sent| sent.seq).max().unwrap_or(acked);
        }
    }

    fn resync(&mut self) {
        let head = self.head();
        (self.start, self.read, self.last_frame, self.completed) = (head, head, head, true);
        self.acks.clear();
        self.history.clear();
        self.pass = 0;
    }
}

fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

/// Does with the window what the runner does for a page.
fn offer(window: &mut DeliveryWindow, model: &Model, count: usize, now: Instant) -> (Vec<(u64, bool)>, Option<u64>) {
    let mut sent = Vec::new();
    let bound = window.bound(seq(model.head())).get();
    for number in (window.read().get() + 1..=bound).take(count) {
        if !model.admits(number) {
            window.pass(seq(number));
        } else if let Some(fields) = window.dispatch(seq(number), now) {
            sent.push((number, fields.redelivered));
        } else {
            window.cut_page();
            return (sent, None);
        }
    }
    (sent, window.end_page().map(Seq::get))
}

fn share(of: u64, share: u8) -> u64 {
    of * u64::from(share) / 255
}

fn run(max_inflight: usize, start: u64, backlog: u64, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let limits = WindowLimits { max_inflight, ack_timeout: TIMEOUT, cursor_advance_every: ADVANCE_EVERY };
    let first_head = start + backlog;
    let visible = vec![true; usize::try_from(first_head).unwrap()];
    let mut window = DeliveryWindow::new(seq(start), seq(first_head), limits);
    let mut model = Model {
        max_inflight,
        start,
        first_head,
        visible,
        acks: Vec::new(),
        history: Vec::new(),
        pass: 0,
        read: start,
        last_frame: start,
        completed: false,
    };
    let mut now = Instant::now();
    let mut completions = 0;
    for step in steps {
        match step {
            Step::Publish(count, seen) => model.visible.extend((0..count).map(|bit| seen >> bit & 1 == 1)),
            Step::ChangeRights(remainder) => {
                for (index, visible) in model.visible.iter_mut().enumerate() {
                    *visible = index % 3 != usize::from(remainder);
                }
            }
            Step::Page(count) if window.budget() > 0 => {
                let offered = offer(&mut window, &model, usize::from(count), now);
                prop_assert_eq!(offered, model.page(usize::from(count), now));
            }
            Step::Page(_) => prop_assert_eq!(model.in_flight().len(), max_inflight),
            Step::Ack(at) => {
                let acked = share(model.head(), at);
                prop_assert_eq!(window.ack(seq(acked)), model.ack(acked));
            }
            Step::Pass(seconds) => now += Duration::from_secs(u64::from(seconds)),
            Step::Expire => prop_assert_eq!(window.expire(now), model.expire(now)),
            Step::Purge(at) => {
                let from = share(model.head(), at);
                window.release(|number| number.get() >= from);
                model.purge(from);
            }
            Step::Resync => {
                window.restart_at(seq(model.head()));
                model.resync();
            }
        }
        let completed = window.caught_up().map(Seq::get);
        completions += usize::from(completed.is_some());
        prop_assert_eq!(completed, model.caught_up());
        prop_assert_eq!(window.acked().get(), model.acked());
        prop_assert_eq!(window.read().get(), model.read);
        prop_assert_eq!(window.in_flight(), model.in_flight().len());
        prop_assert_eq!(window.budget(), max_inflight - model.in_flight().len());
        prop_assert_eq!(window.deadline(), model.deadline());
        let numbers: BTreeSet<u64> = model.in_flight().iter().map(|sent| sent.seq).collect();
        prop_assert_eq!(numbers.len(), window.in_flight(), "nothing is on its way twice");
    }
    prop_assert!(completions <= 1);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 700, failure_persistence: None, ..ProptestConfig::default() })]

    // The windows are so large that the memory for the flag (four windows) is never full: there it is bounded and not exact.
    #[test]
    fn the_window_does_what_a_naive_reading_of_the_rules_says(
        max_inflight in 20..40_usize, start in 0..5_u64, backlog in 0..12_u64, steps in steps(),
    ) {
        run(max_inflight, start, backlog, steps)?;
    }

    #[test]
    fn a_small_window_does_what_a_naive_reading_of_the_rules_says(
        max_inflight in 1..5_usize, start in 0..5_u64, backlog in 0..12_u64,
        steps in steps().prop_map(|steps| steps.into_iter().filter(|step| !matches!(step, Step::ChangeRights(_))).collect()),
    ) {
        run(max_inflight, start, backlog, steps)?;
    }

    /// A consumer that acknowledges what it gets sees every admissible event of the log, in order, however often it is interrupted.
    #[test]
    fn nothing_admissible_is_skipped(
        max_inflight in 1..6_usize, visible in proptest::collection::vec(any::<bool>(), 1..120), pages in proptest::collection::vec((1..9_usize, any::<bool>(), any::<bool>()), 1..40),
    ) {
        let head = visible.len() as u64;
        let limits = WindowLimits { max_inflight, ack_timeout: TIMEOUT, cursor_advance_every: ADVANCE_EVERY };
        let mut window = DeliveryWindow::new(Seq::ZERO, seq(head), limits);
        let (mut now, mut first_seen, mut pending) = (Instant::now(), Vec::new(), Vec::new());
        let mut turns = pages.iter().cycle().enumerate();
        while window.acked().get() < head {
            let (turn, (count, acks, waits)) = turns.next().unwrap();
            let acks = *acks || turn % 3 == 2;
            for number in (window.read().get() + 1..=head).take(*count) {
                if !visible[usize::try_from(number - 1).unwrap()] {
                    window.pass(seq(number));
                } else if let Some(fields) = window.dispatch(seq(number), now) {
                    prop_assert_eq!(fields.redelivered, first_seen.contains(&number));
                    if !fields.redelivered {
                        first_seen.push(number);
                    }
                    pending.push(number);
                } else {
                    window.cut_page();
                    break;
                }
            }
            pending.extend(window.end_page().map(Seq::get));
            if acks {
                window.ack(seq(pending.last().copied().unwrap_or_default()));
            }
            if *waits {
                now += TIMEOUT;
                window.expire(now);
            }
        }
        let expected: Vec<u64> = (1..=head).filter(|number| visible[usize::try_from(number - 1).unwrap()]).collect();
        prop_assert_eq!(first_seen, expected);
    }
}
