//! What the parts count, as `/metrics` shows it.

use std::sync::Arc;

use authz::Authorizer;
use domain::{Clock, Timestamp};
use gateway::Gateway;
use http_api::{HistogramSnapshot, Metric, MetricSource, Samples};
use sync::{Logs, Retention};

use super::totals::Totals;
use crate::store::Engine;

/// What every store counts, whatever the type of its snapshot.
macro_rules! store_counts {
    ($now:expr, $samples:ident) => {{
        let now = $now;
        $samples.counter(Metric::StoreCommits, &[("outcome", "durable")], now.commits);
        $samples.counter(Metric::StoreCommits, &[("outcome", "failed")], now.failed_commits);
        $samples.counter(Metric::StoreUnits, &[("outcome", "committed")], now.units);
        $samples.counter(Metric::StoreUnits, &[("outcome", "undone")], now.failed_units);
        $samples.counter(Metric::StoreReads, &[], now.reads);
        $samples.gauge(Metric::StoreQueueDepth, &[], now.queued as f64);
        $samples.gauge(Metric::StoreQueueBytes, &[], now.queued_bytes as f64);
        $samples.counter(Metric::StoreQueueRefused, &[], now.overloaded);
        $samples.counter(Metric::StoreUnreadableRows, &[("kind", "item")], now.unreadable_items);
        $samples.counter(Metric::StoreUnreadableRows, &[("kind", "hook")], now.unreadable_hook_rows);
        $samples.histogram(Metric::StoreCommitSeconds, &[], histogram((now.commit_micros, now.latency)));
        for (unit, count) in &now.retries {
            $samples.counter(Metric::StoreRetries, &[("unit", unit)], *count);
        }
    }};
}

/// The counters of every part that knows no exposition.
pub(super) struct ProcessMetrics {
    pub(super) engine: Engine,
    pub(super) gateway: Arc<Gateway>,
    pub(super) logs: Arc<Logs>,
    pub(super) retention: Arc<Retention>,
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) intake: Arc<intake::Metrics>,
    pub(super) inbox: Arc<inbox::Inbox>,
    pub(super) totals: Arc<Totals>,
    pub(super) hooks: Arc<hooks::Hooks>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) started_at: Timestamp,
}

impl std::fmt::Debug for ProcessMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessMetrics").finish_non_exhaustive()
    }
}

impl MetricSource for ProcessMetrics {
    fn collect(&self, samples: &mut Samples) {
        self.process(samples);
        match &self.engine {
            Engine::Embedded(store) => store_counts!(store.metrics().snapshot(), samples),
            Engine::Shared(store) => {
                let now = store.metrics().snapshot();
                samples.gauge(Metric::StoreConnections, &[], now.connections as f64);
                samples.counter(Metric::StoreDoubtfulCommits, &[("outcome", "resolved")], now.resolved);
                samples.counter(Metric::StoreDoubtfulCommits, &[("outcome", "unknown")], now.in_doubt);
                store_counts!(now, samples);
            }
        }
        self.log(samples);
        self.gateway(samples);
        self.identity(samples);
        self.intake(samples);
        self.inbox(samples);
        self.backlog(samples);
        self.hooks(samples);
    }
}

