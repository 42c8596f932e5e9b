//! Refusals: what a handler answers when it does not do what it was asked. The request's context turns them into problems.
//!
//! Which error is which problem is decided in `mapping` and nowhere else.

mod mapping;
mod render;

use std::borrow::Cow;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::{Seq, SyncEpoch};
use protocol::{ProblemCode, Reason};

pub(crate) use mapping::{not_found, query_pointer, unauthenticated, url_refused};
pub(crate) use render::render;

/// Why a request is not done. It has no request id yet: `render` gives it one.
#[derive(Clone, Debug)]
pub(crate) struct Refusal(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    code: ProblemCode,
    detail: Cow<'static, str>,
    pointer: Option<Cow<'static, str>>,
    reason: Option<Reason>,
    position: Option<Position>,
    retry_after: Option<Duration>,
    /// For the log, never for the answer.
    cause: Option<String>,
}

/// Where reading goes on.
#[derive(Clone, Copy, Debug)]
enum Position {
    /// In the log.
    Log { head: Seq, floor: Seq, epoch: SyncEpoch },
    /// In an inbox, which is to be read afresh.
    Inbox { oldest: Seq, head: Seq, epoch: SyncEpoch },
}

/// How long a client waits that was refused for a reason that passes by itself.
const SHORTLY: Duration = Duration::from_secs(1);

impl Refusal {
    /// A refusal with this code. Codes that mean "later" carry a `Retry-After` of a second.
    pub(crate) fn new(code: ProblemCode, detail: impl Into<Cow<'static, str>>) -> Self {
        let retry_after = matches!(code.status(), 429 | 503).then_some(SHORTLY);
        Self(Box::new(Parts { code, detail: detail.into(), pointer: None, reason: None, position: None, retry_after, cause: None }))
    }

    /// `validation_failed` at a place of the request.
    pub(crate) fn invalid(pointer: impl Into<Cow<'static, str>>, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ProblemCode::ValidationFailed, detail).at(pointer)
    }

    /// 500: the answer says nothing of the inside, the log says `cause`.
    pub(crate) fn internal(cause: impl std::fmt::Display) -> Self {
        Self::new(ProblemCode::Internal, "the server failed; its log says why under this request_id").because(cause)
    }

    /// Names the place.
    #[must_use]
    pub(crate) fn at(mut self, pointer: impl Into<Cow<'static, str>>) -> Self {
        self.0.pointer = Some(pointer.into());
        self
    }

    /// Names the reason.
    #[must_use]
    pub(crate) fn with_reason(mut self, reason: Reason) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// Says where reading goes on.
    #[must_use]
    pub(crate) fn with_position(mut self, head: Seq, floor: Seq, epoch: SyncEpoch) -> Self {
        self.0.position = Some(Position::Log { head, floor, epoch });
        self
    }

    /// Says where an inbox is read afresh.
    #[must_use]
    pub(crate) fn with_reset(mut self, oldest: Seq, head: Seq, epoch: SyncEpoch) -> Self {
        self.0.position = Some(Position::Inbox { oldest, head, epoch });
        self
    }

    /// Says when to come back.
    #[must_use]
    pub(crate) fn retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// What the log says.
    #[must_use]
    pub(crate) fn because(mut self, cause: impl std::fmt::Display) -> Self {
        self.0.cause = Some(cause.to_string());
        self
    }

    /// The code.
    #[cfg(test)]
    pub(crate) fn code(&self) -> ProblemCode {
        self.0.code
    }

    /// The reason.
    #[cfg(test)]
    pub(crate) fn reason(&self) -> Option<Reason> {
        self.0.reason
    }

    /// The place.
    #[cfg(test)]
    pub(crate) fn pointer(&self) -> Option<&str> {
        self.0.pointer.as_deref()
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}
