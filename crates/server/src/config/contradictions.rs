//! What contradicts itself although each value is valid alone.

use std::time::Duration;

use tracing_subscriber::EnvFilter;

use super::{Config, HintBusKind};

impl Config {
    /// One sentence for each contradiction.
    pub(super) fn contradictions(&self) -> Vec<String> {
        let at_least_one = [
            ("database.readers", self.database.readers),
            ("database.append_connections", self.database.append_connections),
            ("database.queue_max", self.database.queue_max),
            ("database.batch_max", self.database.batch_max),
            ("http.max_connections", self.http.max_connections),
            ("http.default_page_size", self.http.default_page_size),
            ("http.max_page_size", self.http.max_page_size),
            ("publish.max_events", self.publish.max_events),
            ("publish.max_depth", self.publish.max_depth),
            ("agent.max_inflight_events", self.agent.max_inflight_events),
            ("agent.max_consumers_per_agent", self.agent.max_consumers_per_agent),
            ("inbox.max_attempts", self.inbox.max_attempts as usize),
            ("inbox.history_max", self.inbox.history_max),
            ("inbox.sweep_batch", self.inbox.sweep_batch),
            ("inbox.sweep_inboxes", self.inbox.sweep_inboxes),
            ("inbox.sweep_concurrency", self.inbox.sweep_concurrency),
            ("inbox.prune_batch", self.inbox.prune_batch),
            ("inbox.poll_max_items", self.inbox.poll_max_items),
            ("inbox.scan_max", self.inbox.scan_max),
            ("inbox.claim_max_items", self.inbox.claim_max_items),
            ("inbox.claim_max_bytes", self.inbox.claim_max_bytes.0),
            ("inbox.ring_again", self.inbox.ring_again.0.len()),
            ("hooks.attempts", self.hooks.attempts as usize),
            ("hooks.disable_after", self.hooks.disable_after as usize),
            ("hooks.keys_max", self.hooks.keys_max),
            ("hooks.outstanding_max", self.hooks.outstanding_max),
            ("hooks.outstanding_failing_max", self.hooks.outstanding_failing_max),
            ("hooks.concurrency", self.hooks.concurrency),
            ("hooks.concurrency_per_tenant", self.hooks.concurrency_per_tenant),
            ("hooks.concurrency_per_host", self.hooks.concurrency_per_host),
            ("hooks.page", self.hooks.page),
            ("hooks.page_bytes", self.hooks.page_bytes.0),
            ("hooks.max_queues", self.hooks.max_queues),
            ("hooks.callback_rate_max", self.hooks.callback_rate_max as usize),
            ("hooks.retry", self.hooks.retry.0.len()),
            ("sync.retention_chunk", self.sync.retention_chunk),
            ("sync.ring_max_events", self.sync.ring_max_events),
            ("sync.tail_queue_max_events", self.sync.tail_queue_max_events),
            ("sync.max_live_tenants", self.sync.max_live_tenants),
            ("sync.catchup_page_size", self.sync.catchup_page_size),
            ("sync.catchup_page_bytes", self.sync.catchup_page_bytes.0),
            ("sync.outbound_queue_max", self.sync.outbound_queue_max),
            ("gateway.max_frame_bytes", self.gateway.max_frame_bytes.0),
            ("gateway.max_connections", self.gateway.max_connections),
            ("gateway.max_connections_per_principal", self.gateway.max_connections_per_principal),
        ];
        let mut faults: Vec<String> =
            at_least_one.into_iter().filter(|(_, value)| *value == 0).map(|(key, _)| format!("{key}: must be at least 1")).collect();
        let not_zero = [
            ("database.acquire_timeout", self.database.acquire_timeout),
            ("database.statement_timeout", self.database.statement_timeout),
            ("database.lock_timeout", self.database.lock_timeout),
            ("agent.ack_timeout", self.agent.ack_timeout),
            ("agent.ack_persist_interval", self.agent.ack_persist_interval),
            ("sync.retention_interval", self.sync.retention_interval),
            ("sync.tail_poll_interval", self.sync.tail_poll_interval),
            ("gateway.heartbeat_interval", self.gateway.heartbeat_interval),
            ("gateway.identify_timeout", self.gateway.identify_timeout),
            ("gateway.write_timeout", self.gateway.write_timeout),
            ("inbox.lease_min", self.inbox.lease_min),
            ("inbox.attempt_deadline", self.inbox.attempt_deadline),
            ("inbox.sweep_interval", self.inbox.sweep_interval),
            ("inbox.prune_interval", self.inbox.prune_interval),
            ("inbox.store_retry", self.inbox.store_retry),
            ("inbox.session_touch_interval", self.inbox.session_touch_interval),
            ("inbox.sse_heartbeat", self.inbox.sse_heartbeat),
            ("inbox.totals_interval", self.inbox.totals_interval),
            ("hooks.attempt_timeout", self.hooks.attempt_timeout),
            ("hooks.poll_interval", self.hooks.poll_interval),
            ("hooks.challenge_ttl", self.hooks.challenge_ttl),
            ("hooks.signature_ttl", self.hooks.signature_ttl),
            ("hooks.server_key_period", self.hooks.server_key_period),
            ("authz.flush_interval", self.authz.flush_interval),
            ("authz.prune_interval", self.authz.prune_interval),
            ("shutdown.total_timeout", self.shutdown.total_timeout),
            ("cluster.node_timeout", self.cluster.node_timeout),
        ];
        faults.extend(not_zero.into_iter().filter(|(_, value)| value.is_zero()).map(|(key, _)| format!("{key}: must be longer than 0s")));
        if self.inbox.ring_again.0.iter().any(Duration::is_zero) {
            faults.push("inbox.ring_again: each must be longer than 0s".to_owned());
        }
        if self.database.connections < 2 {
            faults.push("database.connections: must be at least 2".to_owned());
        }
        faults.extend(self.cluster_contradictions());
        let lease = &self.inbox;
        if lease.lease_min > lease.lease_default || lease.lease_default > lease.lease_max {
            faults.push("inbox.lease_default: must lie between inbox.lease_min and inbox.lease_max".to_owned());
        }
        if self.hooks.user_agent.is_empty() || !self.hooks.user_agent.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            faults.push("hooks.user_agent: must be printable ASCII".to_owned());
        }
        if let Err(error) = EnvFilter::try_new(&self.log.filter) {
            faults.push(format!("log.filter: {error}"));
        }
        if self.publish.max_depth > 120 {
            faults.push("publish.max_depth: must be at most 120, or common JSON readers cannot read the events".to_owned());
        }
        if self.publish.max_request_bytes.0 < self.publish.max_payload_bytes.0 {
            faults.push("publish.max_request_bytes: must be at least publish.max_payload_bytes".to_owned());
        }
        if self.http.max_header_bytes.0 < 8 << 10 {
            faults.push("http.max_header_bytes: must be at least 8KiB".to_owned());
        }
        if self.http.default_page_size > self.http.max_page_size {
            faults.push("http.default_page_size: must be at most http.max_page_size".to_owned());
        }
        faults
    }

    fn cluster_contradictions(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let keys = &self.cluster;
        if keys.hint_bus == HintBusKind::Nats && keys.nats_url.0.is_none() {
            faults.push("cluster.nats_url: is needed with cluster.hint_bus = nats".to_owned());
        }
        if keys.hint_queue_max == 0 {
            faults.push("cluster.hint_queue_max: must be at least 1".to_owned());
        }
        if keys.lease_duration < Duration::from_millis(500) {
            faults.push("cluster.lease_duration: must be at least 500ms".to_owned());
        }
        // No attempt begins that might outlast its lease, and a lease is renewed when a quarter of it has passed.
        if self.database.url.0.is_some() && keys.lease_duration * 3 / 5 < self.hooks.attempt_timeout + Duration::from_millis(500) {
            faults.push("cluster.lease_duration: three fifths of it must be at least hooks.attempt_timeout and 500ms".to_owned());
        }
        faults
    }
}
