//! No statement goes untested.

use testkit::conformance::list::CASES;

use crate::conformance::Postgres;
use crate::plans;

/// Statements of upkeep that other tests execute, each with the reason why the suite does not.
const ELSEWHERE: &[(&str, &str)] = &[];

/// The conformance suite executes every statement.
#[test]
fn every_statement_is_executed() {
    for case in CASES {
        (case.run)(&Postgres);
    }
    let executed = doorstep_store_postgres::executed_statements();
    let elsewhere = |name: &str| ELSEWHERE.iter().any(|(known, _)| *known == name);
    let missing: Vec<String> =
        plans::statements().into_keys().filter(|name| !executed.contains(name.as_str()) && !elsewhere(name)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
