//! The rules of the delivery window, one by one (seed 004, design note 5, and design/stream.md).

use std::time::Duration;

use domain::Seq;
use doorstep_gateway::{DeliveryWindow, WindowLimits};
use tokio::time::Instant;

const TIMEOUT: Duration = Duration::from_secs(30);

fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

fn limits(max_inflight: usize) -> WindowLimits {
    WindowLimits { max_inflight, ack_timeout: TIMEOUT, cursor_advance_every: 3 }
}

/// A window after `acked` with nothing to catch up.
fn live(acked: u64, max_inflight: usize) -> DeliveryWindow {
    let mut window = DeliveryWindow::new(seq(acked), seq(acked), limits(max_inflight));
    assert_eq!(window.caught_up(), Some(seq(acked)));
    window
}

/// Offers the admitted numbers of a page; answers what was dispatched with its flag, and the cursor frame that followed.
fn page(
    window: &mut DeliveryWindow,
    numbers: std::ops::RangeInclusive<u64>,
    admitted: &[u64],
    now: Instant,
) -> (Vec<(u64, bool)>, Option<u64>) {
    let mut sent = Vec::new();
    for number in numbers {
        if !admitted.contains(&number) {
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

fn fresh(numbers: &[u64]) -> Vec<(u64, bool)> {
    numbers.iter().map(|number| (*number, false)).collect()
}

#[test]
fn the_budget_bounds_what_is_in_flight() {
    let now = Instant::now();
    let mut window = live(0, 2);
    let (sent, cursor) = page(&mut window, 1..=6, &[1, 4, 5, 6], now);
    assert_eq!(sent, fresh(&[1, 4]));
    assert_eq!((window.budget(), window.in_flight()), (0, 2));
    // A page that was cut ends at the last dispatch: what lies behind it is checked again.
    assert_eq!((window.read(), cursor), (seq(4), None));
    assert!(window.ack(seq(1)));
    assert_eq!(window.budget(), 1);
}

#[test]
fn a_page_cut_behind_skipped_numbers_checks_these_again() {
    let now = Instant::now();
    let mut window = live(0, 1);
    let (sent, _) = page(&mut window, 1..=4, &[1, 4], now);
    assert_eq!((sent, window.read()), (fresh(&[1]), seq(1)));
    window.ack(seq(1));
    // 3 became admissible meanwhile.
    let (sent, _) = page(&mut window, 2..=4, &[3, 4], now);
    assert_eq!(sent, fresh(&[3]));
}

#[test]
fn an_acknowledgement_is_cumulative_and_monotone() {
    let now = Instant::now();
    let mut window = live(0, 10);
    page(&mut window, 1..=5, &[1, 2, 3, 4, 5], now);
    assert!(window.ack(seq(3)));
    assert_eq!((window.acked(), window.in_flight(), window.read()), (seq(3), 2, seq(5)));
    for lower in [0, 2, 3] {
        assert!(!window.ack(seq(lower)));
        assert_eq!((window.acked(), window.in_flight(), window.read()), (seq(3), 2, seq(5)));
    }
}

#[test]
fn acknowledging_past_what_was_dispatched_skips_it() {
    let now = Instant::now();
    let mut window = live(0, 10);
    page(&mut window, 1..=2, &[1, 2], now);
    assert!(window.ack(seq(7)));
    assert_eq!((window.acked(), window.read(), window.in_flight()), (seq(7), seq(7), 0));
    // What the consumer acknowledged is no news to it: no cursor frame.
    assert_eq!(page(&mut window, 8..=9, &[], now), (vec![], None));
}

#[test]
fn a_timeout_restarts_from_acked_and_flags_exactly_what_was_dispatched() {
    let now = Instant::now();
    let mut window = live(0, 3);
    page(&mut window, 1..=5, &[1, 3, 5], now);
    window.ack(seq(1));
    assert!(!window.expire(now + TIMEOUT - Duration::from_millis(1)));
    assert!(window.expire(now + TIMEOUT));
    assert_eq!((window.read(), window.in_flight(), window.budget()), (seq(1), 0, 3));
    // 2 was not admitted at first and is now: it comes for the first time and carries no flag; neither does 6.
    let (sent, _) = page(&mut window, 2..=6, &[2, 3, 5, 6], now + TIMEOUT);
    assert_eq!(sent, vec![(2, false), (3, true), (5, true)]);
    window.ack(seq(5));
    let (sent, _) = page(&mut window, 6..=6, &[6], now + TIMEOUT);
    assert_eq!(sent, fresh(&[6]));
}

#[test]
fn what_timed_out_twice_carries_the_flag_twice_and_what_timed_out_once_from_then_on() {
    let now = Instant::now();
    let mut window = live(0, 2);
    page(&mut window, 1..=3, &[1, 3], now);
    assert!(window.expire(now + TIMEOUT));
    let (sent, _) = page(&mut window, 1..=3, &[1, 2, 3], now + TIMEOUT);
    assert_eq!(sent, vec![(1, true), (2, false)]);
    assert!(window.expire(now + 2 * TIMEOUT));
    let (sent, _) = page(&mut window, 1..=3, &[1, 2], now + 2 * TIMEOUT);
    assert_eq!(sent, vec![(1, true), (2, true)]);
    window.ack(seq(2));
    // 3 was dispatched in the first pass only, and still is a redelivery.
    let (sent, _) = page(&mut window, 3..=3, &[3], now + 2 * TIMEOUT);
    assert_eq!(sent, vec![(3, true)]);
}

#[test]
fn an_event_that_is_not_admitted_any_more_does_not_come_again() {
    let now = Instant::now();
    let mut window = live(0, 3);
    page(&mut window, 1..=3, &[1, 2, 3], now);
    assert!(window.expire(now + TIMEOUT));
    let (sent, _) = page(&mut window, 1..=3, &[1, 3], now + TIMEOUT);
    assert_eq!(sent, vec![(1, true), (3, true)]);
    assert_eq!(window.in_flight(), 2);
}

#[test]
fn the_deadline_follows_the_oldest_dispatch_on_its_way() {
    let now = Instant::now();
    let second = now + Duration::from_secs(1);
    let mut window = live(0, 5);
    assert_eq!(window.deadline(), None);
    page(&mut window, 1..=1, &[1], now);
    page(&mut window, 2..=2, &[2], second);
    assert_eq!(window.deadline(), Some(now + TIMEOUT));
    window.ack(seq(1));
    assert_eq!(window.deadline(), Some(second + TIMEOUT));
    window.ack(seq(2));
    assert_eq!(window.deadline(), None);
    assert!(!window.expire(second + 9 * TIMEOUT));
}

#[test]
fn a_fresh_window_flags_nothing() {
    let now = Instant::now();
    let mut window = live(0, 5);
    page(&mut window, 1..=3, &[1, 2, 3], now);
    let mut resumed = DeliveryWindow::new(window.acked(), seq(3), limits(5));
    assert_eq!(page(&mut resumed, 1..=3, &[1, 2, 3], now).0, fresh(&[1, 2, 3]));
}

#[test]
fn a_purge_releases_the_budget_and_lets_the_consumer_acknowledge_past() {
    let now = Instant::now();
    let mut window = DeliveryWindow::new(seq(0), seq(9), limits(3));
    page(&mut window, 1..=3, &[1, 2, 3], now);
    assert_eq!(window.budget(), 0);
    window.release(|gone| gone >= seq(2));
    assert_eq!((window.budget(), window.in_flight(), window.acked()), (2, 1, seq(0)));
    // The next cursor covers the purged numbers; none of them was sent, so none carries the flag later.
    assert_eq!(window.end_page(), Some(seq(3)));
    assert!(window.expire(now + TIMEOUT));
    assert_eq!(page(&mut window, 1..=3, &[1, 2, 3], now + TIMEOUT).0, vec![(1, true), (2, false), (3, false)]);
}

#[test]
fn in_the_backlog_a_cursor_follows_every_page_that_ends_with_skipped_numbers() {
    let now = Instant::now();
    let mut window = DeliveryWindow::new(seq(0), seq(8), limits(10));
    assert_eq!(window.bound(seq(20)), seq(8));
    assert_eq!(page(&mut window, 1..=2, &[2], now).1, None);
    assert_eq!(page(&mut window, 3..=4, &[3], now).1, Some(4));
    assert_eq!(page(&mut window, 5..=6, &[], now).1, Some(6));
    assert_eq!(window.caught_up(), None);
    assert_eq!(page(&mut window, 7..=8, &[7], now).1, Some(8));
    assert_eq!(window.caught_up(), Some(seq(8)));
}

#[test]
fn catchup_complete_comes_exactly_once_when_the_first_head_is_reached() {
    let now = Instant::now();
    let mut window = DeliveryWindow::new(seq(0), seq(2), limits(10));
    page(&mut window, 1..=2, &[1, 2], now);
    assert_eq!(window.caught_up(), Some(seq(2)));
    assert_eq!(window.bound(seq(20)), seq(20));
    // Neither later pages nor a redelivery below that head bring it again.
    page(&mut window, 3..=4, &[3, 4], now);
    assert_eq!(window.caught_up(), None);
    assert!(window.expire(now + TIMEOUT));
    page(&mut window, 1..=4, &[1, 2, 3, 4], now + TIMEOUT);
    assert_eq!(window.caught_up(), None);
}

#[test]
fn an_acknowledgement_can_complete_the_catching_up() {
    let mut window = DeliveryWindow::new(seq(0), seq(5), limits(10));
    assert_eq!(window.caught_up(), None);
    window.ack(seq(5));
    assert_eq!(window.caught_up(), Some(seq(5)));
}

#[test]
fn live_a_cursor_comes_after_so_many_skipped_numbers() {
    let now = Instant::now();
    let mut window = live(0, 10);
    assert_eq!(page(&mut window, 1..=2, &[], now).1, None);
    assert_eq!(page(&mut window, 3..=3, &[], now).1, Some(3));
    assert_eq!(page(&mut window, 4..=6, &[4], now).1, None);
    assert_eq!(page(&mut window, 7..=8, &[], now).1, Some(8));
}

#[test]
fn a_resync_restarts_live_at_the_head() {
    let now = Instant::now();
    let mut window = DeliveryWindow::new(seq(3), seq(50), limits(4));
    page(&mut window, 4..=6, &[4, 5, 6], now);
    window.restart_at(seq(50));
    assert_eq!((window.acked(), window.read(), window.in_flight(), window.deadline()), (seq(50), seq(50), 0, None));
    assert_eq!(window.caught_up(), None);
    // Also downwards, when history was replaced.
    window.restart_at(seq(2));
    assert_eq!((window.acked(), window.read()), (seq(2), seq(2)));
    assert_eq!(page(&mut window, 3..=4, &[3, 4], now).0, fresh(&[3, 4]));
}

#[test]
fn a_higher_stored_acknowledgement_is_adopted_during_a_redelivery() {
    let now = Instant::now();
    let mut window = live(0, 4);
    page(&mut window, 1..=4, &[1, 2, 3, 4], now);
    assert!(window.expire(now + TIMEOUT));
    assert!(window.ack(seq(2)));
    assert_eq!(window.read(), seq(2));
    assert_eq!(page(&mut window, 3..=4, &[3, 4], now + TIMEOUT).0, vec![(3, true), (4, true)]);
}

#[test]
fn what_is_remembered_for_the_flag_is_bounded() {
    // Each pass finds other numbers admitted than the passes before; memory stays within four windows, and the latest pass is exact.
    let (now, size) = (Instant::now(), 5_u64);
    let mut window = live(0, usize::try_from(size).unwrap());
    let mut at = now;
    for pass in 0..40 {
        let admitted: Vec<u64> = (1..=size).map(|n| pass * size + n).collect();
        let (sent, _) = page(&mut window, 1..=200, &admitted, at);
        assert_eq!(sent.len(), 5);
        at += TIMEOUT;
        assert!(window.expire(at));
    }
    let latest: Vec<u64> = (1..=size).map(|n| 39 * size + n).collect();
    let (sent, _) = page(&mut window, 1..=200, &latest, at);
    assert!(sent.iter().all(|(_, redelivered)| *redelivered), "{sent:?}");
    at += TIMEOUT;
    assert!(window.expire(at));
    let all: Vec<u64> = (1..=200).collect();
    let mut flagged = 0;
    for start in (0..200).step_by(5) {
        let (sent, _) = page(&mut window, start + 1..=start + 5, &all, at);
        flagged += sent.iter().filter(|(_, redelivered)| *redelivered).count();
        window.ack(seq(start + 5));
    }
    assert!((5..=20).contains(&flagged), "{flagged}");
}
