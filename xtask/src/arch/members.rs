//! Members of the workspace against the register: who they are, whom they use, and that they inherit what is common.

use super::finding::Finding;
use super::register::{Layer, REGISTER, Register};
use super::tree::{Dependency, Member, Origin, Purpose, Tree};

/// What every package takes from the workspace.
const INHERITED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];

/// The module that any other may use for its tests.
const TESTKIT: &str = "testkit";

/// Every member is registered where it is, and every registered module is a member.
pub(crate) fn registered(register: &Register, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &tree.members {
        match register.modules.get(&member.name) {
            None => findings.push(member.finding(format!("{} is not registered in {REGISTER}", member.name))),
            Some(module) if module.path != member.directory => {
                findings.push(Finding::new(REGISTER, format!("{} is at {}, not at {}", member.name, member.directory, module.path)));
            }
            Some(_) => {}
        }
    }
    let absent = register.modules.keys().filter(|name| !tree.members.iter().any(|member| member.name == **name));
    findings.extend(absent.map(|name| Finding::new(REGISTER, format!("{name} is registered, but is no member of the workspace"))));
    findings
}

/// Members use only the modules that the register allows them, and restricted crates only where they belong.
pub(crate) fn allowed(register: &Register, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &tree.members {
        for dependency in &member.dependencies {
            let problem = match dependency.origin {
                Origin::Member => member_problem(register, member, dependency),
                Origin::External => restriction_problem(register, member, dependency),
            };
            findings.extend(problem.map(|problem| member.finding(problem)));
        }
    }
    findings
}

fn member_problem(register: &Register, member: &Member, dependency: &Dependency) -> Option<String> {
    if dependency.purpose == Purpose::Tests && dependency.name == TESTKIT {
        return None;
    }
    let module = register.modules.get(&member.name)?;
    let used = register.modules.get(&dependency.name);
    if !module.may_use.contains(&dependency.name) {
        return Some(format!("{} uses {}, which the register does not allow", member.name, dependency.name));
    }
    let leaks = module.layer != Layer::Development && used.is_some_and(|used| used.layer == Layer::Development);
    leaks.then(|| format!("{} uses {}, which is for development only", member.name, dependency.name))
}

fn restriction_problem(register: &Register, member: &Member, dependency: &Dependency) -> Option<String> {
    let restriction = register.restricted.iter().find(|restriction| restriction.crates.contains(&dependency.name))?;
    let in_tests = dependency.purpose == Purpose::Tests && restriction.tests_of.contains(&member.name);
    let may = in_tests || restriction.only.contains(&member.name);
    (!may).then(|| format!("{} uses the crate {}, which it must not: {}", member.name, dependency.name, restriction.reason))
}

/// Every dependency is named somewhere in the code of its member.
pub(crate) fn used(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &tree.members {
        for dependency in &member.dependencies {
            if !member.sources.iter().any(|source| source.rust.names(&dependency.identifier)) {
                findings.push(member.finding(format!("depends on {}, which no source of it names", dependency.identifier)));
            }
        }
    }
    findings
}

/// Members inherit the package fields, the lints and every dependency's version from the workspace.
pub(crate) fn inherits(tree: &Tree) -> Vec<Finding> {
    tree.members.iter().flat_map(|member| manifest_problems(&member.manifest).into_iter().map(|p| member.finding(p))).collect()
}

fn manifest_problems(manifest: &toml::Table) -> Vec<String> {
    let mut problems = Vec::new();
    let inherits =
        |value: Option<&toml::Value>| value.and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool) == Some(true);
    if !inherits(manifest.get("lints")) {
        problems.push("does not inherit the workspace's lints".to_owned());
    }
    let package = manifest.get("package");
    for field in INHERITED.iter().filter(|field| !inherits(package.and_then(|package| package.get(**field)))) {
        problems.push(format!("does not inherit package.{field} from the workspace"));
    }
    for (name, dependency) in dependency_tables(manifest).into_iter().flatten() {
        if !inherits(Some(dependency)) {
            problems.push(format!("dependency {name} does not inherit from [workspace.dependencies]"));
        }
    }
    problems
}

