//! Events from a file or stream: one JSON object, an array of objects, `{"events": […]}`, or one object after the other (JSON lines). Reads one event at a time,
//! however large the input is, and says where it is broken.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;

use protocol::EventInput;
use serde::Deserialize as _;
use thiserror::Error;

/// The most bytes of one event; the server takes far less.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// An event and where it begins in the input.
#[derive(Debug)]
pub(crate) struct Item {
    /// The event.
    pub(crate) event: EventInput,
    /// The line that it begins on, counted from 1.
    pub(crate) line: usize,
    /// Its length in the input, in bytes.
    pub(crate) size: usize,
}

/// Why the input cannot be read to its end.
#[derive(Debug, Error)]
pub(crate) enum InputError {
    /// There is nothing in it.
    #[error("the input is empty: expected a JSON object, an array of objects, or JSON lines")]
    Empty,
    /// It is not what it has to be.
    #[error("line {line}, column {column}: {detail}")]
    Broken {
        /// The line, counted from 1.
        line: usize,
        /// The column in bytes, counted from 1.
        column: usize,
        /// What is wrong.
        detail: String,
    },
    /// It cannot be read.
    #[error("the input cannot be read: {0}")]
    Io(#[source] io::Error),
}

/// Reads events until the end, or until `each` breaks. Returns how many there were.
pub(crate) fn read_events(input: impl Read, mut each: impl FnMut(Item) -> ControlFlow<()>) -> Result<usize, InputError> {
    let mut source = Source::new(input);
    source.skip_byte_order_mark()?;
    match source.peek_token()? {
        None => Err(InputError::Empty),
        Some(b'[') => {
            source.bump();
            source.array(&mut each, Around::Nothing)
        }
        Some(b'{') if source.begins_batch()? => {
            source.take_through(b'[')?;
            source.array(&mut each, Around::Object)
        }
        Some(_) => source.sequence(&mut each),
    }
}

/// What an array stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Nothing,
    /// A batch, as requests have it.
    Object,
}

/// Where an event stands.
#[derive(Clone, Copy)]
enum Position {
    Alone,
    InArray,
}

/// Bytes of the input with their place.
struct Source<R> {
    inner: BufReader<R>,
    line: usize,
    column: usize,
    /// Bytes read since the present event began.
    taken: usize,
}

impl<R: Read> Source<R> {
    fn new(input: R) -> Self {
        Self { inner: BufReader::with_capacity(64 << 10, input), line: 1, column: 1, taken: 0 }
    }

    /// One object after the other until the end.
    fn sequence(&mut self, each: &mut impl FnMut(Item) -> ControlFlow<()>) -> Result<usize, InputError> {
        let mut count = 0;
        while self.peek_token()?.is_some() {
            count += 1;
            if each(self.event(Position::Alone)?).is_break() {
                break;
            }
        }
        Ok(count)
    }

    /// Whether here begins `{"events": [`, as a batch is sent. Takes nothing.
    fn begins_batch(&mut self) -> Result<bool, InputError> {
        self.peek()?;
        let mut rest = self.inner.buffer();
        for token in [&b"{"[..], b"\"events\"", b":", b"["] {
            rest = rest.trim_ascii_start();
            let Some(after) = rest.strip_prefix(token) else { return Ok(false) };
            rest = after;
        }
        Ok(true)
    }

    /// Takes everything up to a byte that is there, and the byte.
    fn take_through(&mut self, last: u8) -> Result<(), InputError> {
        while let Some(byte) = self.peek()? {
            self.bump();
            if byte == last {
                break;
            }
        }
        Ok(())
    }

    /// The rest of an array, whose bracket is taken, and nothing behind it but what closes the object around it.
    fn array(&mut self, each: &mut impl FnMut(Item) -> ControlFlow<()>, around: Around) -> Result<usize, InputError> {
        let mut count = 0;
        if self.peek_token()? != Some(b']') {
            loop {
                count += 1;
                if each(self.event(Position::InArray)?).is_break() {
                    return Ok(count);
                }
                match self.peek_token()? {
                    Some(b',') => self.bump(),
                    Some(b']') => break,
                    found => return Err(self.unexpected(found, "`,` or `]`")),
                }
                // A comma is followed by an event.
                self.peek_token()?;
            }
        }
        self.bump();
        if around == Around::Object {
            match self.peek_token()? {
                Some(b'}') => self.bump(),
                found => return Err(self.unexpected(found, "`}` after the events")),
            }
        }
        match self.peek_token()? {
            None => Ok(count),
            found => Err(self.unexpected(found, "the end after the array")),
        }
    }

