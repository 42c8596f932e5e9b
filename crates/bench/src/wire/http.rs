//! HTTP/1.1 over one connection: a request is bytes, an answer is a status and a body of a known length.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::WireError;

/// Free bytes in the buffer before each read.
const READ: usize = 16 << 10;
/// More than any head that the server writes.
const LARGEST_HEAD: usize = 64 << 10;

/// A request to be rendered once and sent many times.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    head: String,
    body: Vec<u8>,
}

impl Request {
    /// A request without a body.
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self { head: format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n"), body: Vec::new() }
    }

    /// With one more header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.extend([name, ": ", value, "\r\n"]);
        self
    }

    /// With a bearer token.
    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// With a body of JSON.
    pub(crate) fn json(self, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let length = body.len().to_string();
        Self { body, ..self.header("content-type", "application/json").header("content-length", &length) }
    }

    /// The bytes to send.
    pub(crate) fn render(&self) -> Vec<u8> {
        [self.head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// An answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Response<'a> {
    /// The status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: &'a [u8],
}

impl<'a> Response<'a> {
    /// The body of a success.
    pub(crate) fn success(self) -> Result<&'a [u8], WireError> {
        if (200..300).contains(&self.status) { Ok(self.body) } else { Err(WireError::refused(self.status, self.body)) }
    }
}

/// A connection that is kept.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl HttpConnection {
    /// Connects.
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self, WireError> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Sends a rendered request and waits for its answer.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<Response<'_>, WireError> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = self.read_head().await?;
        let length = match (head.length, head.status) {
            (Some(length), _) => length,
            (None, 204 | 304) => 0,
            (None, _) => return Err(WireError::Malformed("an answer without content-length")),
        };
        let end = head.end + length;
        while self.buffer.len() < end {
            self.read().await?;
        }
        match self.buffer.get(head.end..) {
            Some(body) if body.len() == length => Ok(Response { status: head.status, body }),
            _ => Err(WireError::Malformed("more than the answer")),
        }
    }

    async fn read_head(&mut self) -> Result<Head, WireError> {
        loop {
            self.read().await?;
            if let Some(head) = Head::parse(&self.buffer)? {
                return Ok(head);
            }
            if self.buffer.len() > LARGEST_HEAD {
                return Err(WireError::Malformed("a head without an end"));
            }
        }
    }

    async fn read(&mut self) -> Result<(), WireError> {
        self.buffer.reserve(READ);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err(WireError::Ended);
        }
        Ok(())
    }
}

/// Sends a request whose answer is no single body, and hands out the connection with what came after the head. Any other status
/// than `expected` is a refusal.
pub(crate) async fn open_stream(address: SocketAddr, request: &[u8], expected: u16) -> Result<(TcpStream, Vec<u8>), WireError> {
    let mut connection = HttpConnection::connect(address).await?;
    connection.stream.write_all(request).await?;
    let head = connection.read_head().await?;
    if head.status != expected {
        while head.length.is_some_and(|length| connection.buffer.len() < head.end + length) {
            connection.read().await?;
        }
        return Err(WireError::refused(head.status, connection.buffer.get(head.end..).unwrap_or_default()));
    }
    let mut rest = Vec::new();
    rest.extend_from_slice(connection.buffer.get(head.end..).unwrap_or_default());
    Ok((connection.stream, rest))
}

/// What is needed of an answer's head.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    /// Where the body begins.
    end: usize,
    length: Option<usize>,
}

