//! Work with the store, one piece at a time, beside the socket.

use std::future::pending;
use std::time::Duration;

use agents::{ConsumerError, Save, SaveOutcome};
use domain::{BoxFuture, Seq, StoreError};
use protocol::{CloseCode, ResyncReason};
use sync::{Page, PageRange};
use tokio::time::Instant;

use super::deliver::look_once;
use super::{End, Runner, Track};
use crate::handshake::{consumer_failure, encode};
use crate::resync::Resync;
use crate::{Connection, Verdict};

/// The pause before the first repetition of what failed.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// What a piece of work came to.
pub(super) enum Done {
    /// Events were read.
    Read(Result<Page, StoreError>),
    /// The holder was verified, because a redelivery is due.
    Verified(Save, Result<Vec<SaveOutcome>, ConsumerError>),
    /// The cursor was moved to where delivery can go on.
    Restarted(Resync, Result<SaveOutcome, ConsumerError>),
    /// The hook has decided about the first event of the page.
    Prepared(Result<Verdict, StoreError>),
}

/// A piece of work under way.
pub(super) struct Job(BoxFuture<'static, Done>);

impl Job {
    pub(super) fn preparing(deciding: BoxFuture<'static, Result<Verdict, StoreError>>) -> Self {
        Self(Box::pin(async move { Done::Prepared(deciding.await) }))
    }
}

/// Waits for the work that is under way; for ever when there is none. Cancel safe: the work goes on.
pub(super) async fn wait_for(job: &mut Option<Job>) -> Done {
    let Some(Job(work)) = job else { return pending().await };
    let done = work.await;
    *job = None;
    done
}

/// Pauses between repetitions of what failed, growing up to `database.listen_reconnect_backoff_cap`.
#[derive(Debug, Default)]
pub(super) struct Retry {
    at: Option<Instant>,
    failures: u32,
}

impl Retry {
    /// Whether work may be tried.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        if self.at.is_some_and(|at| at <= now) {
            self.at = None;
        }
        self.at.is_none()
    }

    /// Until when nothing is tried.
    pub(super) const fn pending(&self) -> Option<Instant> {
        self.at
    }

    fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Schedules another try; answers whether this failure is the first of a row.
    fn failed(&mut self, now: Instant, cap: Duration) -> bool {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(cap);
        self.at = Some(now + pause);
        self.failures = self.failures.saturating_add(1);
        self.failures == 1
    }
}

