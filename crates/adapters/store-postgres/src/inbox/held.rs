//! The inboxes that a transaction has locked, with what it knows of them.

use domain::{Seq, TenantId, Timestamp};
use inbox::{LeaseKey, RecipientNumber, RecipientRow};

use super::floors::Taken;
use super::rows;
use crate::codec;
use crate::db::PgRow;
use crate::failure::Failure;

/// Whether others may work on other items of the inbox at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Exclusive,
    /// They may.
    Shared,
}

/// An inbox that is locked until the transaction ends.
pub(super) struct Locked {
    pub(super) mode: Mode,
    /// The row as it was found.
    pub(super) row: RecipientRow,
    pub(super) lease_key: Option<LeaseKey>,
    /// Nothing is due below it.
    pub(super) due_floor: Timestamp,
    /// The queues that may have something claimable, and below which key they have nothing.
    pub(super) queues: Vec<(String, Timestamp)>,
    /// The lowest retained position of the log, or one that was.
    pub(super) log_floor: Seq,
}

impl Locked {
    /// The columns of a recipient, then `tenant_number, tenant_state, is_exclusive, lease_key, due_floor, queues, claim_floors, log_floor`.
    pub(super) fn from_row(row: &PgRow, tenant: &TenantId) -> Result<Option<Self>, Failure> {
        let Some(recipient) = rows::recipient(row, tenant)? else { return Ok(None) };
        let key = codec::get::<Option<&[u8]>>(row, 14)?;
        let key = key.map(|bytes| bytes.try_into().map(LeaseKey::new).map_err(|_| codec::unreadable(14))).transpose()?;
        let (queues, floors) = (codec::get::<Vec<String>>(row, 16)?, codec::get::<Vec<i64>>(row, 17)?);
        Ok(Some(Self {
            mode: if codec::get(row, 13)? { Mode::Exclusive } else { Mode::Shared },
            row: recipient,
            lease_key: key,
            due_floor: codec::timestamp(row, 15)?,
            queues: queues.into_iter().zip(floors.into_iter().map(Timestamp::from_micros)).collect(),
            log_floor: codec::seq(row, 18)?,
        }))
    }

    /// Whether claims would pass by an item of `queue` with that key.
    pub(super) fn is_below(&self, queue: &str, key: Timestamp) -> bool {
        self.queues.iter().find(|(known, _)| known == queue).is_none_or(|(_, floor)| key < *floor)
    }

    /// Notes that claims begin at `key` at the latest.
    pub(super) fn lower(&mut self, queue: &str, key: Timestamp) {
        match self.queues.iter_mut().find(|(known, _)| known == queue) {
            Some((_, floor)) => *floor = key.min(*floor),
            None => self.queues.push((queue.to_owned(), key)),
        }
    }
}

/// What a transaction knows of inboxes.
#[derive(Default)]
pub(crate) struct Held {
    locked: Vec<Locked>,
    /// How many items it takes from each.
    taken: Taken,
}

impl Held {
    pub(super) fn get(&self, number: RecipientNumber) -> Option<&Locked> {
        self.locked.iter().find(|locked| locked.row.number == number)
    }

    pub(super) fn get_mut(&mut self, number: RecipientNumber) -> Option<&mut Locked> {
        self.locked.iter_mut().find(|locked| locked.row.number == number)
    }

    /// One of a tenant.
    pub(super) fn of_tenant(&mut self, tenant: &TenantId) -> Option<&mut Locked> {
        self.locked.iter_mut().find(|locked| locked.row.recipient.tenant == *tenant)
    }

    /// Whether nobody else works on the inbox.
    pub(super) fn is_exclusive(&self, number: RecipientNumber) -> bool {
        self.get(number).is_some_and(|locked| locked.mode == Mode::Exclusive)
    }

    pub(super) fn insert(&mut self, locked: Locked) {
        self.locked.retain(|known| known.row.number != locked.row.number);
        self.locked.push(locked);
    }

    /// What was taken, handed over.
    pub(crate) fn taken(&mut self) -> Taken {
        std::mem::take(&mut self.taken)
    }

    /// Notes that items were taken.
    pub(super) fn take(&mut self, number: RecipientNumber, count: u64) {
        if count == 0 {
            return;
        }
        if let Some((_, _, taken)) = self.taken.iter_mut().find(|(known, _, _)| *known == number) {
            *taken += count;
        } else if let Some(tenant) = self.get(number).map(|locked| locked.row.recipient.tenant.clone()) {
            self.taken.push((number, tenant, count));
        }
    }
}
