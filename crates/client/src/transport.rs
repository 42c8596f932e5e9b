//! One HTTP call: how it is sent, how much of the answer is read, and what a refusal becomes.
//!
//! Must not know any operation.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::PROBLEM_MEDIA_TYPE;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, RETRY_AFTER, USER_AGENT,
};
use reqwest::{Method, Response, StatusCode, Url};
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::address::Address;
use crate::credential::Credential;
use crate::{ClientError, ClientOptions, InvalidOptions};

/// The media type of server-sent events.
const EVENT_STREAM: &str = "text/event-stream";

/// The connections to one server.
#[derive(Debug)]
pub(crate) struct Transport {
    rest: reqwest::Client,
    /// Speaks HTTP/1.1 only, as the WebSocket upgrade needs, and keeps no connections.
    upgrade: reqwest::Client,
    address: Address,
    credential: Credential,
    options: ClientOptions,
}

/// A call to be made.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    method: Method,
    url: Url,
    body: Option<Bytes>,
    timeout: Duration,
    idempotency_key: Option<String>,
    headers: HeaderMap,
}

impl Transport {
    pub(crate) fn new(options: ClientOptions) -> Result<Self, InvalidOptions> {
        let address = Address::parse(&options.url)?;
        let credential = Credential::new(options.token.as_ref(), options.token_file.clone())?;
        if !address.is_encrypted() && !address.is_loopback() && options.token.is_some() {
            tracing::warn!("the token is sent unencrypted: use https for a server that is not on this machine");
        }
        let build = |alpn: &[&[u8]]| {
            let mut tls = tls(&address)?;
            tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
            let mut builder = reqwest::Client::builder()
                .tls_backend_preconfigured(tls)
                .default_headers(headers())
                .connect_timeout(options.connect_timeout)
                .redirect(reqwest::redirect::Policy::none())
                .tcp_nodelay(true);
            if address.is_loopback() {
                builder = builder.no_proxy();
            }
            Ok::<_, InvalidOptions>(builder)
        };
        let rest = build(&[b"h2", b"http/1.1"])?.build().map_err(InvalidOptions::Http)?;
        let upgrade = build(&[b"http/1.1"])?.http1_only().pool_max_idle_per_host(0).build().map_err(InvalidOptions::Http)?;
        Ok(Self { rest, upgrade, address, credential, options })
    }

