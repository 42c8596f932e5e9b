//! Durable cursors in memory, with the semantics of the port's documentation.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use agents::{ConsumerKey, ConsumerStatus, CursorRow, CursorStore, Holder, RestWindow, Save, SaveOutcome, Take, Taken, WindowWrite};
use async_trait::async_trait;
use domain::{ConsumerName, PrincipalId, Seq, StoreError, SyncEpoch, TenantId, Timestamp};

use crate::world::{NOW, epoch, seq};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) rows: BTreeMap<ConsumerKey, CursorRow>,
    pub(crate) head: Seq,
    pub(crate) epoch: SyncEpoch,
    /// Becomes the log's epoch before the next `ack`.
    pub(crate) next_epoch: Option<SyncEpoch>,
    pub(crate) takes: usize,
    pub(crate) acks: usize,
}

#[derive(Debug)]
pub(crate) struct Cursors(Mutex<State>);

impl Cursors {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State { rows: BTreeMap::new(), head: seq(40), epoch: epoch(1), next_epoch: None, takes: 0, acks: 0 }))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

fn status_of(state: &State, key: &ConsumerKey) -> Option<ConsumerStatus> {
    let row = state.rows.get(key)?.clone();
    Some(ConsumerStatus { name: key.name.clone(), row, head: state.head, epoch: state.epoch, updated_at: NOW })
}

#[async_trait]
impl CursorStore for Cursors {
    async fn take(&self, take: &Take, max_consumers: usize) -> Result<Taken, StoreError> {
        let mut state = self.state();
        state.takes += 1;
        let of_agent = |key: &&ConsumerKey| (&key.tenant, &key.agent) == (&take.key.tenant, &take.key.agent);
        let created = !state.rows.contains_key(&take.key);
        if created && state.rows.keys().filter(of_agent).count() >= max_consumers {
            return Err(StoreError::Conflict("too many consumers"));
        }
        let (head, epoch) = (state.head, state.epoch);
        let new = || CursorRow { acked: head, epoch, holder: None, window_version: 0, window: RestWindow::default() };
        let row = state.rows.entry(take.key.clone()).or_insert_with(new);
        let previous = row.holder.replace(take.holder);
        if previous != row.holder {
            (row.window, row.window_version) = (RestWindow::default(), row.window_version + 1);
        }
        row.epoch = epoch;
        Ok(Taken { row: row.clone(), created, previous, head, floor: seq(1), epoch, now: NOW })
    }

    async fn status(&self, key: &ConsumerKey) -> Result<Option<ConsumerStatus>, StoreError> {
        Ok(status_of(&self.state(), key))
    }

    async fn save(&self, saves: &[Save]) -> Result<Vec<SaveOutcome>, StoreError> {
        let mut state = self.state();
        let outcome = |save: &Save| match state.rows.get_mut(&save.key).filter(|row| row.holder == Some(save.holder)) {
            Some(row) => {
                row.acked = row.acked.max(save.acked.unwrap_or_default());
                SaveOutcome::Held(row.acked)
            }
            None => SaveOutcome::Replaced,
        };
        Ok(saves.iter().map(outcome).collect())
    }

    async fn ack(&self, key: &ConsumerKey, seq: Seq) -> Result<Option<ConsumerStatus>, StoreError> {
        let mut state = self.state();
        state.acks += 1;
        if let Some(epoch) = state.next_epoch.take() {
            state.epoch = epoch;
        }
        let epoch = state.epoch;
        if let Some(row) = state.rows.get_mut(key).filter(|row| row.epoch == epoch) {
            row.acked = row.acked.max(seq);
        }
        Ok(status_of(&state, key))
    }

    async fn restart(&self, key: &ConsumerKey, holder: Holder, seq: Seq) -> Result<SaveOutcome, StoreError> {
        match self.state().rows.get_mut(key).filter(|row| row.holder == Some(holder)) {
            Some(row) => {
                row.acked = seq;
                Ok(SaveOutcome::Held(seq))
            }
            None => Ok(SaveOutcome::Replaced),
        }
    }

    async fn write_window(&self, _: &WindowWrite) -> Result<bool, StoreError> {
        Err(StoreError::Unavailable)
    }

    async fn list(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        after: Option<&ConsumerName>,
        limit: usize,
    ) -> Result<Vec<ConsumerStatus>, StoreError> {
        let state = self.state();
        let wanted = |key: &&ConsumerKey| key.tenant == *tenant && key.agent == *agent && after.is_none_or(|after| key.name > *after);
        Ok(state.rows.keys().filter(wanted).take(limit).filter_map(|key| status_of(&state, key)).collect())
    }

    async fn taken_since(&self, _: Timestamp) -> Result<Vec<(ConsumerKey, Option<Holder>)>, StoreError> {
        Err(StoreError::Unavailable)
    }
}
