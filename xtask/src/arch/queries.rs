//! Statements against the register: a query names the tables of its module only, and no SQL hides in Rust.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::register::{REGISTER, Register, STORE, Union};
use super::sql;
use super::tree::{TextFile, Tree};

/// The folder of the statements that join tables of several modules.
const UNION: &str = "union";

/// How a statement begins. Transactions, savepoints and pragmas are the connection's business, not a module's.
const STATEMENTS: [&str; 9] = ["select", "insert", "update", "delete", "with", "replace", "create", "alter", "drop"];

/// Queries name the tables of their module only; unions those of the modules for which they are registered.
pub(crate) fn own_tables(register: &Register, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for query in &tree.queries {
        let Some((owner, file)) = parse(&query.path) else {
            findings.push(Finding::new(&query.path, "SQL lives in crates/adapters/store-<engine>/queries/<module>/<name>.sql"));
            continue;
        };
        if owner == UNION {
            match register.unions.iter().find(|union| union.file == file) {
                Some(union) => findings.extend(foreign_tables(register, query, &|owner| union.joins.contains(owner))),
                None => findings.push(Finding::new(&query.path, format!("this union is not registered in {REGISTER}"))),
            }
        } else if owner != STORE && !register.modules.contains_key(owner) {
            findings.push(Finding::new(&query.path, format!("{owner} is not a module of {REGISTER}")));
        } else {
            findings.extend(foreign_tables(register, query, &|other| other == owner));
        }
    }
    findings.extend(register.unions.iter().filter_map(|union| stale(register, tree, union)));
    findings
}

/// The folder and the file name of a query.
fn parse(path: &str) -> Option<(&str, &str)> {
    let (store, query) = path.strip_prefix("crates/adapters/store-")?.split_once("/queries/")?;
    let (owner, file) = query.split_once('/')?;
    (!store.contains('/') && !file.contains('/')).then_some((owner, file))
}

/// Tables that `query` names although their owner is not one that `may` accepts.
fn foreign_tables(register: &Register, query: &TextFile, may: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let names = sql::names(&query.text);
    let foreign = register.tables().filter(|(table, owner)| !may(owner) && (names.words.contains(*table) || names.tables.contains(*table)));
    let foreign = foreign.map(|(table, owner)| format!("names {table}, which belongs to {owner}"));
    let unknown = names.tables.iter().filter(|table| register.owner_of_table(table).is_none());
    let unknown = unknown.map(|table| format!("names {table}, which {REGISTER} does not know"));
    foreign.chain(unknown).map(|problem| Finding::new(&query.path, problem)).collect()
}

/// A union that no store has, or that joins less than it is registered for.
fn stale(register: &Register, tree: &Tree, union: &Union) -> Option<Finding> {
    let statements: Vec<&TextFile> = tree.queries.iter().filter(|query| parse(&query.path) == Some((UNION, union.file.as_str()))).collect();
    if statements.is_empty() {
        return Some(Finding::new(REGISTER, format!("union {} is in no store's queries/{UNION}/", union.file)));
    }
    let words: BTreeSet<String> = statements.iter().flat_map(|statement| sql::names(&statement.text).words).collect();
    let joined: BTreeSet<&str> = register.tables().filter(|(table, _)| words.contains(*table)).map(|(_, owner)| owner).collect();
    let unused = union.joins.iter().find(|owner| !joined.contains(owner.as_str()))?;
    Some(Finding::new(REGISTER, format!("union {} is registered for {unused}, but names no table of it", union.file)))
}

/// Every query is named in the code of its store, as `<module>/<name>`.
pub(crate) fn named(tree: &Tree) -> Vec<Finding> {
    let is_idle = |query: &&TextFile| {
        let Some((store, file)) = query.path.split_once("/queries/") else { return false };
        let name = file.strip_suffix(".sql").unwrap_or(file);
        let member = tree.members.iter().find(|member| member.directory == store);
        let mut sources = member.into_iter().flat_map(|member| &member.sources).filter(|source| !source.is_test());
        !sources.any(|source| source.rust.literals().any(|literal| literal.text == name))
    };
    tree.queries.iter().filter(is_idle).map(|query| Finding::new(&query.path, "is named nowhere in the code of its store")).collect()
}

/// Stores keep their statements in files: no string literal of their code is one.
pub(crate) fn no_sql_in_rust(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let stores = tree.members.iter().filter(|member| member.name.starts_with("store-"));
    for source in stores.flat_map(|member| &member.sources).filter(|source| !source.is_test()) {
        for literal in source.rust.literals().filter(|literal| is_statement(&literal.text)) {
            findings.push(Finding::at(&source.path, literal.line, "a statement in a string; put it into queries/<module>/<name>.sql"));
        }
    }
    findings
}

