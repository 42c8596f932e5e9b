//! Plain REST calls, with nothing of our own client in between: what goes over the wire is what the test says.

use bytes::Bytes;
use serde_json::Value;

use crate::Deadline;

/// Calls with one token against one server.
#[derive(Clone)]
pub struct Http {
    client: reqwest::Client,
    url: String,
    token: Option<String>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A streaming answer that stays open until it is dropped.
#[derive(Debug)]
pub struct OpenStream(reqwest::Response);

impl OpenStream {
    /// Reads until the server ends the stream; answers whether it ended it in order.
    pub async fn ended(self) -> bool {
        self.0.bytes().await.is_ok()
    }
}

/// What was answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: reqwest::header::HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    /// The body of an answer with this status.
    ///
    /// # Panics
    /// When the status is another.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// Checks that this is a problem with this status and code, and hands it out.
    ///
    /// # Panics
    /// When it is anything else.
    #[track_caller]
    pub fn expect_problem(&self, status: u16, code: &str) -> Value {
        let problem = self.expect(status);
        let content_type = self.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        assert_eq!(content_type, "application/problem+json", "{problem}");
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        for member in ["type", "title", "detail", "request_id"] {
            assert!(problem[member].is_string(), "a problem has '{member}': {problem}");
        }
        problem
    }
}

impl Http {
    /// Calls `url` with `token`.
    ///
    /// # Panics
    /// When the client cannot be built.
    pub fn new(url: &str, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..Self::anonymous(url) }
    }

    /// Calls `url` without a token.
    ///
    /// # Panics
    /// When the client cannot be built.
    pub fn anonymous(url: &str) -> Self {
        // Installed once per process; a second time is refused, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        Self { client, url: url.to_owned(), token: None }
    }

    /// The same server with another token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The same token on another server.
    #[must_use]
    pub fn at(&self, url: &str) -> Self {
        Self { url: url.to_owned(), ..self.clone() }
    }

    /// The server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The token.
    pub fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    /// One call; `None` when no answer came.
    pub async fn try_call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Bytes) -> Option<Answer> {
        let method = method.parse().expect("a method");
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body).send().await.ok()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Some(Answer { status, headers, body: response.bytes().await.ok()? })
    }

    /// One call.
    ///
    /// # Panics
    /// When no answer came.
    pub async fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
        let answer = self.try_call(method, path, headers, body.into()).await;
        answer.unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    /// Opens a streaming GET and reads it as text until `enough` says so; answers everything read.
    ///
    /// # Panics
    /// When the answer is no 200, or `enough` is not said within the usual patience.
    pub async fn read_stream(&self, path: &str, headers: &[(&str, &str)], enough: impl Fn(&str) -> bool) -> String {
        let mut request = self.client.get(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        let (mut text, deadline) = (String::new(), Deadline::usual());
        while !enough(&text) {
            let chunk = tokio::time::timeout(deadline.left(), response.chunk()).await;
            let chunk = chunk.unwrap_or_else(|_| panic!("the stream said only {text:?}"));
            text.push_str(std::str::from_utf8(&chunk.expect("a chunk").expect("an open stream")).expect("UTF-8"));
        }
        text
    }

    /// Opens a streaming GET and leaves the reading to the caller.
    ///
    /// # Panics
    /// When the answer is no 200.
    pub async fn open_stream(&self, path: &str) -> OpenStream {
        let mut request = self.client.get(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        OpenStream(response)
    }

    /// Every event after a position that the caller may see: its id and seq, page by page.
    pub async fn log_after(&self, mut after: u64) -> Vec<(String, u64)> {
        let mut log = Vec::new();
        loop {
            let page = self.get(&format!("/v1/events?after={after}&limit=1000")).await.expect(200);
            for event in page["events"].as_array().expect("events") {
                log.push((event["id"].as_str().expect("an id").to_owned(), event["seq"].as_u64().expect("a seq")));
            }
            after = page["next_cursor"].as_u64().expect("a cursor");
            if after == page["head_seq"].as_u64().expect("a head") {
                return log;
            }
        }
    }

    /// A GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], "").await
    }

    /// A DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, &[], "").await
    }

    /// A POST of JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, &[("content-type", "application/json")], body.to_string()).await
    }

    /// A PATCH of JSON.
    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.call("PATCH", path, &[("content-type", "application/json")], body.to_string()).await
    }
}
