//! The cost of statements: each finds its rows through an index, and none is there for nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::Fixture;

/// Statements that read a whole table, each with the reason why that is no harm.
const WHOLE_TABLES: [(&str, &str); 12] = [
    ("sync/all_heads", "one row per tenant, at start and for the upkeep"),
    ("union/release_consumers", "a restore changes every row"),
    ("union/next_due", "an index in its order, up to the first row"),
    ("union/inbox_totals", "one row per inbox, for metrics"),
    ("union/hold_hooks", "a restore changes every row"),
    ("hooks/groups", "one row in this store"),
    ("hooks/server_keys", "two or three keys of the instance"),
    ("hooks/totals", "counts, for metrics"),
    ("inbox/end_sessions", "a restore changes every row"),
    ("inbox/export_inbox_payloads", "a store that is copied whole; for each envelope the inboxes of its tenant"),
    ("store/export_numbers", "one row per table that numbers its rows"),
    ("store/migrations", "one row per release of the schema"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found
}

/// `module/name` to text.
pub(crate) fn statements() -> BTreeMap<String, String> {
    let folder = root().join("queries");
    let name = |path: &Path| path.strip_prefix(&folder).unwrap().with_extension("").to_str().unwrap().replace('\\', "/");
    files(&folder, "sql").into_iter().map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect()
}

#[tokio::test]
async fn every_statement_finds_its_rows_through_an_index() {
    let fixture = Fixture::new().await;
    let raw = fixture.raw();
    let mut whole: Vec<String> = Vec::new();
    for (name, text) in statements().into_iter().filter(|(name, _)| name != "store/create_migrations") {
        let mut plan = raw.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let unbound = rusqlite::params_from_iter(std::iter::repeat_n(rusqlite::types::Null, plan.parameter_count()));
        let steps: Vec<String> = plan.query_map(unbound, |row| row.get(3)).unwrap().map(Result::unwrap).collect();
        let scans = |step: &String| {
            let scanned = step.strip_prefix("SCAN ").filter(|rest| !rest.contains("VIRTUAL TABLE") && !rest.starts_with('('));
            scanned.is_some_and(|rest| !rest.contains("CONSTANT ROW")) || step.contains("TEMP B-TREE")
        };
        if steps.iter().any(scans) {
            whole.push(format!("{name}: {steps:?}"));
        }
    }
    let allowed = |line: &String| WHOLE_TABLES.iter().any(|(name, _)| line.starts_with(&format!("{name}: ")));
    assert!(whole.iter().all(allowed), "{whole:#?}");
    assert_eq!(whole.len(), WHOLE_TABLES.len(), "{whole:#?}");
}

#[test]
fn every_statement_is_used() {
    let sources: String = files(&root().join("src"), "rs").iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let unused: Vec<_> = statements().into_keys().filter(|name| !sources.contains(&format!("sql!(\"{name}\")"))).collect();
    assert!(unused.is_empty(), "{unused:?}");
}
