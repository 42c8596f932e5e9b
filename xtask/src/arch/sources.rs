//! Rust files: each says what it is for, and none grows past reading.

use super::finding::Finding;
use super::tree::{Source, Tree};

/// Above this many lines outside tests a file fails.
const LIMIT: usize = 700;

/// Above this many it is noted.
const LONG: usize = 400;

/// Every file opens with `//!` and stays within the limit.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources(tree) {
        if !source.text.starts_with("//!") {
            findings.push(Finding::at(&source.path, 1, "does not open with `//!`: say what it is for and what it must not know"));
        }
        let lines = length(source);
        if lines > LIMIT {
            findings.push(Finding::new(&source.path, format!("has {lines} lines outside tests; the limit is {LIMIT}")));
        }
    }
    findings
}

/// Files that are long, though within the limit, longest first.
pub(crate) fn notes(tree: &Tree) -> Vec<String> {
    let mut long: Vec<(usize, &str)> = sources(tree).map(|source| (length(source), source.path.as_str())).collect();
    long.retain(|(lines, _)| (LONG + 1..=LIMIT).contains(lines));
    long.sort_by(|a, b| b.cmp(a));
    long.into_iter().map(|(lines, path)| format!("{path} is long: {lines} lines outside tests")).collect()
}

fn sources(tree: &Tree) -> impl Iterator<Item = &Source> {
    tree.members.iter().flat_map(|member| &member.sources)
}

fn length(source: &Source) -> usize {
    if source.is_test() { 0 } else { source.rust.lines_outside_tests() }
}

#[cfg(test)]
mod tests {
    use super::{LIMIT, LONG, check, notes};
    use crate::arch::fixture::{assert_finds_only, member_of, tree};
    use crate::arch::tree::{Source, Tree};

    fn with(path: &str, text: String) -> Tree {
        let mut tree = tree();
        member_of(&mut tree, "sync").sources.push(Source::new(path.to_owned(), text));
        tree
    }

    fn lines(count: usize) -> String {
        "//! doc\n".to_owned() + &"const A: u8 = 0;\n".repeat(count - 1)
    }

    #[test]
    fn healthy_sources_pass() {
        assert_eq!(check(&tree()), []);
        assert_eq!(notes(&tree()), Vec::<String>::new());
    }

    #[test]
    fn a_file_without_a_purpose_is_found() {
        assert_finds_only(&check(&with("crates/sync/src/mute.rs", "use a::b;\n//! late\n".to_owned())), "mute.rs:1: does not open");
    }

    #[test]
    fn the_limit_counts_what_is_not_a_test() {
        assert_eq!(check(&with("crates/sync/src/a.rs", lines(LIMIT))), []);
        assert_finds_only(&check(&with("crates/sync/src/a.rs", lines(LIMIT + 1))), "has 701 lines");
        let tested = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", lines(LIMIT), "    const B: u8 = 0;\n".repeat(300));
        assert_eq!(check(&with("crates/sync/src/a.rs", tested)), []);
        assert_eq!(check(&with("crates/sync/tests/it/a.rs", lines(LIMIT + 300))), []);
    }

    #[test]
    fn long_files_are_noted_longest_first() {
        let mut tree = with("crates/sync/src/a.rs", lines(LONG + 1));
        member_of(&mut tree, "sync").sources.push(Source::new("crates/sync/src/b.rs".to_owned(), lines(LIMIT)));
        member_of(&mut tree, "sync").sources.push(Source::new("crates/sync/src/c.rs".to_owned(), lines(LONG)));
        assert_eq!(
            notes(&tree),
            ["crates/sync/src/b.rs is long: 700 lines outside tests", "crates/sync/src/a.rs is long: 401 lines outside tests"]
        );
    }
}
