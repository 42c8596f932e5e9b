//! Which servers, schemas and sessions are worked with.

use std::sync::Arc;

use domain::SystemClock;
use doorstep_store_postgres::{OpenError, PostgresOptions, PostgresStore, schema};
use testkit::ManualClock;
use testkit::postgres::Cluster;

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

#[tokio::test]
async fn a_database_that_does_not_know_what_its_texts_are_is_refused_before_anything_is_made_in_it() {
    let opened = Opened::in_new_database(Arc::new(ManualClock::default())).await;
    let name = format!("{}_ascii", opened.database.name());
    opened
        .database
        .run(&format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'"))
        .await;
    let options = PostgresOptions { auto_migrate: true, ..PostgresOptions::new(Cluster::shared().url_of(&name)) };
    for error in [refused(options.clone()).await, schema::up(&options, &SystemClock::new()).await.unwrap_err()] {
        let said = error.to_string();
        assert!(said.contains("SQL_ASCII") && said.contains("ENCODING 'UTF8'") && said.contains(&name), "{said}");
    }
    assert_eq!(schema::status(&options).await.unwrap().version, 0);
    opened.database.run(&format!("DROP DATABASE {name} WITH (FORCE)")).await;
}
