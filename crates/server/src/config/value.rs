//! The kinds of configuration values and how each is written.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A value as it was given: a TOML value, or the text of an environment variable or flag.
#[derive(Debug, Clone)]
pub(crate) enum Raw {
    /// From `doorstep.toml`.
    Toml(toml::Value),
    /// From the environment or a flag.
    Text(String),
}

impl Raw {
    /// The text of a string value; numbers and booleans of TOML in their usual form.
    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) | Self::Toml(toml::Value::String(text)) => Some(text.clone()),
            Self::Toml(toml::Value::Integer(number)) => Some(number.to_string()),
            Self::Toml(toml::Value::Boolean(truth)) => Some(truth.to_string()),
            Self::Toml(_) => None,
        }
    }
}

/// A type of configuration value.
pub(crate) trait Value: Sized {
    /// What is expected, for people: completes "expected …".
    const EXPECTED: &'static str;

    /// Reads the text of a value.
    fn read(text: &str) -> Option<Self>;

    /// Writes the value so that [`Value::read`] reads it again.
    fn show(&self) -> String;

    /// Reads a value as it was given.
    fn from_raw(raw: &Raw) -> Option<Self> {
        Self::read(&raw.text()?)
    }
}

/// A number of bytes, written `64KiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub usize);

/// A duration that can be switched off, written `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MaybeDuration(pub Option<Duration>);

/// A number of bytes that can be left open, written `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MaybeSize(pub Option<Size>);

const DURATION_UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZE_UNITS: [(&str, usize); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Splits `15m` into its number and its unit.
fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}

impl Value for Duration {
    const EXPECTED: &'static str = "a duration such as 250ms, 30s, 15m, 12h or 30d";

    fn read(text: &str) -> Option<Self> {
        let (number, unit) = number_and_unit(text)?;
        let (_, factor) = DURATION_UNITS.into_iter().find(|(name, _)| *name == unit)?;
        Some(Self::from_millis(number.checked_mul(factor)?))
    }

    fn show(&self) -> String {
        let millis = u64::try_from(self.as_millis()).unwrap_or(u64::MAX);
        let fits = |(_, factor): &&(&str, u64)| millis.is_multiple_of(*factor) && (millis != 0 || *factor == 1_000);
        let (unit, factor) = DURATION_UNITS.iter().rev().find(fits).copied().unwrap_or(("ms", 1));
        format!("{}{unit}", millis / factor)
    }
}

impl Value for MaybeDuration {
    const EXPECTED: &'static str = "off, or a duration such as 15m, 12h or 30d";

    fn read(text: &str) -> Option<Self> {
        if text.trim() == "off" { Some(Self(None)) } else { Duration::read(text).map(|duration| Self(Some(duration))) }
    }

    fn show(&self) -> String {
        self.0.map_or_else(|| "off".to_owned(), |duration| duration.show())
    }
}

/// Durations one after the other, in the environment separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Durations(pub Vec<Duration>);

impl Value for Durations {
    const EXPECTED: &'static str = "durations such as 5m,20m,1h";

    fn read(text: &str) -> Option<Self> {
        text.split(',').map(Duration::read).collect::<Option<_>>().map(Self)
    }

    fn show(&self) -> String {
        self.0.iter().map(Value::show).collect::<Vec<_>>().join(",")
    }
}

impl Value for Size {
    const EXPECTED: &'static str = "a size such as 512B, 64KiB, 1MiB or 2GiB";

    fn read(text: &str) -> Option<Self> {
        let (number, unit) = number_and_unit(text)?;
        let (_, factor) = SIZE_UNITS.into_iter().find(|(name, _)| *name == unit)?;
        usize::try_from(number).ok()?.checked_mul(factor).map(Self)
    }

    fn show(&self) -> String {
        let fits = |(_, factor): &&(&str, usize)| self.0.is_multiple_of(*factor) && (self.0 != 0 || *factor == 1);
        let (unit, factor) = SIZE_UNITS.iter().rev().find(fits).copied().unwrap_or(("B", 1));
        format!("{}{unit}", self.0 / factor)
    }
}

impl Value for MaybeSize {
    const EXPECTED: &'static str = "unlimited, or a size such as 512MiB or 20GiB";

    fn read(text: &str) -> Option<Self> {
        if text.trim() == "unlimited" { Some(Self(None)) } else { Size::read(text).map(|size| Self(Some(size))) }
    }

    fn show(&self) -> String {
        self.0.map_or_else(|| "unlimited".to_owned(), |size| size.show())
    }
}

/// What is separated by commas: any number of values, written as nothing when there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<T>(pub Vec<T>);

impl<T: Value> Value for List<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(text: &str) -> Option<Self> {
        if text.trim().is_empty() {
            return Some(Self(Vec::new()));
        }
        text.split(',').map(|one| T::read(one.trim())).collect::<Option<_>>().map(Self)
    }

    fn show(&self) -> String {
        self.0.iter().map(Value::show).collect::<Vec<_>>().join(",")
    }

    fn from_raw(raw: &Raw) -> Option<Self> {
        match raw {
            Raw::Toml(toml::Value::Array(values)) => {
                values.iter().map(|one| T::from_raw(&Raw::Toml(one.clone()))).collect::<Option<_>>().map(Self)
            }
            raw => Self::read(&raw.text()?),
        }
    }
}

