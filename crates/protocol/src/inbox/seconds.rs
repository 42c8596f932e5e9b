//! Durations on the wire: whole seconds, capped by whoever reads them and never refused for being many.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use crate::schema::{described, impl_schema};

/// A number of whole seconds, at least 0. One that no machine holds counts as the largest, since it will be capped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Seconds(u64);

/// What no timer refuses: a century.
const LONGEST: u64 = 100 * 366 * 24 * 60 * 60;

impl Seconds {
    /// Wraps a number of seconds.
    pub const fn new(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Whole seconds of a duration, rounded down.
    pub const fn of(duration: Duration) -> Self {
        Self(duration.as_secs())
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// As a duration; one beyond a century is a century.
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0.min(LONGEST))
    }
}

/// 2^64.
const TOO_MANY: f64 = 18_446_744_073_709_551_616.0;

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Seconds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of seconds, at least 0")
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<Seconds, E> {
                Ok(Seconds(seconds))
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<Seconds, E> {
                u64::try_from(seconds).map(Seconds).map_err(|_| E::invalid_value(Unexpected::Signed(seconds), &self))
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<Seconds, E> {
                if seconds >= TOO_MANY { Ok(Seconds(u64::MAX)) } else { Err(E::invalid_type(Unexpected::Float(seconds), &self)) }
            }
        }

        deserializer.deserialize_u64(Number)
    }
}

impl_schema!(Seconds, "Seconds", described(json!({"type": "integer", "minimum": 0, "examples": [120]}), &["A number of whole seconds."]));

#[cfg(test)]
mod tests {
    use super::Seconds;

    #[test]
    fn no_number_is_too_large_and_none_is_negative_or_broken() {
        let read = |text: &str| serde_json::from_str::<Seconds>(text).map(Seconds::get).ok();
        assert_eq!((read("0"), read("30"), read("18446744073709551615")), (Some(0), Some(30), Some(u64::MAX)));
        assert_eq!(read("99999999999999999999"), Some(u64::MAX));
        for wrong in ["-1", "1.5", "\"1\"", "null", "[]"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert!(Seconds::new(u64::MAX).duration().as_secs() > 3_000_000_000);
    }
}
