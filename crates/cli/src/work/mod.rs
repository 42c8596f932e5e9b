//! `doorstep work`: makes a durable worker of any command.

mod command;
mod item;
mod report;
mod tail;

use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use client::{Assignment, Client, InboxWorker, LeaseKeeperOptions, QueueName, SNOOZE, Verdict, WorkReport, WorkerOptions, WorkerStop};
use protocol::Label;
use tokio::sync::watch;

use crate::duration;
use crate::failure::Failure;
use crate::process;
use crate::session::{Notes, Session};
use crate::signals::{Stop, Urgency, forward};
use command::{Cause, Ended, Halt, Ran, Runner};
use report::Reports;
use tail::summary;

pub(crate) use item::VARIABLES;

/// The exit code by which a command asks for its item to be tried again later, without counting the attempt (EX_TEMPFAIL of sysexits.h).
const TRY_LATER: i32 = 75;
/// How long the server may take to be told what was stopped, after the second signal.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The same after `--drain-timeout`: there is more time, in which calls are repeated.
const LAST_CALLS: Duration = Duration::from_secs(10);

/// What `doorstep work` takes.
#[derive(Clone, Debug, Args)]
pub struct WorkArguments {
    /// Only items of this queue; may be repeated. All queues when absent.
    #[arg(long = "queue", short, value_name = "QUEUE")]
    queues: Vec<QueueName>,
    /// The most commands at once.
    #[arg(long, short = 'n', value_name = "N", default_value = "1")]
    concurrency: NonZeroUsize,
    /// Work on what one claim finds, at most --concurrency items, and end.
    #[arg(long)]
    once: bool,
    /// End when nothing was there to do for this long; with 0s as soon as nothing is left.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    idle_timeout: Option<Duration>,
    /// How long a lease lasts without a heartbeat, which comes at a third of it; the server's `inbox.lease_default` when absent.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    lease: Option<Duration>,
    /// The longest that a command may take; then it is stopped and its item has failed. As long as it likes when absent.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_bound)]
    timeout: Option<Duration>,
    /// How long an item rests that its command wants to have later (exit code 75); the server caps it to `inbox.retry_cap`.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    snooze: Duration,
    /// How long a command has to end after SIGTERM before its process group is killed. A lease that no heartbeat extends ends the command this
    /// long before its own end, but not before two thirds of it.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    grace: Duration,
    /// How long running commands may go on after this command was asked to stop; then they are stopped and their items given back.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    drain_timeout: Duration,
    /// How long to try again while the server cannot be reached, also to tell it what became of an item: for ever when absent, 60s with --once or --idle-timeout.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    retry_for: Option<Duration>,
    /// Do not pass on to standard error what commands write.
    #[arg(long)]
    quiet: bool,
    /// The command and its arguments, after `--`. It is run without a shell.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl WorkArguments {
    /// Whether it ends by itself.
    const fn ends(&self) -> bool {
        self.once || self.idle_timeout.is_some()
    }

    fn options(&self) -> WorkerOptions {
        let usual = LeaseKeeperOptions::default();
        // What is stopped has the grace to end before anybody else can begin.
        let keeper = LeaseKeeperOptions {
            lapse_notice: self.grace,
            deadline_notice: usual.deadline_notice.max(self.grace.saturating_add(LAST_WORDS)),
            ..usual
        };
        WorkerOptions {
            keeper,
            queues: self.queues.clone(),
            concurrency: self.concurrency,
            lease: self.lease,
            once: self.once,
            idle_timeout: self.idle_timeout,
            device: Label::parse(format!("doorstep work, process {}", std::process::id())).ok(),
            retry_for: self.retry_for.or(self.ends().then_some(Duration::from_mins(1))),
            ..WorkerOptions::default()
        }
    }
}

/// Works.
pub(crate) async fn run(arguments: WorkArguments, session: &Session) -> Result<(), Failure> {
    let client = session.client()?;
    let (sender, _) = watch::channel(Urgency::No);
    let (stop, halt) = (WorkerStop::default(), Halt::default());
    let pass_on = (!arguments.quiet).then(|| Arc::clone(&session.terminal.err));
    let runner = Runner { words: arguments.command.clone(), timeout: arguments.timeout, grace: arguments.grace, pass_on };
    let work = Work {
        runner,
        halt: halt.clone(),
        snooze: arguments.snooze,
        stop: stop.clone(),
        broken: Mutex::default(),
        running: AtomicUsize::new(0),
        notes: session.notes(),
    };
    let mut reports = Reports::new(session, stop.drain.clone());
    let halting = Halting { arguments: &arguments, session, stop: stop.clone(), halt, running: &work.running };
    let working =
        InboxWorker::new(client.clone(), arguments.options()).run(stop, |assignment| work.on(assignment), |news| reports.take(news));
    let result = tokio::select! {
        biased;
        result = working => result.map_err(Failure::from),
        () = halting.run(Stop::asked_by(&sender)) => Ok(()),
        () = forward(&sender) => Ok(()),
    };
    if let Some(failure) = work.broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failure);
    }
    result?;
    if *sender.borrow() == Urgency::Now {
        const STOPPED: &str = "stopped at once by a second signal; what could not be given back comes back when its lease ends";
        return Err(Failure::Failed(STOPPED.to_owned()));
    }
    let result = reports.conclude(arguments.ends());
    if matches!(result, Err(Failure::NothingToDo)) {
        tell_pause(&client, &arguments.queues, session).await;
    }
    result
}

