//! Names that code spells out against the register: actions and the server's own event types.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::register::{REGISTER, Register};
use super::tree::{Source, Tree};

/// The module that names the actions, and how its files about them begin.
const ACTIONS: (&str, &str) = ("authz", "src/action");

/// The actions that `authz` spells are the registered ones. An action is a dotted word in `src/action*.rs`.
pub(crate) fn actions(register: &Register, tree: &Tree) -> Vec<Finding> {
    let (module, files) = ACTIONS;
    let member = tree.members.iter().find(|member| member.name == module);
    let sources = member.into_iter().flat_map(|member| &member.sources);
    let place = |source: &&Source| source.path.contains(&format!("/{files}")) && !source.is_test();
    let mut spelled = BTreeSet::new();
    let mut findings = Vec::new();
    for source in sources.filter(place) {
        for literal in source.rust.literals().filter(|literal| is_dotted(&literal.text)) {
            if !register.has_action(&literal.text) {
                findings.push(Finding::at(&source.path, literal.line, format!("action {} is not in {REGISTER}", literal.text)));
            }
            spelled.insert(literal.text.clone());
        }
    }
    let unspelled = register.actions().filter(|(action, _)| !spelled.contains(*action));
    findings.extend(
        unspelled
            .map(|(action, owner)| Finding::new(REGISTER, format!("action {action} of {owner} is not spelled in {module}'s {files}*.rs"))),
    );
    findings
}

/// Every registered event type is spelled in the code of the module that makes it.
pub(crate) fn event_types(register: &Register, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (event_type, owner) in register.listed(|module| &module.event_types) {
        let member = tree.members.iter().find(|member| member.name == owner);
        let mut sources = member.into_iter().flat_map(|member| &member.sources).filter(|source| !source.is_test());
        if !sources.any(|source| source.rust.literals().any(|literal| literal.text == event_type)) {
            findings.push(Finding::new(REGISTER, format!("event type {event_type} of {owner} is not spelled in its code")));
        }
    }
    findings
}

/// Words of lower-case letters and underscores, joined by dots.
fn is_dotted(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    text.contains('.') && text.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::{actions, event_types};
    use crate::arch::fixture::{assert_finds, assert_finds_only, member_of, register, tree};
    use crate::arch::tree::Source;

    #[test]
    fn a_healthy_vocabulary_passes() {
        assert_eq!(actions(&register(), &tree()), []);
        assert_eq!(event_types(&register(), &tree()), []);
    }

    #[test]
    fn actions_of_code_and_register_are_the_same() {
        let mut faulty = tree();
        let text = "//! More.\nconst A: &str = \"secret.action\";\n#[cfg(test)]\nmod tests {\n    const B: &str = \"test.action\";\n}\n";
        member_of(&mut faulty, "authz").sources.push(Source::new("crates/authz/src/action/more.rs".to_owned(), text.to_owned()));
        assert_finds_only(&actions(&register(), &faulty), "crates/authz/src/action/more.rs:2: action secret.action is not in");
        let mut generous = register();
        generous.modules.get_mut("sync").unwrap().actions.push("events.rewrite".to_owned());
        assert_finds_only(&actions(&generous, &tree()), "action events.rewrite of sync is not spelled");
    }

    #[test]
    fn without_the_files_about_actions_every_action_is_missing() {
        let mut faulty = tree();
        member_of(&mut faulty, "authz").sources.retain(|source| !source.path.contains("action"));
        assert_eq!(actions(&register(), &faulty).len(), 2);
    }

    #[test]
    fn a_registered_event_type_that_its_module_never_makes_is_found() {
        let mut generous = register();
        generous.modules.get_mut("sync").unwrap().event_types.push("access.dreamt".to_owned());
        assert_finds(&event_types(&generous, &tree()), "event type access.dreamt of sync");
    }
}
