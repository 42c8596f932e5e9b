//! The words of hooks.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// Whether a hook is rung.
    pub enum HookState: "pending_verification, active or disabled" {
        /// Not until its receiver has answered a challenge.
        PendingVerification = "pending_verification",
        /// Yes.
        Active = "active",
        /// Not any more; `disabled_cause` says why.
        Disabled = "disabled",
    }
}

vocabulary! {
    /// Why a hook is not rung any more.
    pub enum DisabledCause: "asked, exhausted or gone" {
        /// Its agent or an operator said so.
        Asked = "asked",
        /// `hooks.disable_after` rings in a row failed.
        Exhausted = "exhausted",
        /// The receiver answered 410.
        Gone = "gone",
    }
}

vocabulary! {
    /// How the requests of a callback are signed (seed 000).
    pub enum AuthMode: "hmac-sha256 or http-message-signatures" {
        /// Standard Webhooks, with the `MATM-*` headers and `Content-Digest`.
        HmacSha256 = "hmac-sha256",
        /// HTTP Message Signatures (RFC 9421): with the minted secret, or, for a receiver that registered a public key, with the server's
        /// own key, which `/.well-known/doorstep-keys` publishes.
        HttpMessageSignatures = "http-message-signatures",
    }
}

vocabulary! {
    /// What a callback is sent (seed 000).
    pub enum DeliveryScope: "signal_only" {
        /// That the head of the inbox moved, and nothing of what came.
        SignalOnly = "signal_only",
    }
}

vocabulary! {
    /// Why a hook was rung.
    pub enum RingReason: "a reason of a ring" {
        /// An item was published.
        Created = "created",
        /// An item came back.
        Requeued = "requeued",
        /// Something waits in a queue.
        Backlog = "backlog",
        /// The head of the inbox moved (callbacks).
        Signal = "signal",
        /// The receiver was to prove that it holds the key.
        Challenge = "challenge",
        /// Its owner tried it.
        Test = "test",
    }
}

vocabulary! {
    /// What an attempt to ring brought.
    pub enum AttemptResult: "a result of an attempt" {
        /// 2xx.
        Delivered = "delivered",
        /// No answer within `hooks.attempt_timeout`.
        Timeout = "timeout",
        /// The host's name could not be resolved.
        Dns = "dns",
        /// No connection.
        Connect = "connect",
        /// No secure connection.
        Tls = "tls",
        /// The answer was no HTTP, or broke off.
        Protocol = "protocol",
        /// The URL may not be called; nothing was dialled.
        Refused = "refused",
        /// 3xx; never followed.
        Redirect = "redirect",
        /// 408.
        RequestTimeout = "request_timeout",
        /// 410; the hook is disabled.
        Gone = "gone",
        /// 429.
        RateLimited = "rate_limited",
        /// Another 4xx.
        ClientError = "client_error",
        /// 5xx.
        ServerError = "server_error",
        /// A challenge was answered, but not rightly.
        Unproven = "unproven",
    }
}
