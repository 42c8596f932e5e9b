//! Which sessions there are: by id, by consumer, by owner; attached to a connection or waiting to be resumed. No I/O.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agents::ConsumerKey;
use domain::SessionId;
use tokio::time::Instant;

use crate::session::{Link, Owner, Session};
use crate::{Backlog, Metrics};

/// Bounds of the registry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegistryLimits {
    /// `gateway.max_connections_per_principal`.
    pub(crate) per_owner: usize,
    /// Sessions in all, attached or not.
    pub(crate) sessions: usize,
    /// `sync.resume_window`.
    pub(crate) resume_window: Duration,
}

/// Why a session cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotResumable {
    /// There is none with this id, or it is another principal's.
    Unknown,
    /// Its resume window has passed.
    Expired,
}

/// A session that holds a consumer in this process.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) session: Arc<Session>,
    /// Its connection, if it has one at the moment.
    pub(crate) link: Option<Arc<Link>>,
}

#[derive(Debug)]
enum State {
    Attached(Arc<Link>),
    /// Since when.
    Detached(Instant),
    /// Since when. Kept for a while so that a late resume hears `session_expired` and not `unknown_session`.
    Expired(Instant),
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    state: State,
}

/// What one owner uses.
#[derive(Debug, Default)]
struct Usage {
    /// Connections and streams.
    slots: usize,
    /// Sessions that wait to be resumed, the oldest first.
    detached: Vec<SessionId>,
}

#[derive(Debug, Default)]
struct Inner {
    sessions: HashMap<SessionId, Entry>,
    consumers: HashMap<ConsumerKey, SessionId>,
    owners: HashMap<Owner, Usage>,
}

/// The sessions of this process.
#[derive(Debug)]
pub(crate) struct Registry {
    limits: RegistryLimits,
    inner: Mutex<Inner>,
    metrics: Arc<Metrics>,
}

/// The right to one connection or stream of an owner, given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    registry: Arc<Registry>,
    owner: Owner,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.registry.with(|inner| {
            if let Some(usage) = inner.owners.get_mut(&self.owner) {
                usage.slots = usage.slots.saturating_sub(1);
            }
            inner.forget_unused(&self.owner);
        });
    }
}

