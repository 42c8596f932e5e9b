//! The real binary as a child process: started, killed, stopped, started again on the same data.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::Deadline;
use crate::http::Http;

/// How to start a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The `doorstep` binary.
    pub binary: PathBuf,
    /// Its data directory.
    pub data: PathBuf,
    /// Configuration keys and values, set in the environment.
    pub config: Vec<(String, String)>,
    /// Further variables of its environment.
    pub environment: Vec<(String, String)>,
}

impl ServerOptions {
    /// Defaults on a data directory.
    pub fn new(binary: impl Into<PathBuf>, data: impl Into<PathBuf>) -> Self {
        Self { binary: binary.into(), data: data.into(), config: Vec::new(), environment: Vec::new() }
    }

    /// With `key` set to `value`.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.config.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The command that serves, on a free port of the loopback address, its streams not yet set.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("serve").arg("--data-dir").arg(&self.data).args(["--listen", "127.0.0.1:0"]);
        command.current_dir(self.data.parent().unwrap_or(Path::new(".")));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        for (key, value) in &self.config {
            command.env(format!("DOORSTEP__{}", key.to_uppercase().replace('.', "__")), value);
        }
        command
    }
}

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    options: ServerOptions,
    /// Its address, `http://127.0.0.1:PORT`.
    pub url: String,
}

impl ServerProcess {
    /// Starts a server and waits for its `listening on` line. Its log goes to `server.log` beside the data directory.
    ///
    /// # Panics
    /// When it does not come up; the message has its log.
    pub fn start(options: ServerOptions) -> Self {
        let log_path = options.data.with_extension("log");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&log_path).expect("a log file");
        let mut child =
            options.command().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("the doorstep binary starts");
        let stdout = child.stdout.take().expect("a piped stdout");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("readable stdout");
        let Some(url) = line.trim().strip_prefix("listening on ") else {
            let status = child.wait();
            let log = std::fs::read_to_string(&log_path).unwrap_or_default();
            panic!("the server did not start ({status:?}), it said {line:?}; its log:\n{log}");
        };
        Self { url: url.to_owned(), child, options }
    }

    /// A fresh start on the same data with the same options.
    #[must_use]
    pub fn start_again(options: &ServerOptions) -> Self {
        Self::start(options.clone())
    }

    /// How it was started.
    pub fn options(&self) -> &ServerOptions {
        &self.options
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The token of the owner, as the first start left it.
    pub fn owner_token(&self) -> String {
        std::fs::read_to_string(self.options.data.join("owner-token")).expect("the owner's token").trim().to_owned()
    }

    /// A REST client with the owner's token.
    pub fn owner(&self) -> Http {
        Http::new(&self.url, &self.owner_token())
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub fn kill(mut self) -> ServerOptions {
        self.child.kill().expect("a process to kill");
        self.child.wait().expect("a process to wait for");
        self.options.clone()
    }

    /// Asks it to stop (SIGTERM), without waiting.
    pub fn ask_to_stop(&self) {
        self.signal("TERM");
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(status.expect("the kill program").success(), "the signal was not delivered");
    }

    /// Waits until it ends by itself.
    ///
    /// # Panics
    /// When it does not within the usual patience.
    pub fn wait(mut self) -> ExitStatus {
        let deadline = Deadline::usual();
        loop {
            if let Some(status) = self.child.try_wait().expect("a process to wait for") {
                return status;
            }
            assert!(!deadline.passed(), "the server did not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.options.data.with_extension("log")).unwrap_or_default()
    }

    /// Its resident memory in bytes, from the operating system.
    pub fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap_or_default();
        let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        pages * 4096
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