    /// The next byte, not taken.
    fn peek(&mut self) -> Result<Option<u8>, InputError> {
        loop {
            match self.inner.fill_buf() {
                Ok(buffer) => return Ok(buffer.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(InputError::Io(error)),
            }
        }
    }

    /// Takes the byte that was peeked.
    fn bump(&mut self) {
        let byte = self.inner.buffer().first().copied();
        self.inner.consume(1);
        self.count(byte);
    }

    fn count(&mut self, byte: Option<u8>) {
        if byte == Some(b'\n') {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        self.taken += 1;
    }

    /// The next byte that is not white space, not taken.
    fn peek_token(&mut self) -> Result<Option<u8>, InputError> {
        while let Some(byte) = self.peek()? {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Ok(Some(byte));
            }
            self.bump();
        }
        Ok(None)
    }

    fn skip_byte_order_mark(&mut self) -> Result<(), InputError> {
        match self.peek()? {
            Some(0xFE | 0xFF) => Err(self.broken("this is UTF-16; JSON is UTF-8".to_owned())),
            Some(0xEF) => {
                for expected in [0xEF, 0xBB, 0xBF] {
                    if self.peek()? != Some(expected) {
                        return Err(self.broken("this is not UTF-8".to_owned()));
                    }
                    self.bump();
                }
                self.column = 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The event that begins here.
    fn event(&mut self, position: Position) -> Result<Item, InputError> {
        match (self.peek()?, position) {
            (Some(b'{'), _) => {}
            (found, Position::InArray) => return Err(self.unexpected(found, "an event object")),
            (found, Position::Alone) => return Err(self.unexpected(found, "an event object or an array of them")),
        }
        let (line, column) = (self.line, self.column);
        self.taken = 0;
        // An object ends with its brace: nothing behind it is taken.
        let mut deserializer = serde_json::Deserializer::from_reader(&mut *self);
        match EventInput::deserialize(&mut deserializer) {
            Ok(event) => Ok(Item { event, line, size: self.taken }),
            Err(error) if error.is_io() => Err(InputError::Io(error.into())),
            Err(error) => {
                let at = match error.line() {
                    0 | 1 => (line, column + error.column().saturating_sub(1)),
                    further => (line + further - 1, error.column().max(1)),
                };
                let mut detail = without_place(&error.to_string());
                if at.0 != line {
                    detail = format!("{detail}, in the object that begins on line {line}");
                }
                Err(InputError::Broken { line: at.0, column: at.1, detail })
            }
        }
    }

    fn unexpected(&self, found: Option<u8>, expected: &str) -> InputError {
        let found = match found {
            None => "the input ends".to_owned(),
            Some(byte) if byte.is_ascii_graphic() => format!("found `{}`", char::from(byte)),
            Some(byte) => format!("found the byte 0x{byte:02x}"),
        };
        self.broken(format!("{found}; expected {expected}"))
    }

    fn broken(&self, detail: String) -> InputError {
        InputError::Broken { line: self.line, column: self.column, detail }
    }
}

impl<R: Read> Read for &mut Source<R> {
    /// One byte at a time, as the deserializer asks for them: so the place is always that of what was taken.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken >= MAX_EVENT_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("an event of more than {MAX_EVENT_BYTES} bytes on line {}", self.line),
            ));
        }
        let byte = self.inner.fill_buf()?.first().copied();
        let (Some(byte), Some(slot)) = (byte, out.first_mut()) else { return Ok(0) };
        *slot = byte;
        self.bump();
        Ok(1)
    }
}