/// Every table that lists dependencies, of targets too.
fn dependency_tables(manifest: &toml::Table) -> Vec<&toml::Table> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let places = targets.into_iter().flat_map(|targets| targets.values().filter_map(toml::Value::as_table)).chain([manifest]);
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    places.flat_map(|place| kinds.iter().filter_map(|kind| place.get(*kind).and_then(toml::Value::as_table))).collect()
}

#[cfg(test)]
mod tests {
    use super::{allowed, inherits, registered, used};
    use crate::arch::fixture::{assert_finds, assert_finds_only, for_tests, member, member_of, product, register, tree};

    #[test]
    fn a_healthy_workspace_passes() {
        let (register, tree) = (register(), tree());
        assert_eq!(registered(&register, &tree), []);
        assert_eq!(allowed(&register, &tree), []);
        assert_eq!(used(&tree), []);
        assert_eq!(inherits(&tree), []);
    }

    #[test]
    fn members_and_registered_modules_are_the_same() {
        let mut faulty = tree();
        faulty.members.push(member("stray", "crates/stray", &[], ""));
        faulty.members.retain(|member| member.name != "http");
        member_of(&mut faulty, "sync").directory = "crates/log".to_owned();
        let findings = registered(&register(), &faulty);
        assert_finds(&findings, "stray is not registered");
        assert_finds(&findings, "http is registered, but is no member");
        assert_finds(&findings, "sync is at crates/log, not at crates/sync");
        assert_eq!(findings.len(), 3);
    }

    #[test]
    fn a_member_uses_only_what_the_register_allows() {
        let mut faulty = tree();
        member_of(&mut faulty, "domain").dependencies.push(product("sync"));
        assert_finds_only(&allowed(&register(), &faulty), "domain uses sync");
    }

    #[test]
    fn tests_obey_the_register_too_but_may_use_testkit() {
        let mut faulty = tree();
        member_of(&mut faulty, "sync").dependencies.extend([for_tests("testkit"), for_tests("http")]);
        assert_finds_only(&allowed(&register(), &faulty), "sync uses http");
    }

    #[test]
    fn what_is_for_development_never_reaches_the_product() {
        let mut faulty = tree();
        member_of(&mut faulty, "sync").dependencies.push(product("testkit"));
        assert_finds_only(&allowed(&register(), &faulty), "sync uses testkit");
        let mut generous = register();
        generous.modules.get_mut("sync").unwrap().may_use.insert("testkit".to_owned());
        assert_finds_only(&allowed(&generous, &faulty), "for development only");
    }

    #[test]
    fn restricted_crates_stay_where_they_belong() {
        let mut faulty = tree();
        member_of(&mut faulty, "http").dependencies.push(for_tests("rusqlite"));
        assert_finds_only(&allowed(&register(), &faulty), "http uses the crate rusqlite, which it must not: SQL stays in the stores");
        let mut generous = register();
        generous.restricted[0].tests_of.insert("http".to_owned());
        assert_eq!(allowed(&generous, &faulty), []);
        member_of(&mut faulty, "http").dependencies.push(product("rusqlite"));
        assert_finds_only(&allowed(&generous, &faulty), "http uses the crate rusqlite");
    }

    #[test]
    fn a_dependency_that_no_source_names_is_found() {
        let mut faulty = tree();
        member_of(&mut faulty, "http").dependencies.push(product("serde_json"));
        assert_finds_only(&used(&faulty), "crates/adapters/http/Cargo.toml: depends on serde_json");
    }

    #[test]
    fn versions_lints_and_package_fields_are_inherited() {
        let mut faulty = tree();
        member_of(&mut faulty, "http").manifest = "
            [package]
            name = \"doorstep-http\"
            version = \"1.0.0\"
            edition.workspace = true
            rust-version.workspace = true
            license.workspace = true
            publish.workspace = true
            [dependencies]
            tokio = \"1\"
            [target.'cfg(unix)'.dev-dependencies]
            libc = { version = \"0.2\" }
            serde = { workspace = true, features = [\"derive\"] }"
            .parse()
            .unwrap();
        let findings = inherits(&faulty);
        for expected in ["package.version", "lints", "dependency tokio", "dependency libc"] {
            assert_finds(&findings, expected);
        }
        assert_eq!(findings.len(), 4);
    }
}
