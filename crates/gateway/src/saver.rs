//! Saving acknowledgements and verifying holders: one ticker for the whole process, and single saves where a moment demands it
//! (seed 004, design note 9; design/stream.md, "Saving and verifying").

use std::sync::{Arc, Mutex, PoisonError};

use agents::{ConsumerError, Consumers, Save, SaveOutcome};
use domain::Seq;
use protocol::CloseCode;
use tokio::sync::Notify;

use crate::Metrics;
use crate::registry::Registry;
use crate::session::Session;

/// Saves in one call to the store, so that one tick never holds its writer for long.
const BATCH: usize = 500;

/// Saves what sessions hold. Cost follows activity: only sessions that were touched since the last tick, or have something on its way,
/// are looked at.
pub(crate) struct Saver {
    consumers: Arc<dyn Consumers>,
    registry: Arc<Registry>,
    metrics: Arc<Metrics>,
    touched: Mutex<Vec<Arc<Session>>>,
    /// Rung when the next tick must not wait.
    hurry: Notify,
    /// Held while a tick runs: whoever flushes waits for the saves that are under way.
    ticking: tokio::sync::Mutex<()>,
}

impl Saver {
    pub(crate) fn new(consumers: Arc<dyn Consumers>, registry: Arc<Registry>, metrics: Arc<Metrics>) -> Self {
        Self { consumers, registry, metrics, touched: Mutex::default(), hurry: Notify::new(), ticking: tokio::sync::Mutex::default() }
    }

    /// Something was dispatched or acknowledged: the next tick saves or verifies the session.
    pub(crate) fn touch(&self, session: &Arc<Session>) {
        if session.key().is_some() && session.list() {
            self.lock(|touched| touched.push(Arc::clone(session)));
        }
    }

    /// Somebody else may hold the session's consumer by now: it is verified as soon as the ticker gets to it.
    pub(crate) fn doubt(&self, session: &Arc<Session>) {
        self.touch(session);
        self.hurry.notify_one();
    }

    /// Waits until a session is doubted.
    pub(crate) async fn hurried(&self) {
        self.hurry.notified().await;
    }

    /// Saves and verifies what was touched, in batches. Answers whether everything that was held is stored.
    pub(crate) async fn tick(&self) -> bool {
        let _alone = self.ticking.lock().await;
        let mut touched = self.lock(std::mem::take);
        let mut complete = true;
        while !touched.is_empty() {
            let rest = touched.split_off(BATCH.min(touched.len()));
            complete &= self.save_batch(&touched).await;
            touched = rest;
        }
        complete
    }

    async fn save_batch(&self, sessions: &[Arc<Session>]) -> bool {
        let (mut batch, mut saves) = (Vec::with_capacity(sessions.len()), Vec::with_capacity(sessions.len()));
        for session in sessions {
            session.unlist();
            if let Some(save) = session.to_save() {
                batch.push(session);
                saves.push(save);
            }
        }
        if saves.is_empty() {
            return true;
        }
        let outcomes = match self.consumers.save(&saves).await {
            Ok(outcomes) if outcomes.len() == saves.len() => outcomes,
            Ok(_) => return self.postpone(&batch, "the store answered another number of outcomes"),
            Err(error) => return self.postpone(&batch, &error.to_string()),
        };
        for ((session, save), outcome) in batch.into_iter().zip(&saves).zip(outcomes) {
            self.apply(session, save, outcome);
            if session.is_dirty() || session.has_in_flight() {
                self.touch(session);
            }
        }
        true
    }

    fn postpone(&self, batch: &[&Arc<Session>], cause: &str) -> bool {
        self.metrics.save_failures.increment();
        tracing::warn!(sessions.count = batch.len(), error.cause = %cause, "acknowledgements could not be saved; the next tick tries again");
        for session in batch {
            self.touch(session);
        }
        false
    }

    /// Saves or verifies one session at once: before a redelivery, a resume, a takeover, after a close.
    pub(crate) async fn save(&self, session: &Session) -> Result<SaveOutcome, ConsumerError> {
        let Some(save) = session.to_save() else { return Ok(SaveOutcome::Replaced) };
        let outcomes = self.consumers.save(std::slice::from_ref(&save)).await?;
        let outcome = outcomes.first().copied().unwrap_or(SaveOutcome::Replaced);
        self.apply(session, &save, outcome);
        Ok(outcome)
    }

    /// Saves what one session holds, if anything. A failure leaves it to the next tick.
    pub(crate) async fn flush(&self, session: &Arc<Session>) {
        if !session.is_dirty() {
            return;
        }
        if let Err(error) = self.save(session).await {
            self.postpone(&[session], &error.to_string());
        }
    }

    fn apply(&self, session: &Session, save: &Save, outcome: SaveOutcome) {
        match outcome {
            SaveOutcome::Held(stored) => self.adopt(session, save, stored),
            SaveOutcome::Replaced => {
                if let Some(link) = self.registry.end(session) {
                    link.close(CloseCode::ConsumerReplaced);
                }
            }
        }
    }

    /// The stored acknowledgement is at least what was saved; what lies above came over REST, and the window adopts it.
    fn adopt(&self, session: &Session, save: &Save, stored: Seq) {
        if save.acked.is_some() {
            self.metrics.saves.increment();
        }
        let news = stored > session.position();
        session.adopt(stored);
        if news && let Some(link) = self.registry.link(session) {
            link.wake();
        }
    }

    fn lock<T>(&self, act: impl FnOnce(&mut Vec<Arc<Session>>) -> T) -> T {
        act(&mut self.touched.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
