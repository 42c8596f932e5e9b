//! One run of the command for one item: its input, its output, and how it is stopped.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client::{KeptLease, LeaseLoss};
use protocol::ItemClaim;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::item;
use super::tail::Tail;
use crate::process::{Ask, Group, apart};
use crate::terminal::{Sink, write_all};

/// How long output may take to arrive that a command has written before its end. What a process writes that it left behind is not waited for.
const LAST_OUTPUT: Duration = Duration::from_millis(500);
/// The longest that what a command has left behind has to end after being asked to.
const SWEEP: Duration = Duration::from_secs(1);
/// How often is looked whether a group has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A command and how it is run.
pub(super) struct Runner {
    /// The program and its arguments.
    pub(super) words: Vec<OsString>,
    /// The longest that it may take.
    pub(super) timeout: Option<Duration>,
    /// The time between asking it to end and killing it.
    pub(super) grace: Duration,
    /// Where its output is passed on to.
    pub(super) pass_on: Option<Sink>,
}

/// How commands are stopped when the worker is.
#[derive(Clone, Debug, Default)]
pub(super) struct Halt {
    /// In an orderly way.
    pub(super) cut: CancellationToken,
    /// At once.
    pub(super) now: CancellationToken,
}

/// Why a command was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The lease was lost.
    LeaseLost(Option<LeaseLoss>),
    /// The attempt's deadline is near.
    DeadlineNear,
    /// It took longer than it may.
    Timeout(Duration),
    /// The worker stops.
    Stopping,
}

/// How a run ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// By itself.
    Exited(ExitStatus),
    /// It was stopped.
    Stopped(Cause),
    /// It could not be started, or not be waited for.
    Broken(io::Error),
}

/// A run that has ended.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) ended: Ended,
    /// The end of what it wrote to standard output.
    pub(super) out: String,
    /// The end of what it wrote to standard error.
    pub(super) err: String,
}

impl Runner {
    /// Runs the command for an item until it ends or has to be stopped.
    pub(super) async fn run(&self, item: &ItemClaim, lease: &KeptLease, halt: &Halt) -> Ran {
        let (out, err) = (Mutex::default(), Mutex::default());
        let ended = match self.spawn(item) {
            Ok((child, input)) => Box::pin(self.attend(child, input, lease, halt, &out, &err)).await,
            Err(error) => Ended::Broken(error),
        };
        let text = |tail: Mutex<Tail>| tail.into_inner().map(|tail| tail.text()).unwrap_or_default();
        Ran { ended, out: text(out), err: text(err) }
    }

    fn spawn(&self, item: &ItemClaim) -> io::Result<(Child, String)> {
        let input = item::json(item)?;
        let mut words = self.words.iter();
        let program = words.next().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut command = Command::new(program);
        command.args(words).envs(item::variables(item)).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        apart(&mut command);
        command.spawn().map(|child| (child, input))
    }

    async fn attend(&self, mut child: Child, input: String, lease: &KeptLease, halt: &Halt, out: &Mutex<Tail>, err: &Mutex<Tail>) -> Ended {
        let group = KillOnDrop::of(&child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read its input has nothing to answer for: only its exit counts.
                let _ = stdin.write_all(input.as_bytes()).await;
                let _ = stdin.write_all(b"\n").await;
            }
        };
        let streams = async { tokio::join!(feed, self.listen(stdout, out), self.listen(stderr, err)) };
        let ending = async {
            let ended = tokio::select! {
                biased;
                status = child.wait() => status.map_or_else(Ended::Broken, Ended::Exited),
                cause = self.cause(lease, halt) => {
                    self.stop(&mut child, &group, halt).await;
                    Ended::Stopped(cause)
                }
            };
            // What it has left behind goes with it: the attempt is over, and so is all its work.
            group.sweep(self.grace.min(SWEEP)).await;
            ended
        };
        tokio::pin!(streams, ending);
        let ended = tokio::select! {
            ended = &mut ending => {
                let _ = tokio::time::timeout(LAST_OUTPUT, streams).await;
                ended
            }
            _ = &mut streams => ending.await,
        };
        group.disarm();
        ended
    }

    /// Why it has to stop, as soon as there is a reason.
    async fn cause(&self, lease: &KeptLease, halt: &Halt) -> Cause {
        tokio::select! {
            biased;
            () = lease.lost().cancelled() => Cause::LeaseLost(lease.loss()),
            () = halt.now.cancelled() => Cause::Stopping,
            () = halt.cut.cancelled() => Cause::Stopping,
            () = lease.deadline_near().cancelled() => Cause::DeadlineNear,
            timeout = after(self.timeout) => Cause::Timeout(timeout),
        }
    }

    /// Ends the command with everything in its group: politely, and firmly when that does not help.
    async fn stop(&self, child: &mut Child, group: &KillOnDrop, halt: &Halt) {
        if cfg!(unix) && !halt.now.is_cancelled() {
            group.0.ask(Ask::Politely);
            let gone = async {
                let _ = child.wait().await;
                group.gone().await;
            };
            tokio::select! {
                () = gone => return,
                () = tokio::time::sleep(self.grace) => {}
                () = halt.now.cancelled() => {}
            }
        }
        group.0.ask(Ask::Firmly);
        let _ = child.kill().await;
    }

    /// Reads what the command writes until it has closed the stream.
    async fn listen(&self, stream: Option<impl AsyncRead + Unpin>, tail: &Mutex<Tail>) {
        let Some(mut stream) = stream else { return };
        let mut bytes = vec![0; 8_192];
        loop {
            let Ok(count @ 1..) = stream.read(&mut bytes).await else { return };
            let read = bytes.get(..count).unwrap_or_default();
            if let Ok(mut tail) = tail.lock() {
                tail.add(read);
            }
            if let Some(sink) = &self.pass_on {
                let _ = write_all(sink, read);
            }
        }
    }
}

/// The group of a command. However its run ends, nothing of it goes on.
struct KillOnDrop(Group, AtomicBool);

impl KillOnDrop {
    fn of(child: &Child) -> Self {
        Self(Group::of(child), AtomicBool::new(true))
    }

    /// There is nothing left to end.
    fn disarm(&self) {
        self.1.store(false, Ordering::Relaxed);
    }

    /// Returns when no process of it is left.
    async fn gone(&self) {
        while self.0.is_alive() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends what is left of it.
    async fn sweep(&self, grace: Duration) {
        if self.0.is_alive() {
            self.0.ask(Ask::Politely);
            if tokio::time::timeout(grace, self.gone()).await.is_err() {
                self.0.ask(Ask::Firmly);
            }
        }
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if self.1.load(Ordering::Relaxed) {
            self.0.ask(Ask::Firmly);
        }
    }
}

async fn after(timeout: Option<Duration>) -> Duration {
    match timeout {
        Some(timeout) => {
            tokio::time::sleep(timeout).await;
            timeout
        }
        None => std::future::pending().await,
    }
}
