//! Hooks: what is this store's own.

pub(crate) mod damage;
mod registrations;
pub(crate) mod upkeep;

use ::hooks::Hook;
use testkit::conformance::hooks::{EVERY_GROUP, MINUTE, agent, attempt_of, hook_of, ids, key_id, ring_at, secret, unit};
