//! Every metric's name, kind and help, in one place.

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows; shown with the suffix `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution.
    Histogram,
}

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $metric:ident: $kind:ident = $name:literal,)+) => {
        /// Every metric that `/metrics` can show, in its order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $($(#[doc = $doc])+ $metric,)+
        }

        impl Metric {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$metric),+];

            /// The name, without the suffixes that the exposition adds.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$metric => $name,)+ }
            }

            /// What it behaves like.
            pub const fn kind(self) -> MetricKind {
                match self { $(Self::$metric => MetricKind::$kind,)+ }
            }

            /// What it says, in a sentence.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$metric => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

metrics! {
    /// Requests answered, by method, matched route and status class.
    HttpRequests: Counter = "doorstep_http_requests",
    /// Seconds from a request's head to its answer's head, by method and matched route.
    HttpRequestSeconds: Histogram = "doorstep_http_request_seconds",
    /// Open connections, WebSockets included.
    HttpConnections: Gauge = "doorstep_http_connections",
    /// Connections refused because http.max_connections were open.
    HttpConnectionsRefused: Counter = "doorstep_http_connections_refused",
    /// Open event streams (SSE).
    HttpEventStreams: Gauge = "doorstep_http_event_streams",
    /// Consumer polls with wait_seconds that were answered, by outcome: events or timeout.
    LongPolls: Counter = "doorstep_long_polls",
    /// Polls that wait for an event.
    WaitingPolls: Gauge = "doorstep_waiting_polls",
    /// Seconds from a publish request that was understood to its durable commit.
    PublishCommitSeconds: Histogram = "doorstep_publish_commit_seconds",
    /// Events of publish requests, by outcome: appended, deduplicated or scheduled.
    PublishedEvents: Counter = "doorstep_published_events",
    /// Publish requests refused because a deduplication key stood for another body.
    PublishConflicts: Counter = "doorstep_publish_conflicts",
    /// Scheduled events whose time came, by outcome: promoted or failed.
    ScheduledEvents: Counter = "doorstep_scheduled_events",
    /// Steps of promotion that failed and are repeated.
    PromotionFailures: Counter = "doorstep_promotion_failures",
    /// Events that applications handed in within their own transactions, by outcome: moved or failed.
    StagedEvents: Counter = "doorstep_staged_events",
    /// Steps of moving staged events that failed and are repeated.
    StagedFailures: Counter = "doorstep_staged_failures",
    /// Seconds from an event's acceptance to its dispatch to a reader that is live.
    PublishDispatchSeconds: Histogram = "doorstep_publish_dispatch_seconds",
    /// Heads of the logs with readers here: the highest.
    LogHeadSeq: Gauge = "doorstep_log_head_seq",
    /// Logs with a running tail, by state: live or stalled.
    LogTails: Gauge = "doorstep_log_tails",
    /// Events that tails took, by source: memory or store.
    LogTailEvents: Counter = "doorstep_log_tail_events",
    /// Pages read for readers, by source: ring or store.
    LogPages: Counter = "doorstep_log_pages",
    /// Events removed by retention.
    LogRetired: Counter = "doorstep_log_retired_events",
    /// Identified gateway connections, by kind: agent or reader.
    GatewayConnections: Gauge = "doorstep_gateway_connections",
    /// Gateway sessions, those that wait to be resumed included.
    GatewaySessions: Gauge = "doorstep_gateway_sessions",
    /// Gateway sessions resumed: the reconnect rate.
    GatewayResumes: Counter = "doorstep_gateway_resumes",
    /// Gateway connections closed, by the close code's name.
    GatewayCloses: Counter = "doorstep_gateway_closes",
    /// Frames of gateway peers refused with an error or a close.
    GatewayFramesRefused: Counter = "doorstep_gateway_frames_refused",
    /// Events dispatched, redeliveries included, by transport: gateway, poll or reader.
    Deliveries: Counter = "doorstep_deliveries",
    /// Events dispatched again because they were not acknowledged in time.
    Redeliveries: Counter = "doorstep_redeliveries",
    /// Acknowledgements over the gateway.
    Acks: Counter = "doorstep_acks",
    /// Seconds from an event's dispatch to its acknowledgement.
    AckSeconds: Histogram = "doorstep_ack_seconds",
    /// Saves of cursors, by outcome: done or failed.
    CursorSaves: Counter = "doorstep_cursor_saves",
    /// Positions that could not be served, so that their holder had to resynchronise.
    CursorResets: Counter = "doorstep_cursor_resets",
    /// Consumers taken from an attached holder, by outcome: done or refused.
    ConsumerTakeovers: Counter = "doorstep_consumer_takeovers",
    /// Events between the cursors of connected consumers and the head: the sum.
    ConsumerBacklog: Gauge = "doorstep_consumer_backlog_events",
    /// Events between the cursor of the connected consumer that is furthest behind and the head.
    ConsumerBacklogMax: Gauge = "doorstep_consumer_backlog_max_events",
    /// Seconds since the oldest dispatch to a connected consumer that is not acknowledged.
    OldestUnackedSeconds: Gauge = "doorstep_oldest_unacked_seconds",
    /// Seconds from the acceptance of the event that rang to its signal.
    InboxSignalSeconds: Histogram = "doorstep_inbox_signal_seconds",
    /// Signals sent, over every transport.
    InboxSignals: Counter = "doorstep_inbox_signals",
    /// Polls and claims by agents that had a signal since their last one: with the signals, the hint-to-fetch ratio.
    InboxSignalFetches: Counter = "doorstep_inbox_signal_fetches",
    /// Open streams of signals.
    InboxStreams: Gauge = "doorstep_inbox_streams",
    /// Streams of signals opened: the reconnect rate.
    InboxStreamsOpened: Counter = "doorstep_inbox_streams_opened",
    /// Polls and claims of inboxes that waited, by outcome: items or timeout.
    InboxLongPolls: Counter = "doorstep_inbox_long_polls",
    /// Polls, claims and streams that wait for an inbox.
    InboxWaiters: Gauge = "doorstep_inbox_waiters",
    /// Waits that were answered at once because there were too many.
    InboxWaitersRefused: Counter = "doorstep_inbox_waiters_refused",
    /// Polls of inboxes.
    InboxPolls: Counter = "doorstep_inbox_polls",
    /// Questions for the head of an inbox, by outcome: changed or not_modified (304).
    InboxHeadChecks: Counter = "doorstep_inbox_head_checks",
    /// Polls of inboxes that were told to start again.
    InboxCursorResets: Counter = "doorstep_inbox_cursor_resets",
    /// Items that were to be claimed, by outcome: claimed, duplicate or replayed.
    InboxClaims: Counter = "doorstep_inbox_claims",
    /// Items given back because their client was gone before the answer.
    InboxGivenBack: Counter = "doorstep_inbox_given_back",
    /// Leases that ended without their worker.
    InboxLeaseExpiries: Counter = "doorstep_inbox_lease_expiries",
    /// Lease tokens presented that no present lease has.
    InboxLeasesLost: Counter = "doorstep_inbox_leases_lost",
    /// Heartbeats that extended a lease.
    InboxHeartbeats: Counter = "doorstep_inbox_heartbeats",
    /// Attempts and items that ended, by outcome: acked, failed, discarded, released, expired, dead_lettered or quarantined.
    InboxOutcomes: Counter = "doorstep_inbox_outcomes",
    /// Seconds from a claim to its acknowledgement.
    InboxAckSeconds: Histogram = "doorstep_inbox_ack_seconds",
    /// Items that became claimable again.
    InboxRequeued: Counter = "doorstep_inbox_requeued",
    /// Dead letters that were given new attempts.
    InboxRedriven: Counter = "doorstep_inbox_redriven",
    /// Steps of the sweeper, by outcome: done or failed.
    InboxSweeps: Counter = "doorstep_inbox_sweeps",
    /// The highest head of all inboxes.
    InboxHeadSeq: Gauge = "doorstep_inbox_head_seq",
    /// Current items, by tenant: a bounded number of them, the others under the name "!other".
    InboxBacklog: Gauge = "doorstep_inbox_backlog_items",
    /// Seconds since the oldest current item was made, over all tenants.
    InboxOldestSeconds: Gauge = "doorstep_inbox_oldest_item_seconds",
    /// Dead letters, over all tenants.
    InboxDeadLetters: Gauge = "doorstep_inbox_dead_letters",
    /// Quarantined items, over all tenants.
    InboxQuarantined: Gauge = "doorstep_inbox_quarantined_items",
    /// Seconds from the acceptance of the event that rang to the end of the attempt that delivered the ring.
    HookRingSeconds: Histogram = "doorstep_hook_ring_seconds",
    /// Seconds per attempt to ring, whatever it brought.
    HookAttemptSeconds: Histogram = "doorstep_hook_attempt_seconds",
    /// Attempts to ring, by class: delivered, timeout, dns, connect, tls, protocol, refused, redirect, request_timeout, gone, rate_limited,
    /// client_error, server_error or unproven.
    HookAttempts: Counter = "doorstep_hook_attempts",
    /// Attempts to ring that run now.
    HookAttemptsInFlight: Gauge = "doorstep_hook_attempts_in_flight",
    /// Rings that were derived from the log.
    HookRings: Counter = "doorstep_hook_rings",
    /// Rings that are given up, by cause: exhausted, withdrawn (nobody needs them any more) or collapsed (into one for the backlog).
    HookRingsDropped: Counter = "doorstep_hook_rings_dropped",
    /// Rings that wait for an attempt.
    HookOutstanding: Gauge = "doorstep_hook_outstanding_rings",
    /// Hooks, by state: active, pending_verification or disabled.
    HookRegistrations: Gauge = "doorstep_hook_registrations",
    /// Hooks disabled because of failures.
    HooksDisabled: Counter = "doorstep_hooks_disabled",
    /// Challenges of callbacks that ended, by outcome: verified or failed.
    HookVerifications: Counter = "doorstep_hook_verifications",
    /// Answers to challenges that were open no more.
    HookReplaysRejected: Counter = "doorstep_hook_replays_rejected",
    /// URLs that may not be called.
    HookUrlsRefused: Counter = "doorstep_hook_urls_refused",
    /// Times that a tenant's position in the log was lost to the dispatcher.
    HookPositionsLost: Counter = "doorstep_hook_positions_lost",
    /// Steps of dispatcher and sender that the store refused; they are repeated.
    HookStoreErrors: Counter = "doorstep_hook_store_errors",
    /// Authentications, by outcome: cached, read or failed.
    Authentications: Counter = "doorstep_authentications",
    /// Requests denied.
    AuthorizationDenials: Counter = "doorstep_authorization_denials",
    /// Commits, by outcome: durable or failed.
    StoreCommits: Counter = "doorstep_store_commits",
    /// Seconds per durable commit.
    StoreCommitSeconds: Histogram = "doorstep_store_commit_seconds",
    /// Units of work, by outcome: committed or undone. Committed units by durable commits is the mean batch.
    StoreUnits: Counter = "doorstep_store_units",
    /// Repeated units of work after a failure that passes, by unit.
    StoreRetries: Counter = "doorstep_store_retries",
    /// Reads answered.
    StoreReads: Counter = "doorstep_store_reads",
    /// Units of work waiting in the store's queue.
    StoreQueueDepth: Gauge = "doorstep_store_queue_depth",
    /// Bytes waiting in the store's queue.
    StoreQueueBytes: Gauge = "doorstep_store_queue_bytes",
    /// Units of work refused because a queue was full.
    StoreQueueRefused: Counter = "doorstep_store_queue_refused",
    /// Connections to the shared database that are in use; always 0 with the embedded store.
    StoreConnections: Gauge = "doorstep_store_connections",
    /// Commits whose answer was lost, by what became of them: resolved (found out) or unknown.
    StoreDoubtfulCommits: Counter = "doorstep_store_doubtful_commits",
    /// Server processes over the store that are there, this one included.
    Nodes: Gauge = "doorstep_nodes",
    /// Pieces of background work that this process does at the moment, of those that one process does at a time.
    WorkHeld: Gauge = "doorstep_work_held",
    /// Leases on background work, by what became of them: taken, given_back, lost or cut_off.
    WorkLeases: Counter = "doorstep_work_leases",
    /// Hints between nodes, by outcome: told, merged (another one says it too), dropped, heard or unknown (not understood).
    Hints: Counter = "doorstep_hints",
    /// Statements or messages that carried hints to others, by outcome: done or failed.
    HintSends: Counter = "doorstep_hint_sends",
    /// Whether hints of other nodes are heard at the moment: 1 or 0. Without, news come by polling.
    HintsListening: Gauge = "doorstep_hints_listening",
    /// How often listening for hints was taken up again after its connection was lost.
    HintReconnects: Counter = "doorstep_hint_reconnects",
    /// Stored rows that were met and cannot be read, each counted once, by kind: item or hook. They are left out.
    StoreUnreadableRows: Counter = "doorstep_store_unreadable_rows",
    /// Seconds since the process began.
    UptimeSeconds: Gauge = "doorstep_uptime_seconds",
    /// Always 1; the label says which version runs.
    BuildInfo: Gauge = "doorstep_build_info",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Metric;

    #[test]
    fn names_are_distinct_and_follow_the_exposition_format() {
        let names: BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        assert_eq!(names.len(), Metric::ALL.len());
        for metric in Metric::ALL {
            let name = metric.name();
            assert!(name.starts_with("doorstep_") && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert!(!name.ends_with("_total"), "{name}: the exposition adds the suffix");
            assert!(metric.help().ends_with('.'), "{name}: the help is a sentence");
        }
    }
}
