//! Migrations against the register: every table has an owner, exists in every engine, and numbers agree.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::register::{REGISTER, Register};
use super::sql;
use super::tree::{TextFile, Tree};

/// Engine, number and file of a migration.
struct Migration<'a> {
    engine: &'a str,
    number: &'a str,
    file: &'a TextFile,
}

/// Tables of the migrations and of the register are the same, and every engine has the same migrations.
pub(crate) fn check(register: &Register, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut engines = BTreeMap::<&str, Vec<Migration>>::new();
    for file in &tree.migrations {
        match parse(file) {
            Some(migration) => engines.entry(migration.engine).or_default().push(migration),
            None => findings.push(Finding::new(&file.path, "is not named migrations/<engine>/<four digits>_<words>.sql")),
        }
    }
    if engines.is_empty() {
        findings.push(Finding::new("migrations", "there are no migrations"));
    }
    findings.extend(numbers(&engines));
    for (engine, migrations) in &engines {
        findings.extend(tables(register, tree, engine, migrations));
    }
    findings
}

fn parse(file: &TextFile) -> Option<Migration<'_>> {
    let (engine, name) = file.path.strip_prefix("migrations/")?.split_once('/')?;
    let (number, words) = name.strip_suffix(".sql")?.split_once('_')?;
    let numbered = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    let worded = !words.is_empty() && words.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    (numbered && worded).then_some(Migration { engine, number, file })
}

/// Numbers are unique in an engine and the same in all of them.
fn numbers(engines: &BTreeMap<&str, Vec<Migration>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let all: BTreeSet<&str> = engines.values().flatten().map(|migration| migration.number).collect();
    for (engine, migrations) in engines {
        for number in &all {
            match migrations.iter().filter(|migration| migration.number == *number).count() {
                0 => findings.push(Finding::new(format!("migrations/{engine}"), format!("lacks {number}, which another engine has"))),
                1 => {}
                several => findings.push(Finding::new(format!("migrations/{engine}"), format!("has {number} {several} times"))),
            }
        }
    }
    findings
}

fn tables(register: &Register, tree: &Tree, engine: &str, migrations: &[Migration]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut existing = BTreeSet::new();
    // A store may create a table of its own before the first migration, to remember which ones ran.
    let store = format!("crates/adapters/store-{engine}/");
    let bootstrap = tree.queries.iter().filter(|query| query.path.starts_with(&store));
    for file in bootstrap.chain(migrations.iter().map(|migration| migration.file)) {
        let names = sql::names(&file.text);
        existing.retain(|table| !names.removed.contains(table));
        for table in &names.created {
            if register.owner_of_table(table).is_none() && !renamed_later(table, migrations) {
                findings.push(Finding::new(&file.path, format!("creates {table}, which {REGISTER} does not know")));
            }
        }
        existing.extend(names.created);
    }
    let of_another = |table: &str| register.engines.iter().any(|(name, own)| name != engine && own.tables.contains(table));
    let missing = register.tables().filter(|(table, _)| !existing.contains(*table) && !of_another(table));
    findings.extend(
        missing.map(|(table, owner)| {
            Finding::new(REGISTER, format!("table {table} of {owner} does not exist after the migrations of {engine}"))
        }),
    );
    findings
}

/// Whether `table` is gone at the end, as tables are that a migration rebuilds.
fn renamed_later(table: &str, migrations: &[Migration]) -> bool {
    migrations.iter().any(|migration| sql::names(&migration.file.text).removed.contains(table))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::arch::fixture::{assert_finds, assert_finds_only, file, register, tree};

    #[test]
    fn healthy_migrations_pass() {
        assert_eq!(check(&register(), &tree()), []);
    }

    #[test]
    fn a_table_without_an_owner_is_found() {
        let mut faulty = tree();
        faulty.migrations.push(file("migrations/sqlite/0003_more.sql", "CREATE TABLE IF NOT EXISTS orphans (id TEXT)"));
        assert_finds_only(&check(&register(), &faulty), "migrations/sqlite/0003_more.sql: creates orphans");
    }

    #[test]
    fn a_registered_table_that_no_migration_makes_or_that_one_drops_is_found() {
        let mut faulty = tree();
        faulty.migrations.remove(1);
        assert_finds_only(&check(&register(), &faulty), "table event_log of sync does not exist after the migrations of sqlite");
        let mut faulty = tree();
        faulty.migrations.push(file("migrations/sqlite/0003_less.sql", "DROP TABLE tokens"));
        assert_finds_only(&check(&register(), &faulty), "table tokens of authz does not exist");
    }

    #[test]
    fn a_rebuilt_table_keeps_its_owner() {
        let mut rebuilt = tree();
        let sql = "CREATE TABLE tokens_new (id TEXT); DROP TABLE tokens; ALTER TABLE tokens_new RENAME TO tokens;";
        rebuilt.migrations.push(file("migrations/sqlite/0003_rebuild.sql", sql));
        assert_eq!(check(&register(), &rebuilt), []);
    }

    #[test]
    fn a_store_may_create_its_own_table_before_the_first_migration() {
        let mut early = tree();
        early.migrations[0].text = "CREATE TABLE tokens (id TEXT)".to_owned();
        let path = "crates/adapters/store-sqlite/queries/store/create_meta.sql";
        early.queries.push(file(path, "CREATE TABLE IF NOT EXISTS store_meta (value TEXT)"));
        assert_eq!(check(&register(), &early), []);
    }

    #[test]
    fn engines_have_the_same_numbers_once() {
        let mut faulty = tree();
        let first = faulty.migrations[0].text.clone() + ";" + &faulty.migrations[1].text;
        faulty.migrations.push(file("migrations/postgres/0001_all.sql", &first));
        faulty.migrations.push(file("migrations/sqlite/0001_again.sql", ""));
        let findings = check(&register(), &faulty);
        assert_finds(&findings, "migrations/postgres: lacks 0002");
        assert_finds(&findings, "migrations/sqlite: has 0001 2 times");
        assert_eq!(findings.len(), 2);
    }

    #[test]
    fn migrations_have_a_form_of_name_and_there_are_some() {
        let mut faulty = tree();
        faulty.migrations.push(file("migrations/sqlite/3_short.sql", ""));
        assert_finds_only(&check(&register(), &faulty), "3_short.sql: is not named");
        faulty.migrations.clear();
        assert_finds_only(&check(&register(), &faulty), "there are no migrations");
    }
}
