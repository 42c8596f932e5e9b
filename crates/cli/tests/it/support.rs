//! Running commands as the binary does, on streams of the test's own.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Parser;
use doorstep_cli::{Command, Environment, GlobalOptions, Terminal};
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

/// The longest that anything may take that has to happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
/// The epoch of every log.
pub(crate) const EPOCH: &str = "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10";

/// Fails the test when `future` takes too long.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("it has to happen within the deadline")
}

/// The command line, as the binary has it.
#[derive(Debug, Parser)]
#[command(name = "doorstep")]
pub(crate) struct Line {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What a command wrote.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }

    /// The lines as JSON.
    pub(crate) fn values(&self) -> Vec<Value> {
        self.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An output whose reader has gone.
pub(crate) struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) code: u8,
    pub(crate) out: Captured,
    pub(crate) err: Captured,
}

/// A command that runs.
pub(crate) struct Running {
    pub(crate) out: Captured,
    pub(crate) err: Captured,
    code: tokio::task::JoinHandle<std::process::ExitCode>,
}

impl Running {
    /// The end, which has to come.
    pub(crate) async fn ended(self) -> Ended {
        let code = within(self.code).await.unwrap();
        // An exit code can only be shown.
        let shown = format!("{code:?}");
        let code = (0..=9).find(|code| format!("{:?}", std::process::ExitCode::from(*code)) == shown).unwrap();
        Ended { code, out: self.out, err: self.err }
    }
}

/// Starts a command against the server at `address`.
pub(crate) fn start(address: SocketAddr, arguments: &[&str], input: impl Read + Send + 'static) -> Running {
    let out = Captured::default();
    start_on(address, arguments, input, out.clone(), out)
}

/// The same with an output of one's own.
pub(crate) fn start_on(
    address: SocketAddr,
    arguments: &[&str],
    input: impl Read + Send + 'static,
    sink: impl Write + Send + 'static,
    out: Captured,
) -> Running {
    let line = Line::try_parse_from(std::iter::once("doorstep").chain(arguments.iter().copied())).unwrap_or_else(|error| panic!("{error}"));
    let environment =
        Environment::of([("DOORSTEP_URL", format!("http://{address}")), ("DOORSTEP_TOKEN", "dsp_agent_secretsecret".to_owned())]);
    let err = Captured::default();
    let terminal = Terminal::of_streams(input, sink, err.clone(), environment);
    let code = TaskTracker::new().spawn(doorstep_cli::run_on(line.command, line.global, terminal));
    Running { out, err, code }
}

/// Runs a command that calls nobody.
pub(crate) async fn alone(arguments: &[&str], input: &'static str) -> Ended {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
    start(nowhere, arguments, input.as_bytes()).ended().await
}

/// An event of this position.
pub(crate) fn event(seq: u64) -> Value {
    json!({
        "seq": seq, "id": id(seq), "type": "test.happened", "created_at": "2026-07-12T16:22:03.123Z",
        "actor": {"kind": "app", "id": "tester"}, "channel": "support/general", "payload": {"n": seq}
    })
}

/// The id of the event at a position.
pub(crate) fn id(seq: u64) -> String {
    format!("0197f0ab-44f7-7f1a-b0ef-{seq:012}")
}
