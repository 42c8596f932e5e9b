//! Claims on their way to a client. Should it be gone before they are written, they are given back, and no attempt is counted: it never knew.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use authz::Caller;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use domain::EventId;
use http_body::{Frame, SizeHint};
use inbox::{Inbox, LeaseToken};
use protocol::RecipientRef;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::wire;
use crate::services::ApiState;

/// Whose claims they are, and who gives them back.
pub(super) struct Holder {
    inbox: Arc<Inbox>,
    caller: Caller,
    tasks: TaskTracker,
}

impl Holder {
    pub(super) fn new(state: &ApiState, caller: Caller) -> Self {
        Self { inbox: Arc::clone(&state.inbox), caller, tasks: state.tasks.clone() }
    }

    /// Whose inbox it is.
    pub(super) fn recipient(&self) -> RecipientRef {
        wire::recipient(&self.caller, &self.caller.principal)
    }
}

/// Leases of which the client has not been told. Dropped as they are, they are given back.
pub(super) struct Unread {
    holder: Option<Holder>,
    leases: Vec<(EventId, LeaseToken)>,
}

impl Unread {
    pub(super) fn new(holder: Holder, leases: Vec<(EventId, LeaseToken)>) -> Self {
        Self { holder: Some(holder), leases }
    }

    /// The client has been told.
    fn told(&mut self) {
        self.leases.clear();
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let leases = std::mem::take(&mut self.leases);
        let (Some(holder), false) = (self.holder.take(), leases.is_empty()) else { return };
        // Without a runtime the process is at its end; the leases end by themselves.
        let Ok(runtime) = Handle::try_current() else { return };
        let Holder { inbox, caller, tasks } = holder;
        tasks.spawn_on(
            async move {
                tracing::debug!(inbox.leases = leases.len(), "a client was gone before its claims were written");
                if let Err(error) = inbox.give_back_unread(&caller, leases).await {
                    tracing::warn!(error.cause = %error, "claims of a client that is gone wait for the end of their leases");
                }
            },
            &runtime,
        );
    }
}

/// An answer with claims.
pub(super) struct ClaimsAnswer {
    text: Bytes,
    unread: Unread,
}

impl ClaimsAnswer {
    pub(super) fn new(text: Vec<u8>, unread: Unread) -> Self {
        Self { text: text.into(), unread }
    }

    /// 200 with the claims.
    pub(super) fn into_response(self) -> Response {
        let mut response = Response::new(Body::new(self));
        *response.status_mut() = StatusCode::OK;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

/// Bytes handed over at once: the last ones are asked for only when the peer took most of those before.
const PIECE: usize = 64 * 1024;

impl http_body::Body for ClaimsAnswer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.text.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.text.len().min(PIECE);
        let piece = self.text.split_to(length);
        if self.text.is_empty() {
            self.unread.told();
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.text.len() as u64)
    }
}
