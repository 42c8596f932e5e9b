//! Throwaway NATS: a server from the installed program, of one test.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

/// A server on a free port; it ends with this value.
#[derive(Debug)]
pub struct NatsServer {
    process: Child,
    /// Where it listens on the loopback address.
    pub port: u16,
    directory: TempDir,
}

impl NatsServer {
    /// On any free port.
    ///
    /// # Panics
    /// When the program is missing; the message says how to install it.
    pub fn start() -> Self {
        Self::on("-1")
    }

    /// On the port that another one had.
    ///
    /// # Panics
    /// As [`NatsServer::start`].
    pub fn again(port: u16) -> Self {
        Self::on(&port.to_string())
    }

    fn on(port: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", port, "--ports_file_dir"]).arg(directory.path());
        // Debian installs it where only root's PATH leads.
        command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
        let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = spawned
            .unwrap_or_else(|error| panic!("this test needs the program nats-server (Debian: apt-get install nats-server): {error}"));
        let began = Instant::now();
        let mut server = Self { process, port: 0, directory };
        loop {
            if let Some(port) = port_in(server.directory.path()) {
                server.port = port;
                return server;
            }
            assert!(began.elapsed() < PATIENCE, "nats-server does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its address, as `cluster.nats_url` takes it.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends it as a crash would; answers its port.
    pub fn kill(mut self) -> u16 {
        self.end();
        self.port
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// The port from the file that the server writes when it listens: `{"nats":["nats://127.0.0.1:4222"],…}`.
fn port_in(directory: &Path) -> Option<u16> {
    let file = std::fs::read_dir(directory)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "ports"))?;
    let text = std::fs::read_to_string(file).ok()?;
    let after = text.split_once("127.0.0.1:")?.1;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
