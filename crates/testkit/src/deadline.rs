//! Waiting for a condition with a deadline, instead of a sleep that hopes.

use std::time::{Duration, Instant};

/// How long a test waits for what must happen; generous, since it is only reached by a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A point in time after which a test gives up.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// A deadline this far from now.
    pub fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// The usual patience.
    pub fn usual() -> Self {
        Self::after(PATIENCE)
    }

    /// What is left.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn passed(self) -> bool {
        self.left().is_zero()
    }
}

/// Asks `condition` again and again until it answers, or panics with `what` after the usual patience.
pub async fn eventually<T, F: AsyncFnMut() -> Option<T>>(what: &str, mut condition: F) -> T {
    let deadline = Deadline::usual();
    loop {
        if let Some(answer) = condition().await {
            return answer;
        }
        assert!(!deadline.passed(), "did not happen in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
