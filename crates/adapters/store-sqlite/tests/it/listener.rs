//! The listener of commits: everything, in order, durable, and before anybody is answered.

use std::sync::{Arc, Mutex};

use domain::{Event, SyncEpoch, TenantId};
use rusqlite::Connection;
use sync::CommitListener;

use crate::support::Fixture;

/// Looks into the file at the moment it is told.
struct Witness {
    database: std::path::PathBuf,
    seen: Mutex<Vec<(u64, i64)>>,
}

impl CommitListener for Witness {
    fn committed(&self, _: &TenantId, _: SyncEpoch, events: &[Arc<Event>]) {
        let connection = Connection::open(&self.database).unwrap();
        let committed: i64 = connection.query_row("SELECT head FROM log_heads", [], |row| row.get(0)).unwrap();
        self.seen.lock().unwrap().push((events.last().unwrap().seq.get(), committed));
    }
}

#[tokio::test]
async fn the_listener_is_told_after_the_commit() {
    let fixture = Fixture::new().await;
    let witness = Arc::new(Witness { database: fixture.store.path().to_path_buf(), seen: Mutex::default() });
    fixture.store.set_listener(witness.clone());
    fixture.fill(3).await;
    assert_eq!(*witness.seen.lock().unwrap(), [(1, 1), (2, 2), (3, 3)]);
}

struct Panicking;

impl CommitListener for Panicking {
    fn committed(&self, _: &TenantId, _: SyncEpoch, _: &[Arc<Event>]) {
        panic!("on purpose");
    }
}

#[tokio::test]
async fn a_panicking_listener_harms_neither_store_nor_publisher() {
    let fixture = Fixture::new().await;
    fixture.store.set_listener(Arc::new(Panicking));
    fixture.fill(2).await;
    assert_eq!(fixture.head().await, 2);
}
