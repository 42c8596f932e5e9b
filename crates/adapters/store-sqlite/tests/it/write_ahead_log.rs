//! The write-ahead log stays bounded, whoever writes and reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use domain::Publication;
use doorstep_store_sqlite::StoreOptions;

use crate::support::Fixture;

const WANTED: u64 = 256 << 10;

async fn fixture() -> Arc<Fixture> {
    Arc::new(Fixture::with(StoreOptions { wal_checkpoint_bytes: WANTED, ..StoreOptions::default() }).await)
}

fn size(fixture: &Fixture) -> u64 {
    let mut name = fixture.store.path().as_os_str().to_owned();
    name.push("-wal");
    std::fs::metadata(name).unwrap().len()
}

async fn append_megabytes(fixture: &Fixture, megabytes: usize) -> u64 {
    let mut largest = 0;
    for _ in 0..megabytes * 10 {
        let event = Publication { body: Bytes::from(vec![b' '; 100_000]), ..fixture.event("x") };
        fixture.append(vec![event]).await.unwrap();
        largest = largest.max(size(fixture));
    }
    largest
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stays_bounded_while_others_read() {
    let fixture = fixture().await;
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let (fixture, done) = (Arc::clone(&fixture), Arc::clone(&done));
        readers.spawn(async move {
            while !done.load(Ordering::SeqCst) {
                let after = fixture.head().await.saturating_sub(20);
                fixture.page_after(after).await.unwrap();
            }
        });
    }
    let largest = append_megabytes(&fixture, 20).await;
    done.store(true, Ordering::SeqCst);
    readers.join_all().await;
    assert!(largest < 20 * WANTED, "{largest}");
    assert!(fixture.store.check().await.unwrap().is_sound());
}

#[tokio::test]
async fn it_shrinks_again_after_an_old_snapshot_held_it() {
    let fixture = fixture().await;
    let raw = fixture.raw();
    raw.execute_batch("BEGIN; SELECT count(*) FROM event_log").unwrap();
    let held = append_megabytes(&fixture, 8).await;
    assert!(held > 7 << 20, "the snapshot keeps it: {held}");
    raw.execute_batch("ROLLBACK").unwrap();
    for _ in 0..200 {
        append_megabytes(&fixture, 1).await;
        if size(&fixture) <= 20 * WANTED {
            return;
        }
    }
    panic!("still {}", size(&fixture));
}
