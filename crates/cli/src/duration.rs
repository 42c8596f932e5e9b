//! Durations on the command line: `250ms`, `30s`, `15m`, `12h`, `30d`.

use std::time::Duration;

/// Reads a duration.
///
/// # Errors
/// What one looks like.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let expected = || format!("`{text}` is not a duration such as 250ms, 30s, 15m, 12h or 30d");
    let number: u64 = number.parse().map_err(|_| expected())?;
    let seconds = match unit {
        "ms" => return Ok(Duration::from_millis(number)),
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(expected()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(expected)
}

/// Reads a duration of a bound within which something has to be done.
///
/// # Errors
/// What one looks like; for none at all, that nothing can be done in it.
pub(crate) fn parse_bound(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err("nothing can be done in no time; leave it out to have no bound".to_owned()),
        bound => Ok(bound),
    }
}

/// A duration as people say it.
pub(crate) fn tell(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1_000 => format!("{millis} ms"),
        millis => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{parse, parse_bound, tell};

    #[test]
    fn durations_have_a_number_and_a_unit() {
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("30d"), Ok(Duration::from_hours(720)));
        for bad in ["", "5", "s", "-1s", "1.5s", "1w", "30 s", "99999999999999999999d", "18446744073709551615d"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_bound_of_no_time_is_refused() {
        assert_eq!(parse_bound("1ms"), Ok(Duration::from_millis(1)));
        for bad in ["0s", "0ms", "0d", "5"] {
            assert!(parse_bound(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_are_told_shortly() {
        assert_eq!(tell(Duration::from_millis(12)), "12 ms");
        assert_eq!(tell(Duration::from_millis(1_290)), "1.2 s");
    }
}
