//! The settings of each module, taken from the configuration's keys.

use std::time::Duration;

use protocol::PublishLimits;

use super::{Config, HintBusKind};

impl Config {
    /// The embedded store's.
    pub(crate) fn store(&self) -> store_sqlite::StoreOptions {
        let database = &self.database;
        store_sqlite::StoreOptions {
            readers: database.readers,
            queue_max: database.queue_max,
            queue_max_bytes: database.queue_max_bytes.0,
            batch_max: database.batch_max,
            batch_max_bytes: database.batch_max_bytes.0,
            max_bytes: database.max_bytes.0.map(|size| size.0 as u64),
            busy_timeout: database.busy_timeout,
            wal_checkpoint_bytes: database.wal_checkpoint_bytes.0 as u64,
            cache_bytes: database.cache_bytes.0 as u64,
        }
    }

    /// The PostgreSQL store's; nothing when the embedded one is configured. `node` names this process among the database's sessions.
    pub(crate) fn shared_store(&self, node: &str) -> Option<store_postgres::PostgresOptions> {
        let database = &self.database;
        Some(store_postgres::PostgresOptions {
            url: database.url.0.clone()?,
            node: node.to_owned(),
            connections: database.connections,
            append_connections: database.append_connections,
            acquire_timeout: database.acquire_timeout,
            statement_timeout: database.statement_timeout,
            lock_timeout: database.lock_timeout,
            queue_max: database.queue_max,
            queue_max_bytes: database.queue_max_bytes.0,
            batch_max: database.batch_max,
            batch_max_bytes: database.batch_max_bytes.0,
            auto_migrate: database.auto_migrate,
        })
    }

    /// Hints between nodes.
    pub(crate) fn hints(&self) -> sync::HintSettings {
        sync::HintSettings { interval: self.cluster.hint_interval, queue_max: self.cluster.hint_queue_max }
    }

    /// Hints over the database.
    pub(crate) fn database_hints(&self) -> store_postgres::HintOptions {
        store_postgres::HintOptions {
            listen_url: self.database.listen_url.0.clone(),
            reconnect_backoff_cap: self.database.listen_reconnect_backoff_cap,
        }
    }

    /// Hints over NATS, when they go there.
    pub(crate) fn nats_hints(&self, node: &str) -> Option<hint_nats::NatsOptions> {
        let keys = &self.cluster;
        let url = keys.nats_url.0.clone().filter(|_| keys.hint_bus == HintBusKind::Nats)?;
        Some(hint_nats::NatsOptions {
            url,
            subject_prefix: keys.nats_subject_prefix.clone(),
            node: node.to_owned(),
            reconnect_backoff_cap: self.database.listen_reconnect_backoff_cap,
        })
    }

    /// The nodes'.
    pub(crate) fn cluster(&self) -> cluster::Settings {
        let keys = &self.cluster;
        cluster::Settings { lease_duration: keys.lease_duration, node_timeout: keys.node_timeout, node_retention: keys.node_retention }
    }

    /// The log's.
    pub(crate) fn sync(&self) -> sync::Settings {
        let keys = &self.sync;
        sync::Settings {
            ring_max_events: keys.ring_max_events,
            ring_max_bytes: keys.ring_max_bytes.0,
            ring_total_bytes: keys.ring_total_bytes.0,
            tail_queue_max_events: keys.tail_queue_max_events,
            tail_poll_interval: keys.tail_poll_interval,
            tail_linger: keys.tail_linger,
            max_live_tenants: keys.max_live_tenants,
            page_max_events: keys.catchup_page_size,
            page_max_bytes: keys.catchup_page_bytes.0,
            backoff_cap: self.database.listen_reconnect_backoff_cap,
            event_retention: keys.event_retention.0,
            retention_interval: keys.retention_interval,
            retention_chunk: keys.retention_chunk,
            retention_grace: keys.retention_grace,
        }
    }

