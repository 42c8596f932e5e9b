//! Everything that the store holds as plain values: leaving for another store, or arriving from one.

mod export;
mod import;

use transfer::Table;

use crate::sql::sql;

pub(crate) use import::is_unfinished;

/// How a table leaves and arrives.
struct Statements {
    /// Answers its columns in the transfer's form, behind a key.
    export: &'static str,
    /// Takes an array for each column.
    load: &'static str,
    /// Which of the columns are the key by which it goes on.
    key: &'static [usize],
}

fn statements(table: Table) -> Option<Statements> {
    let (export, load, key): (_, _, &'static [usize]) = match table {
        Table::Tenants => (sql!("authz/export_tenants"), sql!("authz/load_tenants"), &[0]),
        Table::Principals => (sql!("authz/export_principals"), sql!("authz/load_principals"), &[0, 1]),
        Table::Tokens => (sql!("authz/export_tokens"), sql!("authz/load_tokens"), &[0, 1]),
        Table::Spaces => (sql!("authz/export_spaces"), sql!("authz/load_spaces"), &[0, 1]),
        Table::Channels => (sql!("authz/export_channels"), sql!("authz/load_channels"), &[0, 1, 2]),
        Table::Grants => (sql!("authz/export_grants"), sql!("authz/load_grants"), &[0, 1]),
        Table::AuditLog => (sql!("authz/export_audit_log"), sql!("authz/load_audit_log"), &[0, 1]),
        Table::IdempotencyKeys => (sql!("authz/export_idempotency_keys"), sql!("authz/load_idempotency_keys"), &[0, 1, 2]),
        Table::LogHeads => (sql!("sync/export_log_heads"), sql!("sync/load_log_heads"), &[0]),
        Table::EventLog => (sql!("sync/export_event_log"), sql!("sync/load_event_log"), &[0, 1]),
        Table::DeduplicationKeys => (sql!("sync/export_deduplication_keys"), sql!("sync/load_deduplication_keys"), &[0, 1]),
        Table::ScheduledEvents => (sql!("intake/export_scheduled_events"), sql!("intake/load_scheduled_events"), &[0, 1]),
        Table::AgentConsumerCursors => {
            (sql!("agents/export_agent_consumer_cursors"), sql!("agents/load_agent_consumer_cursors"), &[0, 1, 2])
        }
        Table::InboxRecipients => (sql!("inbox/export_inbox_recipients"), sql!("inbox/load_inbox_recipients"), &[0, 1]),
        Table::InboxItems => (sql!("inbox/export_inbox_items"), sql!("inbox/load_inbox_items"), &[0, 1, 2]),
        Table::InboxEnded => (sql!("inbox/export_inbox_ended"), sql!("inbox/load_inbox_ended"), &[0, 1, 2]),
        Table::InboxPayloads => (sql!("inbox/export_inbox_payloads"), sql!("inbox/load_inbox_payloads"), &[0, 1]),
        Table::InboxKeys => (sql!("inbox/export_inbox_keys"), sql!("inbox/load_inbox_keys"), &[0]),
        Table::InboxClaims => (sql!("inbox/export_inbox_claims"), sql!("inbox/load_inbox_claims"), &[0, 1, 2]),
        Table::AgentSessions => (sql!("inbox/export_agent_sessions"), sql!("inbox/load_agent_sessions"), &[0, 1]),
        Table::Hooks => (sql!("hooks/export_hooks"), sql!("hooks/load_hooks"), &[1, 0]),
        Table::HookKeys => (sql!("hooks/export_hook_keys"), sql!("hooks/load_hook_keys"), &[0, 1, 2]),
        Table::HookDeliveries => (sql!("hooks/export_hook_deliveries"), sql!("hooks/load_hook_deliveries"), &[0, 1, 2]),
        Table::HookAttempts => (sql!("hooks/export_hook_attempts"), sql!("hooks/load_hook_attempts"), &[0, 1, 2]),
        Table::HookPositions => (sql!("hooks/export_hook_positions"), sql!("hooks/load_hook_positions"), &[0]),
        Table::HookServerKeys => (sql!("hooks/export_hook_server_keys"), sql!("hooks/load_hook_server_keys"), &[0]),
        Table::Numbers => (sql!("store/export_numbers"), sql!("store/load_numbers"), &[0]),
        _ => return None,
    };
    Some(Statements { export, load, key })
}