impl ProcessMetrics {
    fn process(&self, samples: &mut Samples) {
        samples.gauge(Metric::UptimeSeconds, &[], self.clock.now().since(self.started_at).as_secs_f64());
        samples.gauge(Metric::BuildInfo, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    }

    fn log(&self, samples: &mut Samples) {
        let now = self.logs.metrics();
        samples.gauge(Metric::LogHeadSeq, &[], self.logs.highest().get() as f64);
        samples.gauge(Metric::LogTails, &[("state", "live")], now.live_tails.get() as f64);
        samples.gauge(Metric::LogTails, &[("state", "stalled")], now.stalled_tails.get() as f64);
        samples.counter(Metric::LogTailEvents, &[("source", "memory")], now.events_from_memory.get());
        samples.counter(Metric::LogTailEvents, &[("source", "store")], now.events_from_store.get());
        samples.counter(Metric::LogPages, &[("source", "ring")], now.ring_reads.get());
        samples.counter(Metric::LogPages, &[("source", "store")], now.store_reads.get());
        samples.counter(Metric::LogRetired, &[], self.retention.metrics().removed_events.get());
    }

    fn gateway(&self, samples: &mut Samples) {
        let now = self.gateway.metrics();
        samples.gauge(Metric::GatewayConnections, &[("kind", "agent")], now.agent_connections.get() as f64);
        samples.gauge(Metric::GatewayConnections, &[("kind", "reader")], now.client_connections.get() as f64);
        samples.gauge(Metric::HttpEventStreams, &[], now.streams.get() as f64);
        samples.gauge(Metric::WaitingPolls, &[], now.waiting_polls.get() as f64);
        samples.gauge(Metric::GatewaySessions, &[], now.sessions.get() as f64);
        samples.counter(Metric::GatewayResumes, &[], now.resumes.get());
        samples.counter(Metric::Deliveries, &[("transport", "gateway")], now.dispatched.get());
        samples.counter(Metric::Deliveries, &[("transport", "poll")], now.polled.get());
        samples.counter(Metric::Deliveries, &[("transport", "reader")], now.read.get());
        samples.counter(Metric::Redeliveries, &[], now.redelivered.get());
        samples.counter(Metric::Acks, &[], now.acks.get());
        samples.counter(Metric::CursorSaves, &[("outcome", "done")], now.saves.get());
        samples.counter(Metric::CursorSaves, &[("outcome", "failed")], now.save_failures.get());
        samples.counter(Metric::ConsumerTakeovers, &[("outcome", "done")], now.takeovers.get());
        samples.counter(Metric::ConsumerTakeovers, &[("outcome", "refused")], now.takeovers_refused.get());
        samples.counter(Metric::CursorResets, &[], now.resyncs.get());
        samples.counter(Metric::GatewayFramesRefused, &[], now.frames_refused.get());
        let behind = self.gateway.backlog();
        samples.gauge(Metric::ConsumerBacklog, &[], behind.events as f64);
        samples.gauge(Metric::ConsumerBacklogMax, &[], behind.most as f64);
        samples.gauge(Metric::OldestUnackedSeconds, &[], behind.oldest_unacked.unwrap_or_default().as_secs_f64());
        samples.histogram(Metric::PublishDispatchSeconds, &[], histogram(now.dispatch_latency.get()));
        samples.histogram(Metric::AckSeconds, &[], histogram(now.ack_latency.get()));
        for (code, count) in now.closes() {
            samples.counter(Metric::GatewayCloses, &[("code", code.name())], count);
        }
    }

    fn identity(&self, samples: &mut Samples) {
        let now = self.authorizer.metrics();
        samples.counter(Metric::Authentications, &[("outcome", "cached")], now.token_cache_hits.get());
        samples.counter(Metric::Authentications, &[("outcome", "read")], now.token_cache_misses.get());
        samples.counter(Metric::Authentications, &[("outcome", "failed")], now.authentication_failures.get());
        samples.counter(Metric::AuthorizationDenials, &[], now.denials.get());
    }

    fn intake(&self, samples: &mut Samples) {
        let now = &self.intake;
        samples.counter(Metric::PublishedEvents, &[("outcome", "published")], now.published.get());
        samples.counter(Metric::PublishedEvents, &[("outcome", "deduplicated")], now.deduplicated.get());
        samples.counter(Metric::PublishedEvents, &[("outcome", "scheduled")], now.scheduled.get());
        samples.counter(Metric::PublishConflicts, &[], now.conflicts.get());
        samples.counter(Metric::ScheduledEvents, &[("outcome", "promoted")], now.promoted.get());
        samples.counter(Metric::ScheduledEvents, &[("outcome", "failed")], now.failed.get());
        samples.counter(Metric::StagedEvents, &[("outcome", "moved")], now.moved.get());
        samples.counter(Metric::StagedEvents, &[("outcome", "failed")], now.staged_failed.get());
        samples.counter(Metric::StagedFailures, &[], now.move_errors.get());
        samples.counter(Metric::PromotionFailures, &[], now.promotion_errors.get());
    }
}

impl ProcessMetrics {
    fn inbox(&self, samples: &mut Samples) {
        let now = self.inbox.metrics();
        samples.histogram(Metric::InboxSignalSeconds, &[], histogram(now.signal_latency.get()));
        samples.counter(Metric::InboxSignals, &[], now.signals.get());
        samples.counter(Metric::InboxSignalFetches, &[], now.fetches_after_signal.get());
        samples.gauge(Metric::InboxStreams, &[], now.streams.get() as f64);
        samples.counter(Metric::InboxStreamsOpened, &[], now.streams_opened.get());
        let (waited, in_vain) = (now.long_polls.get(), now.long_poll_timeouts.get());
        samples.counter(Metric::InboxLongPolls, &[("outcome", "items")], waited.saturating_sub(in_vain));
        samples.counter(Metric::InboxLongPolls, &[("outcome", "timeout")], in_vain);
        samples.gauge(Metric::InboxWaiters, &[], now.waiters.get() as f64);
        samples.counter(Metric::InboxWaitersRefused, &[], now.waiters_refused.get());
        samples.counter(Metric::InboxPolls, &[], now.polls.get());
        let (asked, unmoved) = (now.head_checks.get(), now.not_modified.get());
        samples.counter(Metric::InboxHeadChecks, &[("outcome", "changed")], asked.saturating_sub(unmoved));
        samples.counter(Metric::InboxHeadChecks, &[("outcome", "not_modified")], unmoved);
        samples.counter(Metric::InboxCursorResets, &[], now.cursor_resets.get());
        samples.counter(Metric::InboxClaims, &[("outcome", "claimed")], now.claims.get());
        samples.counter(Metric::InboxClaims, &[("outcome", "duplicate")], now.duplicate_claims.get());
        samples.counter(Metric::InboxClaims, &[("outcome", "replayed")], now.claims_replayed.get());
        samples.counter(Metric::InboxGivenBack, &[], now.given_back_unread.get());
        samples.counter(Metric::InboxLeaseExpiries, &[], now.lease_expiries.get());
        samples.counter(Metric::InboxLeasesLost, &[], now.leases_lost.get());
        samples.counter(Metric::InboxHeartbeats, &[], now.heartbeats.get());
        let outcomes = [
            ("acked", &now.acks),
            ("failed", &now.failed),
            ("discarded", &now.discarded),
            ("released", &now.released),
            ("expired", &now.expired),
            ("dead_lettered", &now.dead_lettered),
            ("quarantined", &now.quarantined),
        ];
        for (outcome, count) in outcomes {
            samples.counter(Metric::InboxOutcomes, &[("outcome", outcome)], count.get());
        }
        samples.histogram(Metric::InboxAckSeconds, &[], histogram(now.ack_latency.get()));
        samples.counter(Metric::InboxRequeued, &[], now.requeued.get());
        samples.counter(Metric::InboxRedriven, &[], now.redriven.get());
        samples.counter(Metric::InboxSweeps, &[("outcome", "done")], now.sweeps.get());
        samples.counter(Metric::InboxSweeps, &[("outcome", "failed")], now.sweep_errors.get());
    }

