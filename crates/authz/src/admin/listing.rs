//! Pages of listings.

use crate::Keyset;

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    /// The items in the listing's order. There can be fewer than asked for although more follow.
    pub items: Vec<T>,
    /// What to pass as `after` for the next page; absent on the last one.
    pub next: Option<String>,
}

/// What to ask the store for in order to know whether more follow: at most `max` items and one.
pub(super) fn probe(keyset: &Keyset, max: usize) -> Keyset {
    Keyset { after: keyset.after.clone(), limit: keyset.limit.clamp(1, max.max(1)) + 1 }
}

impl<T> Listing<T> {
    /// Makes a page of what a [`probe`] answered.
    pub(super) fn of(probe: &Keyset, mut items: Vec<T>, key: impl Fn(&T) -> String) -> Self {
        let more = items.len() >= probe.limit;
        items.truncate(probe.limit - 1);
        let next = if more { items.last().map(key) } else { None };
        Self { items, next }
    }

    /// Leaves out what `keep` does not want; the position stays.
    pub(super) fn filter(mut self, keep: impl FnMut(&T) -> bool) -> Self {
        self.items.retain(keep);
        self
    }
}
