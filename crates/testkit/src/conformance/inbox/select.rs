//! Choosing items: the order of claim, what is due, and rows that cannot be read.

use std::time::Duration;

use domain::{EventId, Priority, StoreError, Timestamp};
use inbox::{AckState, InboxStore, ItemFilter, QueueFilter, Rules};

use super::{MINUTE, events, except, only};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, fresh, tenant};

/// Publishes a job in `queue` with a claim key so many minutes from now.
async fn at(fixture: &Fixture, queue: &str, minutes: u32) -> EventId {
    let mut work = fixture.work(&[&format!("alpha/{queue}")]);
    work.claim_key = fixture.now().plus(MINUTE * minutes);
    fixture.publish(fixture.job_of(work)).await.0
}

pub(crate) async fn items_are_claimed_by_key_then_event_over_all_queues_or_some(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let late = at(&fixture, "a", 9).await;
    let (second, third) = (at(&fixture, "b", 2).await, at(&fixture, "a", 2).await);
    let first = at(&fixture, "c", 1).await;
    let ids = async |queues: QueueFilter, limit| events(&fixture.available("alpha", queues, limit).await);
    assert_eq!(ids(QueueFilter::default(), 9).await, [first, second, third, late]);
    assert_eq!(ids(QueueFilter::default(), 3).await, [first, second, third]);
    assert_eq!(ids(QueueFilter::default(), 1).await, [first]);
    assert_eq!(ids(QueueFilter::default(), 0).await, []);
    assert_eq!(ids(only(&["a"]), 9).await, [third, late]);
    assert_eq!(ids(only(&["b", "a", "b", "z"]), 2).await, [second, third]);
    assert_eq!(ids(except(&["c", "a"]), 9).await, [second]);
    assert_eq!(ids(QueueFilter { except: vec![super::queue("b")], ..only(&["b", "c"]) }, 9).await, [first]);
    assert_eq!(ids(only(&[]), 9).await, []);
}

pub(crate) async fn however_many_queues_there_are_the_first_of_all_come_in_their_order(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut wanted = Vec::new();
    for number in 0..300_u32 {
        // Neither in the order of the names nor of the making, and many at the same time.
        let minutes = (number * 7919) % 97;
        wanted.push((minutes, at(&fixture, &format!("q{:03}", (number * 31) % 300), minutes).await));
    }
    wanted.sort_unstable();
    let wanted: Vec<_> = wanted.into_iter().map(|(_, id)| id).collect();
    for limit in [1, 7, 100, 400] {
        assert_eq!(events(&fixture.available("alpha", QueueFilter::default(), limit).await), wanted[..limit.min(300)], "{limit}");
    }
}

pub(crate) async fn what_is_claimed_rests_or_is_over_is_not_available(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(fixture.publish_job(&["alpha"]).await.0);
    }
    fixture.claim("alpha", ids[0], MINUTE).await;
    fixture.finish("alpha", ids[1]).await;
    let mut resting = fixture.claim("alpha", ids[2], MINUTE).await;
    let rest = inbox::Release::Counted { rest: Some(MINUTE) };
    resting.release(fixture.now(), &rest, inbox::Report::default(), &Rules::default()).unwrap();
    fixture.put(vec![resting.clone()]).await.unwrap();
    assert_eq!(events(&fixture.available("alpha", QueueFilter::default(), 9).await), [ids[3]]);
    assert_eq!(fixture.item("alpha", ids[2]).await, Some(resting));
    let number = fixture.opened("alpha").await.number;
    let claimed = async |most| fixture.inbox(move |tx| Box::pin(async move { tx.claimed(number, most).await })).await;
    assert_eq!((claimed(9).await, claimed(0).await), (Ok(1), Ok(0)));
}

pub(crate) async fn ten_thousand_long_leases_do_not_hide_one_that_lapsed(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut ids = Vec::new();
    for _ in 0..10 {
        let jobs: Vec<_> = (0..1000).map(|_| fixture.job(&["alpha"])).collect();
        ids.extend(jobs.iter().map(|job| job.id));
        fixture.append(jobs).await.unwrap();
    }
    let short = ids[7_777];
    let mut items: Vec<_> = fixture.find("alpha", &ids).await.into_iter().map(Option::unwrap).collect();
    for item in &mut items {
        let lease = if item.facts.event_id == short { MINUTE } else { MINUTE * 60 };
        item.claim(fixture.now(), lease, inbox::LeaseHash::of("t"), None, &Rules::default()).unwrap();
    }
    fixture.put(items).await.unwrap();
    let lapsed_at = fixture.now().plus(MINUTE);
    assert_eq!(fixture.next_due_item("alpha").await, Some(lapsed_at));
    fixture.clock.advance(MINUTE);
    let due = fixture.due_items("alpha", fixture.now(), None, 100).await;
    assert_eq!(events(&due), [short]);
}

