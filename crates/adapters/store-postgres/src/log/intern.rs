//! The few types, channels and audiences of a log, shared by the many events that carry them.

use std::collections::HashMap;
use std::sync::Arc;

use domain::{Audience, ChannelRef, EventType};

use crate::codec::parse_audience;

/// A vocabulary larger than this is forgotten and begun anew.
const KEPT: usize = 4096;

/// Turns column texts into shared values. One per thread.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    types: Vocabulary<EventType>,
    channels: Vocabulary<ChannelRef>,
    audiences: Vocabulary<Audience>,
}

impl Interner {
    pub(crate) fn event_type(&mut self, text: &[u8]) -> Option<EventType> {
        self.types.get(text, |text| EventType::parse(text).ok())
    }

    pub(crate) fn channel(&mut self, text: &[u8]) -> Option<ChannelRef> {
        self.channels.get(text, |text| ChannelRef::parse(text).ok())
    }

    pub(crate) fn audience(&mut self, text: &[u8]) -> Option<Audience> {
        self.audiences.get(text, parse_audience)
    }
}

#[derive(Debug)]
struct Vocabulary<T> {
    last: Option<(Arc<[u8]>, T)>,
    words: HashMap<Arc<[u8]>, T>,
}

impl<T> Default for Vocabulary<T> {
    fn default() -> Self {
        Self { last: None, words: HashMap::new() }
    }
}

impl<T: Clone> Vocabulary<T> {
    /// The value of `text`; runs of the same text are the common case.
    fn get(&mut self, text: &[u8], parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        if let Some((word, value)) = &self.last
            && **word == *text
        {
            return Some(value.clone());
        }
        if let Some((word, value)) = self.words.get_key_value(text) {
            self.last = Some((Arc::clone(word), value.clone()));
            return Some(value.clone());
        }
        let value = parse(std::str::from_utf8(text).ok()?)?;
        if self.words.len() >= KEPT {
            self.words.clear();
        }
        self.words.insert(text.into(), value.clone());
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::{Interner, KEPT};

    #[test]
    fn values_are_shared_and_memory_is_bounded() {
        let mut interner = Interner::default();
        let first = interner.event_type(b"a.b").unwrap();
        interner.event_type(b"c").unwrap();
        assert!(std::ptr::eq(first.as_str(), interner.event_type(b"a.b").unwrap().as_str()));
        for number in 0..3 * KEPT {
            assert!(interner.channel(format!("s/c{number}").as_bytes()).is_some());
        }
        assert!(interner.channels.words.len() <= KEPT);
        assert!(interner.event_type(b"A").is_none());
    }
}
