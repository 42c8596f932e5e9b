//! Polls, listings, backlog, totals: what is read never changes anything.

use std::time::Duration;

use domain::EventId;
use inbox::{AckResult, AckState, InboxStore, ItemFilter, ItemPage, ItemRange, PollRange, QueueFilter, Release, Report, Rules};

use super::{MINUTE, events, except, only, part, queue};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, seq, tenant};

pub fn range(after: u64, limit: usize) -> PollRange {
    PollRange { after: seq(after), limit, claimable_only: false, queues: QueueFilter::default(), scan_max: usize::MAX }
}

/// Available, claimed, resting, dead letter, quarantined, acked; each from an event of its own.
async fn one_of_each(harness: &dyn Harness) -> (Fixture, Vec<EventId>) {
    let fixture = Fixture::new(harness).await;
    let (rules, mut ids) = (Rules::default(), Vec::new());
    for name in ["a", "b", "b", "a", "a", "c"] {
        let mut work = fixture.work(&[&format!("alpha/{name}")]);
        work.max_attempts = 1;
        ids.push(fixture.publish(fixture.job_of(work)).await.0);
    }
    fixture.claim("alpha", ids[1], MINUTE).await;
    let mut resting = fixture.claim("alpha", ids[2], MINUTE).await;
    resting.release(fixture.now(), &Release::Snooze { rest: Some(MINUTE * 2) }, Report::default(), &rules).unwrap();
    let mut dead = fixture.claim("alpha", ids[3], MINUTE).await;
    dead.acknowledge(fixture.now(), AckResult::Failed, Report::default(), &rules).unwrap();
    let mut aside = fixture.find("alpha", &ids[4..5]).await.remove(0).unwrap();
    aside.quarantine(fixture.now(), &rules).unwrap();
    fixture.put(vec![resting, dead, aside]).await.unwrap();
    fixture.finish("alpha", ids[5]).await;
    (fixture, ids)
}

pub(crate) async fn a_poll_shows_current_items_by_ring_and_says_whether_more_follow(harness: &dyn Harness) {
    let (fixture, ids) = one_of_each(harness).await;
    let recipient = fixture.recipient("alpha");
    let poll = async |range: PollRange| fixture.store.poll(&recipient, &range).await.unwrap();
    let page = poll(range(0, 9)).await;
    assert_eq!((events(&page.items), page.more, page.oldest), (ids[..3].to_vec(), false, Some(seq(1))));
    assert_eq!((page.view.log_head, page.view.head()), (seq(6), seq(6)));
    let page = poll(range(0, 2)).await;
    assert_eq!((events(&page.items), page.more), (ids[..2].to_vec(), true));
    let page = poll(range(1, 2)).await;
    assert_eq!((events(&page.items), page.more), (ids[1..3].to_vec(), false));
    assert_eq!(events(&poll(PollRange { claimable_only: true, ..range(0, 9) }).await.items), ids[..1]);
    assert_eq!(events(&poll(PollRange { queues: only(&["b"]), ..range(0, 1) }).await.items), ids[1..2]);
    assert_eq!(events(&poll(PollRange { queues: except(&["b"]), ..range(0, 9) }).await.items), ids[..1]);
    let empty = fixture.store.poll(&fixture.recipient("beta"), &range(0, 9)).await.unwrap();
    assert!(empty.items.is_empty() && !empty.more && empty.oldest.is_none() && empty.view.row.is_none());
}

pub(crate) async fn queues_are_named_that_have_something_to_claim(harness: &dyn Harness) {
    let (fixture, _) = one_of_each(harness).await;
    for name in ["f", "d", "e", "d"] {
        fixture.publish(fixture.job_of(fixture.work(&[&format!("alpha/{name}")]))).await;
    }
    let recipient = fixture.recipient("alpha");
    let named = async |besides: &[&str], limit| {
        let besides: Vec<_> = besides.iter().map(|name| queue(name)).collect();
        let queues = fixture.store.claimable_queues(&recipient, &besides, limit).await.unwrap();
        queues.iter().map(|queue| queue.as_str().to_owned()).collect::<Vec<_>>()
    };
    // What is claimed, rests, was put aside or has ended in `b`, `a` and `c` is not to be had; one in `a` is.
    assert_eq!(named(&[], 9).await, ["a", "d", "e", "f"]);
    assert_eq!(named(&["d", "b"], 9).await, ["a", "e", "f"]);
    assert_eq!(named(&["a"], 2).await, ["d", "e"]);
    assert_eq!(fixture.store.claimable_queues(&fixture.recipient("beta"), &[], 9).await, Ok(Vec::new()), "an inbox that never was");
}

