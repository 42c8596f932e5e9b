//! WebSocket frames (RFC 6455, section 5) as bytes, without sockets.

use super::WireError;

/// Larger frames are refused, so that a broken length cannot take all memory.
const LARGEST: usize = 64 << 20;

/// Of the first byte: the message ends with this frame.
const WHOLE: u8 = 0x80;
/// Of the second byte: a key follows the length.
const MASKED: u8 = 0x80;
/// The length follows in two bytes.
const LENGTH_16: u8 = 0x7e;
/// The length follows in eight bytes.
const LENGTH_64: u8 = 0x7f;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// One frame from the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A whole text message.
    Text(&'a [u8]),
    /// Wants a pong with the same bytes.
    Ping(&'a [u8]),
    /// Wants nothing.
    Pong,
    /// The end, with its code and reason.
    Close(u16, &'a [u8]),
}

/// The frame at the beginning of `bytes` and the bytes after it, or `None` when it is not all there yet.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Frame<'_>, &[u8])>, WireError> {
    let Some((&[first, second], rest)) = bytes.split_first_chunk::<2>() else { return Ok(None) };
    if second & MASKED != 0 {
        return Err(WireError::Malformed("a server masks nothing"));
    }
    let Some((length, rest)) = length(second, rest) else { return Ok(None) };
    if length > LARGEST {
        return Err(WireError::Malformed("a frame is too large"));
    }
    let Some((payload, rest)) = rest.split_at_checked(length) else { return Ok(None) };
    if first & 0xf0 != WHOLE {
        return Err(WireError::Malformed("a message in fragments, or an extension"));
    }
    let frame = match first & 0x0f {
        TEXT => Frame::Text(payload),
        PING => Frame::Ping(payload),
        PONG => Frame::Pong,
        CLOSE => match payload.split_first_chunk::<2>() {
            Some((code, reason)) => Frame::Close(u16::from_be_bytes(*code), reason),
            None => Frame::Close(1005, &[]),
        },
        _ => return Err(WireError::Malformed("an unknown kind of frame")),
    };
    Ok(Some((frame, rest)))
}

fn length(second: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    match second {
        LENGTH_16 => rest.split_first_chunk::<2>().map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest)),
        LENGTH_64 => {
            let (length, rest) = rest.split_first_chunk::<8>()?;
            Some((usize::try_from(u64::from_be_bytes(*length)).unwrap_or(usize::MAX), rest))
        }
        short => Some((usize::from(short), rest)),
    }
}

/// Frames on their way to the server.
#[derive(Debug, Default)]
pub(crate) struct Outbox(Vec<u8>);

impl Outbox {
    /// Adds a text message.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.frame(TEXT, text);
    }

    /// Adds the answer to a ping.
    pub(crate) fn pong(&mut self, payload: &[u8]) {
        self.frame(PONG, payload);
    }

    /// The bytes to send.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Forgets what was sent.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// A client masks every frame; a key of zeros leaves the payload as it is, and costs nothing.
    fn frame(&mut self, kind: u8, payload: &[u8]) {
        self.0.push(WHOLE | kind);
        match payload.len() {
            length @ 0..126 => self.0.push(MASKED | length as u8),
            length @ 126..=0xffff => {
                self.0.push(MASKED | LENGTH_16);
                self.0.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                self.0.push(MASKED | LENGTH_64);
                self.0.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        self.0.extend_from_slice(&[0; 4]);
        self.0.extend_from_slice(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, Outbox, parse};

    /// A frame as a server writes it.
    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x80 | kind];
        match payload.len() {
            length @ 0..126 => bytes.push(length as u8),
            length @ 126..=0xffff => {
                bytes.push(126);
                bytes.extend((length as u16).to_be_bytes());
            }
            length => {
                bytes.push(127);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn a_frame_of_any_length_is_read_only_when_it_is_all_there() {
        for length in [0, 1, 125, 126, 65_535, 65_536, 200_000] {
            let payload = vec![b'x'; length];
            let bytes = frame(1, &payload);
            for cut in [0, 1, 2, 3, bytes.len() / 2, bytes.len() - 1].into_iter().filter(|cut| *cut < bytes.len()) {
                assert_eq!(parse(&bytes[..cut]).unwrap(), None, "{length} bytes, cut at {cut}");
            }
            let with_more = [&bytes[..], b"more"].concat();
            assert_eq!(parse(&with_more).unwrap(), Some((Frame::Text(&payload[..]), &b"more"[..])));
        }
    }

    #[test]
    fn pings_and_closes_are_told_from_texts() {
        assert_eq!(parse(&frame(9, b"p")).unwrap(), Some((Frame::Ping(b"p"), &[][..])));
        assert_eq!(parse(&frame(10, b"p")).unwrap(), Some((Frame::Pong, &[][..])));
        assert_eq!(parse(&frame(8, b"\x0f\xafbye")).unwrap(), Some((Frame::Close(4015, b"bye"), &[][..])));
        assert_eq!(parse(&frame(8, b"")).unwrap(), Some((Frame::Close(1005, b""), &[][..])));
    }

    #[test]
    fn what_this_client_does_not_read_is_an_error_and_never_miscounted() {
        let fragment = [0x01, 1, b'x'];
        let masked = [0x81, 0x81, 0, 0, 0, 0, b'x'];
        let binary = [0x82, 1, b'x'];
        let endless = [0x81, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        for bytes in [&fragment[..], &masked, &binary, &endless] {
            assert!(parse(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_sent_is_masked_with_zeros() {
        let mut outbox = Outbox::default();
        outbox.text(b"{}");
        assert_eq!(outbox.bytes(), [0x81, 0x82, 0, 0, 0, 0, b'{', b'}']);
        outbox.clear();
        outbox.text(&[b'x'; 300]);
        assert_eq!(outbox.bytes()[..8], [0x81, 0xfe, 1, 44, 0, 0, 0, 0]);
        assert_eq!(outbox.bytes().len(), 308);
    }
}
