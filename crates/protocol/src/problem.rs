//! Problems: every refusal over REST is one of these (RFC 9457, `application/problem+json`).

use domain::{Seq, SyncEpoch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::vocabulary::vocabulary;
use crate::{Open, Reason, schema};

/// The media type of a problem.
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

vocabulary! {
    /// What went wrong, for programs. Clients match this code and never a text; they treat an unknown code by its HTTP status.
    pub enum ProblemCode: "a problem code" {
        /// A member, parameter or header does not have the form or value it must have; `pointer` names it.
        ValidationFailed = "validation_failed",
        /// A recipient does not exist or is disabled; `pointer` names it. Nothing of the request was kept.
        RecipientUnknown = "recipient_unknown",
        /// The URL is not one that this server calls; `reason` says of which class the refusal is, and never what was found there.
        UrlRefused = "url_refused",
        /// The credential is missing, malformed, unknown, expired or revoked.
        Unauthenticated = "unauthenticated",
        /// The credential is good, and its principal may not do this; `reason` says why.
        Forbidden = "forbidden",
        /// There is no such thing, or the caller may not know of it.
        NotFound = "not_found",
        /// The path exists, but not with this method; the header `Allow` lists those it has.
        MethodNotAllowed = "method_not_allowed",
        /// Nothing that the operation can answer is acceptable to the request's `Accept`.
        NotAcceptable = "not_acceptable",
        /// The request did not arrive in time.
        RequestTimeout = "request_timeout",
        /// The deduplication key was used for another body within `sync.deduplication_window`. Nothing of the request was kept.
        DeduplicationConflict = "deduplication_conflict",
        /// The `Idempotency-Key` was used for another request.
        IdempotencyConflict = "idempotency_conflict",
        /// Something with this name exists already.
        AlreadyExists = "already_exists",
        /// A configured ceiling is reached; something has to go before more can come.
        LimitReached = "limit_reached",
        /// The resource is in a state that does not allow this; `reason` says which.
        StateConflict = "state_conflict",
        /// The lease is over: the item was claimed again, finished, taken away or given back. Stop working on it.
        LeaseLost = "lease_lost",
        /// The inbox cannot say what changed since the position. Read the items afresh at `resync_url`, then poll after `head_seq`.
        CursorResetRequired = "cursor_reset_required",
        /// The position cannot be served; `reason` says why and `head_seq` where reading goes on. Read the current state afresh.
        ResyncRequired = "resync_required",
        /// The body, or the payload that `pointer` names, is larger than allowed.
        PayloadTooLarge = "payload_too_large",
        /// The operation does not read this `Content-Type` or `Content-Encoding`.
        UnsupportedMediaType = "unsupported_media_type",
        /// The path is served over WebSocket only; the request asks for no upgrade that the server can make.
        UpgradeRequired = "upgrade_required",
        /// Too many requests of this class; `Retry-After` says when to come back.
        RateLimited = "rate_limited",
        /// The server failed. It has logged why under `request_id`.
        Internal = "internal",
        /// More work is waiting than the server takes; nothing of the request was kept. Come back after `Retry-After`.
        Overloaded = "overloaded",
        /// The store has no room; nothing of the request was kept, and what is stored is intact.
        StorageFull = "storage_full",
        /// It is unknown whether the request took effect. Repeat it with the same deduplication key.
        InDoubt = "in_doubt",
        /// The server has no key to keep secrets with (`security.master_key`); nothing of the request was kept.
        SecretsUnavailable = "secrets_unavailable",
        /// The store cannot be reached, or the server is stopping.
        Unavailable = "unavailable",
    }
}

impl ProblemCode {
    /// The HTTP status it is answered with.
    pub const fn status(self) -> u16 {
        match self {
            Self::ValidationFailed | Self::RecipientUnknown | Self::UrlRefused => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::RequestTimeout => 408,
            Self::DeduplicationConflict
            | Self::IdempotencyConflict
            | Self::AlreadyExists
            | Self::LimitReached
            | Self::StateConflict
            | Self::LeaseLost => 409,
            Self::CursorResetRequired | Self::ResyncRequired => 410,
            Self::PayloadTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::UpgradeRequired => 426,
            Self::RateLimited => 429,
            Self::Internal => 500,
            Self::Overloaded | Self::StorageFull | Self::InDoubt | Self::SecretsUnavailable | Self::Unavailable => 503,
        }
    }

    /// The short title, the same for every occurrence.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ValidationFailed => "The request is not valid",
            Self::RecipientUnknown => "A recipient is unknown",
            Self::UrlRefused => "The URL is refused",
            Self::Unauthenticated => "No valid credential",
            Self::Forbidden => "Not allowed",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "Method not allowed",
            Self::NotAcceptable => "No acceptable representation",
            Self::RequestTimeout => "The request did not arrive in time",
            Self::DeduplicationConflict => "The deduplication key stands for another body",
            Self::IdempotencyConflict => "The idempotency key stands for another request",
            Self::AlreadyExists => "Already exists",
            Self::LimitReached => "A ceiling is reached",
            Self::StateConflict => "Not possible in this state",
            Self::LeaseLost => "The lease is lost",
            Self::CursorResetRequired => "The inbox must be read afresh",
            Self::ResyncRequired => "The position cannot be served",
            Self::PayloadTooLarge => "Too large",
            Self::UnsupportedMediaType => "Unsupported media type",
            Self::UpgradeRequired => "WebSocket only",
            Self::RateLimited => "Too many requests",
            Self::Internal => "Internal error",
            Self::Overloaded => "Overloaded",
            Self::StorageFull => "Storage is full",
            Self::InDoubt => "The outcome is unknown",
            Self::SecretsUnavailable => "Secrets cannot be kept",
            Self::Unavailable => "Unavailable",
        }
    }

    /// The problem type's URI: stable, and a name rather than an address.
    pub fn type_uri(self) -> String {
        format!("urn:doorstep:problem:{}", self.as_str())
    }
}

