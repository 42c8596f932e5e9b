//! `doorstep publish`.

mod batch;
mod input;
mod one;
mod progress;
mod send;

use std::collections::VecDeque;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use client::{Client, ClientError, DeduplicationKey, fresh_deduplication_key, told};
use protocol::EventInput;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::duration;
use crate::failure::Failure;
use crate::session::Session;
use batch::{Batch, Bounds};
use input::{InputError, Item, read_events};
use one::OneEvent;
use progress::Progress;
use send::{NotSent, RetryFor, Sent, send};

/// Events that wait between reading and sending.
const READ_AHEAD: usize = 2_048;
/// How long a request waits for more events while the input goes on.
const LINGER: Duration = Duration::from_millis(20);

/// What `doorstep publish` takes.
#[derive(Clone, Debug, Args)]
pub struct PublishArguments {
    /// One JSON object, an array of objects, {"events": […]}, or JSON lines. Standard input when absent or `-`.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print nothing but errors.
    #[arg(long, short)]
    quiet: bool,
    /// The most events in one request, which is published as a whole or not at all.
    #[arg(long, value_name = "N", default_value = "500", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Begin after this many events of the input.
    #[arg(long, value_name = "N", default_value = "0")]
    skip: usize,
    /// How long to try again while the server cannot take events.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    retry_for: Duration,
    /// Events without a deduplication key get PREFIX:N, N counting the events of the input. Give the prefix of an earlier run to repeat
    /// it without publishing anything twice; without one a fresh prefix is made.
    #[arg(long, value_name = "PREFIX", conflicts_with = "no_keys")]
    key_prefix: Option<String>,
    /// Leave events without a deduplication key as they are. A lost answer then ends the command, since a repeat could publish twice.
    #[arg(long)]
    no_keys: bool,
    // Last, since its heading goes on to the end.
    #[command(flatten)]
    one: OneEvent,
}

/// Publishes.
pub(crate) async fn run(arguments: PublishArguments, session: &Session) -> Result<(), Failure> {
    let client = session.client()?;
    let source = Source::open(&arguments, session)?;
    let total = source.total.map(|total| total.saturating_sub(arguments.skip));
    let fresh = || fresh_deduplication_key().map(|key| key.to_string()).map_err(|error| Failure::Failed(error.to_string()));
    let prefix = arguments.key_prefix.clone().map_or_else(fresh, Ok)?;
    let mut publishing = Publishing {
        client,
        prefix,
        number: 0,
        bounds: Bounds { events: arguments.batch as usize, bytes: 4 << 20 },
        progress: Progress::new(session, total),
        session,
        arguments: &arguments,
        published: 0,
        deduplicated: 0,
        prints: !arguments.quiet,
        waiting_told: false,
    };
    let result = publishing.all(source.events).await;
    publishing.finish(result)
}

/// Where events come from.
struct Source {
    events: mpsc::Receiver<Result<Item, InputError>>,
    /// How many there are, when that is known.
    total: Option<usize>,
}

impl Source {
    fn open(arguments: &PublishArguments, session: &Session) -> Result<Self, Failure> {
        if let Some(event) = arguments.one.event()? {
            let (sender, events) = mpsc::channel(1);
            let _ = sender.try_send(Ok(Item { event, line: 1, size: 0 }));
            return Ok(Self { events, total: Some(1) });
        }
        match arguments.file.as_deref().filter(|path| path.as_os_str() != "-") {
            Some(path) => {
                let fault = |error: &std::io::Error| Failure::Usage(format!("{} cannot be read: {error}", path.display()));
                let file = File::open(path).map_err(|error| fault(&error))?;
                let regular = file.metadata().map_err(|error| fault(&error))?.is_file();
                // A file is read once before anything is published: what is broken in it then has no effect at all.
                let total = if regular { Some(count(&file, path)?) } else { None };
                let file = if regular { File::open(path).map_err(|error| fault(&error))? } else { file };
                Ok(Self { events: read_in_background(file)?, total })
            }
            None => {
                if session.terminal.interactive_input {
                    session.note("reading events from the terminal; Ctrl-D ends them");
                }
                let input = session.terminal.take_input().ok_or_else(|| Failure::Failed("standard input is in use".to_owned()))?;
                Ok(Self { events: read_in_background(input)?, total: None })
            }
        }
    }
}

