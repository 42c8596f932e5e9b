//! Reading an event stream (HTML standard, "Server-sent events"): pure, piece by piece.

/// The most bytes of one message; a longer one ends the stream.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// One message of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// Its name; empty when it has none.
    pub(crate) event: String,
    /// Its data, lines joined by line feeds.
    pub(crate) data: String,
    /// The last `id` that the stream has named.
    pub(crate) id: Option<String>,
}

/// The stream carries a message that is longer than a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Joins pieces of text to messages.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    after_cr: bool,
    event: String,
    data: String,
    has_data: bool,
    id: Option<String>,
}

impl Parser {
    /// Takes the next piece; every message that it completes goes to `each`.
    pub(crate) fn take(&mut self, bytes: &[u8], mut each: impl FnMut(Message)) -> Result<(), TooLong> {
        for &byte in bytes {
            // A line ends with CR, LF or both.
            let joined = std::mem::replace(&mut self.after_cr, byte == b'\r') && byte == b'\n';
            match byte {
                b'\n' if joined => {}
                b'\n' | b'\r' => {
                    if let Some(message) = self.end_line() {
                        each(message);
                    }
                }
                byte if self.line.len() + self.data.len() < MAX_MESSAGE_BYTES => self.line.push(byte),
                _ => return Err(TooLong),
            }
        }
        Ok(())
    }

    fn end_line(&mut self) -> Option<Message> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.end_message();
        }
        let line = String::from_utf8_lossy(&line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.event),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()).filter(|id| !id.is_empty()),
            // A comment, `retry`, or what a later standard has: nothing to a client with pauses of its own.
            _ => {}
        }
        None
    }

    fn end_message(&mut self) -> Option<Message> {
        let (event, data) = (std::mem::take(&mut self.event), std::mem::take(&mut self.data));
        let has_data = std::mem::take(&mut self.has_data);
        has_data.then(|| Message { event, data, id: self.id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_MESSAGE_BYTES, Message, Parser, TooLong};

    fn read(pieces: &[&[u8]]) -> Vec<Message> {
        let (mut parser, mut messages) = (Parser::default(), Vec::new());
        for piece in pieces {
            parser.take(piece, |message| messages.push(message)).unwrap();
        }
        messages
    }

    fn message(event: &str, data: &str, id: Option<&str>) -> Message {
        Message { event: event.to_owned(), data: data.to_owned(), id: id.map(str::to_owned) }
    }

    #[test]
    fn a_message_has_a_name_data_and_an_id_and_comments_are_nothing() {
        let text = b": heartbeat\n\nid: e:7\nevent: inbox.updated\ndata: {\"a\":\ndata:1}\n\nretry: 3000\n\n";
        assert_eq!(read(&[text]), [message("inbox.updated", "{\"a\":\n1}", Some("e:7"))]);
    }

    #[test]
    fn the_last_id_stays_until_another_is_named() {
        let text = b"id: 1\ndata: a\n\ndata: b\n\nid: 2\n\ndata: c\n\n";
        assert_eq!(read(&[text]), [message("", "a", Some("1")), message("", "b", Some("1")), message("", "c", Some("2"))]);
    }

    #[test]
    fn what_the_end_cuts_off_is_no_message() {
        assert_eq!(read(&[b"data: a\n"]), []);
        assert_eq!(read(&[b"event: x\n\n"]), [], "a message without data is none");
    }

    #[test]
    fn a_message_without_end_is_refused() {
        let mut parser = Parser::default();
        let line = vec![b'x'; MAX_MESSAGE_BYTES + 1];
        assert_eq!(parser.take(&line, |_| ()), Err(TooLong));
    }

    proptest! {
        #[test]
        fn where_the_pieces_are_cut_and_how_lines_end_does_not_matter(cut in 0_usize..60, ending in prop::sample::select(vec!["\n", "\r", "\r\n"])) {
            let text = ["id: 9", "event: a", "data: b", "", "data: c", "data: d", "", ""].join(ending);
            let bytes = text.as_bytes();
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(read(&[first, second]), [message("a", "b", Some("9")), message("", "c\nd", Some("9"))]);
        }
    }
}