    /// The consumers'.
    pub(crate) fn agents(&self) -> agents::Settings {
        let keys = &self.agent;
        agents::Settings {
            ack_timeout: keys.ack_timeout,
            ack_persist_interval: keys.ack_persist_interval,
            max_inflight_events: keys.max_inflight_events,
            max_consumers_per_agent: keys.max_consumers_per_agent,
            takeover_burst: keys.takeover_burst,
            poll_wait_max: keys.poll_wait_max,
        }
    }

    /// Delivery's.
    pub(crate) fn gateway(&self) -> gateway::Settings {
        let (keys, sync) = (&self.gateway, &self.sync);
        gateway::Settings {
            heartbeat_interval: keys.heartbeat_interval,
            identify_timeout: keys.identify_timeout,
            write_timeout: keys.write_timeout,
            max_frame_bytes: keys.max_frame_bytes.0,
            max_frames_per_second: keys.max_frames_per_second,
            max_connections: keys.max_connections,
            max_connections_per_principal: keys.max_connections_per_principal,
            resume_window: sync.resume_window,
            catchup_page_size: sync.catchup_page_size,
            catchup_page_bytes: sync.catchup_page_bytes.0,
            cursor_advance_every: sync.cursor_advance_every,
            outbound_queue_max: sync.outbound_queue_max,
            max_catchup_events: sync.max_catchup_events,
            read_backoff_cap: self.database.listen_reconnect_backoff_cap,
        }
    }

    /// Identity's.
    pub(crate) fn authz(&self) -> authz::Settings {
        let keys = &self.authz;
        authz::Settings {
            token_cache_max: keys.token_cache_max,
            cache_ttl: keys.cache_ttl,
            rights_cache_max: keys.rights_cache_max,
            place_cache_max: keys.place_cache_max,
            flush_interval: keys.flush_interval,
            denials_max: keys.denials_max,
            token_use_interval: keys.token_use_interval,
            token_uses_max: keys.token_uses_max,
            audit_retention: keys.audit_retention,
            idempotency_window: keys.idempotency_window,
            prune_interval: keys.prune_interval,
            max_tokens_per_principal: keys.max_tokens_per_principal,
            list_max: self.http.max_page_size,
        }
    }

    /// The hooks'.
    pub(crate) fn hooks(&self) -> hooks::Settings {
        let keys = &self.hooks;
        hooks::Settings {
            max_per_agent: keys.max_per_agent,
            max_per_tenant: keys.max_per_tenant,
            allow_http: keys.allow_http,
            allow_networks: keys.allow_networks.0.clone(),
            url_allow_list: keys.url_allow_list.0.clone(),
            ports: keys.ports.0.clone(),
            attempt_timeout: keys.attempt_timeout,
            attempts: keys.attempts,
            retry: keys.retry.0.clone(),
            retry_after_max: keys.retry_after_max,
            disable_after: keys.disable_after,
            rotation_overlap: keys.rotation_overlap,
            keys_max: keys.keys_max,
            outstanding_max: keys.outstanding_max,
            outstanding_failing_max: keys.outstanding_failing_max,
            concurrency: keys.concurrency,
            concurrency_per_tenant: keys.concurrency_per_tenant,
            concurrency_per_host: keys.concurrency_per_host,
            poll_interval: keys.poll_interval,
            page: keys.page,
            page_bytes: keys.page_bytes.0,
            tails_max: keys.tails_max,
            max_queues: keys.max_queues,
            log_max: keys.log_max,
            require_verification: keys.require_verification,
            challenge_ttl: keys.challenge_ttl,
            signature_ttl: keys.signature_ttl,
            gather_interval: keys.gather_interval,
            callback_rate_max: keys.callback_rate_max,
            server_key_period: keys.server_key_period,
            user_agent: keys.user_agent.clone(),
        }
    }

