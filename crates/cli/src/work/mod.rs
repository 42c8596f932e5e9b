//! `doorstep work`: makes a durable worker of any command.

mod command;
mod item;
mod report;
mod tail;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use client::{Assignment, InboxWorker, QueueName, SNOOZE, Verdict, WorkReport, WorkerOptions, WorkerStop};
use protocol::Label;
use tokio::sync::watch;

use crate::duration;
use crate::failure::Failure;
use crate::process;
use crate::session::Session;
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
    /// The longest that a command may take; then it is stopped and its item has failed.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// How long an item rests that its command wants to have later (exit code 75); the server caps it to `inbox.retry_cap`.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    snooze: Duration,
    /// How long a command has to end after SIGTERM before its process group is killed.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    grace: Duration,
    /// How long running commands may go on after this command was asked to stop; then they are stopped and their items given back.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    drain_timeout: Duration,
    /// How long to try again while the server cannot be reached: for ever when absent, 60s with --once or --idle-timeout.
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
        WorkerOptions {
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
    };
    let mut reports = Reports::new(session, stop.drain.clone());
    let halting = Halting { arguments: &arguments, session, stop: stop.clone(), halt, running: &work.running };
    let working = InboxWorker::new(client, arguments.options()).run(stop, |assignment| work.on(assignment), |news| reports.take(news));
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
        return Err(Failure::Failed("stopped at once; what the server was not told comes back when its lease ends".to_owned()));
    }
    reports.conclude(arguments.ends())
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
