//! The outgoing port to hints about inboxes (`inbox_hints` of `identify`).

use async_trait::async_trait;
use authz::Caller;
use protocol::InboxUpdated;

/// Where hints about inboxes come from.
pub trait InboxHints: Send + Sync {
    /// The hints about the caller's own inbox, from what waits there already; `None` when there are no inboxes here.
    fn listen(&self, caller: &Caller) -> Option<Box<dyn Hints>>;
}

/// The hints of one connection.
#[async_trait]
pub trait Hints: Send + std::fmt::Debug {
    /// The next hint; `None` when no more will come. Cancel safe: what came meanwhile is not lost, only merged.
    async fn next(&mut self) -> Option<InboxUpdated>;
}

/// The binding of a server without inboxes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHints;

impl InboxHints for NoHints {
    fn listen(&self, _caller: &Caller) -> Option<Box<dyn Hints>> {
        None
    }
}
