//! The REST window's rules one by one (design/stream.md, "REST window"; seed 004, design notes 5 and 10).

use std::time::Duration;

use agents::{ConsumerError, CursorRow, Holder, Plan, RestPoll, RestWindow, WindowLimits};
use domain::{Seq, Timestamp};

const TIMEOUT: Duration = Duration::from_secs(30);
const LIMITS: WindowLimits = WindowLimits { ack_timeout: TIMEOUT, max_inflight_events: 10 };

fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

fn seqs(values: &[u64]) -> Vec<Seq> {
    values.iter().copied().map(seq).collect()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_000_000_000 + seconds * 1_000_000)
}

/// A row whose window was begun at `acked`, when that was the head.
fn row(acked: u64) -> CursorRow {
    let window = RestWindow { read: seq(acked), highest_sent: seq(acked), ..RestWindow::default() };
    let epoch = "00000000-0000-0000-0000-000000000000".parse().unwrap();
    CursorRow { acked: seq(acked), epoch, holder: Some(Holder::Rest), window_version: 1, window }
}

fn begin(row: &CursorRow, after: Option<u64>, now: i64) -> RestPoll {
    RestPoll::begin(row, after.map(seq), seq(100), at(now), LIMITS).unwrap()
}

/// Dispatches a page and stores it.
fn dispatch(row: &mut CursorRow, after: Option<u64>, now: i64, page: &[u64], checked: u64) -> Vec<u64> {
    let mut poll = begin(row, after, now);
    assert!(matches!(poll.plan(page.len().max(1)), Plan::Read { .. }), "{:?} {:?}", poll.plan(10), row);
    let flagged = page.iter().copied().filter(|event| poll.is_redelivery(seq(*event))).collect();
    poll.record(&seqs(page), seq(checked), at(now));
    row.window = poll.change().expect("a page is stored");
    flagged
}

#[test]
fn a_window_that_was_never_used_begins_at_the_acknowledged_position() {
    let mut row = row(7);
    row.window = RestWindow::default();
    let poll = begin(&row, None, 0);
    assert_eq!(poll.plan(5), Plan::Read { after: seq(7), budget: 5 });
    assert_eq!(poll.change().expect("a begun window is stored").read, seq(7));
}

#[test]
fn a_poll_that_changes_nothing_stores_nothing() {
    let mut row = row(7);
    dispatch(&mut row, None, 0, &[8, 9], 9);
    row.window = begin(&row, Some(9), 1).change().expect("what `after` proves is remembered for polls without it");
    assert_eq!(begin(&row, Some(9), 1).change(), None);
    assert!(!begin(&row, None, 1).is_unproven());
    row.acked = seq(9);
    assert_eq!(begin(&row, None, 1).change(), None, "what the acknowledgement implies needs no write");
}

#[test]
fn a_page_that_only_skips_is_stored_because_its_position_is_told() {
    let row = row(7);
    let mut poll = begin(&row, None, 0);
    poll.record(&[], seq(20), at(0));
    assert_eq!((poll.next_cursor(), poll.is_unproven()), (seq(20), false));
    assert_eq!(poll.change().expect("a told position is stored").read, seq(20));
}

#[test]
fn an_after_above_the_committed_head_is_refused_and_one_above_the_window_is_ignored() {
    let row = row(7);
    assert!(matches!(RestPoll::begin(&row, Some(seq(101)), seq(100), at(0), LIMITS), Err(ConsumerError::AfterAboveHead)));
    assert_eq!(begin(&row, Some(100), 0).plan(1), Plan::Read { after: seq(7), budget: 1 });
}

#[test]
fn at_most_max_inflight_events_are_on_the_way_and_acknowledging_releases_as_many() {
    let mut row = row(0);
    let page: Vec<_> = (1..=10).collect();
    dispatch(&mut row, None, 0, &page, 10);
    let full = begin(&row, Some(10), 1);
    assert_eq!((full.plan(10), full.next_cursor(), full.in_flight()), (Plan::Full, seq(10), 10));
    row.acked = seq(3);
    assert_eq!(begin(&row, Some(10), 1).plan(10), Plan::Read { after: seq(10), budget: 3 });
}

#[test]
fn nothing_is_dispatched_before_the_last_page_is_proven_received() {
    let mut row = row(20);
    dispatch(&mut row, None, 0, &[21, 22, 23], 25);
    let lost = begin(&row, None, 29);
    assert_eq!((lost.plan(10), lost.next_cursor(), lost.is_unproven()), (Plan::Unproven, seq(20), true));
    assert_eq!(lost.deadline(), Some(at(30)));

    assert_eq!(begin(&row, Some(25), 1).plan(9), Plan::Read { after: seq(25), budget: 7 }, "the client says that it has everything");
    row.acked = seq(21);
    assert_eq!(begin(&row, None, 1).plan(9), Plan::Read { after: seq(25), budget: 8 }, "only that page can have told 21");
}

