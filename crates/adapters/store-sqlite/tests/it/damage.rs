//! Damage of a file, as a check finds it.

use doorstep_store_sqlite::{CheckReport, StoreOptions};
use sync::LogStore;

use crate::support::{Fixture, seq};

/// A store of ten events to which `damage` was done beside it.
async fn damaged(damage: &str) -> Fixture {
    let fixture = Fixture::new().await;
    fixture.fill(10).await;
    assert!(fixture.raw().execute(damage, []).unwrap() > 0, "{damage}");
    fixture
}

async fn check(fixture: &Fixture) -> CheckReport {
    fixture.store.check().await.unwrap()
}

#[tokio::test]
async fn a_check_of_a_sound_store_counts_and_finds_nothing() {
    let fixture = Fixture::with(StoreOptions::default()).await;
    fixture.create_tenant("empty").await;
    fixture.fill(10).await;
    let report = check(&fixture).await;
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.tenants, report.events), (2, 10));
}

#[tokio::test]
async fn a_check_finds_each_damaged_and_missing_row() {
    let fixture = damaged("UPDATE event_log SET body = '\"x\":1}' WHERE position & 0xff IN (2, 7)").await;
    fixture.raw().execute("DELETE FROM event_log WHERE position & 0xff IN (4, 5, 10)", []).unwrap();
    fixture
        .raw()
        .execute(
            "INSERT INTO event_log SELECT 77, id, type, channel, audience, origin, created_at, body, checksum FROM event_log LIMIT 1",
            [],
        )
        .unwrap();
    let report = check(&fixture).await;
    assert!(!report.is_sound());
    let places: Vec<_> = report.damaged.iter().map(|damage| (damage.tenant.is_some(), damage.seq.get())).collect();
    assert_eq!(places, [(false, 77), (true, 2), (true, 4), (true, 7), (true, 10)]);
    assert_eq!((report.damages, report.events), (6, 5));
}

#[tokio::test]
async fn a_check_does_not_miss_what_retention_removed() {
    let fixture = Fixture::new().await;
    fixture.fill(10).await;
    fixture.clock.advance(std::time::Duration::from_secs(1));
    fixture.store.raise_floor(&fixture.tenant, fixture.now(), 6).await.unwrap();
    let later = fixture.now().plus(std::time::Duration::from_secs(1));
    fixture.store.sweep(&fixture.tenant, fixture.now(), 9).await.unwrap();
    fixture.store.sweep(&fixture.tenant, later, 4).await.unwrap();
    let report = check(&fixture).await;
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.events, 6, "two of them below the floor");
    assert_eq!(fixture.store.head(&fixture.tenant).await.unwrap().unwrap().floor, seq(7));
}
