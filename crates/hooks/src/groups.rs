//! Which groups of tenants this node works for. Who says so, and by what, is not decided here.

use std::time::Duration;

use crate::GroupNumber;

/// The groups of tenants that are this node's: it alone looks at their logs and sends their rings. A group is a node's for a time that is
/// lengthened again and again; it ends by itself when the node falls silent.
///
/// What is stored is fenced besides, by the group's [`crate::Generation`]. A ring cannot be fenced once it is on the wire: no attempt begins that
/// might outlast [`GroupLeases::remaining`], and whoever gives a group up of its own accord first waits for [`crate::Hooks::quiet`].
pub trait GroupLeases: Send + Sync {
    /// The groups that are this node's now.
    fn held(&self) -> Vec<GroupNumber>;
    /// For how long from now no other node can have the group; zero for one that is not this node's. By a clock that never jumps.
    fn remaining(&self, group: GroupNumber) -> Duration;
}

/// Every group of a store that one process alone uses, for good.
#[derive(Clone, Debug)]
pub struct EveryGroup(Vec<GroupNumber>);

impl EveryGroup {
    /// These groups.
    pub const fn new(groups: Vec<GroupNumber>) -> Self {
        Self(groups)
    }
}

impl Default for EveryGroup {
    /// The one group of an embedded store.
    fn default() -> Self {
        Self(vec![GroupNumber(0)])
    }
}

impl GroupLeases for EveryGroup {
    fn held(&self) -> Vec<GroupNumber> {
        self.0.clone()
    }

    fn remaining(&self, group: GroupNumber) -> Duration {
        if self.0.contains(&group) { Duration::MAX } else { Duration::ZERO }
    }
}
