//! The server of the demo: a process of its own, so that it can really be killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use client::{Client, ClientOptions};
use protocol::Secret;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::Unexpected;

/// How long the server may take to say that it listens.
const START: Duration = Duration::from_secs(20);

/// A running server on a data directory of its own.
#[derive(Debug)]
pub(super) struct Stage {
    child: Child,
    directory: PathBuf,
    /// `http://127.0.0.1:PORT`.
    pub(super) url: String,
}

impl Stage {
    /// Starts a server on a free port.
    pub(super) async fn open(directory: &Path) -> Result<Self, Unexpected> {
        Self::start(directory, "127.0.0.1:0").await
    }

    /// Kills the server as a power failure would, and starts it again on the same data and address.
    pub(super) async fn crash(mut self) -> Result<Self, Unexpected> {
        self.child.kill().await.map_err(|error| Unexpected::because("the server cannot be killed", &error))?;
        let address = self.url.trim_start_matches("http://").to_owned();
        Self::start(&self.directory, &address).await
    }

    /// Ends the server; its data goes with the directory.
    pub(super) async fn close(mut self) -> Result<(), Unexpected> {
        self.child.kill().await.map_err(|error| Unexpected::because("the server cannot be stopped", &error))
    }

    /// A client with the owner's token, which the first start has left.
    pub(super) fn owner(&self) -> Result<Client, Unexpected> {
        let path = self.directory.join("data").join(crate::serve::OWNER_TOKEN_FILE);
        let token = std::fs::read_to_string(path).map_err(|error| Unexpected::because("the owner's token", &error))?;
        self.client(Secret::new(token.trim().to_owned()))
    }

    /// Where everything of the demo is kept.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A client with this token.
    pub(super) fn client(&self, token: Secret) -> Result<Client, Unexpected> {
        Client::new(ClientOptions::new(&self.url).with_token(token)).map_err(|error| Unexpected::because("a client", &error))
    }

    async fn start(directory: &Path, listen: &str) -> Result<Self, Unexpected> {
        let failed = |error: std::io::Error| Unexpected::because("the server does not start", &error);
        let log = std::fs::OpenOptions::new().create(true).append(true).open(directory.join("server.log")).map_err(failed)?;
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .arg("serve")
            .arg("--data-dir")
            .arg(directory.join("data"))
            .args(["--listen", listen])
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let stdout = child.stdout.take().ok_or_else(|| Unexpected("the server has no standard output".to_owned()))?;
        let mut line = String::new();
        let said = tokio::time::timeout(START, BufReader::new(stdout).read_line(&mut line)).await;
        match (said, line.trim().strip_prefix("listening on ")) {
            (Ok(Ok(_)), Some(url)) => Ok(Self { url: url.to_owned(), child, directory: directory.to_owned() }),
            _ => {
                let log = std::fs::read_to_string(directory.join("server.log")).unwrap_or_default();
                Err(Unexpected(format!("the server did not come up; it said:\n{log}")))
            }
        }
    }
}
