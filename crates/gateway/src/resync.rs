//! When a position cannot be served, and what a reader is told then.

use domain::{Seq, SyncEpoch};
use protocol::ResyncReason;

/// A position could not be served; reading goes on after `head`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resync {
    /// Why.
    pub reason: ResyncReason,
    /// The committed head.
    pub head: Seq,
    /// The log's present epoch.
    pub epoch: SyncEpoch,
    /// The lowest retained position.
    pub floor: Seq,
}
