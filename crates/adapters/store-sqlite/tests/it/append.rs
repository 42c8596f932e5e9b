//! Appending: order, atomicity, deduplication.

use domain::Appended;
use sync::Append;

use crate::support::{Fixture, new_seq, range, seq};
use sync::LogStore;

#[tokio::test]
async fn events_are_numbered_from_one_without_gaps_and_read_back_whole() {
    let fixture = Fixture::new().await;
    let publications: Vec<_> = (0..5).map(|n| fixture.event(&n.to_string())).collect();
    let answer = fixture.store.append(&fixture.tenant, publications.clone()).await.unwrap();
    assert_eq!(answer.appended.iter().map(new_seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(answer.head, seq(5));
    let page = fixture.store.page(&fixture.tenant, range(0)).await.unwrap();
    assert_eq!(page.head.seq, seq(5));
    for (event, publication) in page.events.iter().zip(&publications) {
        assert_eq!((event.id, &event.body), (publication.id, &publication.body));
    }
    assert_eq!(page.events.len(), 5);
}

#[tokio::test]
async fn a_repeat_answers_the_first_event() {
    let fixture = Fixture::new().await;
    let first = fixture.keyed("k", "a");
    assert_eq!(new_seq(&fixture.append(vec![first.clone()]).await.unwrap()[0]), 1);
    let repeat = fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap();
    assert_eq!(repeat, [Appended::Duplicate { id: first.id, seq: Some(seq(1)) }]);
    assert_eq!(fixture.append(vec![fixture.event("x"), fixture.keyed("k", "b")]).await.unwrap()[1], Appended::Conflict);
    assert_eq!(fixture.head().await, 1);
}
