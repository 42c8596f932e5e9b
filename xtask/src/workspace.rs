//! Where things are: the root of the workspace, its build folder, the server's binary.

use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand};

use crate::failure::Failure;
use crate::process;

/// The package and the name of the product's binary.
const BINARY: &str = "doorstep";

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

    /// Builds the server's binary for development and returns its path.
    ///
    /// The whole workspace is selected although one binary is wanted: cargo then joins the same features as for the tests, and
    /// compiles shared dependencies once.
    pub(crate) fn build_binary(&self) -> Result<PathBuf, Failure> {
        process::run(process::cargo(self.root()).args(["build", "--workspace", "--bin", BINARY]))?;
        let path = self.metadata.target_directory.join("debug").join(format!("{BINARY}{}", std::env::consts::EXE_SUFFIX));
        Ok(path.into_std_path_buf())
    }
}
