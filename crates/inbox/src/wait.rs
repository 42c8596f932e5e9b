//! Waiting for work: a place at the bell while the tenant's tail runs. It is taken before the look at the store that decides to wait, so that
//! nothing falls between the look and the wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::bells::{Waiter, Woken};
use crate::{Inbox, Metrics, Recipient};

/// A wait under way.
pub(crate) struct Wait {
    waiter: Waiter,
    ends_at: Instant,
    metrics: Arc<Metrics>,
    _tail: Box<dyn Send + Sync>,
}

/// Why it is looked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// The bell rang.
    Rung,
    /// Something is due now.
    Due,
    /// The wait is over: a last look, because a hint may have been lost.
    Last,
    /// Every wait ends: answer at once.
    Drained,
}

impl Inbox {
    /// Begins a wait of at most `wait` from `since`; `None` when it is not to be waited: not asked for, the house is full, the process drains,
    /// or no tail runs.
    pub(crate) async fn wait(&self, recipient: &Recipient, wait: Duration, since: Instant) -> Option<Wait> {
        let wait = wait.min(self.settings().poll_wait_max);
        if wait.is_zero() || self.bells.is_drained() {
            return None;
        }
        let waiter = self.bells.enter(recipient)?;
        match self.parts.tails.keep(&recipient.tenant).await {
            Ok(tail) => Some(Wait { waiter, ends_at: since + wait, metrics: Arc::clone(&self.parts.metrics), _tail: tail }),
            Err(error) => {
                tracing::warn!(tenant.id = %recipient.tenant, error = %error, "a wait is answered at once, because the log cannot be followed");
                None
            }
        }
    }
}

impl Drop for Wait {
    /// A wait counts when it is over, so that it is never counted as one with an outcome before it has one.
    fn drop(&mut self) {
        self.metrics.long_polls.increment();
    }
}

impl Wait {
    /// To be called before each look: what rings from now on ends the next [`Wait::again`].
    pub(crate) fn begin_look(&mut self) {
        self.waiter.look();
    }

    /// Waits for a ring since the last look, until something is due in `due`, or for the end.
    pub(crate) async fn again(&mut self, due: Option<Duration>) -> Again {
        let due = due.map(|due| Instant::now() + due).filter(|due| *due < self.ends_at);
        tokio::select! {
            biased;
            woken = self.waiter.woken() => if woken == Woken::Rung { Again::Rung } else { Again::Drained },
            () = sleep_until(due.unwrap_or(self.ends_at)) => if due.is_some() { Again::Due } else { Again::Last },
        }
    }
}
