//! Consumers and events of one batch.

use agents::{ConsumerKey, CursorStore, Holder, Take};
use authz::PrincipalKind;
use domain::{ConsumerName, PrincipalId};

use crate::support::{Fixture, Gate, seq, tenant};

#[tokio::test]
async fn a_take_sees_events_of_its_own_batch_as_committed() {
    let fixture = Fixture::new().await;
    fixture.create_principal("bot", PrincipalKind::Agent).await;
    fixture.fill(5).await;
    let key = ConsumerKey { tenant: tenant("acme"), agent: PrincipalId::parse("bot").unwrap(), name: ConsumerName::default() };
    let take = Take { key, holder: Holder::Rest };
    let gate = Gate::close(&fixture).await;
    let (appending, taking) = (fixture.append(vec![fixture.event("x")]), fixture.store.take(&take, 10));
    let opening = async {
        fixture.wait_for(|metrics| metrics.queued == 2).await;
        gate.open().await;
    };
    let (appended, taken, ()) = tokio::join!(appending, taking, opening);
    assert!(appended.is_ok());
    let taken = taken.unwrap();
    assert_eq!((taken.head, taken.row.acked), (seq(6), seq(6)));
}
