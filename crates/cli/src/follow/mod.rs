//! `doorstep follow`: hands a consumer's events to standard output or to a command, and acknowledges what was taken.

mod exec;
mod printer;
mod watch_link;

pub(crate) use watch_link::tell as tell_link;

use std::time::Duration;

use clap::{Args, ValueEnum};
use client::{Backoff, BackoffOptions, Client, Consumer, ConsumerError, ConsumerName, ConsumerOptions, Delivery, Retry, Seq};
use futures_util::FutureExt as _;
use protocol::ProblemCode;
use tokio::sync::watch;

use crate::duration;
use crate::failure::Failure;
use crate::session::Session;
use crate::signals::{Stop, Urgency, forward};
use crate::table;
use exec::Ran;
use printer::Printer;

/// Events that are written at once at most.
const BLOCK: usize = 256;
/// How long the output may take once stopping was asked for.
const WRITE_GRACE: Duration = Duration::from_secs(5);

/// What happens when the command fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnFailure {
    /// Stop; the event is not acknowledged and comes again.
    Stop,
    /// Run it again for the same event, after growing pauses.
    Retry,
    /// Acknowledge the event all the same and go on.
    Skip,
}

/// What `doorstep follow` takes.
#[derive(Clone, Debug, Args)]
pub struct FollowArguments {
    /// The consumer's name. Each has a position of its own, which the server keeps.
    #[arg(long, short, value_name = "NAME", default_value = ConsumerName::DEFAULT)]
    consumer: ConsumerName,
    /// Run this shell command for each event, with the event's JSON on standard input and DOORSTEP_EVENT_ID, _SEQ, _TYPE, _CHANNEL and
    /// _REDELIVERED in the environment. The event is acknowledged when the command succeeds.
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    /// What to do when the command fails.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "stop", requires = "exec")]
    on_failure: OnFailure,
    /// Use long polls instead of a WebSocket.
    #[arg(long)]
    poll: bool,
    /// End after this many events.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// End when nothing has come for this long.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    idle_timeout: Option<Duration>,
}

/// Follows.
pub(crate) async fn run(arguments: FollowArguments, session: &Session) -> Result<(), Failure> {
    let client = session.client()?;
    let mut options = ConsumerOptions::new(arguments.consumer.clone());
    let consumer = if arguments.poll {
        // What is taken beyond the limit would be missing for whoever polls next.
        options.poll_limit =
            arguments.limit.map_or(options.poll_limit, |limit| options.poll_limit.min(u32::try_from(limit).unwrap_or(u32::MAX)));
        options.poll_after = acked(&client, &arguments.consumer).await?;
        client.consumer(options).poll()
    } else {
        client.consumer(options).connect()
    };
    let (sender, _) = watch::channel(Urgency::No);
    let stop = Stop::asked_by(&sender);
    let link = consumer.link();
    let mut following =
        Following { printer: Printer::start(session.terminal.out.clone())?, session, arguments: &arguments, consumer, stop, taken: 0 };
    let result = tokio::select! {
        biased;
        result = following.all() => result,
        () = forward(&sender) => Ok(()),
        () = tell_link(link, session) => Ok(()),
    };
    following.finish(result).await
}

