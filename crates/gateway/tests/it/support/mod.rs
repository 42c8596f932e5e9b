//! What these tests are made of: a store in memory, peers in memory, and a world that joins them with the real engine.

mod memory;
mod peer;
mod world;

pub(crate) use memory::{Call, Memory};
pub(crate) use peer::{Peer, connect};
pub(crate) use world::{HIDDEN, OPEN, World, WorldSettings, agent, key, person, seq, tenant};
