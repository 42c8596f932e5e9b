//! The rights of one principal, shared by everybody who decides for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use domain::Timestamp;

use super::{Freshness, read, write};
use crate::rights::RightsView;

/// The present rights of one principal with a version, so that decisions made from them can be remembered.
#[derive(Debug)]
pub(crate) struct RightsCell {
    version: AtomicU64,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    view: Arc<RightsView>,
    freshness: Freshness,
    generation: u64,
}

impl RightsCell {
    /// A cell without any right, to be loaded before it is used.
    pub(crate) fn empty() -> Self {
        let state = State { view: Arc::default(), freshness: Freshness::STALE, generation: 0 };
        Self { version: AtomicU64::new(0), state: RwLock::new(state) }
    }

    /// Grows with every change of the rights.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The rights and their version, however old.
    pub(crate) fn current(&self) -> (Arc<RightsView>, u64) {
        let state = read(&self.state);
        (Arc::clone(&state.view), self.version())
    }

    /// The rights, if they may still be used.
    pub(crate) fn fresh(&self, session: u64, now: Timestamp, ttl: Duration) -> Option<Arc<RightsView>> {
        let state = read(&self.state);
        state.freshness.holds(session, now, ttl).then(|| Arc::clone(&state.view))
    }

    /// What must not have moved when a read that begins now is installed.
    pub(crate) fn generation(&self) -> u64 {
        read(&self.state).generation
    }

    /// A change was observed: what is remembered, and what is being read at the moment, is not trusted any more.
    pub(crate) fn invalidate(&self) {
        let mut state = write(&self.state);
        state.generation += 1;
        state.freshness = Freshness::STALE;
    }

    /// Remembers what was read since `generation`; `false` when a change was observed meanwhile.
    pub(crate) fn install(&self, generation: u64, view: &Arc<RightsView>, freshness: Freshness) -> bool {
        let mut state = write(&self.state);
        if state.generation != generation {
            return false;
        }
        state.freshness = freshness;
        if state.view != *view {
            state.view = Arc::clone(view);
            self.version.fetch_add(1, Ordering::Release);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use domain::Timestamp;

    use super::{Freshness, RightsCell, RightsView};
    use crate::{PrincipalKind, Rights, Role};

    const TTL: Duration = Duration::from_secs(1);

    #[test]
    fn a_change_observed_between_reading_and_installing_is_not_lost() {
        let cell = RightsCell::empty();
        let now = Timestamp::from_micros(0);
        let before = cell.generation();
        cell.invalidate();
        assert!(!cell.install(before, &Arc::default(), Freshness::of(1, now)));
        assert!(cell.fresh(1, now, TTL).is_none());
        assert!(cell.install(cell.generation(), &Arc::default(), Freshness::of(1, now)));
        assert!(cell.fresh(1, now, TTL).is_some());
    }

    #[test]
    fn rights_hold_while_the_same_tail_runs_and_otherwise_for_the_ttl() {
        let cell = RightsCell::empty();
        let start = Timestamp::from_micros(0);
        cell.install(0, &Arc::default(), Freshness::of(3, start));
        let later = start.plus(TTL);
        assert!(cell.fresh(3, later, TTL).is_some());
        assert!(cell.fresh(4, later, TTL).is_none());
        assert!(cell.fresh(Freshness::NO_TAIL, later, TTL).is_none());
        assert!(cell.fresh(4, Timestamp::from_micros(999_999), TTL).is_some());
    }

    #[test]
    fn the_version_grows_only_when_the_rights_differ() {
        let cell = RightsCell::empty();
        let fresh = Freshness::of(1, Timestamp::from_micros(0));
        cell.install(0, &Arc::default(), fresh);
        assert_eq!(cell.version(), 0);
        let principal = domain::PrincipalId::parse("ann").unwrap();
        let rights = Rights { principal, kind: PrincipalKind::App, role: Role::Member, enabled: true, grants: Vec::new() };
        cell.install(0, &Arc::new(RightsView::new(&rights)), fresh);
        assert_eq!(cell.version(), 1);
    }
}