pub(crate) async fn due_items_of_every_kind_come_in_the_order_of_their_time_and_continue_behind_one(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut work = fixture.work(&["alpha"]);
    work.expires_at = Some(fixture.now().plus(MINUTE * 2));
    let expires = fixture.publish(fixture.job_of(work)).await.0;
    let leased = fixture.publish_job(&["alpha"]).await.0;
    fixture.claim("alpha", leased, MINUTE).await;
    let rests = fixture.publish_job(&["alpha"]).await.0;
    let mut resting = fixture.claim("alpha", rests, MINUTE).await;
    let rest = inbox::Release::Snooze { rest: Some(MINUTE * 2) };
    resting.release(fixture.now(), &rest, inbox::Report::default(), &Rules::default()).unwrap();
    fixture.put(vec![resting]).await.unwrap();
    let start = fixture.now();
    let due = async |minutes: u32, after: Option<(Timestamp, EventId)>, limit| {
        events(&fixture.due_items("alpha", start.plus(MINUTE * minutes), after, limit).await)
    };
    assert_eq!(due(0, None, 9).await, []);
    assert_eq!(due(1, None, 9).await, [leased]);
    assert_eq!(due(2, None, 9).await, [leased, expires, rests]);
    assert_eq!(due(2, None, 2).await, [leased, expires]);
    assert_eq!(due(2, Some((start.plus(MINUTE), leased)), 9).await, [expires, rests]);
    assert_eq!(due(2, Some((start.plus(MINUTE * 2), expires)), 9).await, [rests]);
    assert_eq!(due(2, Some((start.plus(MINUTE * 2), rests)), 9).await, []);
}

pub(crate) async fn a_row_that_cannot_be_read_does_not_hide_what_is_due(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (bad, good) = (fixture.publish_job(&["alpha"]).await.0, fixture.publish_job(&["alpha"]).await.0);
    fixture.claim("alpha", bad, Duration::from_secs(1)).await;
    fixture.claim("alpha", good, MINUTE).await;
    let statement = format!("UPDATE inbox_items SET history = '{{' WHERE event_id = {}", fixture.literal(bad.uuid()));
    assert_eq!(fixture.execute(&statement).await, 1);
    fixture.clock.advance(MINUTE);
    assert_eq!(events(&fixture.due_items("alpha", fixture.now(), None, 1).await), [good]);
    assert_eq!(events(&fixture.due_items("alpha", fixture.now(), None, 9).await), [good]);
    assert_eq!(fixture.next_due_item("alpha").await, fixture.item("alpha", good).await.unwrap().due_at());
}

pub(crate) async fn what_was_found_is_in_the_order_asked_with_gaps(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (one, two) = (fixture.publish_job(&["alpha"]).await.0, fixture.publish_job(&["alpha"]).await.0);
    let other = fixture.publish_job(&["beta"]).await.0;
    fixture.finish("alpha", one).await;
    let found = fixture.find("alpha", &[two, EventId::new(fresh()), one, other, two]).await;
    let states: Vec<_> = found.iter().map(|item| item.as_ref().map(|item| item.state)).collect();
    assert_eq!(states, [Some(AckState::Available), None, Some(AckState::Acked), None, Some(AckState::Available)]);
}

pub(crate) async fn an_item_that_is_not_there_is_not_put(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let id = fixture.publish_job(&["alpha"]).await.0;
    let claimed = fixture.claim("alpha", id, MINUTE).await;
    let ended = fixture.finish_of(claimed.clone()).await;
    for item in [claimed, ended] {
        let refused = fixture.put(vec![item]).await;
        assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    }
    assert_eq!(fixture.item("alpha", id).await.unwrap().state, AckState::Acked);
}

