//! Which servers, schemas and sessions are worked with.

use std::sync::Arc;

use doorstep_store_postgres::{OpenError, PostgresOptions, PostgresStore};
use testkit::ManualClock;

use crate::conformance::Opened;

async fn refused(options: PostgresOptions) -> OpenError {
    PostgresStore::connect(options, Arc::new(ManualClock::default())).await.unwrap_err()
}

#[tokio::test]
async fn sessions_whose_commits_do_not_wait_for_the_disk_are_refused_whoever_says_so() {
    let opened = Opened::in_new_database(Arc::new(ManualClock::default())).await;
    opened.store.close().await;
    let options = PostgresOptions::new(&opened.database.url);
    let by_address = PostgresOptions { url: format!("{}&options=-c%20synchronous_commit%3Doff", options.url), ..options.clone() };
    let error = refused(by_address).await;
    assert!(matches!(error, OpenError::AsynchronousCommit { .. }), "{error}");
    let name = opened.database.name();
    for (value, is_refused) in [("off", true), ("local", false), ("remote_apply", false), ("on", false)] {
        opened.database.run(&format!("ALTER DATABASE {name} SET synchronous_commit = {value}")).await;
        if is_refused {
            let error = refused(options.clone()).await;
            assert!(matches!(&error, OpenError::AsynchronousCommit { database } if database.ends_with(name)), "{error}");
            assert!(error.to_string().contains("synchronous_commit"), "{error}");
        } else {
            PostgresStore::connect(options.clone(), Arc::new(ManualClock::default())).await.unwrap().close().await;
        }
    }
}
