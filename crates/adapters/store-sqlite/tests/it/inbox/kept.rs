//! Damaged copies of envelopes.

use domain::EventId;
use inbox::InboxStore;

use crate::support::{Fixture, seq};

/// The stored envelope of an event, as text.
async fn envelope(fixture: &Fixture, position: u64, id: EventId) -> Option<String> {
    let envelopes = fixture.store.envelopes(&fixture.tenant, &[(seq(position), id)]).await.unwrap();
    envelopes[0].as_ref().map(|body| String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_copy_that_is_damaged_is_not_handed_out() {
    let fixture = Fixture::new().await;
    let (id, _) = fixture.publish_job(&["alpha"]).await;
    fixture.retire_log().await;
    assert!(envelope(&fixture, 1, id).await.is_some());
    fixture.raw().execute("UPDATE inbox_payloads SET body = '\"forged\":1}'", []).unwrap();
    assert_eq!(envelope(&fixture, 1, id).await, None);
    let report = fixture.store.check().await.unwrap();
    assert_eq!(report.damages, 1, "{report:?}");
}
