//! The rules of identities and rights over an identity store in memory.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a helper fails the test")]

extern crate doorstep_authz as authz;

mod administration;
mod admission;
mod authentication;
mod authorization;
mod fake;
mod idempotency;
mod model;
mod upkeep;
mod world;