    pub(crate) fn options(&self) -> &ClientOptions {
        &self.options
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Begins a call of `method` on the path below the server's address.
    pub(crate) fn call(&self, method: Method, path: &[&str]) -> Call {
        let url = self.address.join(path);
        Call { method, url, body: None, timeout: self.options.request_timeout, idempotency_key: None, headers: HeaderMap::new() }
    }

    /// Sends the call and reads its answer.
    pub(crate) async fn answer<T: DeserializeOwned>(&self, call: Call) -> Result<T, ClientError> {
        let (response, body) = self.exchange(call).await?;
        if response != StatusCode::NO_CONTENT && !body.is_empty() {
            return serde_json::from_slice(&body).map_err(ClientError::Decode);
        }
        Err(ClientError::Unexpected { status: response.as_u16(), detail: "the answer is empty".to_owned() })
    }

    /// Sends the call; what is answered does not matter.
    pub(crate) async fn done(&self, call: Call) -> Result<(), ClientError> {
        self.exchange(call).await.map(|_| ())
    }

    async fn exchange(&self, call: Call) -> Result<(StatusCode, Bytes), ClientError> {
        let waited = call.timeout;
        let work = async {
            let response = self.send(&self.rest, call).await?;
            let status = response.status();
            if !status.is_success() {
                return Err(self.refusal(response).await);
            }
            self.body(response).await.map(|body| (status, body))
        };
        tokio::time::timeout(waited, work).await.unwrap_or(Err(ClientError::Timeout { waited }))
    }

    /// Sends the call unless what it asks for is still what `etag` stands for: then `None`. Else the answer and its own tag.
    pub(crate) async fn changed<T: DeserializeOwned>(
        &self,
        call: Call,
        etag: Option<&str>,
    ) -> Result<Option<(T, Option<String>)>, ClientError> {
        let waited = call.timeout;
        let work = async {
            let tag = etag.and_then(|etag| HeaderValue::from_str(etag).ok());
            let response = self.send(&self.rest, call.header(IF_NONE_MATCH, tag)).await?;
            match response.status() {
                StatusCode::NOT_MODIFIED => return Ok(None),
                status if !status.is_success() => return Err(self.refusal(response).await),
                _ => {}
            }
            let etag = header(&response, ETAG);
            let body = self.body(response).await?;
            serde_json::from_slice(&body).map(|answer| Some((answer, etag))).map_err(ClientError::Decode)
        };
        tokio::time::timeout(waited, work).await.unwrap_or(Err(ClientError::Timeout { waited }))
    }

    /// Opens a stream of server-sent events. How long it goes on is up to the caller.
    pub(crate) async fn events(&self, call: Call, last_id: Option<&str>) -> Result<Response, ClientError> {
        let waited = call.timeout;
        let work = async {
            let last_id = last_id.and_then(|id| HeaderValue::from_str(id).ok());
            let call = call.header(ACCEPT, Some(HeaderValue::from_static(EVENT_STREAM)));
            let response = self.send(&self.rest, call.header(HeaderName::from_static("last-event-id"), last_id)).await?;
            let status = response.status();
            if !status.is_success() {
                return Err(self.refusal(response).await);
            }
            if header(&response, CONTENT_TYPE).is_some_and(|media| media.starts_with(EVENT_STREAM)) {
                return Ok(response);
            }
            Err(ClientError::Unexpected { status: status.as_u16(), detail: "the answer is no event stream".to_owned() })
        };
        tokio::time::timeout(waited, work).await.unwrap_or(Err(ClientError::Timeout { waited }))
    }

    /// Sends a WebSocket upgrade to the gateway. The caller judges a 101; everything else is an error.
    pub(crate) async fn upgrade(&self, headers: HeaderMap) -> Result<Response, ClientError> {
        let call = Call { headers, ..self.call(Method::GET, &["v1", "gateway"]) };
        let waited = call.timeout;
        let work = async {
            let response = self.send(&self.upgrade, call).await?;
            match response.status() {
                StatusCode::SWITCHING_PROTOCOLS => Ok(response),
                status if status.is_success() => {
                    Err(ClientError::Unexpected { status: status.as_u16(), detail: "the connection was not upgraded".to_owned() })
                }
                _ => Err(self.refusal(response).await),
            }
        };
        tokio::time::timeout(waited, work).await.unwrap_or(Err(ClientError::Timeout { waited }))
    }

    /// Whether the token has been changed since it was read. Takes the new one.
    pub(crate) fn renews_token(&self) -> bool {
        self.credential.renew(self.credential.current().as_ref())
    }

    /// Sends the call, and once again with the token that has replaced the one which the server does not accept any more.
    async fn send(&self, client: &reqwest::Client, call: Call) -> Result<Response, ClientError> {
        let (waited, used) = (call.timeout, self.credential.current());
        let request = |call, token| Self::request(client, call, token).send();
        let failure = |error| self.failure(error, waited);
        let response = request(call.clone(), used.clone()).await.map_err(failure)?;
        if response.status() == StatusCode::UNAUTHORIZED && self.credential.renew(used.as_ref()) {
            return request(call, self.credential.current()).await.map_err(failure);
        }
        Ok(response)
    }

    fn request(client: &reqwest::Client, call: Call, token: Option<HeaderValue>) -> reqwest::RequestBuilder {
        let mut request = client.request(call.method, call.url).headers(call.headers);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        if let Some(body) = call.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        if let Some(key) = call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        request
    }

    fn failure(&self, error: reqwest::Error, waited: Duration) -> ClientError {
        let source = error.without_url();
        if source.is_connect() {
            ClientError::Unreachable { address: self.address.to_string(), source }
        } else if source.is_timeout() {
            ClientError::Timeout { waited }
        } else {
            ClientError::Transport(source)
        }
    }

    /// Reads a body up to the bound, also when the server names no length or a wrong one.
    async fn body(&self, mut response: Response) -> Result<Bytes, ClientError> {
        let limit = self.options.max_response_bytes;
        let mut read = Vec::new();
        loop {
            let chunk = response.chunk().await.map_err(|error| ClientError::Transport(error.without_url()))?;
            let Some(chunk) = chunk else { return Ok(read.into()) };
            if read.len() + chunk.len() > limit {
                return Err(ClientError::TooLarge { limit });
            }
            read.extend_from_slice(&chunk);
        }
    }

    async fn refusal(&self, response: Response) -> ClientError {
        let status = response.status().as_u16();
        let retry_after = header(&response, RETRY_AFTER).and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let is_problem = header(&response, CONTENT_TYPE).is_some_and(|media| media.starts_with(PROBLEM_MEDIA_TYPE));
        if is_problem {
            let problem = self.body(response).await.and_then(|body| serde_json::from_slice(&body).map_err(ClientError::Decode));
            return match problem {
                Ok(problem) => ClientError::Problem { problem: Box::new(problem), retry_after },
                Err(error) => error,
            };
        }
        let detail = match header(&response, LOCATION) {
            Some(place) if (300..400).contains(&status) => format!("a redirect to {place}; use the address that it leads to"),
            _ => "not an answer of this server; is the address right?".to_owned(),
        };
        ClientError::Unexpected { status, detail }
    }
}

impl Call {
    /// Adds a query parameter when there is a value.
    pub(crate) fn query(mut self, name: &str, value: Option<impl std::fmt::Display>) -> Self {
        if let Some(value) = value {
            self.url.query_pairs_mut().append_pair(name, &value.to_string());
        }
        self
    }

    /// Sends `body` as JSON.
    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self, ClientError> {
        self.body = Some(serde_json::to_vec(body).map_err(ClientError::Encode)?.into());
        Ok(self)
    }

    /// Has the server recognise a repeat of a creating call by this key.
    pub(crate) fn idempotent(mut self, key: Option<&str>) -> Self {
        self.idempotency_key = key.map(str::to_owned);
        self
    }

    /// Adds a header when there is a value.
    fn header(mut self, name: HeaderName, value: Option<HeaderValue>) -> Self {
        if let Some(value) = value {
            self.headers.insert(name, value);
        }
        self
    }

    /// Lets the server take this much longer.
    pub(crate) fn longer(mut self, more: Duration) -> Self {
        self.timeout = self.timeout.saturating_add(more);
        self
    }
}

fn header(response: &Response, name: reqwest::header::HeaderName) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("doorstep-client/", env!("CARGO_PKG_VERSION"))));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, application/problem+json"));
    headers
}

/// TLS on ring. A plain address gets a configuration that trusts nobody, so that such a client also runs where there are no roots.
fn tls(address: &Address) -> Result<rustls::ClientConfig, InvalidOptions> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(InvalidOptions::Tls)?;
    if address.is_encrypted() {
        return Ok(builder.with_platform_verifier().map_err(InvalidOptions::Tls)?.with_no_client_auth());
    }
    Ok(builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}
