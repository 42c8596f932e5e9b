//! What operators do with inboxes.

use client::{Client, PrincipalId, QueueName};
use protocol::{AckState, BulkRequest, InboxPolicy, InboxState, ItemTarget, PauseRequest};

use super::super::{cell, when, words, yes_no};
use super::{BulkArguments, TargetArguments};
use crate::failure::Failure;
use crate::session::Session;

/// An operation on many items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bulk {
    Redrive,
    Discard,
}

pub(super) async fn bulk(client: &Client, what: Bulk, arguments: BulkArguments, session: &Session) -> Result<(), Failure> {
    let BulkArguments { agent, mut filter, events, all, dry_run } = arguments;
    if what == Bulk::Redrive {
        filter.state.get_or_insert(AckState::DeadLetter);
    }
    let filter = filter.for_bulk(events);
    if what == Bulk::Discard && !all && filter == protocol::InboxItemFilter::default() {
        return Err(Failure::Usage("say which items: --state, --queue, --type, --older-than, --newer-than, --event, or --all".to_owned()));
    }
    let request = BulkRequest { tenant_id: None, recipient_id: agent, filter, dry_run: dry_run.then_some(true) };
    let done = match what {
        Bulk::Redrive => client.redrive_items(&request).await?,
        Bulk::Discard => client.discard_items(&request).await?,
    };
    let changed = match what {
        Bulk::Redrive => "redriven",
        Bulk::Discard => "discarded",
    };
    let mut members = vec![("matched", done.matched.to_string())];
    if !done.dry_run {
        members.push((changed, done.changed.to_string()));
    }
    if done.more_available {
        members.push(("more", "yes: run it again".to_owned()));
    }
    session.item(&done, &members)
}

pub(super) fn target(target: TargetArguments) -> Result<ItemTarget, Failure> {
    let recipient_id = target.agent.ok_or_else(|| Failure::Usage("--agent says whose item it is".to_owned()))?;
    Ok(ItemTarget { tenant_id: None, event_id: target.event, recipient_id })
}

pub(super) fn pause(agent: PrincipalId, queue: Option<QueueName>) -> PauseRequest {
    PauseRequest { tenant_id: None, recipient_id: agent, queue }
}

/// Prints where an inbox stands.
pub(in crate::commands) fn state(state: &InboxState, session: &Session) -> Result<(), Failure> {
    let presence = match state.presence.until_utc {
        Some(until) => format!("{} until {}", state.presence.state, when(until)),
        None => state.presence.state.to_string(),
    };
    let members = [
        ("agent", state.recipient.recipient_id.to_string()),
        ("presence", presence),
        ("paused", yes_no(state.paused)),
        ("paused queues", words(&state.paused_queues)),
        ("most at once", cell(state.policy.max_in_flight.as_ref())),
        ("available", state.backlog.available.to_string()),
        ("claimed", state.backlog.claimed.to_string()),
        ("resting", state.backlog.resting.to_string()),
        ("next due", state.backlog.next_due_at_utc.map(when).unwrap_or_default()),
        ("head", state.head_seq.to_string()),
    ];
    session.item(state, &members)
}

/// Prints what operators have decided about an inbox.
pub(super) fn policy(policy: InboxPolicy, session: &Session) -> Result<(), Failure> {
    let most = policy.max_in_flight.map_or_else(|| "unlimited".to_owned(), |most| most.to_string());
    session.item(&policy, &[("most at once", most), ("concurrency", cell(policy.concurrency.as_ref()))])
}
