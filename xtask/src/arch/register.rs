//! The register, `architecture/modules.toml`: its form, and the questions that checks ask it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::finding::Finding;
use crate::failure::Failure;

/// Where the register is committed.
pub(crate) const REGISTER: &str = "architecture/modules.toml";

/// The owner of the tables that every store keeps for itself, and the folder of the queries on them.
pub(crate) const STORE: &str = "store";

/// The whole register.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Register {
    /// Modules by their names; the package of a module is its name behind the product's prefix.
    pub(crate) modules: BTreeMap<String, Module>,
    /// What every store keeps for itself.
    #[serde(default)]
    pub(crate) store: Store,
    /// What only one engine has.
    #[serde(default)]
    pub(crate) engines: BTreeMap<String, Engine>,
    /// Statements that may join the tables of several modules.
    #[serde(default)]
    pub(crate) unions: Vec<Union>,
    /// External crates that only some modules may use.
    #[serde(default)]
    pub(crate) restricted: Vec<Restriction>,
}

/// One engine of stores.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Engine {
    /// The registered tables that no other engine has.
    #[serde(default)]
    pub(crate) tables: BTreeSet<String>,
}

/// One module.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Module {
    /// Its folder, from the root.
    pub(crate) path: String,
    /// Where it stands.
    pub(crate) layer: Layer,
    /// The modules that it may use.
    pub(crate) may_use: BTreeSet<String>,
    /// The tables that are its own.
    #[serde(default)]
    pub(crate) tables: Vec<String>,
    /// The actions that are its own.
    #[serde(default)]
    pub(crate) actions: Vec<String>,
    /// The gateway ops that it answers, with the actions that they ask about.
    #[serde(default)]
    pub(crate) ops: BTreeMap<String, Vec<String>>,
    /// Gateway ops that ask about no action.
    #[serde(default)]
    pub(crate) open_ops: Vec<String>,
    /// REST operations that ask about no action.
    #[serde(default)]
    pub(crate) open_operations: Vec<String>,
    /// The server's own events that it makes.
    #[serde(default)]
    pub(crate) event_types: Vec<String>,
    /// Prefixes of the configuration keys that it reads; each ends with a dot.
    #[serde(default)]
    pub(crate) configuration: Vec<String>,
}

/// Where a module stands; decides whom a register entry can allow it to use at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Layer {
    /// Rules and ports; no transport, no storage.
    Core,
    /// One technology; implements or calls ports of the core.
    Adapter,
    /// What runs at the client's side.
    Edge,
    /// Puts everything together.
    Root,
    /// Tests, measurements and tasks.
    Development,
}

impl Layer {
    /// Whether a module of this layer can be allowed to use one of `other`.
    fn can_use(self, other: Self) -> bool {
        match self {
            Self::Core | Self::Adapter => other == Self::Core,
            Self::Edge => matches!(other, Self::Core | Self::Edge),
            Self::Root => other != Self::Development,
            Self::Development => true,
        }
    }
}

/// What every store keeps for itself.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Store {
    /// Its tables.
    pub(crate) tables: Vec<String>,
}

/// A statement that serves a union port.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Union {
    /// Its file in `queries/union/`.
    pub(crate) file: String,
    /// The owners whose tables it joins.
    pub(crate) joins: BTreeSet<String>,
    /// Why it cannot be several statements.
    pub(crate) reason: String,
}

/// External crates that only some modules may use.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Restriction {
    /// The crates.
    pub(crate) crates: Vec<String>,
    /// The modules that may use them.
    pub(crate) only: BTreeSet<String>,
    /// The modules whose tests may use them besides.
    #[serde(default)]
    pub(crate) tests_of: BTreeSet<String>,
    /// Why.
    pub(crate) reason: String,
}

impl Register {
    /// Reads the register below `root`.
    pub(crate) fn load(root: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(root.join(REGISTER)).map_err(|error| Failure::because(format_args!("read {REGISTER}"), error))?;
        toml::from_str(&text).map_err(|error| Failure::because(format_args!("understand {REGISTER}"), error))
    }

    /// Every registered table with its owner: a module, or [`STORE`].
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.modules.iter().flat_map(|(name, module)| module.tables.iter().map(move |table| (table.as_str(), name.as_str())));
        own.chain(self.store.tables.iter().map(|table| (table.as_str(), STORE)))
    }

    /// Who owns `table`.
    pub(crate) fn owner_of_table(&self, table: &str) -> Option<&str> {
        self.tables().find(|(registered, _)| *registered == table).map(|(_, owner)| owner)
    }

    /// Every registered action with its module.
    pub(crate) fn actions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.listed(|module| &module.actions)
    }

    /// Whether `action` is registered.
    pub(crate) fn has_action(&self, action: &str) -> bool {
        self.actions().any(|(registered, _)| registered == action)
    }

    /// What a list of every module holds, with the module's name.
    pub(crate) fn listed(&self, list: fn(&Module) -> &Vec<String>) -> impl Iterator<Item = (&str, &str)> {
        self.modules.iter().flat_map(move |(name, module)| list(module).iter().map(move |entry| (entry.as_str(), name.as_str())))
    }
}

