//! No statement goes untested.

use testkit::conformance::list::CASES;

use crate::conformance::Sqlite;
use crate::plans;

/// The conformance suite and what is this store's own together execute every statement.
#[test]
fn every_statement_is_executed() {
    for case in CASES {
        (case.run)(&Sqlite);
    }
    let own: [fn(); 0] = [];
    for test in own {
        test();
    }
    let executed = doorstep_store_sqlite::executed_statements();
    let missing: Vec<String> = plans::statements().into_keys().filter(|name| !executed.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