impl Runner<'_> {
    /// The work that is due now: settle a position that cannot be served, else verify before a redelivery, else read what there is budget for.
    pub(super) fn next_job(&mut self, position: Seq, now: Instant) -> Option<Job> {
        if let Some(resync) = self.resync {
            return Some(self.restart(resync));
        }
        if let Track::Consumer(window) = &self.track
            && window.deadline().is_some_and(|deadline| deadline <= now)
        {
            self.drop_page();
            return self.verify();
        }
        if self.in_page {
            if self.keep_page_until <= now {
                self.drop_page();
            }
            return None;
        }
        let (after, up_to) = (self.track.read(), self.track.bound(position));
        if after >= up_to || self.track.budget() == 0 {
            return None;
        }
        let settings = &self.gateway.settings;
        let max_events = settings.catchup_page_size.max(1);
        let range = PageRange { after, up_to: Some(up_to), max_events, max_bytes: settings.catchup_page_bytes };
        let log = std::sync::Arc::clone(&self.log);
        Some(Job(Box::pin(async move { Done::Read(log.read(range).await) })))
    }

    fn verify(&self) -> Option<Job> {
        let save = self.session.to_save()?;
        let consumers = std::sync::Arc::clone(&self.gateway.consumers);
        Some(Job(Box::pin(async move {
            let outcome = consumers.save(std::slice::from_ref(&save)).await;
            Done::Verified(save, outcome)
        })))
    }

    fn restart(&self, resync: Resync) -> Job {
        let Some(key) = self.session.key().cloned() else {
            return Job(Box::pin(async move { Done::Restarted(resync, Ok(SaveOutcome::Held(resync.head))) }));
        };
        let (consumers, holder) = (std::sync::Arc::clone(&self.gateway.consumers), self.session.holder());
        Job(Box::pin(async move { Done::Restarted(resync, consumers.restart(&key, holder, resync.head).await) }))
    }

    /// Looks once whether the work that is under way is done. What memory can answer is done at the first look.
    pub(super) async fn poll_job(&mut self) -> Option<Done> {
        let Some(Job(work)) = &mut self.job else { return None };
        let done = look_once(work.as_mut()).await;
        if done.is_some() {
            self.job = None;
        }
        done
    }

    pub(super) async fn apply<C: Connection>(&mut self, connection: &mut C, done: Done) -> Result<(), End> {
        match done {
            Done::Read(Ok(page)) => self.begin_page(page),
            Done::Prepared(Ok(verdict)) => {
                self.retry.succeeded();
                self.verdict = Some(verdict);
            }
            Done::Read(Err(error)) | Done::Prepared(Err(error)) => return self.store_failed(&error),
            Done::Verified(save, Ok(outcomes)) => return self.verified(&save, outcomes.first().copied()),
            Done::Restarted(resync, Ok(SaveOutcome::Held(stored))) => return self.restarted(connection, resync, stored).await,
            Done::Restarted(_, Ok(SaveOutcome::Replaced)) => return Err(self.replaced()),
            Done::Verified(_, Err(error)) | Done::Restarted(_, Err(error)) => return self.consumer_failed(&error),
        }
        Ok(())
    }

    fn begin_page(&mut self, page: Page) {
        if page.is_below_floor(self.track.read()) {
            self.resync = Some(Resync::new(ResyncReason::Retention, &page.head));
        } else if page.events.is_empty() {
            // There should have been some up to the hub position: try again rather than spin.
            self.retry.failed(Instant::now(), self.gateway.settings.read_backoff_cap);
            return;
        } else {
            self.page = page.events.into_iter();
            self.in_page = true;
        }
        self.retry.succeeded();
    }

    /// Still the holder: what was acknowledged elsewhere is adopted, and what is still overdue comes again.
    fn verified(&mut self, save: &Save, outcome: Option<SaveOutcome>) -> Result<(), End> {
        self.retry.succeeded();
        let Some(SaveOutcome::Held(stored)) = outcome else { return Err(self.replaced()) };
        if save.acked.is_some() {
            self.gateway.metrics.saves.increment();
        }
        self.session.adopt(stored);
        if let Track::Consumer(window) = &mut self.track {
            window.ack(stored);
            window.expire(Instant::now());
            self.session.set_oldest_sent(window.oldest());
        }
        Ok(())
    }

    async fn restarted<C: Connection>(&mut self, connection: &mut C, resync: Resync, stored: Seq) -> Result<(), End> {
        self.retry.succeeded();
        self.resync = None;
        // At least where delivery goes on; higher when something was acknowledged meanwhile.
        self.track.restart_at(stored);
        self.session.set(stored);
        self.session.set_oldest_sent(None);
        self.gateway.metrics.resyncs.increment();
        self.write(connection, [encode(&resync.frame())]).await
    }

    /// Another holder took over, in another process or between two looks.
    fn replaced(&self) -> End {
        self.gateway.registry.end(&self.session);
        End::Close(CloseCode::ConsumerReplaced)
    }

    fn store_failed(&mut self, error: &StoreError) -> Result<(), End> {
        match error {
            StoreError::Corrupt(detail) => {
                tracing::error!(tenant.id = %self.caller.tenant, error.cause = %detail, "the log cannot be served: stored data is corrupt");
                Err(End::Close(CloseCode::Internal))
            }
            StoreError::TenantInactive => Err(End::Close(CloseCode::TenantSuspended)),
            StoreError::Conflict(_) => Err(self.outdated()),
            error => {
                self.try_again(&error.to_string());
                Ok(())
            }
        }
    }

    fn consumer_failed(&mut self, error: &ConsumerError) -> Result<(), End> {
        match error {
            ConsumerError::Store(error) => self.store_failed(error),
            error => Err(End::Close(consumer_failure(self.gateway, &self.caller, error))),
        }
    }

    fn try_again(&mut self, cause: &str) {
        let is_first = self.retry.failed(Instant::now(), self.gateway.settings.read_backoff_cap);
        if is_first {
            tracing::warn!(session.id = %self.session.id(), error.cause = cause, "the store failed; the connection waits and tries again");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Retry;

    #[test]
    fn pauses_grow_up_to_the_cap_and_begin_anew_after_a_success() {
        let (now, cap) = (Instant::now(), Duration::from_secs(1));
        let mut retry = Retry::default();
        assert!(retry.is_due(now));
        assert!(retry.failed(now, cap));
        assert!(!retry.is_due(now));
        let first = retry.pending().unwrap();
        assert!(retry.is_due(first));
        let pauses: Vec<Duration> = (0..40)
            .map(|_| {
                retry.failed(now, cap);
                retry.pending().unwrap() - now
            })
            .collect();
        assert!(pauses.is_sorted() && pauses[0] > first - now && pauses[39] == cap, "{pauses:?}");
        retry.succeeded();
        assert!(retry.is_due(now) && retry.failed(now, cap));
    }
}