pub(crate) async fn a_listing_shows_every_state_by_event_and_filters_all_that_is_given(harness: &dyn Harness) {
    let (fixture, ids) = one_of_each(harness).await;
    let recipient = fixture.recipient("alpha");
    let list =
        async |filter: ItemFilter, after, limit| events(&fixture.store.items(&recipient, &filter, part(after, limit)).await.unwrap().items);
    let all = ItemFilter::default;
    assert_eq!(list(all(), None, 9).await, ids);
    assert_eq!(list(all(), None, 4).await, ids[..4]);
    assert_eq!(list(all(), Some(ids[2]), 9).await, ids[3..]);
    let states = |states: &[AckState]| ItemFilter { states: states.to_vec(), ..all() };
    assert_eq!(list(states(&[AckState::Acked]), None, 9).await, ids[5..]);
    assert_eq!(list(states(&[AckState::DeadLetter, AckState::Quarantined]), None, 9).await, ids[3..5]);
    assert_eq!(list(states(&[AckState::Quarantined, AckState::DeadLetter]), None, 1).await, ids[3..4]);
    assert_eq!(list(states(&[AckState::Acked, AckState::DeadLetter]), None, 9).await, [ids[3], ids[5]]);
    assert_eq!(list(states(&[AckState::Claimed, AckState::RetryScheduled]), Some(ids[1]), 9).await, ids[2..3]);
    assert_eq!(list(ItemFilter { queue: Some(super::queue("a")), ..all() }, None, 9).await, [ids[0], ids[3], ids[4]]);
    let typed = |name: &str| ItemFilter { event_type: Some(domain::EventType::parse(name).unwrap()), ..all() };
    assert_eq!(list(typed("message.created"), None, 9).await, ids);
    assert_eq!(list(typed("other"), None, 9).await, []);
    assert_eq!(list(ItemFilter { created_before: Some(fixture.now()), ..all() }, None, 9).await, []);
    assert_eq!(list(ItemFilter { created_after: Some(fixture.now()), ..all() }, None, 9).await, ids);
    let named = ItemFilter { event_ids: vec![ids[5], ids[0], ids[5]], ..all() };
    assert_eq!(list(named.clone(), None, 9).await, [ids[0], ids[5]]);
    assert_eq!(list(ItemFilter { states: vec![AckState::Acked], ..named.clone() }, None, 9).await, ids[5..]);
    assert_eq!(events(&fixture.matching("alpha", named, None, 9).await), ids[..1], "what has ended is not changed");
    assert_eq!(events(&fixture.matching("alpha", all(), Some(ids[0]), 3).await), ids[1..4]);
    assert_eq!(fixture.store.items(&fixture.recipient("beta"), &all(), part(None, 9)).await, Ok(ItemPage::default()));
}

pub(crate) async fn a_poll_looks_at_so_many_items_and_goes_on_where_it_stopped(harness: &dyn Harness) {
    let (fixture, ids) = one_of_each(harness).await;
    let recipient = fixture.recipient("alpha");
    let poll = async |after, scan_max| {
        let range = PollRange { queues: only(&["b"]), claimable_only: false, scan_max, ..range(after, 9) };
        let page = fixture.store.poll(&recipient, &range).await.unwrap();
        (events(&page.items), page.next, page.more)
    };
    assert_eq!(poll(0, 1).await, (vec![], seq(1), true), "a short page, and where to go on");
    assert_eq!(poll(1, 1).await, (ids[1..2].to_vec(), seq(2), true));
    assert_eq!(poll(2, 1).await, (ids[2..3].to_vec(), seq(3), false));
    assert_eq!(poll(0, 3).await, (ids[1..3].to_vec(), seq(3), false));
    assert_eq!(poll(3, 1).await, (vec![], seq(3), false));
}

pub(crate) async fn a_poll_reads_no_history(harness: &dyn Harness) {
    let (fixture, ids) = one_of_each(harness).await;
    let recipient = fixture.recipient("alpha");
    let page = fixture.store.poll(&recipient, &range(2, 1)).await.unwrap();
    assert_eq!((events(&page.items), page.items[0].history.len()), (ids[2..3].to_vec(), 0));
    assert_eq!(fixture.item("alpha", ids[2]).await.unwrap().history.len(), 1);
}

pub(crate) async fn a_listing_looks_at_so_many_items_and_its_pages_miss_none(harness: &dyn Harness) {
    let (fixture, ids) = one_of_each(harness).await;
    let recipient = fixture.recipient("alpha");
    let filters = [
        ItemFilter::default(),
        ItemFilter { queue: Some(queue("a")), ..ItemFilter::default() },
        ItemFilter { states: vec![AckState::Acked], ..ItemFilter::default() },
        ItemFilter { states: vec![AckState::DeadLetter, AckState::Quarantined], ..ItemFilter::default() },
        ItemFilter { states: vec![AckState::Acked, AckState::Quarantined, AckState::DeadLetter], ..ItemFilter::default() },
        ItemFilter { event_ids: ids[2..].to_vec(), ..ItemFilter::default() },
    ];
    for filter in filters {
        let whole = fixture.store.items(&recipient, &filter, part(None, 99)).await.unwrap();
        assert_eq!(whole.next, None);
        for (limit, scan_max, bytes_max) in
            [(9, 1, 9_999), (9, 3, 9_999), (9, 6, 9_999), (2, 99, 9_999), (1, 4, 9_999), (9, 99, 1), (9, 99, 300)]
        {
            let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
            loop {
                let range = ItemRange { after, limit, scan_max, bytes_max };
                let page = fixture.store.items(&recipient, &filter, range).await.unwrap();
                assert!(page.items.len() <= limit);
                found.extend(page.items);
                pages += 1;
                assert!(pages < 20, "it comes to an end");
                let Some(next) = page.next else { break };
                assert!(after.is_none_or(|after| next > after), "each page goes on");
                after = Some(next);
            }
            assert_eq!(found, whole.items, "{filter:?}, {limit}, {scan_max}, {bytes_max}");
        }
    }
    let rare = ItemFilter { queue: Some(queue("none")), ..ItemFilter::default() };
    let page = fixture.store.items(&recipient, &rare, ItemRange { scan_max: 3, ..part(None, 9) }).await.unwrap();
    assert_eq!((page.items.len(), page.next), (0, Some(ids[0])), "an empty page says where to go on");
}

