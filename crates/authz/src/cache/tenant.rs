//! What is remembered of each tenant.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};

use domain::{PrincipalId, TenantId, TokenId};

use super::places::Places;
use super::{Freshness, RightsCell, StandingCell, lock, read, write};
use crate::{Standing, TokenHash};

/// What is remembered of one tenant.
#[derive(Debug)]
pub(crate) struct TenantCell {
    pub(crate) id: TenantId,
    pub(crate) places: Places,
    session: AtomicU64,
    rights: Mutex<HashMap<PrincipalId, Arc<RightsCell>>>,
    standings: Mutex<Standings>,
}

#[derive(Debug, Default)]
struct Standings {
    cells: HashMap<TokenId, Weak<StandingCell>>,
    sweep_at: usize,
}

impl TenantCell {
    fn new(id: TenantId) -> Self {
        let session = AtomicU64::new(Freshness::NO_TAIL);
        Self { id, places: Places::default(), session, rights: Mutex::default(), standings: Mutex::default() }
    }

    /// The present run of the tail; [`Freshness::NO_TAIL`] when it does not run.
    pub(crate) fn session(&self) -> u64 {
        self.session.load(Ordering::SeqCst)
    }

    /// Another run of the tail, or its end.
    pub(crate) fn set_session(&self, session: u64) {
        self.session.store(session, Ordering::SeqCst);
    }

    /// The cell of a principal's rights, made when absent. When more than `max` are kept, those that nobody uses go.
    pub(crate) fn rights_of(&self, principal: &PrincipalId, max: usize) -> Arc<RightsCell> {
        let mut rights = lock(&self.rights);
        if let Some(cell) = rights.get(principal) {
            return Arc::clone(cell);
        }
        if rights.len() >= max {
            rights.retain(|_, cell| Arc::strong_count(cell) > 1);
        }
        Arc::clone(rights.entry(principal.clone()).or_insert_with(|| Arc::new(RightsCell::empty())))
    }

    /// Invalidates a principal's rights; answers the cell when anybody uses it, else forgets it.
    pub(crate) fn invalidate_rights(&self, principal: &PrincipalId) -> Option<Arc<RightsCell>> {
        let mut rights = lock(&self.rights);
        let cell = rights.get(principal)?;
        if Arc::strong_count(cell) == 1 {
            rights.remove(principal);
            return None;
        }
        cell.invalidate();
        Some(Arc::clone(cell))
    }

    /// Every principal whose rights are remembered.
    pub(crate) fn principals(&self) -> Vec<PrincipalId> {
        lock(&self.rights).keys().cloned().collect()
    }

    /// The good standing of a token that was just accepted: the one in use, or a new one.
    pub(crate) fn standing_of(
        self: &Arc<Self>,
        token: TokenId,
        hash: TokenHash,
        principal: &PrincipalId,
        rights: Arc<RightsCell>,
    ) -> Arc<StandingCell> {
        let mut standings = lock(&self.standings);
        if let Some(cell) = standings.cells.get(&token).and_then(Weak::upgrade)
            && cell.get() == Standing::Good
        {
            return cell;
        }
        if standings.cells.len() >= standings.sweep_at {
            standings.cells.retain(|_, cell| cell.strong_count() > 0);
            standings.sweep_at = standings.cells.len() * 2 + 64;
        }
        let cell = Arc::new(StandingCell::new(hash, principal.clone(), Arc::clone(self), rights));
        standings.cells.insert(token, Arc::downgrade(&cell));
        cell
    }

    /// The standing of a token that somebody uses.
    pub(crate) fn standing(&self, token: TokenId) -> Option<Arc<StandingCell>> {
        lock(&self.standings).cells.get(&token).and_then(Weak::upgrade)
    }

    /// Every standing that somebody uses.
    pub(crate) fn standings(&self) -> Vec<Arc<StandingCell>> {
        lock(&self.standings).cells.values().filter_map(Weak::upgrade).collect()
    }
}

/// The tenants of which something is remembered.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    cells: RwLock<HashMap<TenantId, Arc<TenantCell>>>,
}

impl Tenants {
    /// The tenant's cell, if anything is remembered.
    pub(crate) fn find(&self, tenant: &TenantId) -> Option<Arc<TenantCell>> {
        read(&self.cells).get(tenant).cloned()
    }

    /// The tenant's cell, made when absent.
    pub(crate) fn cell(&self, tenant: &TenantId) -> Arc<TenantCell> {
        if let Some(cell) = self.find(tenant) {
            return cell;
        }
        let mut cells = write(&self.cells);
        Arc::clone(cells.entry(tenant.clone()).or_insert_with(|| Arc::new(TenantCell::new(tenant.clone()))))
    }
}
