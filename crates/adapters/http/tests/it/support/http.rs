//! HTTP by hand, so that a test sends exactly the bytes that it means.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;

/// An answer as it came.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {}", String::from_utf8_lossy(&self.body)))
    }

    /// The body of an answer with this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// A problem with this status, code and pointer.
    #[track_caller]
    pub(crate) fn expect_problem(&self, status: u16, code: &str, pointer: Option<&str>) -> Value {
        let problem = self.expect(status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!((&problem["code"], &problem["status"]), (&Value::from(code), &Value::from(status)), "{problem}");
        assert_eq!(problem["pointer"].as_str(), pointer, "{problem}");
        assert_eq!(problem["type"], format!("urn:doorstep:problem:{code}"));
        assert!(!problem["title"].as_str().unwrap().is_empty() && !problem["detail"].as_str().unwrap().is_empty(), "{problem}");
        assert_eq!(problem["request_id"].as_str(), self.header("x-request-id"), "{problem}");
        problem
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Wire {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self { stream: BufReader::new(TcpStream::connect(address).await.unwrap()) }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).await.unwrap();
    }

    /// Sends a request with this head and body.
    pub(crate) async fn request(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} {target} HTTP/1.1\r\nhost: doorstep\r\n");
        for (name, value) in headers {
            head += &[name, ": ", value, "\r\n"].concat();
        }
        if !body.is_empty() || method == "POST" || method == "PATCH" {
            head += &["content-length: ", &body.len().to_string(), "\r\n"].concat();
        }
        head.push_str("\r\n");
        self.send(&[head.as_bytes(), body].concat()).await;
    }

    /// The next answer; `None` when the server closes instead.
    pub(crate) async fn try_answer(&mut self) -> Option<Answer> {
        let (status, headers) = self.head().await?;
        let mut answer = Answer { status, headers, body: Vec::new() };
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                answer.body.extend(chunk);
            }
        } else {
            let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
            answer.body = vec![0; length];
            timeout(PATIENCE, self.stream.read_exact(&mut answer.body)).await.unwrap().ok()?;
        }
        Some(answer)
    }

    /// The next answer.
    pub(crate) async fn answer(&mut self) -> Answer {
        self.try_answer().await.expect("an answer")
    }

    /// The status and the headers of the next answer.
    pub(crate) async fn head(&mut self) -> Option<(u16, Vec<(String, String)>)> {
        let status = self.line().await?;
        let status = status.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(':') else { return Some((status, headers)) };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// The next chunk of a chunked body; `None` after the last.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line().await?, 16).ok()?;
        let mut chunk = vec![0; size + 2];
        timeout(PATIENCE, self.stream.read_exact(&mut chunk)).await.unwrap().ok()?;
        chunk.truncate(size);
        (size > 0).then_some(chunk)
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        timeout(PATIENCE, self.stream.read_line(&mut line)).await.expect("a line in time").ok()?;
        if line.is_empty() { None } else { Some(line.trim_end().to_owned()) }
    }

    /// Whether the server closes the connection within `patience`, saying nothing more.
    pub(crate) async fn is_closed_within(&mut self, patience: Duration) -> bool {
        let mut rest = Vec::new();
        timeout(patience, self.stream.read_to_end(&mut rest)).await.is_ok() && rest.is_empty()
    }
}
