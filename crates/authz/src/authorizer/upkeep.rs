//! What is written in the background: denials and token uses in batches, and the removal of what is older than its retention.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::Authorizer;
use crate::cache::lock;
use crate::{Action, Caller, Target, TokenUse};

/// Rows that one step of pruning removes at most.
const PRUNE_STEP: usize = 1_000;

impl Authorizer {
    /// Writes denials and token uses every `authz.flush_interval` and prunes every `authz.prune_interval`, until `token` is cancelled;
    /// then writes once more what waits. To be spawned once, and to be awaited before the store is closed.
    pub async fn run(&self, token: CancellationToken) {
        let mut ticks = interval(self.settings.flush_interval.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut prune_at = Instant::now() + self.settings.prune_interval;
        while token.run_until_cancelled(ticks.tick()).await.is_some() {
            self.flush().await;
            if Instant::now() >= prune_at {
                self.prune(&token).await;
                prune_at = Instant::now() + self.settings.prune_interval;
            }
        }
        self.flush().await;
    }

    /// Writes the denials and token uses that wait. What cannot be written is kept for the next time.
    pub async fn flush(&self) {
        self.flush_denials().await;
        self.flush_uses().await;
    }

    async fn flush_denials(&self) {
        let entries = self.denials.take(self.clock.now());
        if entries.is_empty() {
            return;
        }
        if let Err(error) = self.store.0.record_denials(&entries).await {
            self.metrics.flush_failures.increment();
            tracing::warn!(error = %error, denials.entries = entries.len(), "denials could not be written; they are tried again");
            self.denials.restore(entries);
        }
    }

    async fn flush_uses(&self) {
        let uses = std::mem::take(&mut *lock(&self.uses));
        if uses.is_empty() {
            return;
        }
        if let Err(error) = self.store.0.touch_tokens(&uses).await {
            self.metrics.flush_failures.increment();
            tracing::warn!(error = %error, tokens.uses = uses.len(), "token uses could not be written; they are tried again");
            let mut waiting = lock(&self.uses);
            let room = self.settings.token_uses_max.saturating_sub(waiting.len());
            self.metrics.token_uses_dropped.add(uses.len().saturating_sub(room) as u64);
            waiting.extend(uses.into_iter().take(room));
        }
    }

    async fn prune(&self, token: &CancellationToken) {
        let now = self.clock.now();
        let (audit, answers) = (now.minus(self.settings.audit_retention), now.minus(self.settings.idempotency_window));
        while !token.is_cancelled() {
            match self.store.0.prune(audit, answers, PRUNE_STEP).await {
                Ok(removed) if removed >= PRUNE_STEP as u64 => tokio::task::yield_now().await,
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(error = %error, "old audit entries and answers could not be removed; it is tried again later");
                    return;
                }
            }
        }
    }

    /// Notes that a token was used, at most once per `authz.token_use_interval`.
    pub(super) fn note_use(&self, caller: &Caller) {
        let now = self.clock.now();
        if !caller.standing.takes_note(now, self.settings.token_use_interval) {
            return;
        }
        let mut uses = lock(&self.uses);
        if uses.len() < self.settings.token_uses_max {
            uses.push(TokenUse { tenant: caller.tenant.clone(), token: caller.token, at: now });
        } else {
            self.metrics.token_uses_dropped.increment();
        }
    }

    /// Counts a refused request for the audit log.
    pub(crate) fn note_denial(&self, caller: &Caller, action: Action, target: Target<'_>) {
        self.metrics.denials.increment();
        if !self.denials.note(&caller.tenant, &caller.principal, action, target, self.clock.now()) {
            self.metrics.denials_merged.increment();
        }
    }
}
