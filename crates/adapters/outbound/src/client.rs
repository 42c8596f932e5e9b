//! The one client of every outbound call: guard, connection, request and bounded answer, all within one time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response};

use crate::connections::Connections;
use crate::fault::{Fault, class};
use crate::guard::{Guard, GuardRules, Refusal};
use crate::resolver::Resolver;
use crate::tls::Trust;

/// What is read of an answer's body. The rest is not waited for.
pub const BODY_MAX_BYTES: usize = 4096;

/// The guarded client.
#[derive(Debug)]
pub struct Outbound {
    guard: Guard,
    connections: Connections,
}

/// One POST.
#[derive(Clone)]
pub struct Call<'a> {
    /// Where to.
    pub url: &'a str,
    /// Headers, names in lower case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: Bytes,
    /// The time for everything, from the look-up of the name to the end of the answer's body.
    pub timeout: Duration,
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // URLs and signatures are credentials.
        f.debug_struct("Call").field("bytes", &self.body.len()).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The status.
    pub status: u16,
    /// `Retry-After` as it was sent.
    pub retry_after: Option<String>,
    /// The first [`BODY_MAX_BYTES`] of the body.
    pub body: Bytes,
}

impl Outbound {
    /// A client that calls what `rules` allow, finds addresses with `resolver`, and believes certificates by `trust`.
    ///
    /// # Errors
    /// What TLS says when it cannot be set up.
    pub fn new(rules: GuardRules, resolver: Arc<dyn Resolver>, trust: Trust) -> Result<Self, rustls::Error> {
        Ok(Self { guard: Guard::new(rules, resolver), connections: Connections::new(crate::tls::config(trust)?) })
    }

    /// Judges a URL as a call would, and calls nobody.
    ///
    /// # Errors
    /// [`Fault::Refused`], [`Fault::Timeout`].
    pub async fn check(&self, url: &str, timeout: Duration) -> Result<(), Fault> {
        let admitted = tokio::time::timeout(timeout, self.guard.admit(url)).await.map_err(|_| Refusal::Unresolvable)?;
        Ok(admitted.map(|_| ())?)
    }

    /// Posts, and answers what came, whatever its status.
    ///
    /// # Errors
    /// [`Fault`].
    pub async fn post(&self, call: Call<'_>) -> Result<Received, Fault> {
        let timeout = call.timeout;
        tokio::time::timeout(timeout, self.exchange(call)).await.unwrap_or(Err(Fault::Timeout))
    }

    async fn exchange(&self, call: Call<'_>) -> Result<Received, Fault> {
        let admitted = self.guard.admit(call.url).await?;
        let client = self.connections.client(&admitted).map_err(|error| class(&error))?;
        let request = client.request(Method::POST, admitted.target.url).headers(headers(call.headers)?).body(call.body);
        let response = request.send().await.map_err(|error| class(&error))?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Received { status, retry_after, body: beginning(response).await? })
    }
}

fn headers(pairs: &[(&str, &str)]) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::with_capacity(pairs.len());
    for (name, value) in pairs {
        let name: HeaderName = name.parse().map_err(|_| Fault::Request)?;
        headers.insert(name, HeaderValue::from_str(value).map_err(|_| Fault::Request)?);
    }
    Ok(headers)
}

/// The beginning of the body. When there is more than that, the connection is closed over it.
async fn beginning(mut response: Response) -> Result<Bytes, Fault> {
    let mut read = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| class(&error))? {
        let room = BODY_MAX_BYTES.saturating_sub(read.len());
        read.extend(chunk.iter().take(room));
        if chunk.len() > room {
            break;
        }
    }
    Ok(read.into())
}
