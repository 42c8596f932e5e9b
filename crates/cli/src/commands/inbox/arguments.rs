//! What the commands of `doorstep inbox` take.

use std::num::NonZeroU64;
use std::time::Duration;

use clap::Args;
use client::{Clock as _, EventId, EventType, PrincipalId, QueueName, SystemClock, Timestamp};
use protocol::{AckState, InboxItemFilter, Secret};

use crate::arguments::{secret, word};
use crate::duration;

/// Which items.
#[derive(Clone, Debug, Default, Args)]
pub struct FilterArguments {
    /// In this state.
    #[arg(long, value_parser = word::<AckState>())]
    pub(super) state: Option<AckState>,
    /// In this queue.
    #[arg(long, short, value_name = "QUEUE")]
    pub(super) queue: Option<QueueName>,
    /// Of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) event_type: Option<EventType>,
    /// Made before this long ago.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(super) older_than: Option<Duration>,
    /// Made within this long.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(super) newer_than: Option<Duration>,
}

fn ago(duration: Duration) -> Timestamp {
    SystemClock::new().now().minus(duration)
}

impl FilterArguments {
    /// The instants between which items were made: after the first, before the second.
    pub(super) fn span(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        (self.newer_than.map(ago), self.older_than.map(ago))
    }

    pub(super) fn for_bulk(&self, events: Vec<EventId>) -> InboxItemFilter {
        let (created_after, created_before) = self.span();
        InboxItemFilter {
            states: self.state.map(|state| vec![state]),
            queue: self.queue.clone(),
            event_type: self.event_type.clone(),
            created_before,
            created_after,
            event_ids: (!events.is_empty()).then_some(events),
        }
    }
}

/// What `doorstep inbox ls` takes.
#[derive(Clone, Debug, Args)]
pub struct ListArguments {
    /// Of this agent; of the token's own when absent. For operators.
    #[arg(long, value_name = "ID")]
    pub(super) agent: Option<PrincipalId>,
    #[command(flatten)]
    pub(super) filter: FilterArguments,
    /// The most items.
    #[arg(long, value_name = "N", default_value = "100")]
    pub(super) limit: u32,
}

/// One item.
#[derive(Clone, Debug, Args)]
pub struct TargetArguments {
    /// The item: the id of its event.
    #[arg(value_name = "EVENT")]
    pub(super) event: EventId,
    /// Of this agent; of the token's own when absent. For operators.
    #[arg(long, value_name = "ID")]
    pub(super) agent: Option<PrincipalId>,
}

/// What `doorstep inbox claim` takes.
#[derive(Clone, Debug, Args)]
pub struct ClaimArguments {
    /// Claim these; what comes next when absent.
    #[arg(value_name = "EVENT")]
    pub(super) events: Vec<EventId>,
    /// Only of this queue; may be repeated.
    #[arg(long = "queue", short, value_name = "QUEUE", conflicts_with = "events")]
    pub(super) queues: Vec<QueueName>,
    /// The most items.
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "events")]
    pub(super) limit: NonZeroU64,
    /// How long the lease lasts; the server's `inbox.lease_default` when absent.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(super) lease: Option<Duration>,
    /// How long to wait for an item; the server caps it to `inbox.poll_wait_max`.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "events")]
    pub(super) wait: Option<Duration>,
}

/// An item that is held.
#[derive(Clone, Debug, Args)]
pub struct LeaseArguments {
    /// The item: the id of its event.
    #[arg(value_name = "EVENT")]
    pub(super) event: EventId,
    /// The lease token, as `inbox claim` has printed it.
    #[arg(value_name = "LEASE_TOKEN", value_parser = secret, hide_env_values = true)]
    pub(super) lease_token: Secret,
}

/// What `doorstep inbox redrive` and `discard` take.
#[derive(Clone, Debug, Args)]
pub struct BulkArguments {
    /// The agent.
    pub(super) agent: PrincipalId,
    #[command(flatten)]
    pub(super) filter: FilterArguments,
    /// Exactly this item; may be repeated.
    #[arg(long = "event", value_name = "EVENT")]
    pub(super) events: Vec<EventId>,
    /// Every item, where nothing else says which.
    #[arg(long)]
    pub(super) all: bool,
    /// Only count.
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl ListArguments {
    /// Whose.
    pub(crate) const fn agent(&self) -> Option<&PrincipalId> {
        self.agent.as_ref()
    }
}

impl BulkArguments {
    /// Whose.
    pub(crate) const fn agent(&self) -> &PrincipalId {
        &self.agent
    }
}

impl LeaseArguments {
    /// Of what.
    pub(crate) const fn event(&self) -> EventId {
        self.event
    }
}

impl TargetArguments {
    /// Whether it names an agent.
    pub(crate) const fn is_of_another(&self) -> bool {
        self.agent.is_some()
    }
}

impl std::fmt::Display for TargetArguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "item {}", self.event)?;
        self.agent.as_ref().map_or(Ok(()), |agent| write!(f, " of agent {agent}"))
    }
}
