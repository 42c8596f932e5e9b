//! Everything that a store holds, as tables that every engine can read and write. Where an engine arranges something else, its adapter translates.

use crate::Kind;

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What it is called.
    pub name: &'static str,
    /// What it holds when it is not absent.
    pub kind: Kind,
}

/// Declares the tables, in the order in which they can be filled.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident $name:literal { $($column:ident: $kind:ident),+ $(,)? })+) => {
        /// A table. The order is that in which they are filled: what a row refers to comes before it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Table {
            $($(#[$doc])* $table),+
        }

        impl Table {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$table),+];

            /// What it is called.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$table => $name),+
                }
            }

            /// Its columns, in the order of a row's values.
            pub const fn columns(self) -> &'static [Column] {
                match self {
                    $(Self::$table => &[$(Column { name: stringify!($column), kind: Kind::$kind }),+]),+
                }
            }
        }
    };
}

tables! {
    /// Tenants.
    Tenants "tenants" {
        tenant_id: Text, created_at: Integer,
    }
    /// Principals.
    Principals "principals" {
        tenant_id: Text, principal_id: Text, kind: Text, role: Text, display_name: Text, enabled: Flag, created_at: Integer,
    }
    /// Access tokens.
    Tokens "tokens" {
        tenant_id: Text, token_id: Uuid, principal_id: Text, hash: Bytes, prefix: Text, scopes: Text, created_at: Integer,
        expires_at: Integer, last_used_at: Integer, revoked_at: Integer,
    }
    /// Spaces.
    Spaces "spaces" {
        tenant_id: Text, space_id: Text, created_at: Integer,
    }
    /// Channels.
    Channels "channels" {
        tenant_id: Text, space_id: Text, channel_id: Text, created_at: Integer,
    }
    /// Grants.
    Grants "grants" {
        tenant_id: Text, grant_id: Uuid, principal_id: Text, resource: Text, permission: Text, created_at: Integer,
    }
    /// The audit log.
    AuditLog "audit_log" {
        tenant_id: Text, entry_id: Integer, at: Integer, actor: Text, action: Text, target: Text, decision: Text, count: Integer,
        before: Text, after: Text, aggregated: Flag,
    }
    /// Answers of creating requests.
    IdempotencyKeys "idempotency_keys" {
        tenant_id: Text, principal_id: Text, key: Text, request_hash: Bytes, status: Integer, body: Text, created_at: Integer,
    }
    /// The logs: one row per tenant. Numbers are kept.
    LogHeads "log_heads" {
        tenant_number: Integer, tenant_id: Text, state: Text, head: Integer, floor: Integer, floor_raised_at: Integer, epoch: Uuid,
    }
    /// The retained events of all logs.
    EventLog "event_log" {
        tenant_number: Integer, seq: Integer, id: Uuid, type: Text, channel: Text, audience: Text, origin: Integer, created_at: Integer,
        body: Text,
    }
    /// Deduplication keys.
    DeduplicationKeys "deduplication_keys" {
        tenant_number: Integer, key: Text, body_hash: Bytes, event_id: Uuid, seq: Integer, expires_at: Integer,
    }
    /// Events that wait for their time.
    ScheduledEvents "scheduled_events" {
        tenant_id: Text, event_id: Uuid, available_at: Integer, publisher: Text, state: Text, failure: Text, type: Text, channel: Text,
        audience: Text, origin: Integer, created_at: Integer, key: Text, body_hash: Bytes, key_expires_at: Integer, body: Text,
        work: Text,
    }
    /// The durable cursors.
    AgentConsumerCursors "agent_consumer_cursors" {
        tenant_id: Text, agent_id: Text, consumer_name: Text, acked_seq: Integer, epoch: Uuid, holder_session_id: Uuid,
        window_version: Integer, read_seq: Integer, sent_before: Integer, page_first: Integer, highest_sent: Integer,
        redeliver_up_to: Integer, in_flight: Bytes, updated_at: Integer, taken_at: Integer,
    }
    /// Inboxes. `recipient_number` is unique among all tenants.
    InboxRecipients "inbox_recipients" {
        tenant_number: Integer, recipient_number: Integer, agent_id: Text, closed: Integer, head: Integer, next_due: Integer,
        presence: Integer, presence_until: Integer, paused: Flag, paused_queues: Text, max_in_flight: Integer, concurrency: Integer,
        active_session: Text,
    }
    /// Items that have not ended.
    InboxItems "inbox_items" {
        tenant_number: Integer, recipient_number: Integer, event_id: Uuid, is_current: Flag, state: Integer, ring_seq: Integer,
        claim_key: Integer, due_at: Integer, inbox_seq: Integer, type: Text, kind: Text, source: Text, summary: Text, queue: Text,
        priority: Integer, deduplication_key: Text, available_at: Integer, expires_at: Integer, max_attempts: Integer,
        created_at: Integer, envelope_bytes: Integer, dead_letter: Integer, delivery_attempts: Integer, counted_attempts: Integer,
        generation: Integer, lease_hash: Bytes, history: Text, lease_until: Integer, attempt_deadline: Integer, claimed_at: Integer,
        heartbeat_at: Integer, session_id: Text, backoff: Integer, next_retry_at: Integer,
    }
    /// Items that have ended.
    InboxEnded "inbox_ended" {
        tenant_number: Integer, recipient_number: Integer, event_id: Uuid, state: Integer, ring_seq: Integer, claim_key: Integer,
        inbox_seq: Integer, type: Text, kind: Text, source: Text, summary: Text, queue: Text, priority: Integer,
        deduplication_key: Text, available_at: Integer, expires_at: Integer, max_attempts: Integer, created_at: Integer,
        envelope_bytes: Integer, dead_letter: Integer, delivery_attempts: Integer, counted_attempts: Integer, generation: Integer,
        lease_hash: Bytes, history: Text, ended_at: Integer,
    }
    /// Envelopes that outlive their event. `recipients` are the numbers of the inboxes that need one, ascending, separated by commas.
    InboxPayloads "inbox_payloads" {
        tenant_number: Integer, seq: Integer, event_id: Uuid, recipients: Text, body: Text,
    }
    /// The keys of lease tokens.
    InboxKeys "inbox_keys" {
        tenant_number: Integer, lease_key: Bytes,
    }
    /// What the idempotency keys of claims stand for.
    InboxClaims "inbox_claims" {
        tenant_number: Integer, recipient_number: Integer, key: Text, request_hash: Bytes, claims: Bytes, created_at: Integer,
    }
    /// Sessions of agents.
    AgentSessions "agent_sessions" {
        tenant_id: Text, session_id: Text, agent_id: Text, device: Text, transport: Text, connected_at: Integer, heartbeat_at: Integer,
        last_seen: Integer, token_id: Uuid, is_active: Flag,
    }
    /// Hooks.
    Hooks "hooks" {
        hook_id: Uuid, tenant_id: Text, agent_id: Text, kind: Text, profile: Text, url: Text, queues: Text, ignore_presence: Flag,
        max_rate_per_minute: Integer, state: Text, disabled_cause: Text, challenge_delivery: Text, challenge_nonce: Text,
        challenge_text: Text, challenge_expires_at: Integer, last_status: Integer, last_attempt_at: Integer, exhausted_in_row: Integer,
        since: Integer, created_at: Integer, next_due: Integer,
    }
    /// Keys of hooks; secrets stay sealed.
    HookKeys "hook_keys" {
        tenant_id: Text, hook_id: Uuid, key_id: Text, secret: Bytes, algorithm: Text, public_key: Bytes, created_at: Integer, expires_at: Integer,
    }
    /// Rings on their way.
    HookDeliveries "hook_deliveries" {
        tenant_id: Text, hook_id: Uuid, webhook_id: Text, reason: Text, cause: Integer, event_id: Uuid, queue: Text, attempts: Integer, next_at: Integer,
        created_at: Integer,
    }
    /// The last attempts of each hook.
    HookAttempts "hook_attempts" {
        tenant_id: Text, hook_id: Uuid, number: Integer, webhook_id: Text, reason: Text, event_id: Uuid, attempt: Integer, at: Integer, latency: Integer,
        status: Integer, class: Text,
    }
    /// How far each log was looked at for hooks.
    HookPositions "hook_positions" {
        tenant_id: Text, epoch: Uuid, position: Integer,
    }
    /// How far numbers were given away: of tenants, of the audit log's lines, of inboxes. A number is never used again.
    Numbers "numbers" {
        of_what: Text, last: Integer,
    }
    /// The server's signing keys; they stay sealed.
    HookServerKeys "hook_server_keys" {
        key_id: Text, public_key: Bytes, pair: Bytes, signs_from: Integer,
    }
}