    /// The inbox's.
    pub(crate) fn inbox(&self) -> inbox::Settings {
        let keys = &self.inbox;
        inbox::Settings {
            rules: inbox::Rules {
                lease_default: keys.lease_default,
                lease_min: keys.lease_min,
                lease_max: keys.lease_max,
                attempt_deadline: keys.attempt_deadline,
                retry_base: keys.retry_base,
                retry_cap: keys.retry_cap,
                max_attempts: keys.max_attempts,
                priority_boost: keys.priority_boost,
                history_max: keys.history_max,
                results_kept: keys.results_kept,
            },
            sweep_interval: keys.sweep_interval,
            sweep_batch: keys.sweep_batch,
            sweep_inboxes: keys.sweep_inboxes,
            sweep_concurrency: keys.sweep_concurrency,
            prune_interval: keys.prune_interval,
            prune_batch: keys.prune_batch,
            store_retry: keys.store_retry,
            poll_wait_max: keys.poll_wait_max,
            poll_max_items: keys.poll_max_items,
            scan_max: keys.scan_max,
            claim_max_items: keys.claim_max_items,
            claim_max_bytes: keys.claim_max_bytes.0,
            max_waiters: keys.max_waiters,
            max_waiters_per_agent: keys.max_waiters_per_agent,
            ring_again: keys.ring_again.0.clone(),
            backlog_count_max: keys.backlog_count_max,
            ended_retention: keys.ended_retention,
            claim_record_retention: keys.claim_record_retention,
            session_retention: keys.session_retention,
            session_touch_interval: keys.session_touch_interval,
            summary_max: keys.summary_max.0,
            result_max: keys.result_max.0,
            bulk_max: keys.bulk_max,
            max_queues: keys.max_queues,
            presence_max: keys.presence_max,
            sse_heartbeat: keys.sse_heartbeat,
        }
    }

    /// The HTTP interface's.
    pub(crate) fn http(&self) -> http_api::Settings {
        let keys = &self.http;
        http_api::Settings {
            max_connections: keys.max_connections,
            header_read_timeout: keys.header_read_timeout,
            keep_alive_timeout: keys.keep_alive_timeout,
            request_timeout: keys.request_timeout,
            max_header_bytes: keys.max_header_bytes.0,
            max_body_bytes: keys.max_body_bytes.0,
            max_publish_bytes: self.publish.max_request_bytes.0,
            max_inbox_bytes: keys.max_inbox_bytes.0,
            public_url: keys.public_url.0.clone(),
            event_retention: self.sync.event_retention.0,
            publish: self.publish_limits(),
            default_page_size: keys.default_page_size,
            max_page_size: keys.max_page_size,
            write_timeout: self.gateway.write_timeout,
            max_frame_bytes: self.gateway.max_frame_bytes.0,
        }
    }

    /// Publishing's.
    pub(crate) fn intake(&self) -> intake::Settings {
        let (keys, limits) = (&self.intake, &self.publish);
        intake::Settings {
            max_events: limits.max_events,
            max_payload_bytes: limits.max_payload_bytes.0,
            max_depth: limits.max_depth,
            max_audience: limits.max_audience,
            max_recipients: limits.max_recipients,
            max_correlation_entries: limits.max_correlation_entries,
            max_correlation_chars: limits.max_correlation_chars,
            deduplication_window: self.sync.deduplication_window,
            schedule_horizon: keys.schedule_horizon,
            promote_batch: keys.promote_batch,
            promote_interval: self.promote_interval(),
            promote_retry: keys.promote_retry,
            staged_interval: keys.staged_interval,
            staged_retention: keys.staged_retention,
            items: self.inbox().rules,
            list_max: self.http.max_page_size,
        }
    }

    /// Who schedules on another node of a shared store rings no bell here.
    fn promote_interval(&self) -> Duration {
        match self.database.url.0 {
            Some(_) => self.intake.promote_interval.min(self.sync.tail_poll_interval),
            None => self.intake.promote_interval,
        }
    }

    fn publish_limits(&self) -> PublishLimits {
        let keys = &self.publish;
        PublishLimits {
            max_events: keys.max_events,
            max_payload_bytes: keys.max_payload_bytes.0,
            max_depth: keys.max_depth,
            max_audience: keys.max_audience,
            max_recipients: keys.max_recipients,
            max_correlation_entries: keys.max_correlation_entries,
            max_correlation_chars: keys.max_correlation_chars,
        }
    }
}
