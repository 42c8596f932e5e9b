//! Damage that is found while reading: refused, never served, never a shorter page.

use domain::StoreError;
use doorstep_store_sqlite::{CheckReport, StoreOptions};
use sync::LogStore;

use crate::support::{Fixture, range, seq};

/// A store of ten events to which `damage` was done beside it.
async fn damaged(damage: &str) -> Fixture {
    let fixture = Fixture::new().await;
    fixture.fill(10).await;
    assert!(fixture.raw().execute(damage, []).unwrap() > 0, "{damage}");
    fixture
}

#[tokio::test]
async fn a_damaged_row_is_refused_whatever_its_column() {
    for change in [
        "body = '\"id\":\"forged\"}'",
        "id = zeroblob(16)",
        "type = 'other'",
        "channel = NULL",
        "channel = 's/d'",
        "audience = 'sam'",
        "origin = 1",
        "created_at = created_at + 1",
        "checksum = checksum + 1",
        "body = ''",
        "id = x''",
    ] {
        let fixture = damaged(&format!("UPDATE event_log SET {change} WHERE position & 0xff = 5")).await;
        let outcome = fixture.page_after(0).await;
        assert!(matches!(outcome, Err(StoreError::Corrupt(_))), "{change}: {outcome:?}");
        assert_eq!(fixture.page_after(5).await.unwrap().events.len(), 5, "what is whole is served");
        assert!(matches!(fixture.page_after(4).await, Err(StoreError::Corrupt(_))));
    }
}

#[tokio::test]
async fn a_missing_row_is_refused_not_skipped() {
    for missing in [5, 10] {
        let fixture = damaged(&format!("DELETE FROM event_log WHERE position & 0xff = {missing}")).await;
        let outcome = fixture.page_after(0).await;
        assert!(matches!(outcome, Err(StoreError::Corrupt(_))), "{missing}: {outcome:?}");
    }
    let fixture = damaged("UPDATE event_log SET position = position + 100 WHERE position & 0xff = 10").await;
    assert!(matches!(fixture.page_after(0).await, Err(StoreError::Corrupt(_))));
}

#[tokio::test]
async fn a_row_in_anothers_place_is_refused() {
    let fixture = damaged("DELETE FROM event_log WHERE position & 0xff = 4").await;
    fixture.raw().execute("UPDATE event_log SET position = position + 1 WHERE position & 0xff = 3", []).unwrap();
    let outcome = fixture.store.page(&fixture.tenant, range(3)).await;
    assert!(matches!(outcome, Err(StoreError::Corrupt(_))), "{outcome:?}");
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
