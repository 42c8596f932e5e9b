//! Positions in a tenant's log.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A position in one tenant's log. The first event has 1; [`Seq::ZERO`] stands before it.
///
/// Never above [`Seq::MAX`], so that every JSON reader holds it exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Seq(u64);

impl Seq {
    /// The position before the first event.
    pub const ZERO: Self = Self(0);
    /// The largest integer that an IEEE 754 double holds exactly (2^53 - 1).
    pub const MAX: Self = Self((1 << 53) - 1);

    /// Accepts a number up to [`Seq::MAX`].
    pub const fn new(value: u64) -> Option<Self> {
        if value <= Self::MAX.0 { Some(Self(value)) } else { None }
    }

    /// The bare number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The following position; stays at [`Seq::MAX`].
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The preceding position; stays at [`Seq::ZERO`].
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// The position `count` further; stays at [`Seq::MAX`].
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        let sum = self.0.saturating_add(count);
        if sum > Self::MAX.0 { Self::MAX } else { Self(sum) }
    }

    /// How many positions lie after `earlier` up to and with this one; 0 when it is not later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Seq {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = u64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| serde::de::Error::custom("a seq is at most 2^53 - 1"))
    }
}
