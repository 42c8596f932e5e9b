//! The head rows that the writer works on, in memory: read once, written back once per commit.

use std::collections::HashMap;
use std::sync::Arc;

use authz::TenantState;
use domain::{Event, Seq, SyncEpoch, TenantId};
use rusqlite::{Connection, Row, params};

use crate::codec;
use crate::failure::Failure;
use crate::sql::sql;

/// More tenants than this are forgotten between commits, so that memory stays bounded.
const KEPT: usize = 20_000;

/// What the writer knows of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogHead {
    pub(crate) number: i64,
    pub(crate) seq: Seq,
    pub(crate) floor: Seq,
    pub(crate) epoch: SyncEpoch,
    pub(crate) state: TenantState,
}

impl LogHead {
    pub(crate) fn is_active(&self) -> bool {
        self.state == TenantState::Active
    }
}

impl From<LogHead> for sync::Head {
    fn from(head: LogHead) -> Self {
        Self { seq: head.seq, floor: head.floor, epoch: head.epoch }
    }
}

/// Reads the head row of `tenant`.
pub(crate) fn read(connection: &Connection, tenant: &TenantId) -> Result<Option<LogHead>, Failure> {
    let mut statement = connection.prepare_cached(sql!("sync/head"))?;
    let mut rows = statement.query([tenant.as_str()])?;
    rows.next()?.map(from_row).transpose()
}

fn from_row(row: &Row<'_>) -> Result<LogHead, Failure> {
    Ok(LogHead {
        number: row.get(0)?,
        seq: codec::seq(row, 1)?,
        floor: codec::seq(row, 2)?,
        epoch: SyncEpoch::new(codec::uuid(row, 3)?),
        state: codec::word(row, 4, TenantState::parse)?,
    })
}

/// The logs that the writer has touched, exactly as its transaction sees them.
///
/// What a unit of work changes is undone with it; what a batch changes is forgotten with it.
#[derive(Default)]
pub(crate) struct Heads {
    entries: HashMap<TenantId, Entry>,
    /// Tenants with a moved head, in the order of their first move in this batch.
    moved: Vec<TenantId>,
    undo: Vec<Undo>,
    recording: bool,
}

struct Entry {
    head: LogHead,
    /// Events appended in this batch, for the listener.
    appended: Vec<Arc<Event>>,
    moved: bool,
}

enum Undo {
    /// It was loaded by the unit: what was loaded may be the unit's own doing.
    Forget(TenantId),
    Reset {
        tenant: TenantId,
        head: LogHead,
        appended: usize,
        moved: bool,
    },
}

impl Heads {
    /// The head of a log, read from the store when it is not known yet.
    pub(crate) fn get(&mut self, connection: &Connection, tenant: &TenantId) -> Result<Option<LogHead>, Failure> {
        if let Some(entry) = self.entries.get(tenant) {
            return Ok(Some(entry.head));
        }
        let Some(head) = read(connection, tenant)? else { return Ok(None) };
        if self.recording {
            self.undo.push(Undo::Forget(tenant.clone()));
        }
        self.entries.insert(tenant.clone(), Entry { head, appended: Vec::new(), moved: false });
        Ok(Some(head))
    }

    /// Moves the head of a log that [`Heads::get`] has answered, past the events that were appended.
    pub(crate) fn advance(&mut self, tenant: &TenantId, seq: Seq, events: impl IntoIterator<Item = Arc<Event>>) {
        self.record(tenant);
        let Some(entry) = self.entries.get_mut(tenant) else { return };
        entry.head.seq = seq;
        entry.appended.extend(events);
        if !entry.moved {
            entry.moved = true;
            self.moved.push(tenant.clone());
        }
    }

    /// Changes what is known of a log after its row was changed by a statement. Not for the head's `seq`.
    pub(crate) fn change(&mut self, tenant: &TenantId, change: impl FnOnce(&mut LogHead)) {
        self.record(tenant);
        if let Some(entry) = self.entries.get_mut(tenant) {
            change(&mut entry.head);
        }
    }

    fn record(&mut self, tenant: &TenantId) {
        if !self.recording {
            return;
        }
        if let Some(entry) = self.entries.get(tenant) {
            let (tenant, appended, moved) = (tenant.clone(), entry.appended.len(), entry.moved);
            self.undo.push(Undo::Reset { tenant, head: entry.head, appended, moved });
        }
    }

    /// From here on changes can be undone.
    pub(crate) fn begin_unit(&mut self) {
        self.undo.clear();
        self.recording = true;
    }

    /// Keeps what the unit changed.
    pub(crate) fn keep_unit(&mut self) {
        self.undo.clear();
        self.recording = false;
    }

    /// Undoes what the unit changed, newest first.
    pub(crate) fn undo_unit(&mut self) {
        self.recording = false;
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Forget(tenant) => _ = self.entries.remove(&tenant),
                Undo::Reset { tenant, head, appended, moved } => {
                    let Some(entry) = self.entries.get_mut(&tenant) else { continue };
                    entry.head = head;
                    entry.appended.truncate(appended);
                    entry.moved = moved;
                }
            }
        }
        let entries = &self.entries;
        self.moved.retain(|tenant| entries.get(tenant).is_some_and(|entry| entry.moved));
    }

    /// Writes the moved heads, just before the commit.
    pub(crate) fn flush(&self, connection: &Connection) -> Result<(), Failure> {
        let mut statement = connection.prepare_cached(sql!("sync/save_head"))?;
        for entry in self.moved.iter().filter_map(|tenant| self.entries.get(tenant)) {
            statement.execute(params![entry.head.number, codec::from_seq(entry.head.seq)])?;
        }
        Ok(())
    }

    /// After the commit: hands out what was appended, per log and in order.
    pub(crate) fn committed(&mut self, mut tell: impl FnMut(&TenantId, SyncEpoch, Vec<Arc<Event>>)) {
        for tenant in std::mem::take(&mut self.moved) {
            let Some(entry) = self.entries.get_mut(&tenant) else { continue };
            entry.moved = false;
            let events = std::mem::take(&mut entry.appended);
            tell(&tenant, entry.head.epoch, events);
        }
        if self.entries.len() > KEPT {
            self.entries.clear();
        }
    }

    /// After a rollback: nothing that is known can be relied on.
    pub(crate) fn forget(&mut self) {
        self.entries.clear();
        self.moved.clear();
        self.keep_unit();
    }
}
