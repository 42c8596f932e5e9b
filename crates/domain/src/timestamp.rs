//! Instants in UTC.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant in microseconds since the Unix epoch, UTC. Written as RFC 3339 with milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since the Unix epoch, as stores keep it.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339 with any offset.
    ///
    /// # Errors
    /// A sentence for people when `text` is not such a date.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed: jiff::Timestamp = text.parse().map_err(|_| "not an RFC 3339 date and time".to_owned())?;
        Ok(Self(parsed.as_microsecond()))
    }

    /// This instant and `duration` more, saturating.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// This instant less `duration`, saturating.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The time from `earlier` to this instant; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instant = jiff::Timestamp::from_microsecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{instant:.3}")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn is_written_in_utc_with_milliseconds() {
        let stamp = Timestamp::parse("2026-07-12T18:22:03.1234567+02:00").unwrap();
        assert_eq!(stamp.to_string(), "2026-07-12T16:22:03.123Z");
        assert_eq!(Timestamp::from_micros(0).to_string(), "1970-01-01T00:00:00.000Z");
    }
}
