//! Telling what became of each item, and what that means for the exit code.

use std::collections::HashMap;
use std::time::Duration;

use client::{EventId, Settled, Verdict, WorkerNews, told};
use protocol::ItemClaim;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::duration;
use crate::failure::Failure;
use crate::session::Session;
use crate::table;

/// Characters of a summary in a line for people.
const SUMMARY_CHARS: usize = 100;

/// One item that was worked on.
#[derive(Debug, Serialize)]
struct Line<'a> {
    event_id: EventId,
    event_type: String,
    queue: String,
    attempt: u32,
    outcome: &'static str,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
}

/// What was worked on so far.
#[derive(Debug)]
pub(super) struct Reports<'a> {
    session: &'a Session,
    /// Ends the work when nobody reads the reports.
    drain: CancellationToken,
    begun: HashMap<EventId, Instant>,
    done: usize,
    undone: usize,
    waiting_told: bool,
    unkept_told: bool,
    failure: Option<Failure>,
}

impl<'a> Reports<'a> {
    pub(super) fn new(session: &'a Session, drain: CancellationToken) -> Self {
        Self { session, drain, begun: HashMap::new(), done: 0, undone: 0, waiting_told: false, unkept_told: false, failure: None }
    }

    /// Takes what the worker tells.
    pub(super) fn take(&mut self, news: WorkerNews<'_>) {
        match news {
            WorkerNews::Claimed(item) => _ = self.begun.insert(item.event_id, Instant::now()),
            WorkerNews::Settled(item, settled) => self.settled(item, settled),
            WorkerNews::Waiting { cause, .. } if !self.waiting_told => {
                self.waiting_told = true;
                self.session.note(&format!("nothing can be claimed: {cause}; trying again"));
            }
            WorkerNews::Unkept { cause } if !self.unkept_told => {
                self.unkept_told = true;
                let text = format!("leases cannot be extended: {cause}; trying again, and what runs is stopped before its lease ends");
                self.session.note(&text);
            }
            WorkerNews::Connected if self.waiting_told || self.unkept_told => {
                (self.waiting_told, self.unkept_told) = (false, false);
                self.session.note("connected again");
            }
            _ => {}
        }
    }

    fn settled(&mut self, item: &ItemClaim, settled: &Settled) {
        let (outcome, summary) = match settled {
            Settled::Told(Verdict::Completed(report)) => ("completed", report.summary.clone()),
            Settled::Told(Verdict::Failed(report)) => ("failed", report.summary.clone()),
            Settled::Told(Verdict::Discarded(report)) => ("discarded", report.summary.clone()),
            Settled::Told(Verdict::Released { .. }) => ("snoozed", None),
            Settled::Told(Verdict::Abandoned) | Settled::Lost => {
                ("lost", Some("the lease was lost: somebody else has the item, or will".to_owned()))
            }
            Settled::Untold(error) => ("untold", Some(told(error))),
            _ => ("unknown", None),
        };
        match outcome {
            "completed" | "discarded" | "snoozed" => self.done += 1,
            _ => self.undone += 1,
        }
        let took = self.begun.remove(&item.event_id).map(|begun| begun.elapsed()).unwrap_or_default();
        if let Err(failure) = self.print(item, outcome, took, summary.as_deref()) {
            self.failure.get_or_insert(failure);
            self.drain.cancel();
        }
    }

    fn print(&self, item: &ItemClaim, outcome: &'static str, took: Duration, summary: Option<&str>) -> Result<(), Failure> {
        let text = |value: Option<String>| value.unwrap_or_default();
        let line = Line {
            event_id: item.event_id,
            event_type: text(item.event_type.as_ref().map(ToString::to_string)),
            queue: text(item.queue.as_ref().map(ToString::to_string)),
            attempt: item.delivery_attempts.unwrap_or_default(),
            outcome,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            summary,
        };
        if self.session.options.json {
            return self.session.json(&line);
        }
        let about: String = summary.unwrap_or_default().lines().last().unwrap_or_default().chars().take(SUMMARY_CHARS).collect();
        let attempt = if line.attempt > 1 { format!("  attempt {}", line.attempt) } else { String::new() };
        let text = format!("{outcome:<9}  {}  {}{attempt}  {}  {about}", line.event_id, line.event_type, duration::tell(took));
        self.session.line(table::printable(&text).trim_end())
    }

    /// The end: what it means for the exit code of a run that ends by itself.
    pub(super) fn conclude(self, by_itself: bool) -> Result<(), Failure> {
        match (self.failure, self.done, self.undone) {
            (Some(failure), ..) => Err(failure),
            _ if !by_itself => Ok(()),
            (None, 0, 0) => Err(Failure::NothingToDo),
            (None, _, 0) => Ok(()),
            (None, done, undone) => Err(Failure::Failed(format!("{undone} of {} items not completed", done + undone))),
        }
    }
}
