//! What operators do with inboxes.

use client::{Client, ItemFilter, PageRequest, PrincipalId, QueueName};
use protocol::{AckState, BulkRequest, HookState, InboxItemFilter, InboxPolicy, InboxState, ItemTarget, NotifyHook, PauseRequest};
use serde::Serialize;

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
    let BulkArguments { agent, filter, events, all, dry_run } = arguments;
    let mut filter = filter.for_bulk(events);
    if !all && filter == InboxItemFilter::default() {
        return Err(Failure::Usage("say which items: --state, --queue, --type, --older-than, --newer-than, --event, or --all".to_owned()));
    }
    if what == Bulk::Redrive {
        filter.states.get_or_insert_with(|| vec![AckState::DeadLetter]);
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

/// The most items of a state that are counted.
const COUNTED: u32 = 100;

/// Items of a state, as far as they were counted.
#[derive(Clone, Copy, Debug, Serialize)]
struct Count {
    count: usize,
    /// Whether there are more.
    more: bool,
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.count, if self.more { "+" } else { "" })
    }
}

/// The notify hooks of an agent, by their state.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Hooks {
    active: usize,
    pending_verification: usize,
    disabled: usize,
}

impl Hooks {
    fn of(hooks: &[NotifyHook]) -> Self {
        let count = |state: HookState| hooks.iter().filter(|hook| hook.state.known() == Some(state)).count();
        let (active, pending_verification) = (count(HookState::Active), count(HookState::PendingVerification));
        Self { active, pending_verification, disabled: count(HookState::Disabled) }
    }
}

impl std::fmt::Display for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} active", self.active)?;
        for (count, state) in [(self.pending_verification, "pending verification"), (self.disabled, "disabled")] {
            if count > 0 {
                write!(f, ", {count} {state}")?;
            }
        }
        Ok(())
    }
}

/// An inbox with what has come to a stop in it, and with who is rung for it.
#[derive(Debug, Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    state: &'a InboxState,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantined: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hooks: Option<Hooks>,
}

/// Shows an inbox as a whole.
pub(super) async fn status(client: &Client, agent: Option<PrincipalId>, session: &Session) -> Result<(), Failure> {
    let state = client.inbox_state(agent.as_ref()).await?;
    let count = async |state| {
        let filter = ItemFilter { recipient: agent.clone(), state: Some(state), ..ItemFilter::default() };
        // Who may not list sees the rest all the same.
        let page = client.inbox_items(&filter, &PageRequest { cursor: None, limit: Some(COUNTED) }).await.ok()?;
        Some(Count { count: page.items.len(), more: page.next_cursor.is_some() })
    };
    let (dead_letter, quarantined) = (count(AckState::DeadLetter).await, count(AckState::Quarantined).await);
    let hooks = client.notify_hooks(agent.as_ref(), &PageRequest { cursor: None, limit: Some(COUNTED) }).await.ok();
    let hooks = hooks.map(|page| Hooks::of(&page.items));
    let mut members = members(&state);
    members.extend([("dead_letter", cell(dead_letter.as_ref())), ("quarantined", cell(quarantined.as_ref()))]);
    members.push(("hooks", cell(hooks.as_ref())));
    session.item(&Whole { state: &state, dead_letter, quarantined, hooks }, &members)
}

/// Prints where an inbox stands.
pub(in crate::commands) fn state(state: &InboxState, session: &Session) -> Result<(), Failure> {
    session.item(state, &members(state))
}

fn members(state: &InboxState) -> Vec<(&'static str, String)> {
    let presence = match state.presence.until_utc {
        Some(until) => format!("{} until {}", state.presence.state, when(until)),
        None => state.presence.state.to_string(),
    };
    vec![
        ("agent", state.recipient.recipient_id.to_string()),
        ("presence", presence),
        ("paused", yes_no(state.paused)),
        ("paused queues", words(&state.paused_queues)),
        ("most at once", most(state.policy)),
        ("concurrency", cell(state.policy.concurrency.as_ref())),
        ("available", state.backlog.available.to_string()),
        ("claimed", state.backlog.claimed.to_string()),
        ("resting", state.backlog.resting.to_string()),
        ("next due", state.backlog.next_due_at_utc.map(when).unwrap_or_default()),
        ("head", state.head_seq.to_string()),
    ]
}

fn most(policy: InboxPolicy) -> String {
    policy.max_in_flight.map_or_else(|| "unlimited".to_owned(), |most| most.to_string())
}

/// Prints what operators have decided about an inbox.
pub(super) fn policy(policy: InboxPolicy, session: &Session) -> Result<(), Failure> {
    session.item(&policy, &[("most at once", most(policy)), ("concurrency", cell(policy.concurrency.as_ref()))])
}
