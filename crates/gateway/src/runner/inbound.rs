//! What a peer sends once it is identified.

use std::pin::pin;

use agents::ConsumerError;
use authz::{Denied, DeniedReason};
use domain::{Seq, StoreError};
use protocol::{Ack, ClientFrame, ClientOp, CloseCode, FrameFault, GatewayError, HeartbeatAck, ProblemCode, Reason, ServerFrame};
use tokio::time::Instant;

use super::deliver::look_once;
use super::{End, Runner, Track};
use crate::handshake::{denial, encode};
use crate::{Connection, Incoming};

/// An op that is refused; the connection stays.
pub(crate) struct Refused {
    op: ClientOp,
    code: ProblemCode,
    detail: String,
    pointer: Option<String>,
    reason: Option<Reason>,
}

impl Refused {
    /// Hints that the token does not allow; everything else of the `identify` stands.
    pub(crate) fn hints() -> Self {
        let detail = "the token does not allow hints about the inbox (scope `stream.subscribe`)".to_owned();
        let (op, pointer) = (ClientOp::Identify, Some("/inbox_hints".to_owned()));
        Self { op, code: ProblemCode::Forbidden, detail, pointer, reason: Some(Reason::ScopeMissing) }
    }

    /// As a frame.
    pub(crate) fn frame(self) -> ServerFrame {
        let Self { op, code, detail, pointer, reason } = self;
        let refused_op = op.as_str().to_owned();
        ServerFrame::Error(GatewayError { refused_op, code: code.into(), detail, pointer, reason: reason.map(Into::into) })
    }
}

impl Runner<'_> {
    /// Hears what has come in already, without waiting.
    pub(super) async fn hear_what_waits<C: Connection>(&mut self, connection: &mut C) -> Result<(), End> {
        for _ in 0..self.gateway.settings.outbound_queue_max.max(1) {
            let incoming = look_once(pin!(connection.receive())).await;
            match incoming {
                Some(incoming) => self.hear(connection, incoming).await?,
                None => break,
            }
        }
        Ok(())
    }

    pub(super) async fn hear<C: Connection>(&mut self, connection: &mut C, incoming: Incoming) -> Result<(), End> {
        self.heard = Instant::now();
        let text = match incoming {
            Incoming::Text(text) => text,
            Incoming::Alive => return self.count_frame(),
            Incoming::Binary | Incoming::Invalid => return Err(self.refuse_with(CloseCode::InvalidFrame)),
            Incoming::TooLarge => return Err(self.refuse_with(CloseCode::FrameTooLarge)),
            Incoming::Gone => return Err(End::Gone),
        };
        self.count_frame()?;
        let Ok(text) = std::str::from_utf8(&text) else { return Err(self.refuse_with(CloseCode::InvalidFrame)) };
        match ClientFrame::parse(text) {
            Ok(ClientFrame::Ack(Ack { seq })) => self.hear_ack(connection, seq).await,
            Ok(ClientFrame::Heartbeat(_)) => self.write(connection, [encode(&ServerFrame::HeartbeatAck(HeartbeatAck {}))]).await,
            Ok(ClientFrame::Identify(_) | ClientFrame::Resume(_)) => Err(self.refuse_with(CloseCode::AlreadyIdentified)),
            Err(fault) => self.hear_fault(connection, fault).await,
        }
    }

    fn count_frame(&mut self) -> Result<(), End> {
        if self.allowance.take(self.heard) { Ok(()) } else { Err(self.refuse_with(CloseCode::RateLimited)) }
    }

    fn refuse_with(&self, code: CloseCode) -> End {
        self.gateway.metrics.frames_refused.increment();
        End::Close(code)
    }

    async fn hear_fault<C: Connection>(&mut self, connection: &mut C, fault: FrameFault) -> Result<(), End> {
        match (fault.close_code(), fault) {
            (None, FrameFault::OutOfRange { op, pointer, detail }) => {
                let refused = Refused { op, code: ProblemCode::ValidationFailed, detail, pointer: Some(pointer), reason: None };
                self.refuse(connection, refused).await
            }
            (code, _) => Err(self.refuse_with(code.unwrap_or(CloseCode::InvalidFrame))),
        }
    }

    /// An acknowledgement: judged, then applied to the window; the ticker writes it (seed 004, design note 8).
    async fn hear_ack<C: Connection>(&mut self, connection: &mut C, seq: Seq) -> Result<(), End> {
        let judging = self.gateway.consumers.accept_ack(&self.caller, seq, self.log.position());
        let judged = tokio::select! {
            biased;
            judged = judging => judged,
            code = self.link.closed() => return Err(End::Close(code)),
        };
        let refused = match (judged, &mut self.track) {
            (Ok(()), Track::Consumer(window)) => {
                self.gateway.metrics.acks.increment();
                let oldest = window.oldest();
                if window.ack(seq) {
                    if let Some(sent) = oldest {
                        self.gateway.metrics.ack_latency.observe(sent.elapsed());
                    }
                    self.session.acknowledge(seq);
                    self.session.set_oldest_sent(window.oldest());
                    self.gateway.saver.touch(&self.session);
                }
                return Ok(());
            }
            (Ok(()), Track::Client(_)) => forbidden(DeniedReason::SubjectKindNotAllowed),
            (Err(error), _) => self.ack_refusal(&error)?,
        };
        self.refuse(connection, refused).await
    }

    fn ack_refusal(&self, error: &ConsumerError) -> Result<Refused, End> {
        let refused = |code, detail: &str, pointer: Option<&str>| Refused {
            op: ClientOp::Ack,
            code,
            detail: detail.to_owned(),
            pointer: pointer.map(str::to_owned),
            reason: None,
        };
        Ok(match error {
            ConsumerError::Ack(cause) => refused(ProblemCode::ValidationFailed, &cause.to_string(), Some("/seq")),
            ConsumerError::Denied(Denied::Forbidden(reason)) => match denial(self.gateway, &self.caller, Denied::Forbidden(*reason)) {
                CloseCode::Forbidden => forbidden(*reason),
                code => return Err(End::Close(code)),
            },
            ConsumerError::Denied(Denied::Unauthenticated) => return Err(End::Close(CloseCode::Unauthenticated)),
            ConsumerError::Denied(Denied::NotFound) => forbidden(DeniedReason::PermissionMissing),
            ConsumerError::Store(StoreError::Overloaded) => refused(ProblemCode::Overloaded, "too much work is waiting", None),
            error => {
                tracing::warn!(session.id = %self.session.id(), error.cause = %error, "an acknowledgement could not be judged");
                refused(ProblemCode::Unavailable, "the acknowledgement could not be judged; send it again", None)
            }
        })
    }

    async fn refuse<C: Connection>(&mut self, connection: &mut C, refused: Refused) -> Result<(), End> {
        self.gateway.metrics.frames_refused.increment();
        self.write(connection, [encode(&refused.frame())]).await
    }
}

fn forbidden(reason: DeniedReason) -> Refused {
    let (reason, detail) = match reason {
        DeniedReason::SubjectKindNotAllowed => (Reason::SubjectKindNotAllowed, "only agents acknowledge"),
        DeniedReason::ScopeMissing => (Reason::ScopeMissing, "the token's scopes do not include consuming"),
        DeniedReason::PermissionMissing => (Reason::PermissionMissing, "the permission to consume is missing"),
        DeniedReason::TenantSuspended => (Reason::TenantSuspended, "the tenant is suspended"),
    };
    Refused { op: ClientOp::Ack, code: ProblemCode::Forbidden, detail: detail.to_owned(), pointer: None, reason: Some(reason) }
}
