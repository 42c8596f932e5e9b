//! The context of every request: its id, its span, its time, the guard against panics, and problems for every refusal.
//!
//! One layer, so that a request costs one boxed future more and not five.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use futures_util::FutureExt;
use protocol::{ProblemCode, Reason};
use tower::{Layer, Service};
use tracing::Instrument;

use super::id::REQUEST_ID;
use super::{RequestId, RequestIds};
use crate::metrics::HttpMetrics;
use crate::refusal::{Refusal, query_pointer, render};

/// Where addresses must not carry a credential: they are logged by every proxy on the way.
const CREDENTIAL_PARAMETERS: [&str; 3] = ["token", "access_token", "api_key"];

/// Gives every request its context.
#[derive(Clone, Debug)]
pub(crate) struct ContextLayer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    ids: RequestIds,
    metrics: Arc<HttpMetrics>,
}

impl ContextLayer {
    /// A layer that counts into `metrics`.
    pub(crate) fn new(ids: RequestIds, metrics: Arc<HttpMetrics>) -> Self {
        Self { shared: Arc::new(Shared { ids, metrics }) }
    }
}

impl<S> Layer<S> for ContextLayer {
    type Service = InContext<S>;

    fn layer(&self, inner: S) -> InContext<S> {
        InContext { inner, shared: Arc::clone(&self.shared) }
    }
}

/// A service whose requests have a context.
#[derive(Clone, Debug)]
pub(crate) struct InContext<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> Service<Request> for InContext<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let trace = Trace::begin(&request, &self.shared);
        let span = trace.span();
        let answer = match credential_in_url(request.uri()) {
            None => Ok(self.inner.call(request)),
            Some(refusal) => Err(refusal),
        };
        let guarded = async move {
            let response = match answer {
                Ok(future) => AssertUnwindSafe(future).catch_unwind().await.unwrap_or_else(|_| Ok(panicked())),
                Err(refusal) => Ok(axum::response::IntoResponse::into_response(refusal)),
            };
            response.map(|response| trace.end(response))
        };
        Box::pin(guarded.instrument(span))
    }
}

/// A panic is a fault of ours: the hook has logged where, the client learns that it happened.
fn panicked() -> Response {
    axum::response::IntoResponse::into_response(Refusal::internal("a handler panicked"))
}

/// What is known of a request from its beginning to its end.
struct Trace {
    id: RequestId,
    method: Method,
    route: Option<MatchedPath>,
    began: Instant,
    shared: Arc<Shared>,
}

impl Trace {
    fn begin(request: &Request, shared: &Arc<Shared>) -> Self {
        Self {
            id: shared.ids.of(request.headers()),
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
            began: Instant::now(),
            shared: Arc::clone(shared),
        }
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("", MatchedPath::as_str)
    }

    /// At debug level: at the usual level a request that succeeds says nothing, and what fails is logged with its id.
    fn span(&self) -> tracing::Span {
        tracing::debug_span!(
            "request",
            http.request_id = self.id.as_str(),
            http.request.method = self.method.as_str(),
            http.route = self.route(),
        )
    }

    fn end(self, response: Response) -> Response {
        let mut response = self.with_problem(response);
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, self.id.header());
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        let (status, elapsed) = (response.status(), self.began.elapsed());
        self.shared.metrics.answered(&self.method, self.route(), status, elapsed);
        tracing::debug!(http.response.status_code = status.as_u16(), http.latency_ms = milliseconds(elapsed), "request answered");
        response
    }

    fn with_problem(&self, mut response: Response) -> Response {
        if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
            return render(response, &refusal, &self.id);
        }
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            return render(response, &bare(status), &self.id);
        }
        response
    }
}

fn milliseconds(elapsed: Duration) -> f64 {
    elapsed.as_secs_f64() * 1_000.0
}

/// What the HTTP library refuses by itself becomes a problem too.
fn bare(status: StatusCode) -> Refusal {
    match status.as_u16() {
        404 => Refusal::new(ProblemCode::NotFound, "there is no such path"),
        405 => Refusal::new(ProblemCode::MethodNotAllowed, "the path does not have this method; Allow lists those it has"),
        413 => Refusal::new(ProblemCode::PayloadTooLarge, "the body is too large"),
        415 => Refusal::new(ProblemCode::UnsupportedMediaType, "this operation reads application/json"),
        400..=499 => Refusal::new(ProblemCode::ValidationFailed, "the request is malformed"),
        _ => Refusal::internal(format_args!("an answer with status {status} and no problem")),
    }
}

fn credential_in_url(uri: &Uri) -> Option<Refusal> {
    let query = uri.query()?;
    let (name, _) = form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| CREDENTIAL_PARAMETERS.iter().any(|parameter| name.eq_ignore_ascii_case(parameter)))?;
    let detail = "a credential in an address is logged on its way and is refused unread: send Authorization: Bearer, and revoke this one";
    Some(Refusal::invalid(query_pointer(&name), detail).with_reason(Reason::CredentialInUrl))
}
