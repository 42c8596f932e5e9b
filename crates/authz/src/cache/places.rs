//! Spaces and channels that are known to exist.

use std::collections::HashMap;
use std::sync::RwLock;
use std::time::Duration;

use domain::{ChannelRef, SpaceId, Timestamp};

use super::{Freshness, read, write};
use crate::Resource;

/// A space or a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    Space(&'a SpaceId),
    Channel(&'a ChannelRef),
}

impl Place<'_> {
    /// Its name as grants write it; spaces and channels cannot be confused, only the latter have a slash.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Space(space) => space.as_str(),
            Self::Channel(channel) => channel.as_str(),
        }
    }
}

/// A bounded memory of the places of one tenant.
#[derive(Debug, Default)]
pub(crate) struct Places {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    generation: u64,
    known: HashMap<Box<str>, Freshness>,
}

impl Places {
    /// Whether the place is known to exist.
    pub(crate) fn has(&self, place: Place<'_>, session: u64, now: Timestamp, ttl: Duration) -> bool {
        read(&self.state).known.get(place.as_str()).is_some_and(|freshness| freshness.holds(session, now, ttl))
    }

    /// What must not have moved when a read that begins now is remembered.
    pub(crate) fn generation(&self) -> u64 {
        read(&self.state).generation
    }

    /// Remembers a place, unless one was removed since `generation`.
    pub(crate) fn remember(&self, generation: u64, place: Place<'_>, freshness: Freshness, max: usize) {
        let mut state = write(&self.state);
        if state.generation != generation {
            return;
        }
        if state.known.len() >= max {
            state.known.clear();
        }
        state.known.insert(place.as_str().into(), freshness);
    }

    /// Forgets a place that was removed, with everything in it.
    pub(crate) fn forget(&self, resource: &Resource) {
        let mut state = write(&self.state);
        state.generation += 1;
        match resource {
            Resource::All => state.known.clear(),
            Resource::Channel(channel) => {
                state.known.remove(channel.as_str());
            }
            Resource::Space(space) => state.known.retain(|name, _| name.split('/').next() != Some(space.as_str())),
        }
    }
}
