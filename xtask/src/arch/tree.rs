//! What the checks look at: the workspace, read once into memory, so that every check is a function without I/O.

use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Package};

use super::finding::Finding;
use super::rust_text::RustText;
use crate::config_docs;
use crate::failure::Failure;
use crate::workspace::Workspace;

/// The product's name in front of every package's.
pub(crate) const PREFIX: &str = "doorstep-";

/// The workspace as the checks see it. Paths are from the root, with `/`.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// The members.
    pub(crate) members: Vec<Member>,
    /// Every `*.sql` below `crates/`.
    pub(crate) queries: Vec<TextFile>,
    /// Every file below `migrations/`.
    pub(crate) migrations: Vec<TextFile>,
    /// `api/openapi.json`, when there is one.
    pub(crate) openapi: Option<String>,
    /// `api/asyncapi.json`, when there is one.
    pub(crate) asyncapi: Option<String>,
    /// The generated configuration reference, when there is one.
    pub(crate) configuration: Option<String>,
    /// The tables of rules and their tests: every `architecture/rules-*.md`.
    pub(crate) rules: Vec<TextFile>,
}

/// A member of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its package's name without the product's prefix: the module of the register.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) directory: String,
    /// Its `Cargo.toml`.
    pub(crate) manifest: toml::Table,
    /// What it depends on.
    pub(crate) dependencies: Vec<Dependency>,
    /// Every `*.rs` of it.
    pub(crate) sources: Vec<Source>,
}

/// A dependency of a member.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The package's name; of members, the module's.
    pub(crate) name: String,
    /// What code calls it.
    pub(crate) identifier: String,
    /// Whether only tests use it.
    pub(crate) purpose: Purpose,
    /// Whether it is of this workspace.
    pub(crate) origin: Origin,
}

/// What a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The product (build scripts included).
    Product,
    /// Tests, examples and benches.
    Tests,
}

/// Where a dependency comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This workspace.
    Member,
    /// Elsewhere.
    External,
}

/// A text with its path.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// Where it is.
    pub(crate) path: String,
    /// What it says.
    pub(crate) text: String,
}

/// A Rust source.
#[derive(Debug)]
pub(crate) struct Source {
    /// Where it is.
    pub(crate) path: String,
    /// What it says.
    pub(crate) text: String,
    /// The same, taken apart.
    pub(crate) rust: RustText,
}

impl Source {
    /// Takes `text` apart.
    pub(crate) fn new(path: String, text: String) -> Self {
        let rust = RustText::new(&text);
        Self { path, text, rust }
    }

    /// Whether the whole file is test code.
    pub(crate) fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs") || self.path.ends_with("_tests.rs")
    }
}

impl Member {
    /// The place of its manifest.
    pub(crate) fn manifest_path(&self) -> String {
        format!("{}/Cargo.toml", self.directory)
    }

    /// A finding in its manifest.
    pub(crate) fn finding(&self, problem: impl Into<String>) -> Finding {
        Finding::new(self.manifest_path(), problem)
    }
}

impl Tree {
    /// Reads the workspace.
    pub(crate) fn load(workspace: &Workspace) -> Result<Self, Failure> {
        let root = workspace.root();
        let members =
            workspace.metadata().workspace_packages().into_iter().map(|package| member(root, package)).collect::<Result<_, _>>()?;
        Ok(Self {
            members,
            queries: text_files(root, "crates", &|path| path.extension().is_some_and(|extension| extension == "sql"))?,
            migrations: text_files(root, "migrations", &|_| true)?,
            openapi: fs::read_to_string(root.join("api/openapi.json")).ok(),
            asyncapi: fs::read_to_string(root.join("api/asyncapi.json")).ok(),
            configuration: fs::read_to_string(root.join(config_docs::REFERENCE)).ok(),
            rules: text_files(root, "architecture", &is_table_of_rules)?,
        })
    }
}

fn is_table_of_rules(path: &Path) -> bool {
    let is_named = path.file_stem().is_some_and(|name| name.as_encoded_bytes().starts_with(b"rules-"));
    is_named && path.extension().is_some_and(|extension| extension == "md")
}

fn member(root: &Path, package: &Package) -> Result<Member, Failure> {
    let manifest_path = package.manifest_path.as_std_path();
    let directory = from_root(root, manifest_path.parent().unwrap_or(root));
    let manifest = fs::read_to_string(manifest_path)
        .map_err(|error| error.to_string())
        .and_then(|text| text.parse::<toml::Table>().map_err(|error| error.to_string()))
        .map_err(|error| Failure::because(format_args!("read {}", manifest_path.display()), error))?;
    let rust = |path: &Path| path.extension().is_some_and(|extension| extension == "rs");
    let sources = text_files(root, &directory, &rust)?.into_iter().map(|file| Source::new(file.path, file.text)).collect();
    let dependencies = package.dependencies.iter().map(dependency).collect();
    Ok(Member { name: module_name(&package.name), directory, manifest, dependencies, sources })
}

fn dependency(dependency: &cargo_metadata::Dependency) -> Dependency {
    let origin = if dependency.path.is_some() { Origin::Member } else { Origin::External };
    let name = if origin == Origin::Member { module_name(&dependency.name) } else { dependency.name.clone() };
    let identifier = dependency.rename.as_ref().unwrap_or(&dependency.name).replace('-', "_");
    let purpose = if dependency.kind == DependencyKind::Development { Purpose::Tests } else { Purpose::Product };
    Dependency { name, identifier, purpose, origin }
}

fn module_name(package: &str) -> String {
    package.strip_prefix(PREFIX).unwrap_or(package).to_owned()
}

/// Every file that `wanted` accepts below `folder`, sorted; none when there is no such folder.
fn text_files(root: &Path, folder: &str, wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<TextFile>, Failure> {
    let mut paths = Vec::new();
    collect(&root.join(folder), wanted, &mut paths).map_err(|error| Failure::because(format_args!("list {folder}"), error))?;
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|error| Failure::because(format_args!("read {}", path.display()), error))?;
        Ok(TextFile { path: from_root(root, &path), text })
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, wanted: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(&path, wanted, found)?;
        } else if wanted(&path) {
            found.push(path);
        }
    }
    Ok(())
}

fn from_root(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}
