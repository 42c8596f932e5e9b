//! Inboxes over restarts.

use inbox::ItemFilter;

use super::MINUTE;
use crate::conformance::harness::Harness;
use crate::conformance::support::Fixture;

async fn all(fixture: &Fixture, name: &str) -> Vec<inbox::Item> {
    fixture.store.items(&fixture.recipient(name), &ItemFilter::default(), super::part(None, 99)).await.unwrap().items
}

/// An available, a claimed and an acknowledged item.
async fn three(harness: &dyn Harness) -> Fixture {
    let fixture = Fixture::new(harness).await;
    fixture.publish_job(&["alpha"]).await;
    let (held, _) = fixture.publish_job(&["alpha"]).await;
    fixture.claim("alpha", held, MINUTE).await;
    let (done, _) = fixture.publish_job(&["alpha"]).await;
    fixture.finish("alpha", done).await;
    fixture
}

pub(crate) async fn a_restart_keeps_everything(harness: &dyn Harness) {
    let fixture = three(harness).await;
    let (before, row) = (all(&fixture, "alpha").await, fixture.row("alpha").await);
    let fixture = fixture.reopen().await;
    assert_eq!((all(&fixture, "alpha").await, fixture.row("alpha").await), (before, row));
}