impl Head {
    /// The head at the beginning of `bytes`, or `None` when it is not all there.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, WireError> {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
        let mut lines = bytes.get(..end).unwrap_or_default().split(|byte| *byte == b'\n');
        let status = lines.next().and_then(|line| number(line.strip_prefix(b"HTTP/1.1 ")?.get(..3)?));
        let Some(status) = status.and_then(|status| u16::try_from(status).ok()) else {
            return Err(WireError::Malformed("no status"));
        };
        let length = lines.find_map(|line| {
            let (name, value) = line.split_at_checked(b"content-length:".len())?;
            name.eq_ignore_ascii_case(b"content-length:").then(|| number(value.trim_ascii()))
        });
        match length {
            Some(None) => Err(WireError::Malformed("a content-length that is no number")),
            length => Ok(Some(Self { status, end: end + 4, length: length.flatten() })),
        }
    }
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::{Head, HttpConnection, Request, open_stream};
    use crate::wire::WireError;

    #[test]
    fn a_head_is_read_only_when_it_is_all_there() {
        let head = b"HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nConTent-Length:  12 \r\n\r\n";
        for cut in 0..head.len() {
            assert_eq!(Head::parse(&head[..cut]).unwrap(), None, "cut at {cut}");
        }
        assert_eq!(Head::parse(head).unwrap(), Some(Head { status: 201, end: head.len(), length: Some(12) }));
    }

    #[test]
    fn a_head_that_makes_no_sense_is_an_error() {
        for head in ["HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 xxx\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n"] {
            assert!(Head::parse(head.as_bytes()).is_err(), "{head}");
        }
    }

    #[test]
    fn a_request_is_rendered_with_its_length() {
        let request = Request::new("POST", "/x").bearer("t").json("{}").render();
        let text = String::from_utf8(request).unwrap();
        assert!(text.starts_with("POST /x HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer t\r\n"), "{text}");
        assert!(text.ends_with("content-length: 2\r\n\r\n{}"), "{text}");
    }

    /// Answers one request after the other with these bytes, in pieces of `piece`.
    async fn answer(listener: &TcpListener, answers: &[&[u8]], piece: usize) {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        for answer in answers {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            for piece in answer.chunks(piece) {
                stream.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn answers_on_a_kept_connection_are_told_apart_wherever_the_reads_are_cut() {
        let large = [&b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"[..], &b"z".repeat(100_000)].concat();
        let answers = [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", &large[..], b"HTTP/1.1 204 No Content\r\n\r\n"];
        for piece in [1, 5, 4096, 200_000] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let client = async {
                let request = Request::new("GET", "/").render();
                let mut connection = HttpConnection::connect(address).await.unwrap();
                for (status, length) in [(200, 2), (200, 100_000), (204, 0)] {
                    let response = connection.call(&request).await.unwrap();
                    assert_eq!((response.status, response.body.len()), (status, length), "in pieces of {piece}");
                }
            };
            tokio::join!(answer(&listener, &answers, piece), client);
        }
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_counted_is_an_error() {
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        let two = b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
        for bytes in [&chunked[..], two] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let client = async {
                let mut connection = HttpConnection::connect(address).await.unwrap();
                let answered = connection.call(&Request::new("GET", "/").render()).await.map(|response| response.status);
                assert!(matches!(answered, Err(WireError::Malformed(_))), "{answered:?}");
            };
            let answers = [bytes];
            tokio::join!(answer(&listener, &answers, bytes.len()), client);
        }
    }

    #[tokio::test]
    async fn a_refusal_is_no_success() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = async {
            let mut connection = HttpConnection::connect(address).await.unwrap();
            let response = connection.call(&Request::new("GET", "/").render()).await.unwrap();
            assert_eq!(response.success().unwrap_err().to_string(), "refused with 503: full");
        };
        let refusals = [&b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nfull"[..]];
        tokio::join!(answer(&listener, &refusals, 10), client);
    }

    #[tokio::test]
    async fn a_stream_is_handed_out_with_what_came_after_its_head() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = async {
            let request = Request::new("GET", "/").render();
            let (mut stream, mut body) = open_stream(address, &request, 200).await.unwrap();
            stream.read_to_end(&mut body).await.unwrap();
            assert_eq!(body, b"id: 1\n\n");
        };
        let streams = [&b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: 1\n\n"[..]];
        tokio::join!(answer(&listener, &streams, 20), client);
    }
}
