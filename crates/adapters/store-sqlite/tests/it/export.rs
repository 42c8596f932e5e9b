//! Everything leaves the store as it is, for a store of another engine.

use std::sync::Arc;

use domain::StoreError;
use doorstep_store_sqlite::SqliteStore;
use testkit::ManualClock;
use testkit::conformance::everything;
use testkit::conformance::support::{Fixture, START};
use transfer::{Bound, Dump, Row, Table};

use crate::conformance::Opened;

const LARGE: Bound = Bound { rows: 1000, bytes: usize::MAX };

fn run(case: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(case);
}

async fn filled() -> (Fixture, Arc<SqliteStore>) {
    let clock = Arc::new(ManualClock::new(START));
    let opened = Opened::new(Arc::new(tempfile::tempdir().unwrap()), clock.clone());
    let store = Arc::clone(&opened.store);
    let fixture = Fixture::over(Box::new(opened), clock);
    everything::fill(&fixture).await;
    (fixture, store)
}

async fn rows(store: &SqliteStore, table: Table, bound: Bound) -> Vec<Row> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = store.rows(table, after.as_deref(), bound).await.unwrap();
        assert_eq!(page.end.is_none(), page.rows.is_empty());
        assert!(page.rows.len() <= bound.rows);
        rows.extend(page.rows);
        match page.end {
            Some(end) => after = Some(end),
            None => return rows,
        }
    }
}

#[test]
pub(crate) fn every_row_of_every_table_leaves_once_however_it_is_paged() {
    run(async {
        let (fixture, store) = filled().await;
        for table in Table::ALL {
            let whole = rows(&store, table, LARGE).await;
            if table != Table::Numbers {
                let there = fixture.count(table.name()).await;
                assert!(there > 0, "{} is empty", table.name());
                assert_eq!(i64::try_from(whole.len()), Ok(there), "{}", table.name());
            }
            for bound in [Bound { rows: 1, ..LARGE }, Bound { rows: 2, ..LARGE }, Bound { bytes: 1, ..LARGE }] {
                assert_eq!(rows(&store, table, bound).await, whole, "{}", table.name());
            }
            assert!(whole.iter().all(|row| row.len() == table.columns().len()), "{}", table.name());
        }
    });
}

#[test]
fn a_damaged_row_does_not_leave_and_is_not_left_out() {
    run(async {
        let (fixture, store) = filled().await;
        for (table, statement) in
            [(Table::EventLog, "UPDATE event_log SET body = 'x'"), (Table::InboxPayloads, "UPDATE inbox_payloads SET body = 'x'")]
        {
            assert!(fixture.execute(statement).await > 0);
            let answer = store.rows(table, None, LARGE).await;
            assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
        }
    });
}

#[test]
fn a_position_of_something_else_is_refused() {
    run(async {
        let (_fixture, store) = filled().await;
        for position in ["", "[]", "nonsense", r#"[{"i":1},{"i":2},{"i":3}]"#] {
            let answer = store.rows(Table::Principals, Some(position), LARGE).await;
            assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{position}: {answer:?}");
        }
    });
}
