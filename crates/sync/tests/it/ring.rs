//! The hot ring against a naive model.

use std::sync::Arc;

use domain::Event;
use proptest::prelude::*;
use sync::HotRing;

use crate::fakes::{event, numbers, seq};

#[derive(Clone, Debug)]
enum Step {
    /// A batch of these body sizes, after a gap of so many numbers.
    Push {
        gap: u64,
        sizes: Vec<usize>,
    },
    Reset(u64),
    Bound(usize),
    Read {
        after: u64,
        length: u64,
        max_events: usize,
        max_bytes: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let gap = prop_oneof![9 => Just(0_u64), 1 => 1..5_u64];
    prop_oneof![
        4 => (gap, prop::collection::vec(0..400_usize, 0..12)).prop_map(|(gap, sizes)| Step::Push { gap, sizes }),
        1 => (0..50_u64).prop_map(Step::Reset),
        1 => (0..4_000_usize).prop_map(Step::Bound),
        6 => (0..60_u64, 0..30_u64, 1..20_usize, 1..3_000_usize)
            .prop_map(|(after, length, max_events, max_bytes)| Step::Read { after, length, max_events, max_bytes }),
    ]
}

/// Everything since the last gap or reset; bounds are applied when looking.
struct Model {
    kept: Vec<Arc<Event>>,
    end: u64,
    max_events: usize,
    max_bytes: usize,
}

impl Model {
    fn trim(&mut self) {
        while self.kept.len() > self.max_events || self.kept.iter().map(|event| event.size()).sum::<usize>() > self.max_bytes {
            self.kept.remove(0);
        }
    }

    fn read(&self, after: u64, up_to: u64, max_events: usize, max_bytes: usize) -> Option<Vec<u64>> {
        let start = self.kept.first().map_or(self.end, |event| event.seq.get() - 1);
        if after < start || after > self.end {
            return None;
        }
        let mut page: Vec<&Arc<Event>> = Vec::new();
        for event in self.kept.iter().filter(|event| event.seq.get() > after && event.seq.get() <= up_to).take(max_events) {
            let bytes: usize = page.iter().map(|event| event.size()).sum();
            if !page.is_empty() && bytes + event.size() > max_bytes {
                break;
            }
            page.push(event);
        }
        Some(page.into_iter().map(|event| event.seq.get()).collect())
    }
}

proptest! {
    #[test]
    fn the_ring_answers_what_a_list_with_the_same_bounds_answers(
        (max_events, max_bytes) in (0..20_usize, 0..4_000_usize),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut ring = HotRing::new(seq(0), max_events, max_bytes);
        let mut model = Model { kept: Vec::new(), end: 0, max_events, max_bytes };
        for step in steps {
            match step {
                Step::Push { gap, sizes } => {
                    let first = model.end + gap + 1;
                    let batch: Vec<_> = (first..).zip(sizes).map(|(number, size)| event(number, size)).collect();
                    ring.push(&batch);
                    if !batch.is_empty() {
                        if gap > 0 {
                            model.kept.clear();
                        }
                        model.end = first + batch.len() as u64 - 1;
                        model.kept.extend(batch);
                    }
                }
                Step::Reset(end) => {
                    ring.reset(seq(end));
                    (model.end, model.kept) = (end, Vec::new());
                    prop_assert!(ring.is_empty());
                }
                Step::Bound(max_bytes) => {
                    ring.bound_bytes(max_bytes);
                    model.max_bytes = max_bytes;
                }
                Step::Read { after, length, max_events, max_bytes } => {
                    let read = ring.range(seq(after), seq(after + length), max_events, max_bytes);
                    prop_assert_eq!(read.map(|events| numbers(&events)), model.read(after, after + length, max_events, max_bytes));
                }
            }
            model.trim();
            prop_assert_eq!((ring.len(), ring.end().get()), (model.kept.len(), model.end));
            prop_assert!(ring.len() <= max_events && ring.bytes() <= model.max_bytes);
            prop_assert_eq!(ring.bytes(), model.kept.iter().map(|event| event.size()).sum::<usize>());
        }
    }
}

#[test]
fn an_event_above_the_byte_bound_of_a_read_is_still_read_alone() {
    let mut ring = HotRing::new(seq(0), 10, 1 << 20);
    ring.push(&[event(1, 5_000), event(2, 10)]);
    assert_eq!(numbers(&ring.range(seq(0), seq(2), 10, 100).unwrap()), [1]);
}