#[test]
fn an_acknowledgement_of_what_an_earlier_answer_told_proves_nothing() {
    let mut row = row(20);
    // The first page told 30 as its next_cursor; the second is lost.
    dispatch(&mut row, None, 0, &[21], 30);
    dispatch(&mut row, Some(30), 1, &[31, 32], 32);
    row.acked = seq(30);
    assert_eq!(begin(&row, None, 2).plan(9), Plan::Unproven);
    row.acked = seq(31);
    assert_eq!(begin(&row, None, 2).plan(9), Plan::Read { after: seq(32), budget: 9 });
}

#[test]
fn a_late_acknowledgement_of_an_earlier_page_does_not_prove_a_repeated_one() {
    let mut row = row(0);
    dispatch(&mut row, None, 0, &[1], 1);
    dispatch(&mut row, Some(1), 1, &[2, 3], 3);
    assert_eq!(dispatch(&mut row, None, 40, &[1, 2, 3], 3), [1, 2, 3]);
    row.acked = seq(1);
    assert_eq!(begin(&row, None, 41).plan(9), Plan::Unproven, "1 arrived with the first page; 2 and 3 never did");
    row.acked = seq(3);
    assert_eq!(begin(&row, None, 41).plan(9), Plan::Read { after: seq(3), budget: 9 });
}

#[test]
fn what_another_holder_told_proves_nothing() {
    let mut row = row(0);
    row.window = RestWindow::default();
    let mut poll = RestPoll::begin(&row, None, seq(5), at(0), LIMITS).unwrap();
    poll.record(&seqs(&[1, 2, 3]), seq(3), at(0));
    row.window = poll.change().unwrap();
    row.acked = seq(2);
    assert_eq!(begin(&row, None, 1).plan(9), Plan::Unproven);
}

#[test]
fn inside_the_timeout_nothing_comes_again_and_after_it_exactly_what_was_on_the_way_flagged() {
    let mut row = row(0);
    dispatch(&mut row, None, 0, &[1, 2, 4], 4);
    assert_eq!(begin(&row, Some(4), 29).plan(9), Plan::Read { after: seq(4), budget: 7 });
    // 3 is admitted now, 4 is not any more, 5 is new.
    let again = begin(&row, Some(4), 30);
    assert_eq!(again.plan(10), Plan::Read { after: seq(0), budget: 10 });
    assert_eq!(dispatch(&mut row, Some(4), 30, &[1, 2, 3, 5], 5), [1, 2], "only what was dispatched before carries the flag");
    assert_eq!(begin(&row, Some(5), 31).in_flight(), 4);
}

#[test]
fn the_deadline_follows_the_oldest_event_on_its_way() {
    let mut row = row(0);
    dispatch(&mut row, None, 0, &[1, 2], 2);
    dispatch(&mut row, Some(2), 10, &[3], 3);
    assert_eq!(begin(&row, Some(3), 11).deadline(), Some(at(30)));
    row.acked = seq(2);
    assert_eq!(begin(&row, Some(3), 11).deadline(), Some(at(40)));
    row.acked = seq(3);
    assert_eq!(begin(&row, Some(3), 11).deadline(), None);
}

#[test]
fn a_page_cut_at_the_limit_remembers_what_still_has_to_come_again() {
    let mut row = row(0);
    dispatch(&mut row, None, 0, &[1, 2, 3, 4], 4);
    assert_eq!(dispatch(&mut row, None, 30, &[1, 2], 2), [1, 2]);
    assert_eq!(begin(&row, Some(2), 31).in_flight(), 2, "what was not sent again yet holds no budget");
    assert_eq!(dispatch(&mut row, Some(2), 31, &[3, 4, 5], 5), [3, 4]);
}

#[test]
fn an_after_below_the_window_is_a_flagged_redelivery_at_once() {
    let mut row = row(0);
    dispatch(&mut row, None, 0, &[1, 2], 2);
    dispatch(&mut row, Some(2), 1, &[3, 4], 4);
    assert_eq!(begin(&row, Some(2), 2).plan(9), Plan::Read { after: seq(2), budget: 8 });
    assert_eq!(dispatch(&mut row, Some(2), 2, &[3, 4, 5], 5), [3, 4]);
    row.acked = seq(4);
    assert_eq!(begin(&row, Some(1), 3).plan(9), Plan::Read { after: seq(4), budget: 9 }, "what is acknowledged does not come again");
}

#[test]
fn acknowledging_past_what_was_dispatched_skips_it() {
    let mut row = row(0);
    dispatch(&mut row, None, 0, &[1, 2], 2);
    row.acked = seq(50);
    let poll = begin(&row, None, 1);
    assert_eq!((poll.plan(9), poll.in_flight()), (Plan::Read { after: seq(50), budget: 9 }, 0));
}
