//! Sending a batch: repeated where a repeat does no harm, split where it is too large for the server.

use std::time::Duration;

use client::{Backoff, BackoffOptions, Client, ClientError, Retry};
use protocol::{EventInput, ProblemCode, PublishResponse};
use tokio::time::Instant;

/// How often a batch is tried again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryFor(pub(crate) Duration);

/// What came of a batch.
#[derive(Debug)]
pub(crate) enum Sent {
    /// It is in the log.
    Published(PublishResponse),
    /// It is too large for one request.
    TooLarge,
}

/// Why a batch was not published, or perhaps was.
#[derive(Debug)]
pub(crate) struct NotSent {
    /// The last error.
    pub(crate) error: ClientError,
    /// Whether the events may be in the log all the same.
    pub(crate) in_doubt: bool,
}

/// Publishes events together. `told` hears of every repeat.
pub(crate) async fn send(
    client: &Client,
    events: &[EventInput],
    retry_for: RetryFor,
    mut told: impl FnMut(&ClientError, Duration),
) -> Result<Sent, NotSent> {
    let repeatable = events.iter().all(|event| event.deduplication_key.is_some());
    let deadline = Instant::now() + retry_for.0;
    let mut backoff = Backoff::new(BackoffOptions { cap: Duration::from_secs(5), ..BackoffOptions::default() });
    let mut in_doubt = false;
    loop {
        let error = match client.publish(events).await {
            Ok(published) => return Ok(Sent::Published(published)),
            Err(error) => error,
        };
        if events.len() > 1 && is_too_large(&error) {
            return Ok(Sent::TooLarge);
        }
        in_doubt |= error.retry() == Retry::IfIdempotent;
        let again = match error.retry() {
            Retry::Never => false,
            Retry::Harmless => true,
            Retry::IfIdempotent => repeatable,
        };
        let pause = backoff.next_pause().max(error.retry_after().unwrap_or_default());
        if !again || Instant::now() + pause >= deadline {
            return Err(NotSent { error, in_doubt });
        }
        told(&error, pause);
        tokio::time::sleep(pause).await;
    }
}

/// Whether the request as a whole was too large, rather than an event in it.
fn is_too_large(error: &ClientError) -> bool {
    let Some(problem) = error.problem() else { return false };
    let pointer = problem.pointer.as_deref().unwrap_or_default();
    match problem.code.known() {
        Some(ProblemCode::PayloadTooLarge) => !pointer.starts_with("/events/"),
        Some(ProblemCode::ValidationFailed) => pointer == "/events",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use client::ClientError;
    use protocol::{Problem, ProblemCode};

    use super::is_too_large;

    #[test]
    fn only_a_request_that_is_too_large_as_a_whole_is_split() {
        let judged = |code, pointer: &str| {
            let problem = Box::new(Problem::new(code, "x", "r").with_pointer(pointer));
            is_too_large(&ClientError::Problem { problem, retry_after: None })
        };
        assert!(judged(ProblemCode::PayloadTooLarge, ""));
        assert!(judged(ProblemCode::ValidationFailed, "/events"));
        assert!(!judged(ProblemCode::PayloadTooLarge, "/events/3/payload"));
        assert!(!judged(ProblemCode::ValidationFailed, "/events/3/type"));
        assert!(!judged(ProblemCode::DeduplicationConflict, "/events"));
    }
}
