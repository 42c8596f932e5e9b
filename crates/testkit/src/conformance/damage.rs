//! Damage of the log that is found while reading: refused, never served, never a shorter page.

use domain::StoreError;
use uuid::Uuid;

use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, range};

/// A store of ten events; `change` is made to the row at `place`.
async fn damaged(harness: &dyn Harness, place: u64, change: &str) -> Fixture {
    let fixture = Fixture::new(harness).await;
    fixture.fill(10).await;
    let (_, seq) = fixture.log_column();
    let changed = fixture.execute(&format!("{change} WHERE {seq} = {place}")).await;
    assert_eq!(changed, 1, "{change}");
    fixture
}

pub(crate) async fn a_damaged_row_is_refused_whatever_its_column(harness: &dyn Harness) {
    let changes = [
        "body = '\"id\":\"forged\"}'",
        "id = ?",
        "type = 'other'",
        "channel = NULL",
        "channel = 's/d'",
        "audience = 'sam'",
        "origin = 1",
        "created_at = created_at + 1",
        "checksum = checksum + 1",
        "body = ''",
    ];
    for change in changes {
        let fixture = Fixture::new(harness).await;
        fixture.fill(10).await;
        let set = change.replace('?', &fixture.literal(Uuid::nil()));
        let (_, seq) = fixture.log_column();
        assert_eq!(fixture.execute(&format!("UPDATE event_log SET {set} WHERE {seq} = 5")).await, 1, "{change}");
        let outcome = fixture.page_after(0).await;
        assert!(matches!(outcome, Err(StoreError::Corrupt(_))), "{change}: {outcome:?}");
        assert_eq!(fixture.page_after(5).await.unwrap().events.len(), 5, "what is whole is served");
        assert!(matches!(fixture.page_after(4).await, Err(StoreError::Corrupt(_))));
    }
}

pub(crate) async fn a_missing_row_is_refused_not_skipped(harness: &dyn Harness) {
    for missing in [5, 10] {
        let fixture = damaged(harness, missing, "DELETE FROM event_log").await;
        let outcome = fixture.page_after(0).await;
        assert!(matches!(outcome, Err(StoreError::Corrupt(_))), "{missing}: {outcome:?}");
        let outcome = fixture.page_after(missing - 1).await;
        assert!(matches!(outcome, Err(StoreError::Corrupt(_))), "{missing}: {outcome:?}");
    }
    let fixture = damaged(harness, 1, "DELETE FROM event_log").await;
    assert!(matches!(fixture.page_after(0).await, Err(StoreError::Corrupt(_))), "the floor says that it is there");
    assert_eq!(fixture.page_after(1).await.unwrap().events.len(), 9);
}

pub(crate) async fn a_row_in_anothers_place_is_refused(harness: &dyn Harness) {
    let fixture = damaged(harness, 4, "DELETE FROM event_log").await;
    let (column, seq) = fixture.log_column();
    assert_eq!(fixture.execute(&format!("UPDATE event_log SET {column} = {column} + 1 WHERE {seq} = 3")).await, 1);
    let outcome = fixture.store.page(&fixture.tenant, range(3)).await;
    assert!(matches!(outcome, Err(StoreError::Corrupt(_))), "{outcome:?}");
    let fixture = damaged(harness, 10, &format!("UPDATE event_log SET {column} = {column} + 100")).await;
    assert!(matches!(fixture.page_after(0).await, Err(StoreError::Corrupt(_))));
}
