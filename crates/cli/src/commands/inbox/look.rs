//! Looking at items. Changes nothing.

use client::{Client, ItemFilter, PageRequest};
use protocol::{InboxItem, ItemAttempt};

use super::super::{cell, when};
use super::{ListArguments, TargetArguments};
use crate::failure::Failure;
use crate::session::Session;

pub(super) async fn list(client: &Client, arguments: ListArguments, session: &Session) -> Result<(), Failure> {
    let (created_after, created_before) = arguments.filter.span();
    let ListArguments { agent, filter, limit } = arguments;
    let filter = ItemFilter {
        recipient: agent,
        state: filter.state,
        queue: filter.queue,
        event_type: filter.event_type,
        created_before,
        created_after,
    };
    let mut items = Vec::new();
    let mut cursor = None;
    while items.len() < limit as usize {
        let rest = limit - items.len() as u32;
        let page = client.inbox_items(&filter, &PageRequest { cursor, limit: Some(rest) }).await?;
        items.extend(page.items);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    items.truncate(limit as usize);
    session.list(&["EVENT", "TYPE", "QUEUE", "STATE", "PRIORITY", "ATTEMPTS", "CREATED", "SUMMARY"], &items, |item: &InboxItem| {
        vec![
            item.event_id.to_string(),
            item.event_type.to_string(),
            item.queue.to_string(),
            state(item),
            item.priority.to_string(),
            format!("{}/{}", item.counted_attempts, item.max_attempts),
            when(item.created_at_utc),
            item.summary.clone(),
        ]
    })
}

pub(super) async fn show(client: &Client, target: &TargetArguments, session: &Session) -> Result<(), Failure> {
    let item = client.inbox_item(target.agent.as_ref(), target.event).await?;
    shown(&item, session)
}

/// Prints an item: its members, then its attempts.
pub(super) fn shown(item: &InboxItem, session: &Session) -> Result<(), Failure> {
    let time = |instant: Option<client::Timestamp>| instant.map(when).unwrap_or_default();
    let members = [
        ("event", item.event_id.to_string()),
        ("seq", item.inbox_seq.to_string()),
        ("agent", item.recipient_id.to_string()),
        ("type", item.event_type.to_string()),
        ("kind", cell(item.kind.as_ref())),
        ("source", cell(item.source.as_ref())),
        ("summary", item.summary.clone()),
        ("queue", item.queue.to_string()),
        ("priority", item.priority.to_string()),
        ("state", state(item)),
        ("attempts", format!("{}, {} of {} counted", claims(item.delivery_attempts), item.counted_attempts, item.max_attempts)),
        ("available", when(item.availability_at_utc)),
        ("expires", time(item.expires_at_utc)),
        ("leased until", time(item.visibility_lease_until_utc)),
        ("deadline", time(item.attempt_deadline_utc)),
        ("held by", cell(item.lease_owner_session_id.as_ref())),
        ("next retry", time(item.next_retry_at_utc)),
        ("created", when(item.created_at_utc)),
        ("ended", time(item.ended_at_utc)),
    ];
    session.item(item, &members)?;
    if session.options.json || item.attempts.is_empty() {
        return Ok(());
    }
    session.line("")?;
    session.list(&["ATTEMPT", "CLAIMED", "ENDED", "OUTCOME", "SUMMARY"], &item.attempts, |attempt: &ItemAttempt| {
        vec![
            attempt.number.to_string(),
            when(attempt.claimed_at_utc),
            when(attempt.ended_at_utc),
            attempt.outcome.to_string(),
            cell(attempt.summary.as_ref()),
        ]
    })
}

fn claims(count: u32) -> String {
    if count == 1 { "1 claim".to_owned() } else { format!("{count} claims") }
}

fn state(item: &InboxItem) -> String {
    if item.paused { format!("{} (paused)", item.ack_state) } else { item.ack_state.to_string() }
}

pub(super) async fn head(client: &Client, etag: Option<&str>, session: &Session) -> Result<(), Failure> {
    let Some(tagged) = client.inbox_head(etag).await? else { return Err(Failure::NothingToDo) };
    let members = [
        ("agent", tagged.head.recipient.recipient_id.to_string()),
        ("head", tagged.head.head_seq.to_string()),
        ("epoch", tagged.head.sync_epoch.to_string()),
        ("etag", cell(tagged.etag.as_ref())),
    ];
    session.item(&Shown { head: &tagged.head, etag: tagged.etag.as_deref() }, &members)
}

#[derive(serde::Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    head: &'a protocol::InboxHead,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<&'a str>,
}