/// Begins as a statement does and goes on as one: prose also begins with "with" and "select".
fn is_statement(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\\').to_ascii_lowercase();
    let mut words = text.split_whitespace();
    let begins = words.next().is_some_and(|word| STATEMENTS.contains(&word));
    begins && words.any(|word| ["from", "into", "set", "as", "table", "index", "trigger", "view"].contains(&word))
}

#[cfg(test)]
mod tests {
    use super::{is_statement, named, no_sql_in_rust, own_tables};
    use crate::arch::fixture::{assert_finds, assert_finds_only, file, member_of, register, tree};
    use crate::arch::tree::Source;

    const STORE: &str = "crates/adapters/store-sqlite";

    #[test]
    fn healthy_queries_pass() {
        assert_eq!(own_tables(&register(), &tree()), []);
        assert_eq!(named(&tree()), []);
        assert_eq!(no_sql_in_rust(&tree()), []);
    }

    #[test]
    fn a_query_that_no_code_names_is_found() {
        let mut faulty = tree();
        faulty.queries.push(file(&format!("{STORE}/queries/authz/idle.sql"), "SELECT id FROM tokens"));
        assert_finds_only(&named(&faulty), "queries/authz/idle.sql: is named nowhere");
    }

    #[test]
    fn a_query_that_names_another_modules_table_is_found() {
        for sql in [
            "DELETE FROM event_log WHERE seq < ?1",
            "SELECT id FROM tokens, event_log",
            "SELECT id FROM tokens WHERE EXISTS (SELECT 1 FROM \"event_log\")",
            "INSERT INTO tokens SELECT 1 FROM main.event_log",
        ] {
            let mut faulty = tree();
            faulty.queries.push(file(&format!("{STORE}/queries/authz/bad.sql"), sql));
            assert_finds_only(&own_tables(&register(), &faulty), "names event_log, which belongs to sync");
        }
    }

    #[test]
    fn a_query_on_an_unknown_table_or_of_an_unknown_module_is_found() {
        let mut faulty = tree();
        faulty.queries.push(file(&format!("{STORE}/queries/authz/bad.sql"), "SELECT 1 FROM orphans"));
        faulty.queries.push(file(&format!("{STORE}/queries/nobody/bad.sql"), "SELECT 1 FROM tokens"));
        faulty.queries.push(file("crates/sync/bad.sql", "SELECT 1 FROM event_log"));
        let findings = own_tables(&register(), &faulty);
        for expected in
            ["names orphans, which architecture/modules.toml does not know", "nobody is not a module", "crates/sync/bad.sql: SQL"]
        {
            assert_finds(&findings, expected);
        }
        assert_eq!(findings.len(), 3);
    }

    #[test]
    fn unions_join_exactly_the_modules_they_are_registered_for() {
        let mut faulty = tree();
        let union = |text: &str| file(&format!("{STORE}/queries/union/load_rights.sql"), text);
        faulty.queries[2] = union("SELECT 1 FROM tokens JOIN event_log JOIN store_meta");
        assert_finds_only(&own_tables(&register(), &faulty), "names store_meta, which belongs to store");
        faulty.queries[2] = union("SELECT 1 FROM tokens");
        assert_finds_only(&own_tables(&register(), &faulty), "is registered for sync, but names no table of it");
        faulty.queries.remove(2);
        assert_finds_only(&own_tables(&register(), &faulty), "union load_rights.sql is in no store's");
        let mut faulty = tree();
        faulty.queries.push(file(&format!("{STORE}/queries/union/secret.sql"), "SELECT 1 FROM tokens JOIN event_log"));
        assert_finds_only(&own_tables(&register(), &faulty), "secret.sql: this union is not registered");
    }

    #[test]
    fn a_statement_in_a_stores_code_is_found_unless_it_is_a_test() {
        let text = "//! Rows.\nconst A: &str = \"\n    SELECT 1 FROM tokens\";\n#[cfg(test)]\nmod tests {\n    const B: &str = \"DROP TABLE tokens\";\n}\n";
        let mut faulty = tree();
        let store = member_of(&mut faulty, "store-sqlite");
        store.sources.push(Source::new(format!("{STORE}/src/rows.rs"), text.to_owned()));
        store.sources.push(Source::new(format!("{STORE}/tests/it/rows.rs"), text.to_owned()));
        assert_finds_only(&no_sql_in_rust(&faulty), "src/rows.rs:2");
    }

    #[test]
    fn prose_is_not_a_statement() {
        for text in ["with a message", "select one of these", "BEGIN IMMEDIATE", "SAVEPOINT unit", "update failed", "created", ""] {
            assert!(!is_statement(text), "{text}");
        }
        for text in ["select 1 from a", "\\\n  INSERT INTO a", "WITH a AS (SELECT 1)", "update a set b = 1", "CREATE UNIQUE INDEX a ON b"] {
            assert!(is_statement(text), "{text}");
        }
    }
}
