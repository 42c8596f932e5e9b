//! `doorstep audit`.

use clap::Args;
use client::{AuditFilter, PageRequest, PrincipalId};
use protocol::admin::{AuditDecision, AuditItem};
use serde_json::value::RawValue;

use super::{cell, when};
use crate::arguments::word;
use crate::failure::Failure;
use crate::session::Session;

/// What `doorstep audit` takes.
#[derive(Clone, Debug, Args)]
pub struct AuditArguments {
    /// Entries of this principal only.
    #[arg(long, value_name = "ID")]
    actor: Option<PrincipalId>,
    /// Entries of this action only, such as events.publish.
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Entries with this decision only.
    #[arg(long, value_parser = word::<AuditDecision>())]
    decision: Option<AuditDecision>,
    /// The most entries.
    #[arg(long, value_name = "N", default_value = "100")]
    limit: u32,
}

/// Runs `doorstep audit`.
pub(crate) async fn run(arguments: AuditArguments, session: &Session) -> Result<(), Failure> {
    let AuditArguments { actor, action, decision, limit } = arguments;
    let (client, filter) = (session.client()?, AuditFilter { actor, action, decision });
    let mut entries = Vec::new();
    let mut cursor = None;
    while entries.len() < limit as usize {
        let rest = limit - entries.len() as u32;
        let page = client.audit(&filter, &PageRequest { cursor, limit: Some(rest) }).await?;
        entries.extend(page.items);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    entries.truncate(limit as usize);
    session.list(&["TIME", "DECISION", "COUNT", "ACTOR", "ACTION", "TARGET", "CHANGE"], &entries, |entry: &AuditItem| {
        vec![
            when(entry.at),
            entry.decision.to_string(),
            entry.count.to_string(),
            cell(entry.actor.as_ref()),
            entry.action.clone(),
            entry.target.clone(),
            change(entry.before.as_deref(), entry.after.as_deref()),
        ]
    })
}

fn change(before: Option<&RawValue>, after: Option<&RawValue>) -> String {
    match (before, after) {
        (None, None) => String::new(),
        (None, Some(after)) => format!("+ {after}"),
        (Some(before), None) => format!("- {before}"),
        (Some(before), Some(after)) => format!("{before} -> {after}"),
    }
}