/// Says that an inbox is paused where that is why there was nothing to do.
async fn tell_pause(client: &Client, queues: &[QueueName], session: &Session) {
    let Ok(Ok(inbox)) = tokio::time::timeout(LAST_WORDS, client.inbox_state(None)).await else { return };
    let paused: Vec<_> = inbox.paused_queues.iter().filter(|queue| queues.is_empty() || queues.contains(queue)).collect();
    if inbox.paused {
        session.note("the inbox is paused: nothing can be claimed until `doorstep inbox resume`");
    } else if let Some(first) = paused.first() {
        let names = paused.iter().skip(1).fold(first.to_string(), |names, queue| format!("{names}, {queue}"));
        session.note(&format!("of the inbox these queues are paused: {names}"));
    }
}

/// What happens with each item.
struct Work {
    runner: Runner,
    halt: Halt,
    snooze: Duration,
    stop: WorkerStop,
    /// Why no command can be run.
    broken: Mutex<Option<Failure>>,
    running: AtomicUsize,
    notes: Notes,
}

impl Work {
    async fn on(&self, assignment: Arc<Assignment>) -> Verdict {
        self.running.fetch_add(1, Ordering::Relaxed);
        let ran = Box::pin(self.runner.run(&assignment.item, &assignment.lease, &self.halt)).await;
        self.running.fetch_sub(1, Ordering::Relaxed);
        self.judge(ran)
    }

    fn judge(&self, Ran { ended, out, err }: Ran) -> Verdict {
        let failed = |head: &str| Verdict::Failed(WorkReport { summary: summary(head, &err), output: None });
        let later = |retry_after| Verdict::Released { reason: SNOOZE.to_owned(), retry_after };
        match ended {
            Ended::Exited(status) if status.success() => Verdict::Completed(WorkReport { summary: summary("", &out), output: None }),
            Ended::Exited(status) if status.code() == Some(TRY_LATER) => later(Some(self.snooze)),
            Ended::Exited(status) => failed(&process::told(status)),
            Ended::Stopped(Cause::LeaseLost(_)) => Verdict::Abandoned,
            Ended::Stopped(Cause::DeadlineNear) => failed("was stopped shortly before the attempt's deadline"),
            Ended::Stopped(Cause::Timeout(timeout)) => failed(&format!("was stopped after {}", duration::tell(timeout))),
            Ended::Stopped(Cause::Stopping) => later(None),
            // A lack of processes, descriptors or memory passes: the item is tried again later, which counts no attempt.
            Ended::Broken(error) if is_transient(&error) => {
                self.notes.note(&format!("a command cannot be run at the moment: {error}; its item is tried again later"));
                later(Some(self.snooze))
            }
            // The item cannot help it: it is given back, and no more are taken.
            Ended::Broken(error) => {
                let program = self.runner.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
                let failure = Failure::Usage(format!("`{program}` cannot be run: {error}"));
                self.broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                self.stop.drain.cancel();
                later(None)
            }
        }
    }
}

/// Whether a command that could not be run may be able to run soon.
fn is_transient(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;

        // That the program is being written (ETXTBSY) passes, too.
        const PASSING: [Errno; 6] = [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::TXTBSY, Errno::INTR];
        if error.raw_os_error().is_some_and(|code| PASSING.iter().any(|errno| errno.raw_os_error() == code)) {
            return true;
        }
    }
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::OutOfMemory)
}

/// What follows when this command is asked to stop.
struct Halting<'a> {
    arguments: &'a WorkArguments,
    session: &'a Session,
    stop: WorkerStop,
    halt: Halt,
    running: &'a AtomicUsize,
}

impl Halting<'_> {
    /// Returns when it is not to be waited for any longer.
    async fn run(self, asked: Stop) {
        let (mut soon, mut now) = (asked.clone(), asked);
        soon.asked(Urgency::Soon).await;
        self.stop.drain.cancel();
        let patience = self.arguments.drain_timeout;
        if patience > Duration::ZERO && self.running.load(Ordering::Relaxed) > 0 {
            self.session.note(&format!("stopping: running commands have {} to end", duration::tell(patience)));
        }
        tokio::select! {
            () = now.asked(Urgency::Now) => {}
            () = self.cut_short(patience) => return,
        }
        self.halt.now.cancel();
        self.stop.abort.cancel();
        tokio::time::sleep(LAST_WORDS).await;
    }

    async fn cut_short(&self, patience: Duration) {
        tokio::time::sleep(patience).await;
        self.halt.cut.cancel();
        tokio::time::sleep(self.arguments.grace + LAST_CALLS).await;
        self.stop.abort.cancel();
        std::future::pending::<()>().await;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::io::Errno;

    use super::is_transient;

    #[test]
    fn what_is_lacking_at_the_moment_is_no_reason_to_end_and_what_is_not_there_is() {
        let error = |errno: Errno| std::io::Error::from_raw_os_error(errno.raw_os_error());
        for passes in [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::TXTBSY] {
            assert!(is_transient(&error(passes)), "{passes}");
        }
        for stays in [Errno::NOENT, Errno::ACCESS, Errno::NOEXEC, Errno::TOOBIG] {
            assert!(!is_transient(&error(stays)), "{stays}");
        }
    }
}
