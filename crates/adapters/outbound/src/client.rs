//! The one client of every outbound call: guard, connection, request and bounded answer, all within one time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hooks::{HookUrl, OutboundAnswer, OutboundClient, OutboundError, OutboundRequest, Settings, UrlRefusal};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response};

use crate::connections::Connections;
use crate::fault::class;
use crate::guard::Guard;
use crate::resolver::Resolver;
use crate::tls::Trust;

/// The most that is ever read of an answer's body, in bytes.
pub const ANSWER_MAX: usize = 4096;

/// The guarded client.
#[derive(Debug)]
pub struct Outbound {
    guard: Guard,
    connections: Connections,
    check_timeout: Duration,
}

impl Outbound {
    /// A client that calls what the settings allow, but not where this server listens; that finds addresses with `resolver`, and believes
    /// certificates by `trust`.
    ///
    /// # Errors
    /// What TLS says when it cannot be set up.
    pub fn new(settings: &Settings, listeners: &[SocketAddr], resolver: Arc<dyn Resolver>, trust: Trust) -> Result<Self, rustls::Error> {
        let connections = Connections::new(crate::tls::config(trust)?);
        Ok(Self { guard: Guard::new(settings, listeners, resolver), connections, check_timeout: settings.attempt_timeout })
    }

    async fn exchange(&self, request: OutboundRequest) -> Result<OutboundAnswer, OutboundError> {
        let admitted = self.guard.admit(&request.url).await.map_err(refused)?;
        let headers = headers(&request.headers)?;
        let client = self.connections.client(&admitted).map_err(|error| class(&error))?;
        let call = client.request(Method::POST, admitted.target.url).headers(headers).body(request.body);
        let response = call.send().await.map_err(|error| class(&error))?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = beginning(response, request.answer_max.min(ANSWER_MAX)).await?;
        Ok(OutboundAnswer { status, retry_after, body })
    }
}

#[async_trait]
impl OutboundClient for Outbound {
    async fn check(&self, url: &HookUrl) -> Result<(), UrlRefusal> {
        let admitted = tokio::time::timeout(self.check_timeout, self.guard.admit(url)).await;
        admitted.map_err(|_| UrlRefusal::Unresolvable)?.map(|_| ())
    }

    async fn post(&self, request: OutboundRequest) -> Result<OutboundAnswer, OutboundError> {
        let timeout = request.timeout;
        tokio::time::timeout(timeout, self.exchange(request)).await.unwrap_or(Err(OutboundError::Timeout))
    }
}

const fn refused(refusal: UrlRefusal) -> OutboundError {
    match refusal {
        UrlRefusal::Unresolvable => OutboundError::Dns,
        refusal => OutboundError::Refused(refusal),
    }
}

fn headers(pairs: &[(&'static str, String)]) -> Result<HeaderMap, OutboundError> {
    let mut headers = HeaderMap::with_capacity(pairs.len());
    for (name, value) in pairs {
        let value = HeaderValue::from_str(value).map_err(|_| OutboundError::Protocol)?;
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| OutboundError::Protocol)?, value);
    }
    Ok(headers)
}

/// The beginning of the body. When there is more than that, it is left, and its connection is closed.
async fn beginning(mut response: Response, most: usize) -> Result<Bytes, OutboundError> {
    let mut read = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| class(&error))? {
        let room = most.saturating_sub(read.len());
        read.extend(chunk.iter().take(room));
        if chunk.len() > room {
            break;
        }
    }
    Ok(read.into())
}
