//! Rows that cannot be read.

use inbox::{InboxStore, ItemFilter, QueueFilter};

use super::{events, poll_range};
use crate::support::Fixture;

#[tokio::test]
async fn a_row_that_cannot_be_read_blocks_nobody_and_is_put_aside() {
    // What is wrong, and whether it can be read again once it is put aside.
    for (damage, healed) in [
        ("type = 'No Type'", false),
        ("queue = 'UPPER'", false),
        ("priority = 9", false),
        ("history = 'no json'", false),
        ("lease_hash = x'00'", false),
        ("generation = -1", false),
        ("max_attempts = -1", false),
        ("deduplication_key = ''", false),
        ("lease_until = 5", true),
        ("next_retry_at = 5", true),
        ("dead_letter = 9", true),
    ] {
        let fixture = Fixture::new().await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(fixture.publish_job(&["alpha"]).await.0);
        }
        let raw = fixture.raw();
        let damaged = raw.execute(&format!("UPDATE inbox_items SET {damage} WHERE event_id = ?1"), [ids[0].uuid().into_bytes()]);
        assert_eq!(damaged, Ok(1), "{damage}");
        let page = fixture.store.poll(&fixture.recipient("alpha"), &poll_range(0, 1)).await.unwrap();
        // A poll reads no history, so it does not see what is wrong with one.
        let first = usize::from(!damage.starts_with("history"));
        assert_eq!((events(&page.items), page.more), (vec![ids[first]], true), "{damage}");
        assert_eq!(events(&fixture.available("alpha", QueueFilter::default(), 1).await), ids[1..2], "{damage}");
        assert_eq!(events(&fixture.available("alpha", QueueFilter::default(), 9).await), ids[1..], "{damage}");
        let whole = if healed { &ids[..] } else { &ids[1..] };
        assert_eq!(events(&fixture.find("alpha", &ids).await.into_iter().flatten().collect::<Vec<_>>()), whole, "{damage}");
        assert_eq!(events(&fixture.matching("alpha", ItemFilter::default(), None, 9).await), whole, "{damage}");
        let state: i64 =
            raw.query_row("SELECT state FROM inbox_items WHERE event_id = ?1", [ids[0].uuid().into_bytes()], |row| row.get(0)).unwrap();
        assert_eq!(state, 6, "{damage}");
        assert_eq!(fixture.store.metrics().snapshot().unreadable_items, 1, "{damage}: counted once");
        let report = fixture.store.check().await.unwrap();
        assert_eq!((report.damages, report.items), (u64::from(!healed), whole.len() as u64), "{damage}: {report:?}");
    }
}
