//! Who is there, for the instance's operator.

use std::fmt;
use std::sync::Arc;

use authz::{Action, Authorizer, Caller, Target};
use domain::{StoreError, Timestamp};
use thiserror::Error;

use crate::{Cluster, Node, NodeState, WorkName};

/// Every refusal of [`Nodes`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NodesError {
    /// Authorisation says no.
    #[error(transparent)]
    Denied(#[from] authz::Denied),
    /// The store's failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether a node is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// As it says itself.
    There(NodeState),
    /// It gave no sign of life for `cluster.node_timeout`.
    Lost,
}

/// A node as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// What it says of itself.
    pub node: Node,
    /// Its last sign of life.
    pub seen_at: Timestamp,
    /// Whether it is there.
    pub presence: Presence,
    /// The work that it does, by name.
    pub works: Vec<WorkName>,
    /// Whether it is the one that answers.
    pub is_self: bool,
}

/// The use case of listing nodes.
pub struct Nodes {
    cluster: Arc<Cluster>,
    authorizer: Arc<Authorizer>,
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nodes").finish_non_exhaustive()
    }
}

impl Nodes {
    /// Over what `cluster` knows.
    pub fn new(cluster: Arc<Cluster>, authorizer: Arc<Authorizer>) -> Self {
        Self { cluster, authorizer }
    }

    /// `listNodes`: every node that is not forgotten, by when it started; for the instance's operator.
    ///
    /// # Errors
    /// [`NodesError::Denied`] for everybody else.
    pub async fn list(&self, caller: &Caller) -> Result<Vec<NodeReport>, NodesError> {
        self.authorizer.authorize(caller, Action::NodesRead, Target::Instance).await?;
        Ok(self.cluster.report().await?)
    }
}
