//! Readers of argument values that several commands share.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use client::{Clock as _, Seq, SystemClock, Timestamp};
use protocol::{Secret, Vocabulary};

/// Reads a word of a vocabulary, and lists the words in the help.
pub(crate) fn word<T: Vocabulary + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let words = T::all().iter().map(|member| PossibleValue::new(member.as_str()));
    PossibleValuesParser::new(words).try_map(|text| T::from_word(&text).ok_or(T::EXPECTATION))
}

/// Reads a position.
pub(crate) fn seq(text: &str) -> Result<Seq, String> {
    let number = text.parse().ok().and_then(Seq::new);
    number.ok_or_else(|| "a seq is a whole number from 0 to 2^53 - 1".to_owned())
}

/// Reads an instant: RFC 3339, or a duration from now with a plus sign.
pub(crate) fn instant(text: &str) -> Result<Timestamp, String> {
    if let Some(duration) = text.strip_prefix('+') {
        return crate::duration::parse(duration).map(|duration| SystemClock::new().now().plus(duration));
    }
    Timestamp::parse(text).map_err(|_| format!("`{text}` is neither a time such as 2026-07-12T16:22:03Z nor one from now such as +15m"))
}

/// Takes a secret as it is.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a value parser")]
pub(crate) fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text.to_owned()))
}

/// Reads `name=value`.
pub(crate) fn name_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not NAME=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use client::{Clock as _, SystemClock, Timestamp};

    use super::{instant, name_value, seq};

    #[test]
    fn positions_are_whole_numbers_that_json_holds_exactly() {
        assert_eq!(seq("9007199254740991").unwrap().get(), (1 << 53) - 1);
        for bad in ["", "-1", "1.0", "9007199254740992", "x", "99999999999999999999"] {
            assert!(seq(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn instants_are_absolute_or_from_now() {
        assert_eq!(instant("1970-01-01T00:00:00Z"), Ok(Timestamp::from_micros(0)));
        let soon = instant("+15m").unwrap();
        let ahead = soon.since(SystemClock::new().now()).as_secs();
        assert!((890..=900).contains(&ahead), "{ahead}");
        for bad in ["15m", "+", "+15", "tomorrow", "2026-07-12"] {
            assert!(instant(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_separated_from_values_by_the_first_equals_sign() {
        assert_eq!(name_value("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(name_value("a="), Ok(("a".to_owned(), String::new())));
        assert!(name_value("=b").is_err() && name_value("a").is_err());
    }
}
