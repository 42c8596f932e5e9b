//! The configuration: every limit, window and threshold is a key declared here once, with its type, default and documentation.

mod contradictions;
mod docs;
mod load;
mod modules;
mod schema;
mod value;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use docs::reference;
pub(crate) use load::{ENVIRONMENT_PREFIX, Sources, load};
pub(crate) use value::{Durations, List, MaybeDuration, MaybePath, MaybeSecret, MaybeSize, MaybeUrl, Size};

use schema::{Schema, configuration};
use value::{Value, as_toml};

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people; in colour on a terminal.
    Text,
    /// One JSON object a line.
    Json,
}

impl Value for LogFormat {
    const EXPECTED: &'static str = "text or json";

    fn read(text: &str) -> Option<Self> {
        match text.trim() {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Json => "json".to_owned(),
        }
    }
}

/// How nodes tell each other of news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HintBusKind {
    /// LISTEN and NOTIFY of the database.
    Postgres,
    /// NATS core.
    Nats,
}

impl Value for HintBusKind {
    const EXPECTED: &'static str = "postgres or nats";

    fn read(text: &str) -> Option<Self> {
        match text.trim() {
            "postgres" => Some(Self::Postgres),
            "nats" => Some(Self::Nats),
            _ => None,
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Postgres => "postgres".to_owned(),
            Self::Nats => "nats".to_owned(),
        }
    }
}