/// A refusal (RFC 9457). `code` is for programs, `title` and `detail` are for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, JsonSchema)]
#[schema(example = json!({
    "type": "urn:doorstep:problem:validation_failed", "title": "The request is not valid", "status": 400, "code": "validation_failed",
    "detail": "unknown member `chanel`", "pointer": "/events/3/chanel", "request_id": "0197f0ab-8d34-7f88-8a51-9e3b7dae5f44"
}))]
pub struct Problem {
    /// The problem type's URI, `urn:doorstep:problem:<code>`.
    #[serde(rename = "type")]
    pub problem_type: String,
    /// The short title, the same for every occurrence of the code.
    pub title: String,
    /// The HTTP status, repeated.
    pub status: u16,
    /// What went wrong, for programs.
    #[schema(value_type = ProblemCode)]
    #[schemars(with = "ProblemCode")]
    pub code: Open<ProblemCode>,
    /// What went wrong this time, for people.
    pub detail: String,
    /// Where: a JSON Pointer (RFC 6901) into the body, or `#query/<name>`, `#path/<name>`, `#header/<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    #[schemars(with = "String")]
    pub pointer: Option<String>,
    /// Why, where the code alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Reason)]
    #[schemars(with = "Reason")]
    pub reason: Option<Open<Reason>>,
    /// The request's identity in the server's logs.
    pub request_id: String,
    /// With `resync_required` and `cursor_reset_required`: the head, where reading goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Seq)]
    #[schemars(with = "schema::Seq")]
    pub head_seq: Option<Seq>,
    /// With `resync_required`: the lowest retained position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Seq)]
    #[schemars(with = "schema::Seq")]
    pub floor_seq: Option<Seq>,
    /// With `resync_required` and `cursor_reset_required`: the log's present epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::SyncEpoch)]
    #[schemars(with = "schema::SyncEpoch")]
    pub sync_epoch: Option<SyncEpoch>,
    /// With `cursor_reset_required`: the lowest `ring_seq` of the inbox's current items, or its head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Seq)]
    #[schemars(with = "schema::Seq")]
    pub oldest_available_seq: Option<Seq>,
    /// With `cursor_reset_required`: where the inbox is read afresh; relative to this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    #[schemars(with = "String")]
    pub resync_url: Option<String>,
}

impl Problem {
    /// A problem of this code. `detail` must say nothing of the inside when the code is [`ProblemCode::Internal`].
    pub fn new(code: ProblemCode, detail: impl Into<String>, request_id: impl Into<String>) -> Self {
        Self {
            problem_type: code.type_uri(),
            title: code.title().to_owned(),
            status: code.status(),
            code: Open::Known(code),
            detail: detail.into(),
            pointer: None,
            reason: None,
            request_id: request_id.into(),
            head_seq: None,
            floor_seq: None,
            sync_epoch: None,
            oldest_available_seq: None,
            resync_url: None,
        }
    }

    /// Says where.
    #[must_use]
    pub fn with_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Says why.
    #[must_use]
    pub fn with_reason(mut self, reason: Reason) -> Self {
        self.reason = Some(Open::Known(reason));
        self
    }

    /// Says where reading goes on.
    #[must_use]
    pub fn with_position(mut self, head_seq: Seq, floor_seq: Seq, sync_epoch: SyncEpoch) -> Self {
        self.head_seq = Some(head_seq);
        self.floor_seq = Some(floor_seq);
        self.sync_epoch = Some(sync_epoch);
        self
    }

    /// Says where an inbox is read afresh.
    #[must_use]
    pub fn with_reset(mut self, oldest_available_seq: Seq, head_seq: Seq, sync_epoch: SyncEpoch, resync_url: impl Into<String>) -> Self {
        self.oldest_available_seq = Some(oldest_available_seq);
        self.head_seq = Some(head_seq);
        self.sync_epoch = Some(sync_epoch);
        self.resync_url = Some(resync_url.into());
        self
    }
}