impl Fixture {
    async fn finish_of(&self, mut item: inbox::Item) -> inbox::Item {
        item.acknowledge(self.now(), inbox::AckResult::Completed, inbox::Report::default(), &Rules::default()).unwrap();
        self.put(vec![item.clone()]).await.unwrap();
        item
    }
}

pub(crate) async fn a_redriven_item_keeps_its_history_and_moves_its_ring(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut work = fixture.work(&["alpha"]);
    work.max_attempts = 1;
    let id = fixture.publish(fixture.job_of(work)).await.0;
    let mut item = fixture.claim("alpha", id, MINUTE).await;
    let report = inbox::Report { summary: Some("no".to_owned()), result: Some("{\"a\":1}".to_owned()) };
    item.acknowledge(fixture.now(), inbox::AckResult::Failed, report, &Rules::default()).unwrap();
    assert_eq!(item.state, AckState::DeadLetter);
    fixture.put(vec![item.clone()]).await.unwrap();
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.item("alpha", id).await.as_ref(), Some(&item));
    assert_eq!(
        events(&fixture.matching("alpha", ItemFilter { states: vec![AckState::DeadLetter], ..ItemFilter::default() }, None, 9).await),
        [id]
    );
    item.redrive(fixture.now(), &Rules::default()).unwrap();
    fixture.fill(1).await;
    item.ring_seq = crate::conformance::support::seq(2);
    fixture.put(vec![item.clone()]).await.unwrap();
    assert_eq!(fixture.item("alpha", id).await, Some(item.clone()));
    let page = fixture.store.poll(&fixture.recipient("alpha"), &super::list::range(1, 9)).await.unwrap();
    let item = inbox::Item { history: Vec::new(), ..item };
    assert_eq!((page.items, page.oldest), (vec![item], Some(crate::conformance::support::seq(2))), "a poll reads no history");
}

pub(crate) async fn inboxes_that_are_due_take_turns_over_tenants_and_inactive_tenants_are_left_out(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    for name in ["busy", "calm", "gone"] {
        fixture.create_tenant(name).await;
    }
    let due_in = async |name: &str, agent: &str, minutes: u32| {
        let recipient = inbox::Recipient { tenant: tenant(name), agent: super::agent(agent) };
        let due = fixture.now().plus(MINUTE * minutes);
        let saved = fixture.inbox(move |tx| {
            let recipient = recipient.clone();
            Box::pin(async move {
                let mut row = tx.open_recipient(&recipient).await?;
                row.look_at(Some(due));
                tx.save_recipient(&row).await
            })
        });
        saved.await.unwrap();
    };
    for number in 0..5 {
        due_in("busy", &format!("b{number}"), number).await;
    }
    due_in("calm", "c0", 3).await;
    due_in("calm", "c1", 9).await;
    due_in("gone", "g", 0).await;
    let set = fixture.admin(move |tx| Box::pin(async move { tx.set_tenant_state(&tenant("gone"), authz::TenantState::Deleting).await }));
    assert_eq!(set.await, Ok(true));
    let due = async |minutes: u32, limit| {
        let due = InboxStore::due(&*fixture.store, fixture.now().plus(MINUTE * minutes), limit).await.unwrap();
        due.iter().map(|recipient| recipient.agent.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(due(0, 9).await, ["b0"]);
    assert_eq!(due(4, 9).await, ["b0", "c0", "b1", "b2", "b3", "b4"]);
    assert_eq!(due(9, 3).await, ["b0", "c0", "b1"]);
    assert_eq!(due(9, 0).await, Vec::<String>::new());
    assert_eq!(InboxStore::next_due(&*fixture.store).await, Ok(Some(fixture.now())), "not that of an inactive tenant alone");
}

pub(crate) async fn the_priority_of_work_is_in_its_place_among_others(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let rules = Rules::default();
    let mut ids = Vec::new();
    for priority in [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent] {
        let mut work = fixture.work(&["alpha"]);
        (work.priority, work.claim_key) = (priority, rules.claim_key(fixture.now(), priority));
        ids.push(fixture.publish(fixture.job_of(work)).await.0);
    }
    ids.reverse();
    let items = fixture.available("alpha", QueueFilter::default(), 9).await;
    assert_eq!(events(&items), ids);
    assert_eq!(items[0].facts.priority, Priority::Urgent);
}
