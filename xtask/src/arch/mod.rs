//! `arch`: the workspace against the register `architecture/modules.toml` and the snapshot `architecture/graph.txt`.
//!
//! Every check is a function from the register and a [`tree::Tree`] to findings. It reads no file and runs no program, and
//! its tests seed the faults that it is there to find. The same checks run as a test of this package.

mod configuration;
mod finding;
#[cfg(test)]
mod fixture;
mod graph;
mod members;
mod operations;
mod queries;
mod register;
mod rules;
mod rust_text;
mod sources;
mod sql;
mod tables;
mod tree;
mod vocabulary;

use crate::document::{self, Mode};
use crate::failure::Failure;
use crate::output;
use crate::workspace::Workspace;
use finding::Finding;
use register::Register;
use tree::Tree;

/// Runs every check, the snapshot included, and lists what was found.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Failure> {
    settle(workspace, Mode::Check)
}

/// Renews the snapshot, then runs every other check.
pub(crate) fn write(workspace: &Workspace) -> Result<(), Failure> {
    settle(workspace, Mode::Write)
}

fn settle(workspace: &Workspace, graph: Mode) -> Result<(), Failure> {
    let register = Register::load(workspace.root())?;
    let tree = Tree::load(workspace)?;
    for note in sources::notes(&tree) {
        output::line(&format!("note: {note}"));
    }
    let findings = findings(&register, &tree);
    for finding in &findings {
        output::line(&finding.to_string());
    }
    let snapshot = document::settle(workspace.root(), graph::GRAPH, graph::render(&tree).as_bytes(), graph, graph::RENEW);
    if findings.is_empty() {
        output::line(&format!("{} modules keep the register", tree.members.len()));
        return snapshot;
    }
    if let Err(failure) = snapshot {
        output::line(&failure.to_string());
    }
    Err(Failure::new(format!("{} findings; the rules are in architecture/README.md", findings.len())))
}

/// What every check finds, sorted by place.
fn findings(register: &Register, tree: &Tree) -> Vec<Finding> {
    let mut findings = register::check(register);
    findings.extend(members::registered(register, tree));
    findings.extend(members::allowed(register, tree));
    findings.extend(members::used(tree));
    findings.extend(members::inherits(tree));
    findings.extend(tables::check(register, tree));
    findings.extend(queries::own_tables(register, tree));
    findings.extend(queries::named(tree));
    findings.extend(queries::no_sql_in_rust(tree));
    findings.extend(vocabulary::actions(register, tree));
    findings.extend(vocabulary::event_types(register, tree));
    findings.extend(operations::rest(register, tree));
    findings.extend(operations::gateway(register, tree));
    findings.extend(configuration::check(register, tree));
    findings.extend(rules::check(tree));
    findings.extend(sources::check(tree));
    findings.sort();
    findings
}

#[cfg(test)]
mod tests {
    use super::{check, findings, fixture};
    use crate::workspace::Workspace;

    #[test]
    fn the_small_workspace_of_the_tests_is_healthy() {
        assert_eq!(findings(&fixture::register(), &fixture::tree()), []);
    }

    #[test]
    fn this_workspace_keeps_its_register() {
        let workspace = Workspace::find().unwrap();
        if let Err(failure) = check(&workspace) {
            panic!("{failure}; `cargo xtask arch` shows them");
        }
    }
}
