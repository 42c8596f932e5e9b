//! What is kept of an inbox as a whole: its head, presence, pauses and policy.

use std::collections::BTreeSet;

use domain::{AgentSessionId, QueueName, Seq, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Recipient, RecipientNumber};

/// Whether an agent wants to be rung. The inbox itself never cares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// Bells and hooks ring.
    #[default]
    In,
    /// They stay silent, until `until` where it is given.
    Out {
        /// When the agent is back by itself.
        until: Option<Timestamp>,
    },
}

impl Presence {
    /// What time has made of it by `now`.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        match self {
            Self::Out { until: Some(until) } if until <= now => Self::In,
            presence => presence,
        }
    }
}

/// How many of an agent's sessions may claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concurrency {
    /// All of them; claims serialise.
    #[default]
    ManySessions,
    /// Only the one that subscribed last.
    SingleActiveSession,
}

/// What an operator decided about an agent's inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Most items that the agent may hold at once; unlimited when absent.
    pub max_in_flight: Option<u32>,
    /// How many of its sessions may claim.
    pub concurrency: Concurrency,
}

/// The row of an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipientRow {
    /// Its number.
    pub number: RecipientNumber,
    /// Whose it is.
    pub recipient: Recipient,
    /// The highest `ring_seq` that it ever had: its head, and its ETag.
    pub head: Seq,
    /// A lower bound of when time will next change it: an item that is due, or the end of an absence. The sweeper looks for it.
    pub next_due: Option<Timestamp>,
    /// Whether the agent wants to be rung.
    pub presence: Presence,
    /// Nothing of it is claimable, nothing rings, nothing is lost.
    pub paused: bool,
    /// The same for single queues.
    pub paused_queues: BTreeSet<QueueName>,
    /// What an operator decided.
    pub policy: Policy,
    /// The session that subscribed last; counts under [`Concurrency::SingleActiveSession`].
    pub active_session: Option<AgentSessionId>,
}

impl RecipientRow {
    /// Whether items of `queue` are held back.
    pub fn is_paused(&self, queue: &QueueName) -> bool {
        self.paused || self.paused_queues.contains(queue)
    }

    /// Whether bells ring at `now`.
    pub fn rings(&self, now: Timestamp) -> bool {
        !self.paused && self.presence.at(now) == Presence::In
    }

    /// Has the sweeper look again at `due` at the latest.
    pub fn look_at(&mut self, due: Option<Timestamp>) {
        self.next_due = [self.next_due, due].into_iter().flatten().min();
    }
}
