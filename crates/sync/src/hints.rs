//! What nodes over one store tell each other: that something happened, never what. Whoever hears a hint looks at the store for itself.
//!
//! Architecture invariant: every hint may be lost, repeated or late. Whatever depends on one also happens without it, later.

mod exchange;
mod queue;
mod together;
mod wire;

use domain::{ConsumerName, PrincipalId, Seq, TenantId};

pub use exchange::{HintExchange, HintMetrics, HintSettings};
pub use together::InOneProcess;

/// What one node tells the others (design/stream.md, "Several nodes").
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A log has a new head.
    Head {
        /// Whose log.
        tenant: TenantId,
        /// The highest position that was committed.
        seq: Seq,
    },
    /// A consumer was taken over.
    Taken {
        /// The agent's tenant.
        tenant: TenantId,
        /// The agent.
        agent: PrincipalId,
        /// The consumer's name under the agent.
        consumer: ConsumerName,
    },
}

/// Tells the other nodes.
pub trait HintBus: Send + Sync {
    /// Tells what was committed just now. Never blocks and never fails: what cannot be passed on is forgotten. A node does not hear its own hints.
    fn tell(&self, hint: Hint);
}

/// Hears what other nodes tell.
pub trait HintListener: Send + Sync {
    /// Another node told this. Must not block.
    fn heard(&self, hint: &Hint);
}
