//! Bringing to the server what became of an item, until its answer is certain.

use std::time::Duration;

use domain::EventId;
use protocol::{AckItem, AckResult, ItemClaim, ItemOutcome, Label, ProblemCode, ReleaseRequest, Secret};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::worker::{Assignment, WorkerOptions, WorkerStop};
use crate::rest::seconds;
use crate::{Backoff, Client, ClientError, Retry};

/// The reason of a release that does not count as an attempt.
pub const SNOOZE: &str = "snooze";

/// What the work on an item came to.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It is done.
    Completed(WorkReport),
    /// It failed: tried again after a backoff, or a dead letter when its attempts are used up.
    Failed(WorkReport),
    /// Nobody needs to work on it.
    Discarded(WorkReport),
    /// It is given back.
    Released {
        /// Why; [`SNOOZE`] does not count as an attempt.
        reason: String,
        /// How long it rests; claimable at once when absent.
        retry_after: Option<Duration>,
    },
    /// The lease is lost, and with it the right to say anything.
    Abandoned,
}

impl Verdict {
    const fn has_words(&self) -> bool {
        match self {
            Self::Completed(report) | Self::Failed(report) | Self::Discarded(report) => report.summary.is_some() || report.output.is_some(),
            Self::Released { .. } | Self::Abandoned => false,
        }
    }

    fn without_words(self) -> Self {
        match self {
            Self::Completed(_) => Self::Completed(WorkReport::default()),
            Self::Failed(_) => Self::Failed(WorkReport::default()),
            Self::Discarded(_) => Self::Discarded(WorkReport::default()),
            other => other,
        }
    }
}

/// What a worker hands in with its result.
#[derive(Clone, Debug, Default)]
pub struct WorkReport {
    /// A line about it, at most 2048 bytes (`inbox.summary_max`).
    pub summary: Option<String>,
    /// What it made, any JSON of at most 64 KiB (`inbox.result_max`).
    pub output: Option<Box<RawValue>>,
}

impl WorkReport {
    /// A report of one line.
    pub fn of(summary: impl Into<String>) -> Self {
        Self { summary: Some(summary.into()), output: None }
    }
}

/// What the server knows in the end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Settled {
    /// It has the verdict.
    Told(Verdict),
    /// The lease was lost before: somebody else works on the item, or will.
    Lost,
    /// It refused the verdict, or could not be told. The item comes back when its lease ends.
    Untold(ClientError),
}

/// Tells the verdict, for as long as the lease's worker is patient (`WorkerOptions::retry_for`).
pub(super) async fn settle(
    client: &Client,
    options: &WorkerOptions,
    assignment: &Assignment,
    mut verdict: Verdict,
    stop: &WorkerStop,
) -> Settled {
    let mut backoff = Backoff::new(options.backoff);
    let mut failing_since = None;
    loop {
        let error = match tell(client, assignment, &verdict).await {
            Ok(true) => return Settled::Told(verdict),
            Ok(false) => return Settled::Lost,
            // The words of the report are too long for this server. That must not cost the result.
            Err(error) if error.code() == Some(ProblemCode::ValidationFailed) && verdict.has_words() => {
                verdict = verdict.without_words();
                continue;
            }
            Err(error) if error.retry() == Retry::Never => return Settled::Untold(error),
            Err(error) => error,
        };
        let failing_for = failing_since.get_or_insert_with(Instant::now).elapsed();
        let left = options.retry_for.map(|most| most.saturating_sub(failing_for));
        if left == Some(Duration::ZERO) {
            return Settled::Untold(error);
        }
        // A repeat of what was told before is answered with success, so an answer that was lost does no harm.
        let pause = backoff.next_pause().max(error.retry_after().unwrap_or_default()).min(left.unwrap_or(Duration::MAX));
        if stop.abort.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return Settled::Untold(error);
        }
    }
}

/// Gives back, uncounted, what was claimed and never begun. What cannot be told comes back when its lease ends.
pub(super) async fn give_back(client: &Client, item: &ItemClaim) {
    if let Some(token) = &item.lease_token {
        let _ = release(client, item.event_id, token, SNOOZE, None).await;
    }
}

/// One call. `false` when the lease is lost.
async fn tell(client: &Client, assignment: &Assignment, verdict: &Verdict) -> Result<bool, ClientError> {
    let (event_id, token) = (assignment.item.event_id, &assignment.token);
    let (result, report) = match verdict {
        Verdict::Completed(report) => (AckResult::Completed, report),
        Verdict::Failed(report) => (AckResult::Failed, report),
        Verdict::Discarded(report) => (AckResult::Discarded, report),
        Verdict::Released { reason, retry_after } => return release(client, event_id, token, reason, *retry_after).await,
        Verdict::Abandoned => return Ok(false),
    };
    let ack = AckItem { event_id, lease_token: token.clone(), result, summary: report.summary.clone(), output: report.output.clone() };
    Ok(client.acknowledge_item(ack).await?.outcome.known() == Some(ItemOutcome::Ok))
}

async fn release(
    client: &Client,
    event_id: EventId,
    token: &Secret,
    reason: &str,
    retry_after: Option<Duration>,
) -> Result<bool, ClientError> {
    let request = ReleaseRequest {
        tenant_id: None,
        recipient_id: None,
        session_id: None,
        event_id,
        lease_token: token.clone(),
        reason: Label::parse(reason.to_owned()).ok(),
        retry_after_seconds: retry_after.map(seconds),
    };
    match client.release(&request).await {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.code(), Some(ProblemCode::LeaseLost | ProblemCode::NotFound)) => Ok(false),
        Err(error) => Err(error),
    }
}
