//! Hooks: what is this store's own.

mod damage;
mod registrations;
mod upkeep;

use ::hooks::Hook;
use testkit::conformance::hooks::{EVERY_GROUP, MINUTE, agent, attempt_of, hook_of, ids, key_id, ring_at, secret, unit};
