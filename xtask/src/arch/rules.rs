//! The tables of rules against the tests that they name: `architecture/rules-*.md`.

use super::finding::Finding;
use super::tree::{Source, TextFile, Tree};

/// Every row names at least one test, and each is in the file before it.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rules.iter().flat_map(|table| rows(table).flat_map(|(number, row)| judge(tree, &table.path, number, row))).collect()
}

/// The rows with their line numbers, without heads and separators.
fn rows(table: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = table.text.lines().collect();
    let is_row = |line: &str| line.starts_with('|') && !is_separator(line);
    let next = lines.clone();
    let is_head = move |at: usize| next.get(at + 1).is_some_and(|line| is_separator(line));
    lines.into_iter().enumerate().filter(move |(at, line)| is_row(line) && !is_head(*at)).map(|(at, line)| (at + 1, line))
}

fn is_separator(line: &str) -> bool {
    line.starts_with("|-")
}

fn judge(tree: &Tree, path: &str, number: usize, row: &str) -> Vec<Finding> {
    let (mut findings, mut file, mut tests) = (Vec::new(), None, 0);
    for word in row.split('`').skip(1).step_by(2) {
        if word.strip_suffix(".rs").is_some() {
            file = source(tree, word);
            if file.is_none() {
                findings.push(Finding::at(path, number, format!("there is no {word}")));
            }
        } else if let Some(source) = file.filter(|_| is_name(word)) {
            tests += 1;
            if !source.text.contains(&format!("fn {word}(")) {
                findings.push(Finding::at(path, number, format!("{} has no test {word}", source.path)));
            }
        }
    }
    if tests == 0 && findings.is_empty() {
        findings.push(Finding::at(path, number, "a rule without a test"));
    }
    findings
}

fn source<'a>(tree: &'a Tree, path: &str) -> Option<&'a Source> {
    tree.members.iter().flat_map(|member| &member.sources).find(|source| source.path == path)
}

fn is_name(word: &str) -> bool {
    word.contains('_') && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::arch::fixture;
    use crate::arch::tree::{Source, TextFile};

    /// What is found in a table with this row.
    fn found(row: &str) -> Vec<String> {
        let mut tree = fixture::tree();
        let code = "#[test]\nfn nothing_is_lost() {}\n".to_owned();
        tree.members[0].sources.push(Source::new("crates/domain/tests/it/log.rs".to_owned(), code));
        let text = format!("# Rules\n\n| rule | tests |\n|---|---|\n{row}\n");
        tree.rules.push(TextFile { path: "architecture/rules-log.md".to_owned(), text });
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_row_names_tests_that_are_there() {
        let none: [String; 0] = [];
        assert_eq!(
            found("| nothing is lost (`claim_key`) | `crates/domain/tests/it/log.rs`: `nothing_is_lost`, with `cargo test` |"),
            none
        );
    }

    #[test]
    fn a_row_without_a_test_or_with_one_that_is_gone_is_found() {
        let place = "architecture/rules-log.md:5: ";
        assert_eq!(found("| nothing is lost | |"), [format!("{place}a rule without a test")]);
        assert_eq!(
            found("| nothing is lost | `crates/domain/tests/it/log.rs`: `all_is_lost` |"),
            [format!("{place}crates/domain/tests/it/log.rs has no test all_is_lost")]
        );
        let gone = found("| nothing is lost | `crates/domain/tests/it/gone.rs`: `nothing_is_lost` |");
        assert_eq!(gone, [format!("{place}there is no crates/domain/tests/it/gone.rs")]);
    }
}
