//! The page about errors is complete.

use protocol::{ProblemCode, Reason, Vocabulary as _};

const PAGE: &str = include_str!("../../../../docs/protocol/errors.md");

#[test]
fn every_code_is_on_the_page_with_its_status_and_every_reason() {
    for code in ProblemCode::all() {
        let row = format!("| {} | `{code}` | ", code.status());
        assert!(PAGE.contains(&row), "{row}");
    }
    for reason in Reason::all() {
        assert!(PAGE.lines().any(|line| line.starts_with(&format!("| `{reason}` | `"))), "{reason}");
    }
}

#[test]
fn every_row_says_what_to_do() {
    let rows: Vec<_> = PAGE.lines().filter(|line| line.starts_with("| 4") || line.starts_with("| 5")).collect();
    assert_eq!(rows.len(), ProblemCode::all().len());
    for row in rows {
        assert!(row.split('|').all(|cell| cell.is_empty() || !cell.trim().is_empty()), "{row}");
    }
}
