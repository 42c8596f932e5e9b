//! As much of HTTP/1.1 as a receiver of small signed requests needs. Everything is bounded.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The longest head.
const HEAD_MAX: usize = 16 * 1024;
/// The longest body. Rings have at most 4 KiB.
const BODY_MAX: usize = 64 * 1024;
/// The most headers.
const HEADERS_MAX: usize = 64;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// The header `Host`, in lower case.
    pub(super) authority: String,
    /// The target without its query.
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) keep_alive: bool,
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    status: u16,
    json: String,
}

impl Answer {
    pub(super) const fn status(status: u16) -> Self {
        Self { status, json: String::new() }
    }

    pub(super) const fn json(json: String) -> Self {
        Self { status: 200, json }
    }
}

/// The next request of a connection; `None` when there is none. What was read beyond it stays in `buffer`.
pub(super) async fn read(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), buffer: &mut Vec<u8>) -> Result<Option<Request>, Answer> {
    let (mut request, head, length) = loop {
        if let Some(parsed) = parse(buffer)? {
            break parsed;
        }
        if buffer.len() > HEAD_MAX {
            return Err(Answer::status(431));
        }
        if stream.read_buf(buffer).await.unwrap_or(0) == 0 {
            return Ok(None);
        }
    };
    if expects_continue(&request) {
        let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
    }
    while buffer.len() < head + length {
        if stream.read_buf(buffer).await.unwrap_or(0) == 0 {
            return Ok(None);
        }
    }
    let rest = buffer.split_off(head + length);
    request.body = buffer.split_off(head);
    *buffer = rest;
    Ok(Some(request))
}

/// A head, its length and that of the body, once all of the head is there.
fn parse(buffer: &[u8]) -> Result<Option<(Request, usize, usize)>, Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(buffer) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Answer::status(431)),
        Err(_) => return Err(Answer::status(400)),
    };
    let is_new = parsed.version == Some(1);
    // A header that is no text cannot be signed; it is none of ours.
    let headers: Vec<(String, String)> = parsed
        .headers
        .iter()
        .filter_map(|header| Some((header.name.to_ascii_lowercase(), std::str::from_utf8(header.value).ok()?.to_owned())))
        .collect();
    let all = |name: &str| headers.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str()).collect::<Vec<_>>();
    if !all("transfer-encoding").is_empty() {
        return Err(Answer::status(411));
    }
    let length = match all("content-length").as_slice() {
        [] => 0,
        [text] if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().unwrap_or(usize::MAX),
        _ => return Err(Answer::status(400)),
    };
    if length > BODY_MAX {
        return Err(Answer::status(413));
    }
    let target = parsed.path.unwrap_or_default();
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        authority: all("host").first().map(|host| host.to_ascii_lowercase()).unwrap_or_default(),
        path: target.split('?').next().unwrap_or_default().to_owned(),
        keep_alive: is_new && !all("connection").iter().any(|value| value.eq_ignore_ascii_case("close")),
        headers,
        body: Vec::new(),
    };
    Ok(Some((request, head, length)))
}

fn expects_continue(request: &Request) -> bool {
    request.headers.iter().any(|(name, value)| name == "expect" && value.eq_ignore_ascii_case("100-continue"))
}

/// Writes an answer.
pub(super) async fn write(stream: &mut (impl AsyncWrite + Unpin), answer: &Answer, keep_alive: bool) -> std::io::Result<()> {
    let reason = match answer.status {
        200 => "OK",
        202 => "Accepted",
        401 => "Unauthorized",
        405 => "Method Not Allowed",
        503 => "Service Unavailable",
        _ => "Bad Request",
    };
    let media = if answer.json.is_empty() { "" } else { "content-type: application/json\r\n" };
    let connection = if keep_alive { "" } else { "connection: close\r\n" };
    let (status, length) = (answer.status, answer.json.len());
    let text = format!("HTTP/1.1 {status} {reason}\r\n{media}{connection}content-length: {length}\r\n\r\n{}", answer.json);
    stream.write_all(text.as_bytes()).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::{Answer, Request, read};

    async fn all(text: &str) -> Result<Vec<Request>, Answer> {
        let mut stream = tokio::io::join(text.as_bytes(), tokio::io::sink());
        let (mut buffer, mut requests) = (Vec::new(), Vec::new());
        while let Some(request) = read(&mut stream, &mut buffer).await? {
            requests.push(request);
        }
        Ok(requests)
    }

    #[tokio::test]
    async fn requests_are_read_one_after_the_other() {
        let text = "POST /hook?key=1 HTTP/1.1\r\nHost: Agent:8787\r\nContent-Length: 2\r\nWebhook-Id: m\r\n\r\n{}\
                    POST / HTTP/1.1\r\nconnection: close\r\n\r\n";
        let requests = all(text).await.unwrap();
        let first = &requests[0];
        assert_eq!((first.method.as_str(), first.authority.as_str(), first.path.as_str()), ("POST", "agent:8787", "/hook"));
        assert_eq!((first.body.as_slice(), first.keep_alive), (b"{}".as_slice(), true));
        assert!(first.headers.contains(&("webhook-id".to_owned(), "m".to_owned())));
        assert_eq!((requests.len(), requests[1].keep_alive), (2, false));
    }

    #[tokio::test]
    async fn what_is_too_much_or_unclear_is_refused() {
        let head = "POST / HTTP/1.1\r\n";
        for (text, status) in [
            ("garbage\r\n\r\n".to_owned(), 400),
            (format!("{head}content-length: x\r\n\r\n"), 400),
            (format!("{head}content-length: +1\r\n\r\n"), 400),
            (format!("{head}content-length: 1\r\ncontent-length: 2\r\n\r\n"), 400),
            (format!("{head}content-length: 65537\r\n\r\n"), 413),
            (format!("{head}content-length: 99999999999999999999999\r\n\r\n"), 413),
            (format!("{head}transfer-encoding: chunked\r\n\r\n"), 411),
            (format!("{head}x: {}\r\n\r\n", "y".repeat(40_000)), 431),
            (format!("{head}{}\r\n", "x: y\r\n".repeat(65)), 431),
        ] {
            assert_eq!(all(&text).await.err(), Some(Answer::status(status)), "{}", text.len());
        }
        assert!(all("POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nabc").await.unwrap().is_empty(), "broken off");
    }
}
