//! What a cluster can be told, by the names of the configuration keys.

use std::time::Duration;

/// Settings of nodes over one store. The field documentation names the configuration key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `cluster.lease_duration`: how long a lease on a piece of work holds without being renewed. Renewed four times as often; work stops a fifth of it before its end.
    pub lease_duration: Duration,
    /// `cluster.node_timeout`: a node that gave no sign of life for so long counts as lost.
    pub node_timeout: Duration,
    /// `cluster.node_retention`: how long a lost node is listed.
    pub node_retention: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { lease_duration: Duration::from_secs(10), node_timeout: Duration::from_secs(15), node_retention: Duration::from_hours(1) }
    }
}

impl Settings {
    /// Between two rounds of signs of life and renewals.
    pub(crate) fn round(&self) -> Duration {
        (self.lease_duration / 4).max(Duration::from_millis(10))
    }

    /// How long before its lease expires work is asked to stop.
    pub(crate) fn notice(&self) -> Duration {
        self.lease_duration / 5
    }

    /// How long before its lease expires work that has not stopped is cut off.
    pub(crate) fn margin(&self) -> Duration {
        self.lease_duration / 20
    }
}