fn without_place(message: &str) -> String {
    message.rfind(" at line ").and_then(|at| message.get(..at)).unwrap_or(message).to_owned()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::{InputError, read_events};

    /// Types and lines of the events in `text`.
    fn read(text: impl AsRef<[u8]>) -> Result<Vec<(String, usize)>, InputError> {
        let mut events = Vec::new();
        let count = read_events(text.as_ref(), |item| {
            events.push((item.event.event_type.to_string(), item.line));
            ControlFlow::Continue(())
        })?;
        assert_eq!(count, events.len());
        Ok(events)
    }

    fn types(text: impl AsRef<[u8]>) -> Vec<String> {
        read(text).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    fn broken(text: impl AsRef<[u8]>) -> (usize, usize, String) {
        match read(text).unwrap_err() {
            InputError::Broken { line, column, detail } => (line, column, detail),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn an_object_an_array_and_lines_are_read() {
        assert_eq!(types(r#"{"type":"a"}"#), ["a"]);
        assert_eq!(types("{\n  \"type\": \"a\",\n  \"payload\": {\"x\": [1, {}]}\n}\n"), ["a"]);
        assert_eq!(types(r#"[{"type":"a"}, {"type":"b"}]"#), ["a", "b"]);
        assert_eq!(types("{\"type\":\"a\"}\n{\"type\":\"b\"}"), ["a", "b"]);
        assert_eq!(types("\r\n{\"type\":\"a\"}\r\n\r\n  {\"type\":\"b\"}{\"type\":\"c\"}\r\n"), ["a", "b", "c"]);
        assert!(types("[]").is_empty());
    }

    #[test]
    fn a_batch_as_requests_have_it_is_read_too() {
        assert_eq!(types("{\n \"events\" : [\n{\"type\":\"a\"}, {\"type\":\"b\"}]\n}\n"), ["a", "b"]);
        assert_eq!(read("{\"events\":[\n{\"type\":\"a\"}]}").unwrap(), [("a".to_owned(), 2)]);
        assert!(types(r#"{"events":[]}"#).is_empty());
        for text in [r#"{"events":[]"#, r#"{"events":[],"x":1}"#, r#"{"events":[]} {}"#, r#"{"events":7}"#] {
            broken(text);
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_another_encoding_is_named() {
        assert_eq!(types(b"\xEF\xBB\xBF{\"type\":\"a\"}"), ["a"]);
        assert!(broken(b"\xFF\xFE{\0").2.contains("UTF-16"));
        assert!(broken(b"\xEF\xBB{").2.contains("UTF-8"));
    }

    #[test]
    fn empty_input_is_told_from_an_empty_array() {
        for empty in ["", " \n\t\r\n", "\u{feff}"] {
            assert!(matches!(read(empty), Err(InputError::Empty)), "{empty:?}");
        }
    }

    #[test]
    fn every_event_knows_the_line_it_begins_on() {
        let events = read("\n{\"type\":\"a\"}\n\n{\n\"type\":\"b\"}\n{\"type\":\"c\"}").unwrap();
        assert_eq!(events, [("a".to_owned(), 2), ("b".to_owned(), 4), ("c".to_owned(), 6)]);
        let events = read("[\n{\"type\":\"a\"},\n{\"type\":\"b\"}\n]").unwrap();
        assert_eq!(events, [("a".to_owned(), 2), ("b".to_owned(), 3)]);
    }

    #[test]
    fn a_broken_line_is_told_with_its_number() {
        let (line, column, detail) = broken("{\"type\":\"a\"}\n{\"type\":\"b\",}\n{\"type\":\"c\"}");
        assert_eq!((line, column), (2, 13), "{detail}");
        let (line, _, detail) = broken("{\"type\":\"a\"}\n  {\"type\":\n\"B\"}");
        assert_eq!(line, 3);
        assert!(detail.contains("begins on line 2"), "{detail}");
        let (line, _, detail) = broken("{\"type\":\"a\"}\nnonsense");
        assert_eq!((line, detail.as_str()), (2, "found `n`; expected an event object or an array of them"));
    }

    #[test]
    fn an_event_that_the_server_would_refuse_for_its_shape_is_refused_here() {
        for (text, part) in [
            (r#"{"typ":"a"}"#, "unknown field `typ`"),
            (r#"{"payload":{}}"#, "missing field `type`"),
            (r#"{"type":"a","type":"b"}"#, "duplicate field `type`"),
            (r#"{"type":"a","channel":null}"#, "null"),
            (r#"{"type":"A"}"#, "words of a-z"),
            (r#"{"type":7}"#, "integer"),
            (r#"{"type":"a","priority":"soon"}"#, "a priority"),
        ] {
            let (line, _, detail) = broken(text);
            assert!(line == 1 && detail.contains(part), "{text}: {detail}");
        }
    }

    #[test]
    fn arrays_are_closed_and_hold_only_objects() {
        for text in [
            "[",
            "[{\"type\":\"a\"}",
            "[{\"type\":\"a\"},",
            "[{\"type\":\"a\"},]",
            "[{\"type\":\"a\"} {\"type\":\"b\"}]",
            "[[]]",
            "[1]",
            "[] []",
        ] {
            broken(text);
        }
        assert_eq!(broken("[\n{\"type\":\"a\"},\n7]").0, 3);
    }

    #[test]
    fn an_input_that_ends_in_the_middle_is_broken() {
        for text in ["{", "{\"type\"", "{\"type\":\"a\"", "{\"type\":\"a\",\"payload\":{\"x\":\"y"] {
            broken(text);
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused() {
        let (line, _, _) = broken(b"{\"type\":\"a\"}\n{\"type\":\"b\",\"payload\":{\"x\":\"\xff\"}}");
        assert_eq!(line, 2);
    }

    #[test]
    fn payloads_are_kept_to_the_letter() {
        let mut payload = String::new();
        read_events(r#"{"type":"a","payload":{ "n": 1.50e0, "s":"\u00e9" }}"#.as_bytes(), |item| {
            payload = item.event.payload.unwrap().get().to_owned();
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(payload, r#"{ "n": 1.50e0, "s":"\u00e9" }"#);
    }

    #[test]
    fn reading_stops_when_nobody_wants_more() {
        let mut seen = 0;
        let text = "{\"type\":\"a\"}\n{\"type\":\"b\"}\nnonsense";
        let count = read_events(text.as_bytes(), |_| {
            seen += 1;
            if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(count.unwrap(), 2);
    }

    #[test]
    fn an_event_is_read_before_the_next_one_arrives() {
        struct Endless;

        impl std::io::Read for Endless {
            fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
                let text = b"{\"type\":\"a\"}\n";
                out[..text.len()].copy_from_slice(text);
                Ok(text.len())
            }
        }

        let mut seen = 0;
        read_events(Endless, |_| {
            seen += 1;
            if seen == 10_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    }
}
