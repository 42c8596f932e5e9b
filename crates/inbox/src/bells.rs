//! Bells: whoever waits for an inbox is rung when a row of the log concerns it. Level-triggered: a ring says that there is something to look
//! at; what it is, the store says.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use authz::ACCESS_CHANGED;
use domain::{Event, EventOrigin, PrincipalId, TenantId, Timestamp};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::metrics::Counted;
use crate::{INBOX_RESUMED, Metrics, Recipient};

/// What events of the inbox begin with.
const INBOX_PREFIX: &str = "inbox.";

/// What a bell has rung for, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rung {
    /// How often a row concerned the inbox.
    pub(crate) news: u64,
    /// How often that was `inbox.resumed`.
    pub(crate) resumed: u64,
    /// When the latest such row was accepted.
    pub(crate) at: Option<Timestamp>,
    /// How often somebody's rights changed: whoever waits asks whether it still may.
    pub(crate) access: u64,
    /// How often the agent came to hold less than it did.
    pub(crate) room: u64,
}

#[derive(Debug)]
struct Bell {
    sender: watch::Sender<Rung>,
    /// A signal was sent since the agent last fetched.
    hinted: Arc<AtomicBool>,
}

type Agents = HashMap<PrincipalId, Bell>;

/// The bells of every inbox for which somebody waits in this process.
#[derive(Debug)]
pub struct Bells {
    tenants: Mutex<HashMap<TenantId, Agents>>,
    waiting: AtomicUsize,
    most: usize,
    most_per_agent: usize,
    drained: CancellationToken,
    metrics: Arc<Metrics>,
}

impl Bells {
    pub(crate) fn new(most: usize, most_per_agent: usize, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            tenants: Mutex::default(),
            waiting: AtomicUsize::new(0),
            most,
            most_per_agent,
            drained: CancellationToken::new(),
            metrics,
        })
    }

    /// Sees committed events of a tenant, in order, after the authorizer did. Cheap: nothing is read.
    pub fn observe(&self, tenant: &TenantId, events: &[Arc<Event>]) {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(agents) = tenants.get(tenant) else { return };
        for event in events {
            let event_type = event.event_type.as_str();
            if event.origin == EventOrigin::Work || (event.origin == EventOrigin::Server && event_type.starts_with(INBOX_PREFIX)) {
                let resumed = u64::from(event_type == INBOX_RESUMED);
                for agent in event.audience.as_slice() {
                    if let Some(bell) = agents.get(agent) {
                        bell.sender.send_modify(|rung| {
                            rung.news += 1;
                            rung.resumed += resumed;
                            rung.at = Some(event.created_at);
                        });
                    }
                }
            } else if event_type == ACCESS_CHANGED {
                for bell in agents.values() {
                    bell.sender.send_modify(|rung| rung.access += 1);
                }
            }
        }
    }

    /// Takes a place at the bell of an inbox. What rings from now on is not missed.
    ///
    /// # Errors
    /// The key of the bound that is reached, when the house is full.
    pub(crate) fn enter(self: &Arc<Self>, recipient: &Recipient) -> Result<Waiter, &'static str> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if self.waiting.load(Ordering::Relaxed) >= self.most {
            return self.refuse("inbox.max_waiters");
        }
        let agents = tenants.entry(recipient.tenant.clone()).or_default();
        let bell = agents
            .entry(recipient.agent.clone())
            .or_insert_with(|| Bell { sender: watch::Sender::new(Rung::default()), hinted: Arc::default() });
        if bell.sender.receiver_count() >= self.most_per_agent.max(1) {
            return self.refuse("inbox.max_waiters_per_agent");
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let (rung, hinted) = (bell.sender.subscribe(), Arc::clone(&bell.hinted));
        let counted = Counted::new(&self.metrics, |metrics| &metrics.waiters);
        Ok(Waiter { bells: Arc::clone(self), recipient: recipient.clone(), rung: Some(rung), hinted, _counted: counted })
    }

    fn refuse(&self, key: &'static str) -> Result<Waiter, &'static str> {
        self.metrics.waiters_refused.increment();
        Err(key)
    }

    /// The agent fetches: counts whether a signal made it.
    pub(crate) fn fetched(&self, recipient: &Recipient) {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let bell = tenants.get(&recipient.tenant).and_then(|agents| agents.get(&recipient.agent));
        if bell.is_some_and(|bell| bell.hinted.swap(false, Ordering::Relaxed)) {
            self.metrics.fetches_after_signal.increment();
        }
    }

    /// The agent holds less than it did: claims that wait because of `max_in_flight` look again.
    pub(crate) fn make_room(&self, recipient: &Recipient) {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = tenants.get(&recipient.tenant).and_then(|agents| agents.get(&recipient.agent)) {
            bell.sender.send_modify(|rung| rung.room += 1);
        }
    }

    /// Ends every wait, now and from now on.
    pub(crate) fn drain(&self) {
        self.drained.cancel();
    }

    /// Whether every wait ends at once.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained.is_cancelled()
    }
}

/// One place at the bell of an inbox.
#[derive(Debug)]
pub(crate) struct Waiter {
    bells: Arc<Bells>,
    recipient: Recipient,
    /// Present until this place is left.
    rung: Option<watch::Receiver<Rung>>,
    hinted: Arc<AtomicBool>,
    _counted: Counted,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The bell rang.
    Rung,
    /// Every wait ends.
    Drained,
}

impl Waiter {
    /// What has rung up to now; marks it as seen.
    pub(crate) fn look(&mut self) -> Rung {
        self.rung.as_mut().map(|rung| *rung.borrow_and_update()).unwrap_or_default()
    }

    /// Waits for a ring that was not seen yet, or for the end of all waits.
    pub(crate) async fn woken(&mut self) -> Woken {
        let drained = self.bells.drained.clone();
        let Some(rung) = self.rung.as_mut() else { return Woken::Drained };
        tokio::select! {
            biased;
            () = drained.cancelled() => Woken::Drained,
            changed = rung.changed() => if changed.is_ok() { Woken::Rung } else { Woken::Drained },
        }
    }

    /// Notes that a signal was sent.
    pub(crate) fn hint(&self) {
        self.hinted.store(true, Ordering::Relaxed);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut tenants = self.bells.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        self.rung = None;
        self.bells.waiting.fetch_sub(1, Ordering::Relaxed);
        let Some(agents) = tenants.get_mut(&self.recipient.tenant) else { return };
        if agents.get(&self.recipient.agent).is_some_and(|bell| bell.sender.receiver_count() == 0) {
            agents.remove(&self.recipient.agent);
        }
        if agents.is_empty() {
            tenants.remove(&self.recipient.tenant);
        }
    }
}
