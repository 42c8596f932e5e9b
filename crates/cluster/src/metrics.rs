//! What a node counts about its place among the others. Knows no metrics library.

use domain::{Counter, Gauge};

/// Counted by [`crate::Cluster`].
#[derive(Debug, Default)]
pub struct Metrics {
    /// Nodes that are there, this one included.
    pub nodes: Gauge,
    /// Pieces of work that this node does at the moment.
    pub held: Gauge,
    /// Leases taken.
    pub taken: Counter,
    /// Leases lost: not renewed in time, or taken by another.
    pub lost: Counter,
    /// Leases given back: to share the work, or when the node stops.
    pub given_back: Counter,
    /// Work that had to be cut off because it did not stop in time.
    pub cut_off: Counter,
    /// Rounds of signs of life and renewals that failed.
    pub failures: Counter,
}
