//! Requests with work in one batch.

use domain::StoreError;

use crate::support::{Fixture, Gate};

#[tokio::test]
async fn a_request_that_names_a_recipient_twice_is_refused_whole_and_its_neighbours_are_not() {
    let fixture = Fixture::new().await;
    let gate = Gate::close(&fixture).await;
    let requests = [vec![fixture.job(&["alpha"])], vec![fixture.job(&["beta", "beta"])], vec![fixture.job(&["alpha"])]];
    let mut waiting = tokio::task::JoinSet::new();
    for (index, request) in requests.into_iter().enumerate() {
        let (store, tenant) = (fixture.store.clone(), fixture.tenant.clone());
        waiting.spawn(async move { (index, sync::Append::append(&*store, &tenant, request).await) });
    }
    gate.open().await;
    let mut answers = waiting.join_all().await;
    answers.sort_by_key(|(index, _)| *index);
    assert!(answers[0].1.is_ok() && answers[2].1.is_ok(), "{answers:?}");
    assert!(matches!(answers[1].1, Err(StoreError::Conflict(_))), "{answers:?}");
    assert_eq!((fixture.count("inbox_items").await, fixture.head().await), (2, 2));
}