/// Up to where the consumer has acknowledged. What an earlier run was sent beyond that is asked for at once. `None` for a new consumer, and
/// where it cannot be known at the moment: following finds that out by itself.
async fn acked(client: &Client, consumer: &ConsumerName) -> Result<Option<Seq>, Failure> {
    match client.consumer_state(consumer).await {
        Ok(state) => Ok(Some(state.acked_seq)),
        Err(error) if error.retry() == Retry::Never && error.code() != Some(ProblemCode::NotFound) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

/// A run of the command.
struct Following<'a> {
    session: &'a Session,
    arguments: &'a FollowArguments,
    consumer: Consumer,
    printer: Printer,
    stop: Stop,
    taken: u64,
}

/// What came next.
enum Next {
    Event(Box<Delivery>),
    /// It is over, without a fault.
    End,
}

impl Following<'_> {
    async fn all(&mut self) -> Result<(), Failure> {
        while !self.is_enough() {
            match self.next().await? {
                Next::End => return Ok(()),
                Next::Event(first) => match &self.arguments.exec {
                    Some(command) => {
                        if !self.execute(command, &first).await? {
                            return Ok(());
                        }
                    }
                    None => self.print(*first).await?,
                },
            }
        }
        Ok(())
    }

    fn is_enough(&self) -> bool {
        self.stop.is_asked() || self.arguments.limit.is_some_and(|limit| self.taken >= limit)
    }

    async fn next(&mut self) -> Result<Next, Failure> {
        loop {
            let idle = async {
                match self.arguments.idle_timeout {
                    Some(timeout) => tokio::time::sleep(timeout).await,
                    None => std::future::pending().await,
                }
            };
            let next = tokio::select! {
                biased;
                () = self.stop.asked(Urgency::Soon) => return Ok(Next::End),
                next = self.consumer.next() => next,
                () = idle => return Ok(Next::End),
            };
            match next {
                Some(Ok(delivery)) => return Ok(Next::Event(Box::new(delivery))),
                Some(Err(error)) => self.judge(error)?,
                None => return Ok(Next::End),
            }
        }
    }

    /// What was missed is told, and following goes on.
    fn judge(&self, error: ConsumerError) -> Result<(), Failure> {
        match error {
            ConsumerError::ResyncRequired { .. } => {
                self.session.note(&error.to_string());
                Ok(())
            }
            error => Err(error.into()),
        }
    }

    /// Writes an event and what else is there already, then acknowledges. What could not be written is not acknowledged.
    async fn print(&mut self, first: Delivery) -> Result<(), Failure> {
        let room = self.arguments.limit.map_or(BLOCK as u64, |limit| limit - self.taken).min(BLOCK as u64);
        let mut block = Vec::new();
        let mut after = None;
        self.append(&mut block, &first);
        // All of them stay in hand until they are acknowledged, or a redelivery would be written twice.
        let mut held = vec![first];
        while (held.len() as u64) < room {
            match self.consumer.next().now_or_never() {
                Some(Some(Ok(delivery))) => {
                    self.append(&mut block, &delivery);
                    held.push(delivery);
                }
                Some(Some(Err(error))) => {
                    after = Some(error);
                    break;
                }
                Some(None) | None => break,
            }
        }
        let mut stop = self.stop.clone();
        let given_up = async {
            stop.asked(Urgency::Soon).await;
            let _ = tokio::time::timeout(WRITE_GRACE, stop.asked(Urgency::Now)).await;
        };
        tokio::select! {
            biased;
            written = self.printer.write(block) => written?,
            () = given_up => return Err(Failure::Failed("nobody takes the output; what was not taken comes again".to_owned())),
        }
        held.iter().for_each(Delivery::ack);
        self.taken += held.len() as u64;
        after.map_or(Ok(()), |error| self.judge(error))
    }

    fn append(&self, block: &mut Vec<u8>, delivery: &Delivery) {
        let raw = delivery.raw.get();
        if self.session.terminal.interactive_out {
            block.extend_from_slice(table::terminal_json(raw).as_bytes());
        } else {
            block.extend_from_slice(raw.as_bytes());
        }
        block.push(b'\n');
    }

    /// Runs the command until the event is done with. `false` when stopping was asked for before that.
    async fn execute(&mut self, command: &str, delivery: &Delivery) -> Result<bool, Failure> {
        let mut backoff = Backoff::new(BackoffOptions { base: Duration::from_secs(1), ..BackoffOptions::default() });
        loop {
            let why = match exec::run(command, delivery, &mut self.stop).await? {
                Ran::Success => break,
                Ran::Killed => {
                    let text = format!("the command was killed; event {} (seq {}) comes again", delivery.event.id, delivery.seq());
                    return Err(Failure::Failed(text));
                }
                Ran::Failure(why) => why,
            };
            let text = format!("the command {why} for event {} (seq {})", delivery.event.id, delivery.seq());
            match self.arguments.on_failure {
                OnFailure::Stop => return Err(Failure::Failed(format!("{text}; it is not acknowledged and comes again"))),
                OnFailure::Skip => {
                    self.session.note(&format!("{text}; skipped"));
                    break;
                }
                OnFailure::Retry => {
                    let pause = backoff.next_pause();
                    self.session.note(&format!("{text}; again in {}", duration::tell(pause)));
                    tokio::select! {
                        () = self.stop.asked(Urgency::Soon) => return Ok(false),
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            }
        }
        delivery.ack();
        self.taken += 1;
        Ok(true)
    }

    /// Brings the acknowledgements to the server, however it ended.
    async fn finish(self, result: Result<(), Failure>) -> Result<(), Failure> {
        let closed = self.consumer.close().await;
        match (result, closed) {
            (Err(failure), _) => Err(failure),
            (Ok(()), Err(error)) if self.taken > 0 => Err(error.into()),
            (Ok(()), _) => Ok(()),
        }
    }
}