/// Reads the whole file: how many events are in it.
fn count(file: &File, path: &Path) -> Result<usize, Failure> {
    read_events(file, |_| ControlFlow::Continue(())).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Reads on a thread of its own, which ends with the input or with the process: a read of a terminal cannot be interrupted.
fn read_in_background(input: impl std::io::Read + Send + 'static) -> Result<mpsc::Receiver<Result<Item, InputError>>, Failure> {
    let (sender, events) = mpsc::channel(READ_AHEAD);
    let reading = move || {
        let each = |item| match sender.blocking_send(Ok(item)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        if let Err(error) = read_events(input, each) {
            let _ = sender.blocking_send(Err(error));
        }
    };
    std::thread::Builder::new()
        .name("publish-input".to_owned())
        .spawn(reading)
        .map_err(|error| Failure::io("no thread to read the input", &error))?;
    Ok(events)
}

/// A run of the command.
struct Publishing<'a> {
    client: Client,
    session: &'a Session,
    arguments: &'a PublishArguments,
    prefix: String,
    /// Events of the input so far.
    number: usize,
    bounds: Bounds,
    progress: Progress,
    published: usize,
    deduplicated: usize,
    prints: bool,
    waiting_told: bool,
}

impl Publishing<'_> {
    async fn all(&mut self, mut events: mpsc::Receiver<Result<Item, InputError>>) -> Result<(), Failure> {
        let mut batch = Batch::new(self.bounds);
        let mut linger_until = None;
        loop {
            let next = match linger_until.filter(|_| !batch.is_empty()) {
                Some(until) => tokio::time::timeout_at(until, events.recv()).await,
                None => Ok(events.recv().await),
            };
            match next {
                Ok(Some(Ok(item))) => {
                    self.number += 1;
                    if self.number <= self.arguments.skip {
                        continue;
                    }
                    if !batch.takes(item.size) {
                        self.publish(batch.take()).await?;
                    }
                    if batch.is_empty() {
                        linger_until = Some(Instant::now() + LINGER);
                    }
                    let size = item.size;
                    batch.push(self.with_key(item)?, size);
                    if batch.is_full() {
                        self.publish(batch.take()).await?;
                    }
                }
                Ok(Some(Err(error))) => {
                    if !batch.is_empty() {
                        self.publish(batch.take()).await?;
                    }
                    return Err(self.broken(&error));
                }
                Ok(None) => {
                    if !batch.is_empty() {
                        self.publish(batch.take()).await?;
                    }
                    return Ok(());
                }
                Err(_elapsed) => self.publish(batch.take()).await?,
            }
        }
    }

    fn with_key(&self, mut item: Item) -> Result<Item, Failure> {
        if item.event.deduplication_key.is_none() && !self.arguments.no_keys {
            let key = DeduplicationKey::parse(&format!("{}:{}", self.prefix, self.number));
            item.event.deduplication_key =
                Some(key.map_err(|error| Failure::Usage(format!("--key-prefix makes keys that are not {error}")))?);
        }
        Ok(item)
    }

    /// Publishes in one request, or in several when the server takes no request so large.
    async fn publish(&mut self, items: Vec<Item>) -> Result<(), Failure> {
        let mut waiting = VecDeque::from([items]);
        while let Some(mut items) = waiting.pop_front() {
            let lines: Vec<usize> = items.iter().map(|item| item.line).collect();
            let events: Vec<EventInput> = items.iter().map(|item| item.event.clone()).collect();
            let (session, waiting_told) = (self.session, &mut self.waiting_told);
            let sent = send(&self.client, &events, RetryFor(self.arguments.retry_for), |error, _| {
                if !std::mem::replace(waiting_told, true) {
                    session.note(&format!("{}; trying again", told(error)));
                }
            });
            match sent.await {
                Ok(Sent::Published(response)) => {
                    self.waiting_told = false;
                    self.published += response.events.len();
                    self.deduplicated += response.events.iter().filter(|event| event.deduplicated).count();
                    self.progress.advance(response.events.len());
                    self.print(&response)?;
                }
                Ok(Sent::TooLarge) => {
                    let rest = items.split_off(items.len() / 2);
                    // Smaller requests from now on, too.
                    self.bounds = Bounds { events: items.len().max(1), ..self.bounds };
                    waiting.push_front(rest);
                    waiting.push_front(items);
                }
                Err(not_sent) => return Err(self.not_sent(not_sent, &lines)),
            }
        }
        Ok(())
    }

    fn print(&mut self, response: &protocol::PublishResponse) -> Result<(), Failure> {
        if !self.prints {
            return Ok(());
        }
        let mut text = String::new();
        for event in &response.events {
            let line = serde_json::to_string(event).map_err(|error| Failure::Failed(format!("the answer cannot be written: {error}")))?;
            text.push_str(&line);
            text.push('\n');
        }
        let out = &self.session.terminal.out;
        match self.progress.suspended(|| crate::terminal::write_all(out, text.as_bytes())) {
            Ok(()) => Ok(()),
            // Whoever read the answers wants no more of them; the events are to be published all the same.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                self.prints = false;
                Ok(())
            }
            Err(error) => Err(crate::session::output_failure(error)),
        }
    }

    fn not_sent(&self, NotSent { error, in_doubt }: NotSent, lines: &[usize]) -> Failure {
        let place = event_of(&error).and_then(|index| lines.get(index));
        let place = place.filter(|_| self.arguments.one.event().is_ok_and(|one| one.is_none()));
        let mut text = told(&error);
        if let Some(line) = place {
            text = format!("the event on line {line}: {text}");
        }
        if lines.len() > 1 && !in_doubt {
            text = format!("{text}; none of the {} events of this request were published", lines.len());
        }
        if in_doubt {
            let skip = self.arguments.skip + self.published;
            let advice = if self.arguments.no_keys {
                "they have no deduplication keys, so a repeat may publish them twice".to_owned()
            } else {
                format!("go on with --skip {skip} --key-prefix {}, and nothing is published twice", self.prefix)
            };
            let text = format!("{text}; whether {} were published is unknown: {advice}", events_of(lines.len()));
            return Failure::Failed(text);
        }
        self.after_some(text).unwrap_or_else(|text| match (place, lines.len()) {
            (None, 0 | 1) => Failure::Client(error),
            _ => Failure::Refused { text, error },
        })
    }

    fn broken(&self, error: &InputError) -> Failure {
        self.after_some(error.to_string()).unwrap_or_else(Failure::Usage)
    }

    /// Says how much was published before it ended, when something was.
    fn after_some(&self, text: String) -> Result<Failure, String> {
        if self.published == 0 {
            return Err(text);
        }
        let skip = self.arguments.skip + self.published;
        Ok(Failure::Failed(format!("{text}; {} before it were published: go on with --skip {skip}", events_of(self.published))))
    }

    fn finish(self, result: Result<(), Failure>) -> Result<(), Failure> {
        self.progress.finish();
        result?;
        if self.published == 0 {
            self.session.note("there was nothing to publish");
        } else if self.session.terminal.interactive_err && !self.arguments.quiet && self.published > 1 {
            let again = match self.deduplicated {
                0 => String::new(),
                count => format!(", {count} of them before already"),
            };
            self.session.note(&format!("{} published{again}", events_of(self.published)));
        }
        Ok(())
    }
}

fn events_of(count: usize) -> String {
    if count == 1 { "1 event".to_owned() } else { format!("{count} events") }
}

/// The index of the event that a refusal points at.
fn event_of(error: &ClientError) -> Option<usize> {
    error.problem()?.pointer.as_deref()?.strip_prefix("/events/")?.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use client::ClientError;
    use protocol::{Problem, ProblemCode};

    use super::event_of;

    #[test]
    fn a_refusal_points_at_its_event() {
        let at = |pointer: &str| {
            let problem = Box::new(Problem::new(ProblemCode::ValidationFailed, "x", "r").with_pointer(pointer));
            event_of(&ClientError::Problem { problem, retry_after: None })
        };
        assert_eq!(at("/events/17/type"), Some(17));
        assert_eq!(at("/events/3"), Some(3));
        assert_eq!(at("/events"), None);
        assert_eq!(at("#query/limit"), None);
    }
}