/// The register agrees with itself: names exist, layers are kept, and everything that is owned has one owner.
pub(crate) fn check(register: &Register) -> Vec<Finding> {
    let mut findings = layers(register);
    findings.extend(references(register));
    let ops = register.modules.iter().flat_map(|(name, module)| module.ops.keys().map(move |op| (op.as_str(), name.as_str())));
    findings.extend(one_owner("table", register.tables()));
    findings.extend(one_owner("action", register.actions()));
    findings.extend(one_owner("op", ops.chain(register.listed(|module| &module.open_ops))));
    findings.extend(one_owner("operation", register.listed(|module| &module.open_operations)));
    findings.extend(one_owner("event type", register.listed(|module| &module.event_types)));
    findings.extend(one_owner("configuration prefix", register.listed(|module| &module.configuration)));
    findings
}

fn layers(register: &Register) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, module) in &register.modules {
        for used in &module.may_use {
            match register.modules.get(used) {
                None => findings.push(Finding::new(REGISTER, format!("{name} may use {used}, which is not a module"))),
                Some(other) if !module.layer.can_use(other.layer) => findings
                    .push(Finding::new(REGISTER, format!("{name} may use {used}, but {:?} never uses {:?}", module.layer, other.layer))),
                Some(_) => {}
            }
        }
    }
    findings
}

/// Names of modules and actions that other entries refer to.
fn references(register: &Register) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut broken = |problem: String| findings.push(Finding::new(REGISTER, problem));
    for (name, module) in &register.modules {
        for (op, actions) in &module.ops {
            if actions.is_empty() {
                broken(format!("op {op} of {name} has no action; list it in open_ops if everyone may send it"));
            }
            for action in actions.iter().filter(|action| !register.has_action(action)) {
                broken(format!("op {op} of {name} asks about {action}, which no module registers"));
            }
        }
        for prefix in module.configuration.iter().filter(|prefix| !prefix.ends_with('.')) {
            broken(format!("configuration prefix {prefix} of {name} does not end with a dot"));
        }
    }
    for restriction in &register.restricted {
        if restriction.reason.is_empty() {
            broken(format!("the restriction of {} has no reason", restriction.crates.join(", ")));
        }
        for module in restriction.only.union(&restriction.tests_of).filter(|module| !register.modules.contains_key(*module)) {
            broken(format!("the restriction of {} names {module}, which is not a module", restriction.crates.join(", ")));
        }
    }
    for union in &register.unions {
        if union.reason.is_empty() {
            broken(format!("union {} has no reason", union.file));
        }
        for owner in union.joins.iter().filter(|owner| *owner != STORE && !register.modules.contains_key(*owner)) {
            broken(format!("union {} joins {owner}, which is not a module", union.file));
        }
    }
    findings
}

fn one_owner<'a>(what: &str, entries: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
    let mut owners = BTreeMap::<&str, Vec<&str>>::new();
    for (entry, owner) in entries {
        owners.entry(entry).or_default().push(owner);
    }
    let shared = owners.into_iter().filter(|(_, owners)| owners.len() > 1);
    shared.map(|(entry, owners)| Finding::new(REGISTER, format!("{what} {entry} is registered by {}", owners.join(" and by ")))).collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::arch::fixture::{assert_finds, register};

    #[test]
    fn a_consistent_register_passes() {
        assert_eq!(check(&register()), []);
    }

    #[test]
    fn everything_owned_has_one_owner() {
        let mut faulty = register();
        faulty.modules.get_mut("sync").unwrap().tables.push("tokens".to_owned());
        faulty.modules.get_mut("sync").unwrap().actions.push("me.read".to_owned());
        faulty.modules.get_mut("sync").unwrap().configuration.push("auth.".to_owned());
        faulty.store.tables.push("event_log".to_owned());
        let findings = check(&faulty);
        for expected in ["table tokens", "table event_log", "action me.read", "configuration prefix auth."] {
            assert_finds(&findings, expected);
        }
        assert_eq!(findings.len(), 4);
    }

    #[test]
    fn core_cannot_be_allowed_to_use_an_adapter_nor_an_adapter_another() {
        let mut faulty = register();
        faulty.modules.get_mut("sync").unwrap().may_use.insert("http".to_owned());
        faulty.modules.get_mut("http").unwrap().may_use.insert("store-sqlite".to_owned());
        let findings = check(&faulty);
        assert_finds(&findings, "sync may use http");
        assert_finds(&findings, "http may use store-sqlite");
        assert_eq!(findings.len(), 2);
    }

    #[test]
    fn what_is_referred_to_is_registered() {
        let mut faulty = register();
        let sync = faulty.modules.get_mut("sync").unwrap();
        sync.may_use.insert("nobody".to_owned());
        sync.ops.insert("open".to_owned(), Vec::new());
        sync.ops.insert("lost".to_owned(), vec!["lost.action".to_owned()]);
        sync.configuration.push("undotted".to_owned());
        faulty.restricted[0].only.insert("absent".to_owned());
        faulty.unions[0].joins.insert("missing".to_owned());
        let findings = check(&faulty);
        for expected in ["nobody", "op open", "lost.action", "undotted", "absent", "missing"] {
            assert_finds(&findings, expected);
        }
        assert_eq!(findings.len(), 6);
    }
}
