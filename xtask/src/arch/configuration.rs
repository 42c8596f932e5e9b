//! The generated configuration reference against the register: every key belongs to a module.

use super::finding::Finding;
use super::register::{REGISTER, Register};
use super::tree::Tree;
use crate::config_docs::REFERENCE;

/// Every key of the reference begins with a registered prefix, and every registered prefix has a key.
///
/// A key is what stands between backticks in the first cell of a table's row.
pub(crate) fn check(register: &Register, tree: &Tree) -> Vec<Finding> {
    let Some(reference) = tree.configuration.as_deref() else {
        return vec![Finding::new(REFERENCE, "is missing; `cargo xtask config-docs` writes it")];
    };
    let keys: Vec<&str> = reference.lines().filter_map(key).collect();
    if keys.is_empty() {
        return vec![Finding::new(REFERENCE, "lists no key")];
    }
    let prefixes: Vec<(&str, &str)> = register.listed(|module| &module.configuration).collect();
    let orphans = keys.iter().filter(|key| !prefixes.iter().any(|(prefix, _)| key.starts_with(prefix)));
    let orphans = orphans.map(|key| Finding::new(REFERENCE, format!("{key} begins with no prefix of {REGISTER}")));
    let idle = prefixes.iter().filter(|(prefix, _)| !keys.iter().any(|key| key.starts_with(prefix)));
    let idle = idle.map(|(prefix, owner)| Finding::new(REGISTER, format!("no configuration key begins with {prefix} of {owner}")));
    orphans.chain(idle).collect()
}

fn key(line: &str) -> Option<&str> {
    let (key, _) = line.strip_prefix('|')?.trim_start().strip_prefix('`')?.split_once('`')?;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::arch::fixture::{assert_finds, assert_finds_only, register, tree};

    #[test]
    fn a_healthy_reference_passes() {
        assert_eq!(check(&register(), &tree()), []);
    }

    #[test]
    fn a_key_without_an_owner_and_a_prefix_without_a_key_are_found() {
        let mut faulty = tree();
        faulty.configuration = Some("| `auth.token_ttl` | 30d |\n| `spam.level` | 1 |\n".to_owned());
        let findings = check(&register(), &faulty);
        assert_finds(&findings, "spam.level begins with no prefix");
        assert_finds(&findings, "no configuration key begins with sync. of sync");
        assert_eq!(findings.len(), 2);
    }

    #[test]
    fn a_reference_that_is_missing_or_lists_nothing_is_found() {
        let mut faulty = tree();
        faulty.configuration = Some("# Configuration\n".to_owned());
        assert_finds_only(&check(&register(), &faulty), "lists no key");
        faulty.configuration = None;
        assert_finds_only(&check(&register(), &faulty), "is missing");
    }
}
