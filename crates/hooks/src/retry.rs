//! What an answer means, and when to try again. Pure.

use std::time::Duration;

use domain::Timestamp;
use ring::digest::{SHA256, digest};

use crate::{AttemptClass, OutboundAnswer, OutboundError, Settings, WebhookId};

/// What follows from an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The receiver has it.
    Delivered,
    /// It may go better next time.
    Retry,
    /// It will not go better.
    Final,
    /// The receiver wants no more rings.
    Gone,
}

impl AttemptClass {
    /// What an attempt brought.
    pub(crate) fn of(answer: &Result<OutboundAnswer, OutboundError>) -> Self {
        match answer {
            Ok(answer) => Self::of_status(answer.status),
            Err(OutboundError::Refused(_)) => Self::Refused,
            Err(OutboundError::Dns) => Self::Dns,
            Err(OutboundError::Connect) => Self::Connect,
            Err(OutboundError::Tls) => Self::Tls,
            Err(OutboundError::Timeout) => Self::Timeout,
            Err(OutboundError::Protocol) => Self::Protocol,
        }
    }

    const fn of_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Delivered,
            300..=399 => Self::Redirect,
            408 => Self::RequestTimeout,
            410 => Self::Gone,
            429 => Self::RateLimited,
            400..=499 => Self::ClientError,
            500..=599 => Self::ServerError,
            _ => Self::Protocol,
        }
    }

    /// What follows from it.
    pub(crate) const fn verdict(self) -> Verdict {
        match self {
            Self::Delivered => Verdict::Delivered,
            Self::Gone => Verdict::Gone,
            Self::Redirect | Self::ClientError | Self::Refused => Verdict::Final,
            Self::Timeout
            | Self::Dns
            | Self::Connect
            | Self::Tls
            | Self::Protocol
            | Self::RequestTimeout
            | Self::RateLimited
            | Self::ServerError
            | Self::Unproven => Verdict::Retry,
        }
    }
}

/// How long to wait after the `made`-th attempt: the configured pause, give or take a fifth, or longer if the receiver asks for it.
pub(crate) fn pause(settings: &Settings, id: &WebhookId, made: u32, retry_after: Option<Duration>) -> Duration {
    let place = usize::try_from(made.saturating_sub(1)).unwrap_or(usize::MAX);
    let base = settings.retry.get(place).or(settings.retry.last()).copied().unwrap_or(Duration::from_secs(1));
    // Jitter need not be unpredictable, only spread: the ring's own name spreads it.
    let spread = digest(&SHA256, format!("{id} {made}").as_bytes()).as_ref().first().copied().unwrap_or_default();
    let jittered = base.mul_f64(0.8 + 0.4 * f64::from(spread) / 255.0);
    jittered.max(retry_after.unwrap_or_default().min(settings.retry_after_max))
}

/// `Retry-After` (RFC 9110, section 10.2.3): seconds or a date. What is neither is nothing.
pub(crate) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    Some(http_date(value)?.since(now))
}

/// An IMF-fixdate, as every server writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split(' ');
    let (day, month, year, time, zone) = (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    let month = 1 + MONTHS.iter().position(|name| *name == month)?;
    if zone != "GMT" || words.next().is_some() {
        return None;
    }
    Timestamp::parse(&format!("{year}-{month:02}-{day}T{time}Z")).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use domain::Timestamp;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::{Verdict, pause, retry_after};
    use crate::{AttemptClass, HookId, OutboundAnswer, OutboundError, Settings, UrlRefusal, WebhookId};

    fn status(status: u16) -> Verdict {
        AttemptClass::of(&Ok(OutboundAnswer { status, retry_after: None, body: Bytes::new() })).verdict()
    }

    fn id(number: u128) -> WebhookId {
        WebhookId::fresh(HookId::new(Uuid::nil()), Uuid::from_u128(number))
    }

    #[test]
    fn statuses_are_classed_as_designed() {
        for (range, verdict) in [
            (200..=299, Verdict::Delivered),
            (300..=399, Verdict::Final),
            (400..=407, Verdict::Final),
            (408..=408, Verdict::Retry),
            (409..=409, Verdict::Final),
            (410..=410, Verdict::Gone),
            (411..=428, Verdict::Final),
            (429..=429, Verdict::Retry),
            (430..=499, Verdict::Final),
            (500..=599, Verdict::Retry),
        ] {
            range.for_each(|code| assert_eq!(status(code), verdict, "{code}"));
        }
    }

    #[test]
    fn what_brings_no_answer_is_tried_again_unless_the_url_is_refused() {
        for error in [OutboundError::Dns, OutboundError::Connect, OutboundError::Tls, OutboundError::Timeout, OutboundError::Protocol] {
            assert_eq!(AttemptClass::of(&Err(error)).verdict(), Verdict::Retry, "{error}");
        }
        let refused = AttemptClass::of(&Err(OutboundError::Refused(UrlRefusal::Network)));
        assert_eq!((refused, refused.verdict()), (AttemptClass::Refused, Verdict::Final));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Timestamp::parse("1994-11-06T08:49:00Z").unwrap();
        assert_eq!(retry_after("120", now), Some(Duration::from_mins(2)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::from_secs(37)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:48:37 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("99999999999999999999999", now), Some(Duration::from_secs(u64::MAX)));
        for nothing in ["", "-1", "soon", "1.5", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Foo 1994 08:49:37 GMT"] {
            assert_eq!(retry_after(nothing, now), None, "{nothing}");
        }
    }

    proptest! {
        #[test]
        fn pauses_stay_within_their_bounds(number: u128, made in 1_u32..6, asked in proptest::option::of(0_u64..1_000_000)) {
            let settings = Settings::default();
            let base = if made == 1 { 1.0 } else { 5.0 };
            let paused = pause(&settings, &id(number), made, asked.map(Duration::from_secs)).as_secs_f64();
            let least = (base * 0.8_f64).max(asked.map_or(0.0, |asked| asked.min(60) as f64));
            let most = (base * 1.2_f64).max(asked.map_or(0.0, |asked| asked.min(60) as f64));
            prop_assert!((least - 1e-6..=most + 1e-6).contains(&paused), "{paused} in {least}..={most}");
        }
    }

    #[test]
    fn pauses_of_many_rings_are_spread() {
        let settings = Settings::default();
        let pauses: Vec<Duration> = (0..200).map(|number| pause(&settings, &id(number), 1, None)).collect();
        let (least, most) = (pauses.iter().min().unwrap(), pauses.iter().max().unwrap());
        assert!(most.saturating_sub(*least) > Duration::from_millis(300));
    }
}