impl Registry {
    pub(crate) fn new(limits: RegistryLimits, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { limits, inner: Mutex::default(), metrics })
    }

    /// Takes a slot. Sessions that wait to be resumed make room, the oldest first; `None` when connections alone use up the bound.
    pub(crate) fn reserve(self: &Arc<Self>, owner: &Owner) -> Option<Slot> {
        let evicted = self.with(|inner| {
            let usage = inner.owners.entry(owner.clone()).or_default();
            if usage.slots >= self.limits.per_owner {
                return None;
            }
            usage.slots += 1;
            let excess = (usage.slots + usage.detached.len()).saturating_sub(self.limits.per_owner);
            let evicted: Vec<SessionId> = usage.detached.drain(..excess.min(usage.detached.len())).collect();
            for id in &evicted {
                inner.remove(*id);
            }
            Some(evicted)
        });
        evicted.map(|_| self.slot(owner))
    }

    /// Takes a slot to resume a session with. Never refused: the connection that it replaces goes.
    pub(crate) fn reserve_for_resume(self: &Arc<Self>, owner: &Owner) -> Slot {
        self.with(|inner| inner.owners.entry(owner.clone()).or_default().slots += 1);
        self.slot(owner)
    }

    fn slot(self: &Arc<Self>, owner: &Owner) -> Slot {
        Slot { registry: Arc::clone(self), owner: owner.clone() }
    }

    /// Who holds the consumer in this process.
    pub(crate) fn held(&self, key: &ConsumerKey) -> Option<Held> {
        self.with(|inner| {
            let entry = inner.consumers.get(key).and_then(|id| inner.sessions.get(id))?;
            Some(Held { session: Arc::clone(&entry.session), link: entry.link() })
        })
    }

    /// A new session enters, attached to `link`. Answers the session whose consumer it takes; that has ended.
    pub(crate) fn enter(&self, session: &Arc<Session>, link: &Arc<Link>) -> Option<Held> {
        self.with(|inner| {
            let displaced = session.key().and_then(|key| inner.displace(key));
            if let Some(key) = session.key() {
                inner.consumers.insert(key.clone(), session.id());
            }
            let entry = Entry { session: Arc::clone(session), state: State::Attached(Arc::clone(link)) };
            inner.sessions.insert(session.id(), entry);
            displaced
        })
    }

    /// A consumer is taken by somebody who is no session. Answers the session that held it; that has ended.
    pub(crate) fn displace(&self, key: &ConsumerKey) -> Option<Held> {
        self.with(|inner| inner.displace(key))
    }

    /// The session `id` of `owner`, if it can be resumed at `now`.
    pub(crate) fn find(&self, id: SessionId, owner: &Owner, now: Instant) -> Result<Arc<Session>, NotResumable> {
        self.with(|inner| inner.resumable(id, owner, now, self.limits.resume_window).map(|entry| Arc::clone(&entry.session)))
    }

    /// Attaches a session to another connection. Answers the connection that it had, which is to be closed.
    pub(crate) fn reattach(&self, session: &Session, link: &Arc<Link>, now: Instant) -> Result<Option<Arc<Link>>, NotResumable> {
        self.with(|inner| {
            let entry = inner.resumable(session.id(), session.owner(), now, self.limits.resume_window)?;
            let before = std::mem::replace(&mut entry.state, State::Attached(Arc::clone(link)));
            if let Some(usage) = inner.owners.get_mut(session.owner()) {
                usage.detached.retain(|id| *id != session.id());
            }
            Ok(match before {
                State::Attached(link) => Some(link),
                State::Detached(_) | State::Expired(_) => None,
            })
        })
    }

    /// The connection behind `link` is gone. Its session waits to be resumed when `resumable`, else it ends. A session that has another
    /// connection meanwhile is left alone; answers whether it had none.
    pub(crate) fn leave(&self, session: &Session, link: &Arc<Link>, resumable: bool, now: Instant) -> bool {
        self.with(|inner| {
            let has_room = inner.sessions.len() <= self.limits.sessions;
            let Some(entry) = inner.sessions.get_mut(&session.id()).filter(|entry| entry.is_attached_to(link)) else { return false };
            if !resumable || !has_room {
                inner.remove(session.id());
                return true;
            }
            entry.state = State::Detached(now);
            let usage = inner.owners.entry(session.owner().clone()).or_default();
            usage.detached.push(session.id());
            true
        })
    }

    /// The session has ended; answers the connection that is to be closed.
    pub(crate) fn end(&self, session: &Session) -> Option<Arc<Link>> {
        self.with(|inner| {
            let link = inner.sessions.get(&session.id()).and_then(Entry::link);
            inner.remove(session.id());
            link
        })
    }

    /// The connection of a session.
    pub(crate) fn link(&self, session: &Session) -> Option<Arc<Link>> {
        self.with(|inner| inner.sessions.get(&session.id()).and_then(Entry::link))
    }

    /// Every connection of a session.
    pub(crate) fn links(&self) -> Vec<Arc<Link>> {
        self.with(|inner| inner.sessions.values().filter_map(Entry::link).collect())
    }

    /// Ends sessions whose resume window has passed, and forgets those that ended a window ago.
    pub(crate) fn sweep(&self, now: Instant) {
        let window = self.limits.resume_window;
        self.with(|inner| {
            let mut forgotten = Vec::new();
            for (id, entry) in &mut inner.sessions {
                match entry.state {
                    State::Detached(since) if since + window <= now => entry.state = State::Expired(now),
                    State::Expired(since) if since + window <= now => forgotten.push(*id),
                    _ => {}
                }
            }
            for id in forgotten {
                inner.remove(id);
            }
        });
    }

    /// How far the attached consumers are behind.
    pub(crate) fn backlog(&self, now: Instant) -> Backlog {
        self.with(|inner| {
            let attached = inner.sessions.values().filter(|entry| entry.session.key().is_some() && entry.link().is_some());
            attached.fold(Backlog::default(), |sum, entry| {
                let behind = entry.session.backlog();
                let waiting = entry.session.oldest_sent().map(|sent| now.saturating_duration_since(sent));
                Backlog { events: sum.events + behind, most: sum.most.max(behind), oldest_unacked: sum.oldest_unacked.max(waiting) }
            })
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(&mut inner);
        self.metrics.sessions.set(inner.sessions.len() as u64);
        done
    }
}

impl Entry {
    fn link(&self) -> Option<Arc<Link>> {
        match &self.state {
            State::Attached(link) => Some(Arc::clone(link)),
            State::Detached(_) | State::Expired(_) => None,
        }
    }

    fn is_attached_to(&self, link: &Arc<Link>) -> bool {
        matches!(&self.state, State::Attached(own) if Arc::ptr_eq(own, link))
    }
}

impl Inner {
    fn resumable(&mut self, id: SessionId, owner: &Owner, now: Instant, window: Duration) -> Result<&mut Entry, NotResumable> {
        let entry = self.sessions.get_mut(&id).filter(|entry| entry.session.owner() == owner).ok_or(NotResumable::Unknown)?;
        match entry.state {
            State::Expired(_) => Err(NotResumable::Expired),
            State::Detached(since) if since + window <= now => Err(NotResumable::Expired),
            State::Attached(_) | State::Detached(_) => Ok(entry),
        }
    }

    fn displace(&mut self, key: &ConsumerKey) -> Option<Held> {
        let id = *self.consumers.get(key)?;
        let entry = self.sessions.get(&id)?;
        let held = Held { session: Arc::clone(&entry.session), link: entry.link() };
        self.remove(id);
        Some(held)
    }

    fn remove(&mut self, id: SessionId) {
        let Some(Entry { session, .. }) = self.sessions.remove(&id) else { return };
        if let Some(key) = session.key()
            && self.consumers.get(key) == Some(&id)
        {
            self.consumers.remove(key);
        }
        if let Some(usage) = self.owners.get_mut(session.owner()) {
            usage.detached.retain(|detached| *detached != id);
        }
        self.forget_unused(session.owner());
    }

    fn forget_unused(&mut self, owner: &Owner) {
        if self.owners.get(owner).is_some_and(|usage| usage.slots == 0 && usage.detached.is_empty()) {
            self.owners.remove(owner);
        }
    }
}
