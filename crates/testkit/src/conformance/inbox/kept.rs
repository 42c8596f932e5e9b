//! What outlives the log for the sake of items: envelopes, and deduplication keys.

use std::time::Duration;

use domain::{Appended, EventId, Publication};
use inbox::{AckResult, Report, Rules};

use super::MINUTE;
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, new_seq, seq};

/// The stored envelope of an event, as text.
async fn envelope(fixture: &Fixture, position: u64, id: EventId) -> Option<String> {
    let envelopes = fixture.store.envelopes(&fixture.tenant, &[(seq(position), id)]).await.unwrap();
    envelopes[0].as_ref().map(|body| String::from_utf8(body.to_vec()).unwrap())
}

pub(crate) async fn envelopes_come_from_the_log_in_the_order_asked(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (one, two) = (fixture.job(&["alpha"]), fixture.job(&["alpha"]));
    let (first, second) = (fixture.publish(one.clone()).await, fixture.publish(two.clone()).await);
    let asked = [(second.1, second.0), (first.1, second.0), (first.1, first.0), (seq(99), first.0)];
    let envelopes = fixture.store.envelopes(&fixture.tenant, &asked).await.unwrap();
    assert_eq!(envelopes, [Some(two.body), None, Some(one.body), None]);
}

pub(crate) async fn the_envelope_of_work_that_is_not_over_outlives_the_log_and_goes_with_the_last_item(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let job = fixture.job(&["alpha", "beta"]);
    let (id, _) = fixture.publish(job.clone()).await;
    let (over, _) = fixture.publish_job(&["alpha"]).await;
    fixture.finish("alpha", over).await;
    fixture.fill(3).await;
    fixture.retire_log().await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.count("inbox_payloads").await, 1, "only of what is not over");
    assert_eq!(envelope(&fixture, 1, id).await.unwrap().as_bytes(), job.body);
    assert_eq!(envelope(&fixture, 2, over).await, None);
    assert_eq!(envelope(&fixture, 2, id).await, None, "another position");
    fixture.finish("alpha", id).await;
    assert_eq!(envelope(&fixture, 1, id).await.unwrap().as_bytes(), job.body);
    fixture.finish("beta", id).await;
    assert_eq!((fixture.count("inbox_payloads").await, envelope(&fixture, 1, id).await), (0, None));
}

pub(crate) async fn dead_letters_and_what_is_put_aside_keep_their_envelopes_too(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let rules = Rules { max_attempts: 1, ..Rules::default() };
    let mut work = fixture.work(&["alpha"]);
    work.max_attempts = 1;
    let (dead, _) = fixture.publish(fixture.job_of(work)).await;
    let (aside, _) = fixture.publish_job(&["alpha"]).await;
    let mut letter = fixture.claim("alpha", dead, MINUTE).await;
    letter.acknowledge(fixture.now(), AckResult::Failed, Report::default(), &rules).unwrap();
    let mut item = fixture.find("alpha", &[aside]).await.remove(0).unwrap();
    item.quarantine(fixture.now(), &rules).unwrap();
    fixture.put(vec![letter.clone(), item]).await.unwrap();
    fixture.retire_log().await;
    assert!(envelope(&fixture, 1, dead).await.is_some() && envelope(&fixture, 2, aside).await.is_some());
    letter.redrive(fixture.now(), &rules).unwrap();
    fixture.put(vec![letter.clone()]).await.unwrap();
    assert!(envelope(&fixture, 1, dead).await.is_some());
    letter.discard(fixture.now(), &rules).unwrap();
    fixture.put(vec![letter]).await.unwrap();
    assert_eq!(envelope(&fixture, 1, dead).await, None);
    assert_eq!(fixture.count("inbox_payloads").await, 1);
}

