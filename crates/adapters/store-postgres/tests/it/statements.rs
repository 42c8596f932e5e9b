//! No statement goes untested.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::conformance::Case;
use testkit::conformance::list::CASES;

use crate::conformance::Postgres;
use crate::plans;

/// Cases that run at the same time.
const AT_ONCE: usize = 4;

/// Cases that between them execute nearly everything: they come first, and the rest of the suite only for as long as something is missing.
const RICH: &[&str] = &[];

/// What is this store's own.
const OWN: &[fn()] = &[];

fn missing() -> BTreeSet<String> {
    let executed = doorstep_store_postgres::executed_statements();
    plans::statements().into_keys().filter(|name| !executed.contains(name.as_str())).collect()
}

/// The conformance suite and what is this store's own execute every statement.
#[test]
fn every_statement_is_executed() {
    let is_rich = |case: &&Case| RICH.iter().any(|name| case.name == *name);
    assert_eq!(CASES.iter().filter(is_rich).count(), RICH.len(), "a case was renamed");
    for test in OWN {
        test();
    }
    let cases: Vec<&Case> = CASES.iter().filter(is_rich).chain(CASES.iter().filter(|case| !is_rich(case))).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while !missing().is_empty() {
                    let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    let before = missing();
                    (case.run)(&Postgres);
                    println!("{}: {:?}", case.name, before.difference(&missing()).collect::<Vec<_>>());
                }
            });
        }
    });
    let missing = missing();
    assert!(missing.is_empty(), "{missing:#?}");
}