configuration! {
    /// The whole configuration, valid by construction.
    Config {
        /// Where the server is reached.
        server: ServerSection {
            /// The address to listen on; port 0 takes a free one.
            listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7420));
        }
        /// Where the server keeps its data.
        data: DataSection {
            /// The directory of the embedded store and of the owner's first token. Made when it is not there.
            dir: PathBuf = PathBuf::from("doorstep-data");
        }
        /// The store: the embedded one in the data directory, or a PostgreSQL database that any number of servers share.
        database: DatabaseSection {
            /// The PostgreSQL database, such as `postgres://doorstep@db.example.net/doorstep`; without it the embedded store. Holds a password: better in
            /// the environment than in a file or a flag.
            url: MaybeSecret = MaybeSecret(None);
            /// Whether starting brings an older schema of the PostgreSQL database up to date, as `--migrate` does. The embedded store's is always.
            auto_migrate: bool = false;
            /// Connections to PostgreSQL for everything but publishing, at least 2.
            connections: usize = 16;
            /// Connections to PostgreSQL that only publish: as many tenants are published to at the same time.
            append_connections: usize = 4;
            /// How long a request waits for a connection to PostgreSQL, also while that is restarted.
            acquire_timeout: Duration = Duration::from_secs(5);
            /// The longest that one statement may take in PostgreSQL.
            statement_timeout: Duration = Duration::from_secs(30);
            /// The longest that a statement waits for a lock in PostgreSQL.
            lock_timeout: Duration = Duration::from_secs(5);
            /// Threads of the embedded store that read.
            readers: usize = 2;
            /// Writes that may wait (on PostgreSQL: publications of one tenant); one more is answered 503 `overloaded`.
            queue_max: usize = 10_000;
            /// Bytes of publications that may wait; more is answered 503 `overloaded`.
            queue_max_bytes: Size = Size(64 << 20);
            /// Writes that share one durable commit.
            batch_max: usize = 500;
            /// Bytes of publications that share one durable commit.
            batch_max_bytes: Size = Size(8 << 20);
            /// How large the embedded database file may become; beyond it writing answers 503 `storage_full`, as on a full disk.
            max_bytes: MaybeSize = MaybeSize(None);
            /// How long to wait for another program's lock on the embedded database file.
            busy_timeout: Duration = Duration::from_secs(5);
            /// About how large the embedded store's write-ahead log grows before it is moved into the database.
            wal_checkpoint_bytes: Size = Size(16 << 20);
            /// The page cache of the embedded store's writer; each reader has a quarter of it.
            cache_bytes: Size = Size(16 << 20);
            /// The longest pause before something that failed in the store is tried again, the connections that carry hints included.
            listen_reconnect_backoff_cap: Duration = Duration::from_secs(5);
            /// A way to the PostgreSQL database that keeps sessions, for LISTEN and NOTIFY; needed when `database.url` leads through a pooler that shares
            /// connections by transaction. Without it `database.url`.
            listen_url: MaybeSecret = MaybeSecret(None);
        }
        /// Several servers over one PostgreSQL database. Nothing of it has an effect on the embedded store.
        cluster: ClusterSection {
            /// What this server is called in listings and in the database's list of sessions. Without it, the address that it listens on.
            node_name: String = String::new();
            /// How servers tell each other that there is news: `postgres` (LISTEN and NOTIFY), or `nats` for large fleets.
            hint_bus: HintBusKind = HintBusKind::Postgres;
            /// At most once in this time a server tells the others what is new.
            hint_interval: Duration = Duration::from_millis(5);
            /// Hints that may wait to be told; beyond, new ones are forgotten, and the others find out by themselves.
            hint_queue_max: usize = 10_000;
            /// The NATS servers, such as `nats://nats.example.net:4222`; several are separated by commas. May hold a password.
            nats_url: MaybeSecret = MaybeSecret(None);
            /// Installations that share NATS servers are told apart by it.
            nats_subject_prefix: String = "doorstep".to_owned();
            /// How long a lease on a piece of background work holds without being renewed: how long after a crash another server takes it over. Work stops a
            /// fifth of it before its end.
            lease_duration: Duration = Duration::from_secs(10);
            /// A server that gave no sign of life for so long counts as lost.
            node_timeout: Duration = Duration::from_secs(15);
            /// How long a lost server is listed.
            node_retention: Duration = Duration::from_hours(1);
        }
        /// The HTTP interface.
        http: HttpSection {
            /// Open connections, WebSockets included; one more is answered 503 and closed.
            max_connections: usize = 20_000;
            /// From the first byte of a request to the end of its head.
            header_read_timeout: Duration = Duration::from_secs(10);
            /// How long a connection may wait for its next request. Longer than what load balancers keep idle.
            keep_alive_timeout: Duration = Duration::from_secs(75);
            /// For a request's body to arrive.
            request_timeout: Duration = Duration::from_secs(30);
            /// Bytes of a request's head, at least 8KiB.
            max_header_bytes: Size = Size(32 << 10);
            /// Bytes of a request's body, except for publishing.
            max_body_bytes: Size = Size(64 << 10);
            /// Bytes of the body of a request about an inbox: a batch may carry many results.
            max_inbox_bytes: Size = Size(8 << 20);
            /// How clients reach this server, such as `https://doorstep.example.net`; without it, addresses in answers follow the request's `Host`.
            public_url: MaybeUrl = MaybeUrl(None);
            /// Entries of a listing that names no `limit`.
            default_page_size: usize = 100;
            /// Entries of a listing at most; a higher `limit` is capped to it.
            max_page_size: usize = 1_000;
        }
        /// Publishing.
        publish: PublishSection {
            /// Events in one request.
            max_events: usize = 1_000;
            /// Bytes of one event's payload.
            max_payload_bytes: Size = Size(1 << 20);
            /// Bytes of a request's body.
            max_request_bytes: Size = Size(16 << 20);
            /// Objects and arrays nested in a payload, itself included; at most 120.
            max_depth: usize = 64;
            /// Principals in one event's audience.
            max_audience: usize = 100;
            /// Recipients of one event.
            max_recipients: usize = 100;
            /// Members of one event's correlation.
            max_correlation_entries: usize = 32;
            /// Characters of one name or value of a correlation.
            max_correlation_chars: usize = 256;
        }
        /// Scheduled publishing.
        intake: IntakeSection {
            /// How far in the future an event may be scheduled.
            schedule_horizon: Duration = Duration::from_hours(24 * 366);
            /// Due events that enter the log in one transaction.
            promote_batch: usize = 100;
            /// How often due events are looked for, beside when the next one is due.
            promote_interval: Duration = Duration::from_secs(30);
            /// The pause after promoting failed in the store.
            promote_retry: Duration = Duration::from_secs(1);
            /// How often it is looked for events that applications handed in within their own transactions (shared store).
            staged_interval: Duration = Duration::from_millis(250);
            /// For how long such events are listed that could not be appended.
            staged_retention: Duration = Duration::from_hours(24 * 30);
        }
        /// Consumers of agents.
        agent: AgentSection {
            /// How long a dispatched event may stay unacknowledged before delivery restarts at the acknowledged position.
            ack_timeout: Duration = Duration::from_secs(30);
            /// How long an acknowledgement over the gateway may stay in memory before it is saved.
            ack_persist_interval: Duration = Duration::from_secs(1);
            /// How many unacknowledged events may be on their way to one consumer.
            max_inflight_events: usize = 256;
            /// How many consumers an agent may have.
            max_consumers_per_agent: usize = 100;
            /// How often a minute a consumer may be taken from a holder that was still attached; more is refused for a while (429, 4008).
            takeover_burst: u32 = 10;
            /// The longest wait of a poll; a longer `wait_seconds` is shortened to it.
            poll_wait_max: Duration = Duration::from_secs(30);
        }
        /// The event log and its readers.
        sync: SyncSection {
            /// How long events are kept.
            event_retention: MaybeDuration = MaybeDuration(None);
            /// How often retention looks for what is due.
            retention_interval: Duration = Duration::from_mins(1);
            /// Rows that one step of retention removes.
            retention_chunk: usize = 1_000;
            /// How long rows stay after the floor was raised past them, so that a reader that began before is not cut off.
            retention_grace: Duration = Duration::from_mins(1);
            /// How long a deduplication key is remembered.
            deduplication_window: Duration = Duration::from_hours(24 * 7);
            /// Most recent events of a tenant kept in memory while it has readers.
            ring_max_events: usize = 8_192;
            /// Bytes of a tenant's most recent events kept in memory while it has readers.
            ring_max_bytes: Size = Size(16 << 20);
            /// What all tenants' recent events in memory share.
            ring_total_bytes: Size = Size(128 << 20);
            /// Committed events that may wait in memory for a tenant's tail; beyond, the tail reads the store.
            tail_queue_max_events: usize = 32_768;
            /// How long a commit that nobody announced may stay unseen.
            tail_poll_interval: Duration = Duration::from_secs(1);
            /// How long a tenant's tail runs on without readers.
            tail_linger: Duration = Duration::from_mins(1);
            /// Tenants that may have a tail at once; tails without readers make room.
            max_live_tenants: usize = 10_000;
            /// Events read at once from the store.
            catchup_page_size: usize = 500;
            /// Bytes read at once from the store; a larger event is read alone.
            catchup_page_bytes: Size = Size(1 << 20);
            /// After how many skipped numbers a live reader is told where it stands.
            cursor_advance_every: u64 = 100;
            /// Frames that are fed to a connection before they leave in one write.
            outbound_queue_max: usize = 64;
            /// How long a gateway session survives its connection.
            resume_window: Duration = Duration::from_mins(1);
            /// How far behind the head a person or app may start over the gateway; farther is `too_far_behind`.
            max_catchup_events: u64 = 10_000;
        }
        /// The gateway's connections.
        gateway: GatewaySection {
            /// How often a peer is pinged; one that is silent for two intervals is closed with 4004.
            heartbeat_interval: Duration = Duration::from_secs(30);
            /// How long a new connection has until `identify` or `resume`.
            identify_timeout: Duration = Duration::from_secs(10);
            /// How long a peer has to drain what is written at once; then it is closed with 4014.
            write_timeout: Duration = Duration::from_secs(10);
            /// The largest frame that a peer may send; a larger one closes with 4011.
            max_frame_bytes: Size = Size(64 << 10);
            /// Frames a second that a peer may send, on average; more closes with 4008.
            max_frames_per_second: u32 = 20_000;
            /// Gateway connections of the whole process; one more closes with 4008.
            max_connections: usize = 50_000;
            /// Connections, streams and resumable sessions of one principal; one more closes with 4008.
            max_connections_per_principal: usize = 20_000;
        }
        /// The inbox: items, leases, attempts, signals.
        inbox: InboxSection {
            /// How long a lease lasts when the worker names nothing.
            lease_default: Duration = Duration::from_mins(2);
            /// The shortest lease.
            lease_min: Duration = Duration::from_secs(1);
            /// The longest lease or extension at once; what is asked beyond is shortened to it.
            lease_max: Duration = Duration::from_hours(1);
            /// From the claim: beyond it no heartbeat extends a lease.
            attempt_deadline: Duration = Duration::from_hours(12);
            /// The first rest after a failed attempt; it doubles with each, with full jitter.
            retry_base: Duration = Duration::from_secs(30);
            /// The longest rest, and the longest `retry_after_seconds`.
            retry_cap: Duration = Duration::from_mins(15);
            /// Counted attempts before an item becomes a dead letter, where the publisher names none.
            max_attempts: u32 = 5;
            /// By how much one step of priority (low, normal, high, urgent) puts an item before others that became available at the same time.
            priority_boost: Duration = Duration::from_mins(5);
            /// Attempts that an item's history keeps, the latest.
            history_max: usize = 20;
            /// Of those, the latest whose result is kept too.
            results_kept: usize = 3;
            /// Bytes of a worker's line about an attempt.
            summary_max: Size = Size(2 << 10);
            /// Bytes of what a worker hands in.
            result_max: Size = Size(64 << 10);
            /// How often it is looked for what time has changed: lapsed leases, due retries, expiries, ended absences.
            sweep_interval: Duration = Duration::from_secs(1);
            /// Items of one inbox that are moved in one transaction.
            sweep_batch: usize = 500;
            /// Inboxes that one round of the sweeper looks at.
            sweep_inboxes: usize = 64;
            /// Inboxes that the sweeper works on at the same time, so that they share a commit.
            sweep_concurrency: usize = 8;
            /// How often it is looked for what is older than its retention.
            prune_interval: Duration = Duration::from_mins(1);
            /// Rows of each kind that are removed in one transaction.
            prune_batch: usize = 500;
            /// After how long a waiter or a stream looks again when the store failed.
            store_retry: Duration = Duration::from_secs(1);
            /// The longest wait of a poll or a claim; a longer `wait_seconds` is shortened to it.
            poll_wait_max: Duration = Duration::from_secs(30);
            /// Items that one page of a poll, a listing or a bulk operation looks at, whether or not they match; the next page goes on.
            scan_max: usize = 10_000;
            /// Items of one page of a poll at most.
            poll_max_items: usize = 1_000;
            /// Entries of one claim, acknowledge or heartbeat.
            claim_max_items: usize = 100;
            /// Bytes of events that one claim hands out; a larger single event is handed out alone.
            claim_max_bytes: Size = Size(4 << 20);
            /// Waits and streams of the whole process; one more is answered at once.
            max_waiters: usize = 100_000;
            /// Waits and streams of one agent; one more is answered at once.
            max_waiters_per_agent: usize = 100;
            /// After how long a stream rings again while items stay unclaimed; the last is repeated.
            ring_again: Durations = Durations([5, 20, 60, 360].map(Duration::from_mins).to_vec());
            /// Up to how many the items of a backlog are counted.
            backlog_count_max: u64 = 200;
            /// How long acknowledged, expired and discarded items are kept.
            ended_retention: Duration = Duration::from_hours(24 * 30);
            /// How long an `Idempotency-Key` of a claim is remembered.
            claim_record_retention: Duration = Duration::from_hours(24);
            /// How long a session is kept that is not heard of.
            session_retention: Duration = Duration::from_hours(24 * 7);
            /// At most how often it is written that a session was heard of.
            session_touch_interval: Duration = Duration::from_secs(15);
            /// Items that one redrive or discard changes; what is left needs another call.
            bulk_max: usize = 10_000;
            /// Queues that one request names, and paused queues of one inbox.
            max_queues: usize = 256;
            /// The longest absence that ends by itself.
            presence_max: Duration = Duration::from_hours(24 * 366);
            /// How often what waits in all inboxes is counted for the metrics.
            totals_interval: Duration = Duration::from_secs(15);
            /// How often an idle stream of signals says that it is alive.
            sse_heartbeat: Duration = Duration::from_secs(15);
        }
        /// Hooks: signed calls to agents that are not connected.
        hooks: HooksSection {
            /// Hooks of one agent, of both kinds together; 0 turns hooks off.
            max_per_agent: usize = 5;
            /// Hooks of one tenant.
            max_per_tenant: usize = 1_000;
            /// Whether plain http is called.
            allow_http: bool = false;
            /// Private networks that may be reached: ranges, or exact addresses with a port. Loopback, link-local and metadata addresses only exactly.
            allow_networks: List<hooks::AllowedNetwork> = List(Vec::new());
            /// The only hosts that may be called, names or `*.name`; any when empty.
            url_allow_list: List<String> = List(Vec::new());
            /// The ports that may be dialled; 443 and 8443, and 80 with `hooks.allow_http`, when empty.
            ports: List<u16> = List(Vec::new());
            /// One attempt, from the look-up of the name to the end of the answer.
            attempt_timeout: Duration = Duration::from_secs(5);
            /// Attempts of one ring.
            attempts: u32 = 3;
            /// Pauses before the second attempt and those after it, give or take a fifth; the last is repeated.
            retry: Durations = Durations([1, 5].map(Duration::from_secs).to_vec());
            /// The longest `Retry-After` that is honoured.
            retry_after_max: Duration = Duration::from_mins(1);
            /// Exhausted rings in a row that disable a hook.
            disable_after: u32 = 10;
            /// How long a replaced key still signs.
            rotation_overlap: Duration = Duration::from_hours(24);
            /// Keys of one hook that sign at the same time; the oldest goes when another comes.
            keys_max: usize = 4;
            /// Outstanding rings of one hook; above, they collapse into one backlog ring per queue, and what comes until that is delivered joins it.
            outstanding_max: usize = 1_000;
            /// The same of a hook whose last ring was given up.
            outstanding_failing_max: usize = 16;
            /// Attempts at the same time. Rings that are not first attempts of healthy hooks take at most half.
            concurrency: usize = 64;
            /// The same of one tenant.
            concurrency_per_tenant: usize = 8;
            /// The same at one host.
            concurrency_per_host: usize = 4;
            /// How often it is looked for news without being told.
            poll_interval: Duration = Duration::from_secs(1);
            /// How long the dispatcher lets news gather before it looks at the log.
            gather_interval: Duration = Duration::from_millis(10);
            /// Rows of the log that are looked at in one step.
            page: usize = 500;
            /// Bytes of the log that are looked at in one step.
            page_bytes: Size = Size(4 << 20);
            /// Tenants whose hooks are told of news at once; those beyond wait for `hooks.poll_interval`.
            tails_max: usize = 1_000;
            /// Queues that one hook names, and queues that one backlog is told apart into; `hooks.outstanding_max` of the latter where that is more.
            max_queues: usize = 64;
            /// Attempts kept of each hook.
            log_max: usize = 50;
            /// Whether notify hooks must answer a challenge before they are rung.
            require_verification: bool = false;
            /// How long a challenge can be answered.
            challenge_ttl: Duration = Duration::from_mins(10);
            /// How long a signature by RFC 9421 counts.
            signature_ttl: Duration = Duration::from_mins(5);
            /// The most requests per minute that a callback can ask for, and what one has that asks for nothing.
            callback_rate_max: u32 = 60;
            /// How long one of the server's signing keys signs before the next does.
            server_key_period: Duration = Duration::from_hours(90 * 24);
            /// What the server calls itself.
            user_agent: String = concat!("Doorstep/", env!("CARGO_PKG_VERSION")).to_owned();
        }
        /// Secrets at rest.
        security: SecuritySection {
            /// The master key that seals what the store keeps secret: 32 bytes in base64. Better in a file.
            master_key: MaybeSecret = MaybeSecret(None);
            /// A file with the master key. Without either, the embedded store makes one in `<data>/master-key`.
            master_key_file: MaybePath = MaybePath(None);
            /// Files with keys that were the master key before: what they sealed still opens.
            previous_master_key_files: List<PathBuf> = List(Vec::new());
        }
        /// Identities, rights and the audit log.
        authz: AuthzSection {
            /// Authenticated tokens kept in memory.
            token_cache_max: usize = 20_000;
            /// For how long what was read is trusted while nothing observes the tenant's log.
            cache_ttl: Duration = Duration::from_secs(1);
            /// Principals of a tenant whose rights are kept although nothing uses them at the moment.
            rights_cache_max: usize = 20_000;
            /// Spaces and channels of a tenant that are remembered to exist.
            place_cache_max: usize = 20_000;
            /// How often denials and token uses are written.
            flush_interval: Duration = Duration::from_secs(1);
            /// Pairs of actor and action whose denials are counted apart in memory; further ones are counted together.
            denials_max: usize = 10_000;
            /// At most how often a token's last use is noted.
            token_use_interval: Duration = Duration::from_mins(1);
            /// Token uses waiting to be written.
            token_uses_max: usize = 20_000;
            /// How long audit entries are kept.
            audit_retention: Duration = Duration::from_hours(24 * 90);
            /// How long the answer under an `Idempotency-Key` is kept.
            idempotency_window: Duration = Duration::from_hours(24);
            /// How often what is older than that is removed.
            prune_interval: Duration = Duration::from_mins(10);
            /// Tokens of a principal that are neither revoked nor expired.
            max_tokens_per_principal: u64 = 100;
        }
        /// Stopping.
        shutdown: ShutdownSection {
            /// How long stopping may take in all: flushing cursors, telling peers, draining writes, closing the store.
            total_timeout: Duration = Duration::from_secs(20);
            /// Over how long connections are asked to leave (4013), one after another, so that they do not all reach the other servers at once. At most
            /// half of `shutdown.total_timeout`. Without other servers (embedded store) they leave at once.
            drain_spread: Duration = Duration::from_secs(5);
        }
        /// Log lines on standard error.
        log: LogSection {
            /// What to log: a level, or directives such as `info,doorstep_gateway=debug`.
            filter: String = "info".to_owned();
            /// How a line is written.
            format: LogFormat = LogFormat::Text;
        }
    }
}

impl Config {
    /// The values in force as TOML.
    pub(crate) fn to_toml(&self) -> String {
        let mut out = String::new();
        let mut section = "";
        for (name, value) in self.values() {
            let (in_section, key) = name.split_once('.').unwrap_or(("", name));
            if in_section != section {
                let gap = if section.is_empty() { "" } else { "\n" };
                let _ = writeln!(out, "{gap}[{in_section}]");
                section = in_section;
            }
            let _ = writeln!(out, "{key} = {}", as_toml(&value));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Sources, load, reference};
    use crate::config::schema::Schema;

    #[test]
    fn the_shown_configuration_is_a_configuration() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), Config::default().to_toml()).unwrap();
        let loaded = load(&Sources { file: Some(file.path().to_owned()), ..Sources::default() }).unwrap();
        assert_eq!(loaded.values(), Config::default().values());
    }

    #[test]
    fn the_reference_has_every_key() {
        let reference = reference();
        for key in Config::keys() {
            assert!(reference.contains(&format!("| `{}` |", key.name)), "{}", key.name);
            assert!(!key.doc.is_empty());
        }
    }
}
