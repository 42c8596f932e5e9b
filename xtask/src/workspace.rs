//! Where things are: the root of the workspace, its build folder, the server's binary.

use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand};

use crate::failure::Failure;
use crate::process;

/// The product's binary.
const BINARY: &str = "doorstep";

/// What is built when the server's binary is wanted. Cargo joins the features of all that it builds at once, so a binary that is
/// built alone and the one of the tests are two, and so are half of their dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The binary alone: soonest there, also while tests do not compile.
    Binary,
    /// All that the tests need, so that nothing is compiled twice when they run too.
    Everything,
}

/// This checkout.
pub(crate) struct Workspace {
    metadata: Metadata,
}

impl Workspace {
    /// Asks cargo about the workspace that this task belongs to.
    pub(crate) fn find() -> Result<Self, Failure> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let metadata = MetadataCommand::new()
            .manifest_path(manifest)
            .no_deps()
            .exec()
            .map_err(|error| Failure::because("read the workspace with `cargo metadata`", error))?;
        Ok(Self { metadata })
    }

    /// The root folder.
    pub(crate) fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// What cargo says about the members.
    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Builds the server's binary for development, as part of `selection`, and returns its path.
    pub(crate) fn build_binary(&self, selection: Selection) -> Result<PathBuf, Failure> {
        let arguments: &[&str] = match selection {
            Selection::Binary => &["build", "-p", "doorstep-server", "--bin", BINARY],
            Selection::Everything => &["build", "--workspace", "--lib", "--bins", "--tests", "--examples"],
        };
        process::run(process::cargo(self.root()).args(arguments))?;
        let path = self.metadata.target_directory.join("debug").join(format!("{BINARY}{}", std::env::consts::EXE_SUFFIX));
        Ok(path.into_std_path_buf())
    }
}
