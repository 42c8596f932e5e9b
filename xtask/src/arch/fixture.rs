//! A small healthy register and workspace, in which the tests of the checks seed one fault each.

use super::finding::Finding;
use super::register::Register;
use super::tree::{Dependency, Member, Origin, Purpose, Source, TextFile, Tree};

const REGISTER: &str = r#"
    [modules.domain]
    path = "crates/domain"
    layer = "core"
    may_use = []

    [modules.authz]
    path = "crates/authz"
    layer = "core"
    may_use = ["domain"]
    tables = ["tokens"]
    actions = ["me.read", "events.read"]
    event_types = ["access.changed"]
    configuration = ["auth."]

    [modules.sync]
    path = "crates/sync"
    layer = "core"
    may_use = ["domain", "authz"]
    tables = ["event_log"]
    ops = { identify = ["events.read"] }
    open_ops = ["heartbeat"]
    configuration = ["sync."]

    [modules.store-sqlite]
    path = "crates/adapters/store-sqlite"
    layer = "adapter"
    may_use = ["domain", "authz", "sync"]

    [modules.http]
    path = "crates/adapters/http"
    layer = "adapter"
    may_use = ["domain", "sync"]
    open_operations = ["getHealth"]

    [modules.testkit]
    path = "crates/testkit"
    layer = "development"
    may_use = ["domain", "sync"]

    [store]
    tables = ["store_meta"]

    [[unions]]
    file = "load_rights.sql"
    joins = ["authz", "sync"]
    reason = "one snapshot"

    [[restricted]]
    crates = ["rusqlite"]
    only = ["store-sqlite"]
    reason = "SQL stays in the stores"
"#;

/// The register of the small workspace.
pub(super) fn register() -> Register {
    toml::from_str(REGISTER).unwrap()
}

/// The small workspace. Every check passes on it.
pub(super) fn tree() -> Tree {
    let store = "crates/adapters/store-sqlite";
    Tree {
        members: vec![
            member("domain", "crates/domain", &[], "pub struct Seq;"),
            member("authz", "crates/authz", &["domain"], "pub use domain::Seq; const CHANGED: &str = \"access.changed\";"),
            member("sync", "crates/sync", &["domain", "authz"], "pub use domain::Seq; pub use authz::Action;"),
            member(
                "store-sqlite",
                store,
                &["sync", "rusqlite"],
                "use sync::Seq; use rusqlite::Connection; const ALL: [&str; 3] = [\"authz/find_token\", \"store/meta\", \"union/load_rights\"];",
            ),
            member("http", "crates/adapters/http", &["sync"], "use sync::Seq;"),
            member("testkit", "crates/testkit", &["sync"], "use sync::Seq;"),
        ],
        queries: vec![
            file(&format!("{store}/queries/authz/find_token.sql"), "SELECT id FROM tokens WHERE hash = ?1"),
            file(&format!("{store}/queries/store/meta.sql"), "SELECT value FROM store_meta"),
            file(&format!("{store}/queries/union/load_rights.sql"), "SELECT 1 FROM tokens JOIN event_log"),
        ],
        migrations: vec![
            file("migrations/sqlite/0001_identity.sql", "CREATE TABLE tokens (id TEXT); CREATE TABLE store_meta (value TEXT);"),
            file("migrations/sqlite/0002_log.sql", "CREATE TABLE event_log (seq INTEGER PRIMARY KEY);"),
        ],
        openapi: Some(
            r#"{"paths": {"/v1/me": {"parameters": [], "get": {"operationId": "getMe", "x-action": "me.read"}},
                          "/healthz": {"get": {"operationId": "getHealth"}}}}"#
                .to_owned(),
        ),
        asyncapi: Some(
            r#"{"operations": {"receiveIdentify": {"action": "receive", "x-op": "identify", "x-action": ["events.read"]},
                               "receiveHeartbeat": {"action": "receive", "x-op": "heartbeat"},
                               "sendReady": {"action": "send"}}}"#
                .to_owned(),
        ),
        configuration: Some("| key | default |\n|---|---|\n| `auth.token_ttl` | 30d |\n| `sync.page_size` | 100 |\n".to_owned()),
        rules: Vec::new(),
    }
}

/// A member that inherits everything, with one source.
pub(super) fn member(name: &str, directory: &str, dependencies: &[&str], code: &str) -> Member {
    let listed = dependencies.iter().fold(String::new(), |listed, dependency| listed + dependency + ".workspace = true\n");
    let manifest = format!(
        "[package]\nname = \"doorstep-{name}\"\nversion.workspace = true\nedition.workspace = true\nrust-version.workspace = true\n\
         license.workspace = true\npublish.workspace = true\n[lints]\nworkspace = true\n[dependencies]\n{listed}"
    );
    let source = |path: &str, text: String| Source::new(format!("{directory}/{path}"), text);
    let mut sources = vec![source("src/lib.rs", format!("//! The module {name}.\n{code}\n"))];
    if name == "authz" {
        let actions = "//! Actions.\nconst A: [&str; 2] = [\"me.read\", \"events.read\"];\nconst SCOPE: &str = \"read\";\n";
        sources.push(source("src/action.rs", actions.to_owned()));
    }
    Member {
        name: name.to_owned(),
        directory: directory.to_owned(),
        manifest: manifest.parse().unwrap(),
        dependencies: dependencies.iter().map(|dependency| product(dependency)).collect(),
        sources,
    }
}

/// A dependency of the product; external ones are known by their names.
pub(super) fn product(name: &str) -> Dependency {
    let external = ["rusqlite", "tokio", "serde_json"].contains(&name);
    Dependency {
        name: name.to_owned(),
        identifier: name.replace('-', "_"),
        purpose: Purpose::Product,
        origin: if external { Origin::External } else { Origin::Member },
    }
}

/// The same for tests only.
pub(super) fn for_tests(name: &str) -> Dependency {
    Dependency { purpose: Purpose::Tests, ..product(name) }
}

/// A text file.
pub(super) fn file(path: &str, text: &str) -> TextFile {
    TextFile { path: path.to_owned(), text: text.to_owned() }
}

/// The member `name`, to seed a fault in it.
pub(super) fn member_of<'a>(tree: &'a mut Tree, name: &str) -> &'a mut Member {
    tree.members.iter_mut().find(|member| member.name == name).unwrap()
}

/// One finding mentions `text`.
#[track_caller]
pub(super) fn assert_finds(findings: &[Finding], text: &str) {
    assert!(findings.iter().any(|finding| finding.to_string().contains(text)), "nothing about {text:?} in {findings:#?}");
}

/// There is one finding, and it mentions `text`.
#[track_caller]
pub(super) fn assert_finds_only(findings: &[Finding], text: &str) {
    assert_finds(findings, text);
    assert_eq!(findings.len(), 1, "{findings:#?}");
}
