//! A fresh server with the usual cast.

use std::time::Duration;

use tempfile::TempDir;
use testkit::{Cast, ServerOptions, ServerProcess, cast};

/// Long enough for what must not happen to show itself, had it been going to.
pub(crate) const QUIET: Duration = Duration::from_millis(300);

/// A server on its own data directory, with the usual cast.
pub(crate) struct World {
    pub(crate) server: ServerProcess,
    pub(crate) cast: Cast,
    pub(crate) directory: TempDir,
}

impl World {
    /// Starts with these configuration keys.
    pub(crate) async fn with(config: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let server = ServerProcess::start(options(&directory, config));
        let cast = cast(&server.owner()).await;
        Self { server, cast, directory }
    }

    pub(crate) async fn new() -> Self {
        Self::with(&[]).await
    }

    pub(crate) fn url(&self) -> &str {
        &self.server.url
    }

    /// Kills the server and starts it again on the same data; the cast's calls go to the new address.
    pub(crate) fn crash(self) -> Self {
        let options = self.server.kill();
        Self::on(ServerProcess::start(options), self.cast, self.directory)
    }

    /// The same cast on another server process.
    pub(crate) fn on(server: ServerProcess, cast: Cast, directory: TempDir) -> Self {
        let cast = Cast {
            owner: cast.owner.at(&server.url),
            alpha: cast.alpha.at(&server.url),
            producer: cast.producer.at(&server.url),
            sam: cast.sam.at(&server.url),
            ..cast
        };
        Self { server, cast, directory }
    }
}

/// Options of a server in `directory`.
pub(crate) fn options(directory: &TempDir, config: &[(&str, &str)]) -> ServerOptions {
    let base = ServerOptions::new(env!("CARGO_BIN_EXE_doorstep"), directory.path().join("data"));
    config.iter().fold(base, |options, (key, value)| options.with(key, value))
}

/// The seqs of events.
pub(crate) fn seqs(events: &[serde_json::Value]) -> Vec<u64> {
    events.iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

/// Those among `events` that carry the flag.
pub(crate) fn flagged(events: &[serde_json::Value]) -> Vec<u64> {
    events.iter().filter(|event| event["redelivered"] == true).map(|event| event["seq"].as_u64().unwrap()).collect()
}
