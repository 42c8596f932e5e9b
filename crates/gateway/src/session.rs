//! A session: what survives a socket, and the link by which others reach the runner that serves it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agents::{ConsumerKey, Holder, Save};
use domain::{PrincipalId, Seq, SessionId, SyncEpoch, TenantId};
use protocol::CloseCode;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Whose session it is.
pub(crate) type Owner = (TenantId, PrincipalId);

/// Reaches the runner of one connection. A session that is resumed gets a new one, so that a message to the old connection never
/// touches the new.
#[derive(Debug, Default)]
pub(crate) struct Link {
    closing: OnceLock<CloseCode>,
    wake: Notify,
}

impl Link {
    /// Asks the runner to close; the first code wins.
    pub(crate) fn close(&self, code: CloseCode) {
        let _ = self.closing.set(code);
        self.wake.notify_one();
    }

    /// With which code the runner is to close, if it is.
    pub(crate) fn closing(&self) -> Option<CloseCode> {
        self.closing.get().copied()
    }

    /// Makes the runner look at its session.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until the runner is to look. A wake that came before is not lost.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Waits until the runner is to close. Swallows other wakes: whoever waits here looks at the session afterwards anyway.
    pub(crate) async fn closed(&self) -> CloseCode {
        loop {
            if let Some(code) = self.closing() {
                return code;
            }
            self.woken().await;
        }
    }
}

/// A gateway session. Its numbers are read by the save ticker and written by the runner, without a lock.
#[derive(Debug)]
pub(crate) struct Session {
    id: SessionId,
    owner: Owner,
    /// The consumer that it holds; absent for people and apps.
    key: Option<ConsumerKey>,
    /// The history that its positions belong to.
    epoch: SyncEpoch,
    /// Consumers: what is acknowledged. People and apps: the last position told.
    position: AtomicU64,
    /// Consumers: what is known to be stored.
    saved: AtomicU64,
    /// When the oldest event on its way to the consumer was dispatched: microseconds after `since`, plus 1; 0 when nothing is.
    oldest_sent: AtomicU64,
    since: Instant,
    /// The head as the runner saw it last.
    head: AtomicU64,
    /// It waits for the next tick.
    listed: AtomicBool,
    /// The agent wants hints about its inbox.
    wants_hints: AtomicBool,
    /// Its history is gone: nothing of it may be saved.
    outdated: AtomicBool,
}

impl Session {
    pub(crate) fn new(id: SessionId, owner: Owner, key: Option<ConsumerKey>, epoch: SyncEpoch, position: Seq) -> Arc<Self> {
        Arc::new(Self {
            id,
            owner,
            key,
            epoch,
            position: AtomicU64::new(position.get()),
            saved: AtomicU64::new(position.get()),
            oldest_sent: AtomicU64::new(0),
            since: Instant::now(),
            head: AtomicU64::new(position.get()),
            listed: AtomicBool::new(false),
            wants_hints: AtomicBool::new(false),
            outdated: AtomicBool::new(false),
        })
    }

    pub(crate) const fn id(&self) -> SessionId {
        self.id
    }

    pub(crate) const fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(crate) const fn key(&self) -> Option<&ConsumerKey> {
        self.key.as_ref()
    }

    pub(crate) const fn epoch(&self) -> SyncEpoch {
        self.epoch
    }

    /// Who holds the consumer when this session does.
    pub(crate) const fn holder(&self) -> Holder {
        Holder::Gateway(self.id)
    }

    pub(crate) fn position(&self) -> Seq {
        read(&self.position)
    }

    /// The runner got an acknowledgement.
    pub(crate) fn acknowledge(&self, seq: Seq) {
        self.position.fetch_max(seq.get(), Ordering::SeqCst);
    }

    /// An acknowledgement is stored, by whomever.
    pub(crate) fn adopt(&self, stored: Seq) {
        self.saved.fetch_max(stored.get(), Ordering::SeqCst);
        self.position.fetch_max(stored.get(), Ordering::SeqCst);
    }

    /// Sets the position, up or down: what was stored by a restart, or told to a person or app.
    pub(crate) fn set(&self, seq: Seq) {
        self.saved.store(seq.get(), Ordering::SeqCst);
        self.position.store(seq.get(), Ordering::SeqCst);
    }

    /// Whether an acknowledgement is held that is not known to be stored.
    pub(crate) fn is_dirty(&self) -> bool {
        self.key.is_some() && !self.is_outdated() && self.position() > read(&self.saved)
    }

    /// Notes when the oldest event on its way was dispatched; nothing is on its way without it.
    pub(crate) fn set_oldest_sent(&self, at: Option<Instant>) {
        let micros = |at: Instant| u64::try_from(at.saturating_duration_since(self.since).as_micros()).unwrap_or(u64::MAX - 1);
        self.oldest_sent.store(at.map_or(0, |at| micros(at) + 1), Ordering::SeqCst);
    }

    /// When the oldest event on its way was dispatched.
    pub(crate) fn oldest_sent(&self) -> Option<Instant> {
        let micros = self.oldest_sent.load(Ordering::SeqCst).checked_sub(1)?;
        self.since.checked_add(Duration::from_micros(micros))
    }

    pub(crate) fn has_in_flight(&self) -> bool {
        self.oldest_sent.load(Ordering::SeqCst) != 0
    }

    /// The runner sees the head of the log.
    pub(crate) fn see_head(&self, head: Seq) {
        self.head.store(head.get(), Ordering::Relaxed);
    }

    /// Events between what is acknowledged and the head.
    pub(crate) fn backlog(&self) -> u64 {
        self.head.load(Ordering::Relaxed).saturating_sub(self.position().get())
    }

    /// The agent asked for hints about its inbox, for as long as the session lives.
    pub(crate) fn want_hints(&self) {
        self.wants_hints.store(true, Ordering::Relaxed);
    }

    /// It may not hear them any more.
    pub(crate) fn want_no_hints(&self) {
        self.wants_hints.store(false, Ordering::Relaxed);
    }

    /// Whether it did.
    pub(crate) fn wants_hints(&self) -> bool {
        self.wants_hints.load(Ordering::Relaxed)
    }

    /// Marks it as waiting for the next tick; answers whether it was not.
    pub(crate) fn list(&self) -> bool {
        !self.listed.swap(true, Ordering::SeqCst)
    }

    /// The tick takes it. What happens from here on lists it again.
    pub(crate) fn unlist(&self) {
        self.listed.store(false, Ordering::SeqCst);
    }

    /// The history that its positions belong to was replaced.
    pub(crate) fn outdate(&self) {
        self.outdated.store(true, Ordering::SeqCst);
    }

    fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::SeqCst)
    }

    /// The save of what is held, or a mere verification when all of it is stored. `None` for people and apps, and when the history is gone. A session that
    /// has ended is saved like any other: the store's fence says whether it still may be.
    pub(crate) fn to_save(&self) -> Option<Save> {
        let key = self.key.clone().filter(|_| !self.is_outdated())?;
        let acked = self.is_dirty().then(|| self.position());
        Some(Save { key, holder: self.holder(), acked })
    }
}

fn read(seq: &AtomicU64) -> Seq {
    Seq::new(seq.load(Ordering::SeqCst)).unwrap_or(Seq::MAX)
}
