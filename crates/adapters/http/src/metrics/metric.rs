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
    /// Long polls that waited, by outcome: events, or timeout.
    LongPolls: Counter = "doorstep_long_polls",
    /// Seconds from a publish request to its durable commit.
    PublishCommitSeconds: Histogram = "doorstep_publish_commit_seconds",
    /// Events published, by outcome: appended, deduplicated, or scheduled.
    PublishedEvents: Counter = "doorstep_published_events",
    /// Seconds from an event's acceptance to its dispatch to a live reader.
    PublishDispatchSeconds: Histogram = "doorstep_publish_dispatch_seconds",
    /// Scheduled events that wait for their time.
    ScheduledWaiting: Gauge = "doorstep_scheduled_waiting_events",
    /// Scheduled events that could not be appended when due.
    ScheduledFailed: Counter = "doorstep_scheduled_failed_events",
    /// The highest head of any log that has readers here.
    LogHeadSeq: Gauge = "doorstep_log_head_seq",
    /// Logs with a running tail.
    LogTails: Gauge = "doorstep_log_tails",
    /// Seconds that the slowest tail is behind the committed head.
    LogTailLagSeconds: Gauge = "doorstep_log_tail_lag_seconds",
    /// Events that a tail took from memory or had to read from the store, by source.
    LogTailEvents: Counter = "doorstep_log_tail_events",
    /// Pages read for readers, by source: ring or store.
    LogPages: Counter = "doorstep_log_pages",
    /// Bytes held by hot rings.
    LogRingBytes: Gauge = "doorstep_log_ring_bytes",
    /// Events removed by retention.
    LogRetired: Counter = "doorstep_log_retired_events",
    /// Open gateway connections, by kind: agent, or reader.
    GatewayConnections: Gauge = "doorstep_gateway_connections",
    /// Gateway sessions by how they began: identify, or resume. Their ratio is the reconnect rate.
    GatewaySessions: Counter = "doorstep_gateway_sessions",
    /// Gateway connections closed, by close code name.
    GatewayCloses: Counter = "doorstep_gateway_closes",
    /// Frames sent to gateway peers.
    GatewayFrames: Counter = "doorstep_gateway_frames",
    /// Events dispatched to consumers and readers, by transport.
    Deliveries: Counter = "doorstep_deliveries",
    /// Events dispatched again because they were not acknowledged in time.
    Redeliveries: Counter = "doorstep_redeliveries",
    /// Seconds from an event's dispatch to its acknowledgement.
    AckSeconds: Histogram = "doorstep_ack_seconds",
    /// Consumers taken over by another holder.
    ConsumerTakeovers: Counter = "doorstep_consumer_takeovers",
    /// Times that a position could not be served and its holder had to resynchronise, by reason.
    CursorResets: Counter = "doorstep_cursor_resets",
    /// Events between the cursors of connected consumers and the head: the sum.
    ConsumerBacklog: Gauge = "doorstep_consumer_backlog_events",
    /// Events between the cursor of the consumer that is furthest behind and the head.
    ConsumerBacklogMax: Gauge = "doorstep_consumer_backlog_max_events",
    /// Events dispatched to connected consumers and not acknowledged.
    ConsumerInFlight: Gauge = "doorstep_consumer_in_flight_events",
    /// Seconds since the oldest dispatch that is not acknowledged.
    OldestUnackedSeconds: Gauge = "doorstep_oldest_unacked_seconds",
    /// Cursor saves, by outcome: saved, or replaced.
    CursorSaves: Counter = "doorstep_cursor_saves",
    /// Authentications, by outcome.
    Authentications: Counter = "doorstep_authentications",
    /// Requests denied.
    AuthorizationDenials: Counter = "doorstep_authorization_denials",
    /// Writes waiting in the store's queue.
    StoreQueueDepth: Gauge = "doorstep_store_queue_depth",
    /// Writes refused because the queue was full.
    StoreQueueRefused: Counter = "doorstep_store_queue_refused",
    /// Commits.
    StoreCommits: Counter = "doorstep_store_commits",
    /// Units of work per commit.
    StoreCommitUnits: Histogram = "doorstep_store_commit_units",
    /// Seconds per commit.
    StoreCommitSeconds: Histogram = "doorstep_store_commit_seconds",
    /// Store failures, by kind.
    StoreFailures: Counter = "doorstep_store_failures",
    /// Bytes of the store's files.
    StoreBytes: Gauge = "doorstep_store_bytes",
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