    fn hooks(&self, samples: &mut Samples) {
        let now = self.hooks.metrics();
        samples.histogram(Metric::HookRingSeconds, &[], histogram(now.ring_latency.get()));
        samples.histogram(Metric::HookAttemptSeconds, &[], histogram(now.attempt_latency.get()));
        for (class, count) in now.attempts() {
            samples.counter(Metric::HookAttempts, &[("class", class.as_str())], count);
        }
        samples.gauge(Metric::HookAttemptsInFlight, &[], now.attempts_in_flight.get() as f64);
        samples.counter(Metric::HookRings, &[], now.rings.get());
        for (cause, count) in [("exhausted", &now.exhausted), ("withdrawn", &now.withdrawn), ("collapsed", &now.collapsed)] {
            samples.counter(Metric::HookRingsDropped, &[("cause", cause)], count.get());
        }
        samples.counter(Metric::HooksDisabled, &[], now.disabled.get());
        samples.counter(Metric::HookVerifications, &[("outcome", "verified")], now.verifications.get());
        samples.counter(Metric::HookVerifications, &[("outcome", "failed")], now.verification_failures.get());
        samples.counter(Metric::HookReplaysRejected, &[], now.replays_rejected.get());
        samples.counter(Metric::HookUrlsRefused, &[], now.urls_refused.get());
        samples.counter(Metric::HookPositionsLost, &[], now.positions_lost.get());
        samples.counter(Metric::HookStoreErrors, &[], now.store_errors.get());
        let (_, totals) = self.totals.latest();
        samples.gauge(Metric::HookOutstanding, &[], totals.outstanding as f64);
        for (state, count) in [("active", totals.active), ("pending_verification", totals.pending), ("disabled", totals.disabled)] {
            samples.gauge(Metric::HookRegistrations, &[("state", state)], count as f64);
        }
    }

    /// What waits, as of the latest count.
    fn backlog(&self, samples: &mut Samples) {
        let (totals, _) = self.totals.latest();
        let now = self.clock.now();
        let mut shown = 0;
        for (tenant, sums) in &totals.tenants {
            samples.gauge(Metric::InboxBacklog, &[("tenant", tenant.as_str())], sums.current as f64);
            shown += sums.current;
        }
        let all = &totals.all;
        // No tenant's id has an exclamation mark.
        samples.gauge(Metric::InboxBacklog, &[("tenant", "!other")], all.current.saturating_sub(shown) as f64);
        samples.gauge(Metric::InboxOldestSeconds, &[], all.oldest.map_or(0.0, |made| now.since(made).as_secs_f64()));
        samples.gauge(Metric::InboxDeadLetters, &[], all.dead_letters as f64);
        samples.gauge(Metric::InboxQuarantined, &[], all.quarantined as f64);
        samples.gauge(Metric::InboxHeadSeq, &[], all.head.get() as f64);
    }
}

/// A distribution that is counted in microseconds, as the exposition has it: in seconds.
fn histogram((sum_micros, buckets): (u64, Vec<(Option<u64>, u64)>)) -> HistogramSnapshot {
    let bound = |micros: Option<u64>| micros.map_or(f64::INFINITY, |micros| micros as f64 / 1e6);
    HistogramSnapshot { sum: sum_micros as f64 / 1e6, buckets: buckets.into_iter().map(|(micros, count)| (bound(micros), count)).collect() }
}
