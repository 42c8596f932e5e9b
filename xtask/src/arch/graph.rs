//! The graph of the members, committed as a snapshot so that a change of shape shows in review.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::tree::{Member, Origin, Purpose, Tree};

/// Where the snapshot is committed.
pub(crate) const GRAPH: &str = "architecture/graph.txt";

/// The command that renews it.
pub(crate) const RENEW: &str = "cargo xtask arch --write";

/// The snapshot of `tree`: a line for each member, with what the product uses and what its tests use besides.
pub(crate) fn render(tree: &Tree) -> String {
    let mut members: Vec<&Member> = tree.members.iter().collect();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = format!("# Who uses whom, tests in brackets. `{RENEW}` renews this file.\n");
    for member in members {
        let product = uses(member, Purpose::Product);
        let tests: BTreeSet<&str> = uses(member, Purpose::Tests).difference(&product).copied().collect();
        let join = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
        let product = if product.is_empty() { "-".to_owned() } else { join(&product) };
        let tests = if tests.is_empty() { String::new() } else { format!(" [{}]", join(&tests)) };
        let _ = writeln!(text, "{}: {product}{tests}", member.name);
    }
    text
}

fn uses(member: &Member, purpose: Purpose) -> BTreeSet<&str> {
    let wanted = member.dependencies.iter().filter(|dependency| dependency.origin == Origin::Member && dependency.purpose == purpose);
    wanted.map(|dependency| dependency.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::arch::fixture::{for_tests, member_of, tree};

    #[test]
    fn the_snapshot_shows_members_and_their_uses_in_order() {
        let mut tree = tree();
        member_of(&mut tree, "authz").dependencies.extend([for_tests("testkit"), for_tests("domain")]);
        let text = render(&tree);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            ["authz: domain [testkit]", "domain: -", "http: sync", "store-sqlite: sync", "sync: authz, domain", "testkit: sync",]
        );
    }
}
