//! Principals, tokens, spaces, channels, grants, the audit log and stored answers.

mod audit;
mod events;
mod read;
mod rows;
mod write;

pub(crate) use rows::collect;
pub(crate) use write::{channel_exists, existing_agents, existing_channels, principal};

use crate::store::transactions;

transactions!(dyn authz::AdminTx);