impl Value for hooks::AllowedNetwork {
    const EXPECTED: &'static str = "networks such as 192.168.0.0/16, or addresses with a port such as 127.0.0.1:8080; loopback, link-local, metadata and \
                                    multicast addresses only with their port";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text.trim()).ok().filter(|entry| !outbound::opens_nothing(entry))
    }

    fn show(&self) -> String {
        match self {
            Self::Range { address, prefix } => format!("{address}/{prefix}"),
            Self::Exact(address) => address.to_string(),
        }
    }
}

/// A path that can be left open, written as nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MaybePath(pub Option<PathBuf>);

impl Value for MaybePath {
    const EXPECTED: &'static str = "nothing, or a path";

    fn read(text: &str) -> Option<Self> {
        Some(Self(PathBuf::read(text)))
    }

    fn show(&self) -> String {
        self.0.as_ref().map(Value::show).unwrap_or_default()
    }
}

/// A secret that can be left open. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct MaybeSecret(pub Option<String>);

impl std::fmt::Debug for MaybeSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "MaybeSecret(…)" } else { "MaybeSecret(None)" })
    }
}

impl Value for MaybeSecret {
    const EXPECTED: &'static str = "nothing, or a secret";

    fn read(text: &str) -> Option<Self> {
        Some(Self((!text.trim().is_empty()).then(|| text.trim().to_owned())))
    }

    fn show(&self) -> String {
        if self.0.is_some() { "(hidden)".to_owned() } else { String::new() }
    }
}

/// The address of a website that can be left open, written as nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MaybeUrl(pub Option<String>);

impl Value for MaybeUrl {
    const EXPECTED: &'static str = "nothing, or an address such as https://doorstep.example.net";

    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Some(Self(None));
        }
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
        let plain = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '@' | '?' | '#' | '"'));
        plain.then(|| Self(Some(text.trim_end_matches('/').to_owned())))
    }

    fn show(&self) -> String {
        self.0.clone().unwrap_or_default()
    }
}

/// Implements [`Value`] for types that write and read themselves.
macro_rules! plain_value {
    ($($ty:ty: $expected:literal),*) => {$(
        impl Value for $ty {
            const EXPECTED: &'static str = $expected;

            fn read(text: &str) -> Option<Self> {
                text.trim().parse().ok()
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

plain_value!(usize: "a whole number", u64: "a whole number", u32: "a whole number", u16: "a whole number up to 65535", bool: "true or false",
    SocketAddr: "an address such as 127.0.0.1:7420 or [::]:7420");

impl Value for String {
    const EXPECTED: &'static str = "a text";

    fn read(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl Value for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn read(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::from(text))
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

/// Writes a value as TOML would have it.
pub(crate) fn as_toml(shown: &str) -> String {
    if shown.parse::<i64>().is_ok() || shown.parse::<bool>().is_ok() {
        return shown.to_owned();
    }
    let mut out = String::with_capacity(shown.len() + 2);
    let _ = write!(out, "{}", toml::Value::String(shown.to_owned()));
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Durations, List, MaybeDuration, MaybeSecret, MaybeUrl, Raw, Size, Value};

    #[test]
    fn durations_and_sizes_are_written_as_they_are_read() {
        for text in ["250ms", "30s", "15m", "36h", "30d", "0s", "90s"] {
            assert_eq!(Duration::read(text).unwrap().show(), text);
        }
        for text in ["1B", "64KiB", "1MiB", "3GiB", "0B"] {
            assert_eq!(Size::read(text).unwrap().show(), text);
        }
        assert_eq!(MaybeDuration::read("off"), Some(MaybeDuration(None)));
        assert_eq!(Durations::read("5m, 20m,1h").unwrap().show(), "5m,20m,1h");
        assert_eq!(Durations::read("5m,,1h"), None);
    }

    #[test]
    fn the_address_of_a_website_is_kept_without_its_last_slash() {
        let read = |text: &str| MaybeUrl::read(text).map(|url| url.show());
        assert_eq!(read("https://doorstep.example.net/"), Some("https://doorstep.example.net".to_owned()));
        assert_eq!(read("http://[::1]:7420/base"), Some("http://[::1]:7420/base".to_owned()));
        assert_eq!(read(" "), Some(String::new()));
        for bad in ["doorstep.example.net", "ftp://x", "https://", "https://user@host", "https://a b"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn lists_are_read_from_text_and_from_toml() {
        let list = List::<u16>::read("443, 8443").unwrap();
        assert_eq!((list.0.as_slice(), list.show().as_str()), (&[443, 8443][..], "443,8443"));
        assert_eq!(List::<u16>::read("443,70000"), None);
        assert!(List::<u16>::read("").unwrap().0.is_empty());
        let table: toml::Table = "networks = [\"192.168.0.0/16\", \"[::1]:8080\"]".parse().unwrap();
        let networks = List::<hooks::AllowedNetwork>::from_raw(&Raw::Toml(table["networks"].clone())).unwrap();
        assert_eq!(networks.show(), "192.168.0.0/16,[::1]:8080");
        for nothing in ["127.0.0.0/8", "::1/128", "192.168.0.0/16,169.254.0.0/16", "127.0.0.1:0"] {
            assert_eq!(List::<hooks::AllowedNetwork>::read(nothing), None, "{nothing} opens nothing");
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret = MaybeSecret::read("CANARY").unwrap();
        assert!(!format!("{secret:?} {}", secret.show()).contains("CANARY"));
    }

    #[test]
    fn a_number_without_a_unit_is_neither_a_duration_nor_a_size() {
        for text in ["30", "", "s", "-1s", "1.5s", "1 fortnight", "99999999999999999999s"] {
            assert_eq!(Duration::read(text), None, "{text}");
            assert_eq!(Size::read(text), None, "{text}");
        }
    }
}
