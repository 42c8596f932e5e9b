//! What this module counts. Rendering is not its business.

use domain::{Counter, Gauge, Latency};

use crate::AttemptClass;

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub struct Metrics {
    /// From the acceptance of the event that rang to the end of the delivered attempt.
    pub ring_latency: Latency,
    /// One attempt, whatever it brought.
    pub attempt_latency: Latency,
    /// Attempts now.
    pub attempts_in_flight: Gauge,
    /// Rings that were derived from the log and stored.
    pub rings: Counter,
    /// Rings whose attempts are used up, or whose answer was final.
    pub exhausted: Counter,
    /// Rings that nobody needs any more: the item was claimed, acknowledged or put aside, the hook is silent or gone.
    pub withdrawn: Counter,
    /// Rings that collapsed into a backlog ring because too many were outstanding.
    pub collapsed: Counter,
    /// Times that a tenant's position in the log was lost.
    pub positions_lost: Counter,
    /// Hooks disabled after failures.
    pub disabled: Counter,
    /// Challenges that were answered wrongly, or not in time.
    pub verification_failures: Counter,
    /// Challenges that were answered rightly.
    pub verifications: Counter,
    /// Answers to challenges that were open no more.
    pub replays_rejected: Counter,
    /// URLs that may not be called.
    pub urls_refused: Counter,
    /// Steps of dispatcher and sender that the store refused; they are repeated.
    pub store_errors: Counter,
    attempts: [Counter; AttemptClass::ALL.len()],
}

impl Metrics {
    /// Attempts by what they brought.
    pub fn attempts(&self) -> impl Iterator<Item = (AttemptClass, u64)> {
        AttemptClass::ALL.into_iter().zip(self.attempts.iter().map(Counter::get))
    }

    pub(crate) fn count_attempt(&self, class: AttemptClass) {
        if let Some((_, counter)) = AttemptClass::ALL.into_iter().zip(&self.attempts).find(|(each, _)| *each == class) {
            counter.increment();
        }
    }
}