pub(crate) async fn the_backlog_counts_by_what_can_be_done_now_and_up_to_a_bound(harness: &dyn Harness) {
    let (fixture, _) = one_of_each(harness).await;
    let recipient = fixture.recipient("alpha");
    let mut work = fixture.work(&["alpha/d"]);
    work.expires_at = Some(fixture.now().plus(Duration::from_secs(90)));
    fixture.publish(fixture.job_of(work)).await;
    let start = fixture.now();
    let count = async |queues: QueueFilter, minutes: u32, most| {
        let backlog = fixture.store.backlog(&recipient, &queues, start.plus(MINUTE * minutes), most).await.unwrap();
        (backlog.available, backlog.claimed, backlog.resting, backlog.next_due)
    };
    let lease_ends = Some(start.plus(MINUTE));
    assert_eq!(count(QueueFilter::default(), 0, 9).await, (2, 1, 1, lease_ends));
    assert_eq!(count(QueueFilter::default(), 0, 1).await, (1, 1, 1, lease_ends));
    assert_eq!(count(only(&["b"]), 0, 9).await, (0, 1, 1, lease_ends));
    assert_eq!(count(except(&["b"]), 0, 9).await, (2, 0, 0, None));
    assert_eq!(count(except(&["b"]), 2, 9).await, (1, 0, 0, None), "one has expired");
    assert_eq!(count(except(&["b"]), 2, 1).await, (1, 0, 0, None));
    assert_eq!(count(QueueFilter::default(), 2, 9).await, (2, 1, 0, lease_ends), "the retry is due");
    let empty = fixture.store.backlog(&fixture.recipient("beta"), &QueueFilter::default(), start, 9).await;
    assert_eq!(empty, Ok(inbox::Backlog::default()));
}

pub(crate) async fn totals_are_by_tenant_the_largest_first_and_quiet_tenants_are_left_out(harness: &dyn Harness) {
    let (fixture, _) = one_of_each(harness).await;
    fixture.create_tenant("other").await;
    fixture.create_tenant("quiet").await;
    sync::Append::append(&*fixture.store, &tenant("quiet"), vec![fixture.event("x")]).await.unwrap();
    fixture.clock.advance(MINUTE);
    let later = fixture.now();
    sync::Append::append(&*fixture.store, &tenant("other"), vec![fixture.job(&["alpha", "beta"])]).await.unwrap();
    let totals = InboxStore::totals(&*fixture.store, 9).await.unwrap();
    let figures = |sums: &inbox::InboxSums| (sums.current, sums.dead_letters, sums.quarantined, sums.oldest);
    let by_tenant: Vec<_> = totals.tenants.iter().map(|(tenant, sums)| (tenant.as_str(), figures(sums))).collect();
    assert_eq!(by_tenant, [("acme", (3, 1, 1, Some(crate::conformance::support::START))), ("other", (2, 0, 0, Some(later)))]);
    assert_eq!(figures(&totals.all), (5, 1, 1, Some(crate::conformance::support::START)));
    assert!(totals.all.head > domain::Seq::ZERO);
    assert_eq!(InboxStore::totals(&*fixture.store, 1).await.unwrap().tenants.len(), 1);
}

pub(crate) async fn reading_changes_nothing(harness: &dyn Harness) {
    let (fixture, ids) = one_of_each(harness).await;
    let recipient = fixture.recipient("alpha");
    let before = fixture.store.items(&recipient, &ItemFilter::default(), part(None, 9)).await.unwrap();
    fixture.clock.advance(MINUTE * 600);
    for _ in 0..2 {
        fixture.store.poll(&recipient, &range(0, 9)).await.unwrap();
        fixture.store.backlog(&recipient, &QueueFilter::default(), fixture.now(), 9).await.unwrap();
        fixture.store.item(&recipient, ids[1]).await.unwrap();
        InboxStore::totals(&*fixture.store, 9).await.unwrap();
    }
    assert_eq!(fixture.store.items(&recipient, &ItemFilter::default(), part(None, 9)).await.unwrap(), before);
}