pub(crate) async fn an_item_that_ends_before_the_log_goes_leaves_no_copy_and_none_is_counted_for_it(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (id, _) = fixture.publish_job(&["alpha", "beta"]).await;
    fixture.finish("alpha", id).await;
    fixture.clock.advance(Duration::from_secs(1));
    fixture.store.raise_floor(&fixture.tenant, fixture.now(), 1).await.unwrap();
    fixture.store.raise_floor(&fixture.tenant, fixture.now(), 1).await.unwrap();
    assert_eq!(fixture.count("inbox_payloads").await, 1);
    assert!(envelope(&fixture, 1, id).await.is_some(), "the row is still there");
    fixture.finish("beta", id).await;
    assert_eq!(fixture.count("inbox_payloads").await, 0);
}

/// A job with a key that lives for an hour.
fn keyed(fixture: &Fixture, text: &str) -> Publication {
    Publication { deduplication: fixture.keyed("k", text).deduplication, ..fixture.job(&["alpha", "beta"]) }
}

pub(crate) async fn a_key_lives_at_least_as_long_as_work_of_its_event_is_current(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (id, position) = fixture.publish(keyed(&fixture, "a")).await;
    let duplicate = Appended::Duplicate { id, seq: Some(position) };
    fixture.clock.advance(MINUTE * 120);
    assert_eq!(fixture.append(vec![keyed(&fixture, "a")]).await.unwrap(), [duplicate]);
    assert_eq!(fixture.append(vec![keyed(&fixture, "b")]).await.unwrap(), [Appended::Conflict]);
    assert_eq!(fixture.store.expire_keys(fixture.now(), 10).await, Ok(0));
    fixture.finish("alpha", id).await;
    fixture.clock.advance(MINUTE * 120);
    fixture.retire_log().await;
    assert_eq!(fixture.store.expire_keys(fixture.now(), 10).await, Ok(0), "also when the log row is gone");
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.append(vec![keyed(&fixture, "a")]).await.unwrap(), [duplicate]);
    fixture.finish("beta", id).await;
    fixture.clock.advance(MINUTE * 61);
    assert_eq!(new_seq(&fixture.append(vec![keyed(&fixture, "b")]).await.unwrap()[0]), 2);
}

pub(crate) async fn a_key_of_current_work_is_put_off_and_hides_no_other(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut jobs = Vec::new();
    for number in 0..6 {
        let deduplication = fixture.keyed(&format!("work{number}"), "a").deduplication;
        jobs.push(fixture.publish(Publication { deduplication, ..fixture.job(&["alpha"]) }).await.0);
        fixture.append(vec![fixture.keyed(&format!("plain{number}"), "a")]).await.unwrap();
        fixture.clock.advance(Duration::from_secs(1));
    }
    fixture.clock.advance(MINUTE * 60);
    assert_eq!(fixture.store.expire_keys(fixture.now(), 7).await, Ok(6), "those behind them are removed in the same step");
    assert_eq!(fixture.count("deduplication_keys").await, 6);
    let put_off = format!("deduplication_keys WHERE expires_at > {}", fixture.now().as_micros());
    assert_eq!(fixture.count(&put_off).await, 6, "they are not looked at again and again");
    for id in jobs {
        fixture.finish("alpha", id).await;
    }
    fixture.clock.advance(MINUTE * 61);
    assert_eq!(fixture.store.expire_keys(fixture.now(), 10).await, Ok(6));
}

pub(crate) async fn what_a_claim_answers_is_read_at_once_as_it_is_apart(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut asked = Vec::new();
    for name in ["alpha/a", "alpha/b", "alpha/a"] {
        let (id, position) = fixture.publish_job(&[name]).await;
        asked.push((position, id));
    }
    fixture.claim("alpha", asked[0].1, MINUTE).await;
    let recipient = fixture.recipient("alpha");
    let now = fixture.now();
    for queues in [inbox::QueueFilter::default(), super::only(&["a"]), super::except(&["a"])] {
        for asked in [&asked[..], &asked[..0], &[asked[2], (seq(9), asked[0].1)]] {
            let apart = (
                fixture.store.envelopes(&fixture.tenant, asked).await.unwrap(),
                fixture.store.backlog(&recipient, &queues, now, 9).await.unwrap(),
            );
            assert_eq!(fixture.store.envelopes_and_backlog(&recipient, asked, &queues, now, 9).await, Ok(apart));
        }
    }
}
