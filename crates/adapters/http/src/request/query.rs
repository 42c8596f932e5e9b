//! Query strings, read strictly: what is not known, repeated or not a number is refused with a pointer.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use axum::http::Uri;
use domain::{Seq, Timestamp};

use crate::refusal::{Refusal, query_pointer};

/// A wait that no timer refuses: a day, in seconds.
const LONGEST_WAIT: u64 = 24 * 60 * 60;

/// The parameters of a request that nobody has asked for yet.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    /// Reads the query of `uri`.
    pub(crate) fn of(uri: &'a Uri) -> Self {
        let pairs = uri.query().map(|query| form_urlencoded::parse(query.as_bytes()).collect()).unwrap_or_default();
        Self { pairs }
    }

    /// Refuses any parameter: for operations that have none.
    pub(crate) fn none(uri: &Uri) -> Result<(), Refusal> {
        if uri.query().is_none() { Ok(()) } else { Query::of(uri).end() }
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<Cow<'a, str>>, Refusal> {
        let Some(index) = self.pairs.iter().position(|(key, _)| key == name) else { return Ok(None) };
        let (_, value) = self.pairs.swap_remove(index);
        if self.pairs.iter().any(|(key, _)| key == name) {
            return Err(Refusal::invalid(query_pointer(name), "given more than once"));
        }
        Ok(Some(value))
    }

    /// A value with a form of its own.
    pub(crate) fn parsed<T: FromStr>(&mut self, name: &'static str, expectation: &'static str) -> Result<Option<T>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Refusal::invalid(query_pointer(name), expectation))
    }

    /// A position.
    pub(crate) fn seq(&mut self, name: &'static str) -> Result<Option<Seq>, Refusal> {
        let number = self.parsed::<u64>(name, "a seq: an integer from 0 to 2^53 - 1")?;
        let in_range = |number| Seq::new(number).ok_or_else(|| Refusal::invalid(query_pointer(name), "a seq is at most 2^53 - 1"));
        number.map(in_range).transpose()
    }

    /// An instant.
    pub(crate) fn instant(&mut self, name: &'static str) -> Result<Option<Timestamp>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        Timestamp::parse(&text).map(Some).map_err(|expectation| Refusal::invalid(query_pointer(name), expectation))
    }

    /// `limit`: at least 1, capped to `most` (seed 004, design note 12).
    pub(crate) fn limit(&mut self, default: usize, most: usize) -> Result<usize, Refusal> {
        Ok(self.optional_limit()?.unwrap_or(default).min(most))
    }

    /// `limit`: at least 1; whoever is asked caps it.
    pub(crate) fn optional_limit(&mut self) -> Result<Option<usize>, Refusal> {
        let Some(text) = self.text("limit")? else { return Ok(None) };
        let refuse = || Refusal::invalid("#query/limit", "an integer of at least 1");
        match number(&text).ok_or_else(refuse)? {
            0 => Err(refuse()),
            asked => Ok(Some(usize::try_from(asked).unwrap_or(usize::MAX))),
        }
    }

    /// `wait_seconds`: at least 0; whoever is asked caps it.
    pub(crate) fn wait(&mut self) -> Result<Duration, Refusal> {
        let Some(text) = self.text("wait_seconds")? else { return Ok(Duration::ZERO) };
        let seconds = number(&text).ok_or_else(|| Refusal::invalid("#query/wait_seconds", "an integer of at least 0"))?;
        Ok(Duration::from_secs(seconds.min(LONGEST_WAIT)))
    }

    /// Refuses what is left over: a typo must not be silent.
    pub(crate) fn end(self) -> Result<(), Refusal> {
        match self.pairs.first() {
            None => Ok(()),
            Some((name, _)) => {
                let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
                Err(Refusal::invalid(query_pointer(&shown), "this operation has no such parameter"))
            }
        }
    }
}

/// A non-negative integer; one that no machine holds counts as the largest, since it will be capped.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::Uri;
    use domain::Seq;

    use super::Query;

    fn uri(query: &str) -> Uri {
        format!("/x?{query}").parse().unwrap()
    }

    #[test]
    fn a_limit_below_one_is_refused_and_one_above_the_maximum_capped() {
        for (query, limit) in [("", 10), ("limit=1", 1), ("limit=100", 100), ("limit=101", 100), ("limit=99999999999999999999999", 100)] {
            assert_eq!(Query::of(&uri(query)).limit(10, 100).unwrap(), limit, "{query}");
        }
        for query in ["limit=0", "limit=-1", "limit=", "limit=ten", "limit=1.5", "limit=%201"] {
            let refusal = Query::of(&uri(query)).limit(10, 100).unwrap_err();
            assert_eq!(refusal.pointer(), Some("#query/limit"), "{query}");
        }
    }

    #[test]
    fn a_wait_below_zero_is_refused_and_no_wait_is_too_long_to_read() {
        assert_eq!(Query::of(&uri("wait_seconds=31")).wait().unwrap(), Duration::from_secs(31));
        assert!(Query::of(&uri("wait_seconds=99999999999999999999")).wait().is_ok());
        for query in ["wait_seconds=-1", "wait_seconds=1.5", "wait_seconds="] {
            assert_eq!(Query::of(&uri(query)).wait().unwrap_err().pointer(), Some("#query/wait_seconds"));
        }
    }

    #[test]
    fn a_seq_above_two_to_the_53_is_refused() {
        assert_eq!(Query::of(&uri("after=9007199254740991")).seq("after").unwrap(), Some(Seq::MAX));
        for query in ["after=9007199254740992", "after=-1", "after=x", "after="] {
            assert_eq!(Query::of(&uri(query)).seq("after").unwrap_err().pointer(), Some("#query/after"), "{query}");
        }
    }

    #[test]
    fn what_nobody_asked_for_and_what_is_given_twice_is_refused() {
        let uri = uri("limit=1&limt=2");
        let mut query = Query::of(&uri);
        query.limit(1, 1).unwrap();
        assert_eq!(query.end().unwrap_err().pointer(), Some("#query/limt"));
        let twice = "/x?limit=1&limit=2".parse().unwrap();
        assert_eq!(Query::of(&twice).limit(1, 1).unwrap_err().pointer(), Some("#query/limit"));
    }
}
