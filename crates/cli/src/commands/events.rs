//! `doorstep events`: the log as people and apps see it.

use clap::{Args, Subcommand};
use client::{Client, ConsumerError, Link, ReaderOptions, Seq, SyncEpoch};
use protocol::{EventEnvelope, ProblemCode};
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::scheduled::{self, ScheduledCommand};
use super::{cell, staged, when};
use crate::arguments::seq;
use crate::failure::Failure;
use crate::follow::tell_link;
use crate::session::Session;
use crate::table;

/// Events of a page.
const PAGE: u32 = 200;
/// Characters of a payload in a line for people.
const PAYLOAD_CHARS: usize = 120;

/// The log, for people and apps. Agents follow instead.
#[derive(Clone, Debug, Subcommand)]
pub enum EventsCommand {
    /// List events: the last ones, or those after a position.
    #[command(after_help = "Examples:\n  doorstep events ls --last 50\n  doorstep events ls --after 0 --json > everything.jsonl\n  \
                            doorstep events ls --follow")]
    Ls(ListArguments),
    /// Events that wait for their time.
    #[command(subcommand)]
    Scheduled(ScheduledCommand),
    /// List events that applications handed in within their own transactions, and that are not in the log: failed, or still on their way.
    #[command(after_help = "Example:\n  doorstep events staged --json")]
    Staged,
}

/// What `doorstep events ls` takes.
#[derive(Clone, Debug, Args)]
pub struct ListArguments {
    /// Events after this position, from the oldest; 0 is everything that is kept.
    #[arg(long, value_name = "SEQ", value_parser = seq, conflicts_with = "last")]
    after: Option<Seq>,
    /// About this many of the last events: positions that you may not see are counted, too.
    #[arg(long, value_name = "N", default_value = "20")]
    last: u64,
    /// The most events.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Go on with events as they come, until interrupted.
    #[arg(long, short)]
    follow: bool,
}

/// Runs `doorstep events`.
pub(crate) async fn run(command: EventsCommand, session: &Session) -> Result<(), Failure> {
    match command {
        EventsCommand::Ls(arguments) => list(arguments, session).await,
        EventsCommand::Scheduled(command) => scheduled::run(command, session).await,
        EventsCommand::Staged => staged::run(session).await,
    }
}

async fn list(arguments: ListArguments, session: &Session) -> Result<(), Failure> {
    let client = session.client()?;
    let mut left = arguments.limit.unwrap_or(u64::MAX);
    let (mut after, mut epoch) = match arguments.after {
        Some(after) => (Some(after).filter(|after| *after > Seq::ZERO), None),
        None => last(&client, arguments.last).await?,
    };
    let mut position = after.unwrap_or(Seq::ZERO);
    header(session)?;
    while left > 0 {
        let limit = u32::try_from(left).unwrap_or(u32::MAX).min(PAGE);
        let page = match client.list_events(after, Some(limit), epoch).await {
            // Of the last events some are not kept any more: those that are.
            Err(error) if error.code() == Some(ProblemCode::ResyncRequired) && arguments.after.is_none() && after.is_some() => {
                after = None;
                continue;
            }
            page => page?,
        };
        for raw in &page.events {
            print(session, raw)?;
            left -= 1;
        }
        position = page.next_cursor;
        (after, epoch) = (Some(position), Some(page.sync_epoch));
        if page.next_cursor >= page.head_seq {
            break;
        }
    }
    let after = position;
    if arguments.follow && left > 0 { follow(&client, session, after, epoch, left).await } else { Ok(()) }
}

/// The position before the last `count`, and the epoch that it belongs to.
async fn last(client: &Client, count: u64) -> Result<(Option<Seq>, Option<SyncEpoch>), Failure> {
    let page = client.list_events(None, Some(1), None).await?;
    let before = Seq::new(page.head_seq.get().saturating_sub(count)).filter(|seq| *seq > Seq::ZERO);
    Ok((before, Some(page.sync_epoch)))
}

async fn follow(client: &Client, session: &Session, cursor: Seq, sync_epoch: Option<SyncEpoch>, mut left: u64) -> Result<(), Failure> {
    let mut reader = client.reader(ReaderOptions { cursor: Some(cursor), sync_epoch, ..ReaderOptions::default() });
    let link: watch::Receiver<Link> = reader.link();
    let reading = async {
        while left > 0 {
            match reader.next().await {
                Some(Ok(delivery)) => {
                    print(session, &delivery.raw)?;
                    left -= 1;
                }
                Some(Err(error @ ConsumerError::ResyncRequired { .. })) => session.note(&error.to_string()),
                Some(Err(error)) => return Err(error.into()),
                None => break,
            }
        }
        Ok(())
    };
    tokio::select! {
        biased;
        result = reading => result,
        () = tell_link(link, session) => Ok(()),
    }
}

/// The names of what a line for people has.
fn header(session: &Session) -> Result<(), Failure> {
    if session.options.json {
        return Ok(());
    }
    let text = columns(["SEQ", "TIME", "TYPE", "WHERE", "BY", "ABOUT"]);
    session.line(&session.paint(&text, anstyle::Style::new().bold()))
}

/// A line whose columns are wide enough for most: it cannot be known what is still to come.
fn columns([seq, time, event_type, place, actor, about]: [&str; 6]) -> String {
    format!("{seq:>8}  {time:<20}  {event_type:<24}  {place:<24}  {actor:<16}  {about}")
}

fn print(session: &Session, raw: &RawValue) -> Result<(), Failure> {
    if session.options.json {
        return session.record(raw.get());
    }
    match EventEnvelope::parse(raw) {
        Ok(event) => session.line(table::printable(&for_people(&event)).trim_end()),
        Err(error) => Err(Failure::Failed(format!("what the server sends is not an event: {error}"))),
    }
}

/// An event on a line.
fn for_people(event: &EventEnvelope) -> String {
    let place = match &event.channel {
        Some(channel) => channel.to_string(),
        None => format!("@{}", super::words(&event.audience)),
    };
    let payload = event.payload.as_ref().map(|payload| payload.get()).unwrap_or_default();
    let about = event.summary.clone().unwrap_or_else(|| shortened(payload));
    let (seq, time, actor) = (cell(Some(&event.seq)), when(event.created_at), event.actor.id.to_string());
    columns([&seq, &time, event.event_type.as_str(), &place, &actor, &about])
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(PAYLOAD_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{PAYLOAD_CHARS, shortened};

    #[test]
    fn long_payloads_are_cut_at_a_character() {
        assert_eq!(shortened("{}"), "{}");
        let long = shortened(&"é".repeat(1_000));
        assert_eq!(long.chars().count(), PAYLOAD_CHARS + 1);
    }
}
