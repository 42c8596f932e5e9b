//! Retention: the floor first, the rows a while later; expired keys.

use std::time::Duration;

use domain::{Appended, StoreError};
use sync::Retired;

use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, new_seq, seq, tenant};

const MINUTE: Duration = Duration::from_mins(1);

/// Five events, a minute apart.
async fn five(harness: &dyn Harness) -> Fixture {
    let fixture = Fixture::new(harness).await;
    for _ in 0..5 {
        fixture.fill(1).await;
        fixture.clock.advance(MINUTE);
    }
    fixture
}

async fn rows(fixture: &Fixture) -> i64 {
    fixture.log_rows().await
}

pub(crate) async fn the_floor_goes_past_older_rows_only(harness: &dyn Harness) {
    let fixture = five(harness).await;
    let third = fixture.page_after(2).await.unwrap().events[0].created_at;
    let raised = fixture.store.raise_floor(&fixture.tenant, third, 100).await.unwrap();
    assert_eq!(raised, Retired { floor: seq(3), removed: 0, more: false });
    let again = fixture.store.raise_floor(&fixture.tenant, third, 100).await.unwrap();
    assert_eq!(again, Retired { floor: seq(3), removed: 0, more: false });
    let page = fixture.page_after(0).await.unwrap();
    assert_eq!(page.events.iter().map(|event| event.seq.get()).collect::<Vec<_>>(), [3, 4, 5], "a page starts at the floor");
    assert_eq!(page.head.floor, seq(3));
    assert!(page.is_below_floor(seq(1)) && !page.is_below_floor(seq(2)));
    assert_eq!(rows(&fixture).await, 5, "the rows stay for a while");
}

pub(crate) async fn one_step_raises_the_floor_by_at_most_its_limit(harness: &dyn Harness) {
    let fixture = five(harness).await;
    let now = fixture.now();
    let step = || fixture.store.raise_floor(&fixture.tenant, now, 2);
    assert_eq!(step().await.unwrap(), Retired { floor: seq(3), removed: 0, more: true });
    assert_eq!(step().await.unwrap(), Retired { floor: seq(5), removed: 0, more: true });
    assert_eq!(step().await.unwrap(), Retired { floor: seq(6), removed: 0, more: false });
    assert_eq!(step().await.unwrap(), Retired { floor: seq(6), removed: 0, more: false });
}

pub(crate) async fn rows_are_swept_once_they_have_lain_below_the_floor_long_enough(harness: &dyn Harness) {
    let fixture = five(harness).await;
    let raised_at = fixture.now();
    fixture.store.raise_floor(&fixture.tenant, raised_at, 4).await.unwrap();
    let sweep = |before, limit| fixture.store.sweep(&fixture.tenant, before, limit);
    // The first sweep after a raise only learns of it: the moment from which rows wait is the floor's own.
    assert_eq!(sweep(raised_at, 100).await.unwrap(), Retired { floor: seq(5), removed: 0, more: false });
    assert_eq!(rows(&fixture).await, 5);
    let later = raised_at.plus(Duration::from_micros(1));
    assert_eq!(sweep(later, 3).await.unwrap(), Retired { floor: seq(5), removed: 3, more: true });
    assert_eq!(sweep(later, 3).await.unwrap(), Retired { floor: seq(5), removed: 1, more: false });
    assert_eq!(sweep(later, 3).await.unwrap(), Retired { floor: seq(5), removed: 0, more: false });
    assert_eq!(rows(&fixture).await, 1);
}

pub(crate) async fn rows_that_fell_below_the_floor_later_wait_for_their_own_time(harness: &dyn Harness) {
    let fixture = five(harness).await;
    fixture.store.raise_floor(&fixture.tenant, fixture.now(), 2).await.unwrap();
    fixture.store.sweep(&fixture.tenant, fixture.now(), 100).await.unwrap();
    let between = fixture.now().plus(Duration::from_secs(1));
    fixture.clock.advance(MINUTE);
    fixture.store.raise_floor(&fixture.tenant, fixture.now(), 2).await.unwrap();
    let swept = fixture.store.sweep(&fixture.tenant, between, 100).await.unwrap();
    assert_eq!((swept.removed, swept.floor), (2, seq(5)));
    assert!(!swept.more);
    assert_eq!(rows(&fixture).await, 3);
    let swept = fixture.store.sweep(&fixture.tenant, fixture.now().plus(MINUTE), 100).await.unwrap();
    assert_eq!(swept.removed, 2);
    assert_eq!(rows(&fixture).await, 1);
}

pub(crate) async fn numbers_go_on_after_everything_was_removed_and_a_restart(harness: &dyn Harness) {
    let fixture = five(harness).await;
    fixture.store.raise_floor(&fixture.tenant, fixture.now(), 100).await.unwrap();
    fixture.store.sweep(&fixture.tenant, fixture.now(), 100).await.unwrap();
    fixture.store.sweep(&fixture.tenant, fixture.now().plus(MINUTE), 100).await.unwrap();
    assert_eq!(rows(&fixture).await, 0);
    let fixture = fixture.reopen().await;
    let head = fixture.store.head(&fixture.tenant).await.unwrap().unwrap();
    assert_eq!((head.seq, head.floor), (seq(5), seq(6)));
    assert_eq!(fixture.page_after(0).await.unwrap().events.len(), 0);
    assert_eq!(new_seq(&fixture.append(vec![fixture.event("x")]).await.unwrap()[0]), 6);
    assert_eq!(fixture.page_after(5).await.unwrap().events.len(), 1);
}

pub(crate) async fn retention_of_one_tenant_leaves_the_others_alone(harness: &dyn Harness) {
    let fixture = five(harness).await;
    fixture.create_tenant("other").await;
    sync::Append::append(&*fixture.store, &tenant("other"), vec![fixture.event("x")]).await.unwrap();
    fixture.clock.advance(MINUTE);
    fixture.store.raise_floor(&fixture.tenant, fixture.now(), 100).await.unwrap();
    for _ in 0..2 {
        fixture.store.sweep(&fixture.tenant, fixture.now().plus(MINUTE), 100).await.unwrap();
        fixture.store.sweep(&tenant("other"), fixture.now().plus(MINUTE), 100).await.unwrap();
    }
    assert_eq!(rows(&fixture).await, 1);
    assert_eq!(fixture.store.head(&tenant("other")).await.unwrap().unwrap().floor, seq(1));
    let absent = fixture.store.raise_floor(&tenant("absent"), fixture.now(), 1).await;
    assert_eq!(absent, Err(StoreError::TenantInactive));
    assert_eq!(fixture.store.sweep(&tenant("absent"), fixture.now(), 1).await, Err(StoreError::TenantInactive));
}

pub(crate) async fn expired_keys_are_removed_oldest_first_and_bounded(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    for key in ["a", "b", "c"] {
        fixture.append(vec![fixture.keyed(key, key)]).await.unwrap();
        fixture.clock.advance(MINUTE);
    }
    let hour_later = fixture.now().plus(Duration::from_hours(1)).minus(MINUTE);
    // `c` expires at exactly that moment: not before it.
    assert_eq!(fixture.store.expire_keys(hour_later, 1).await, Ok(1));
    assert_eq!(fixture.store.expire_keys(hour_later, 10).await, Ok(1));
    assert_eq!(fixture.store.expire_keys(hour_later, 10).await, Ok(0));
    assert!(matches!(fixture.append(vec![fixture.keyed("c", "c")]).await.unwrap()[0], Appended::Duplicate { .. }));
    assert_eq!(new_seq(&fixture.append(vec![fixture.keyed("a", "other")]).await.unwrap()[0]), 4);
}
