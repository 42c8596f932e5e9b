//! How the gateway closes a connection, and what a client may do then.

use crate::vocabulary::vocabulary;

/// What a client may do by itself after a close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reconnect {
    /// Nothing: somebody has to decide.
    Never,
    /// Connect again, with growing pauses.
    Backoff,
    /// Connect again with `identify`, not with `resume`.
    Identify,
    /// Connect again after a longer pause.
    Delay,
    /// Connect again after a random pause, since every other client has been told to go too.
    Jittered,
}

vocabulary! {
    /// Why the gateway closed a connection. The name is the close frame's reason.
    pub enum CloseCode: "the name of a close code" {
        /// The store failed, or the server has a fault.
        Internal = "internal",
        /// The op is not known.
        UnknownOp = "unknown_op",
        /// Not JSON, the wrong shape, an invalid consumer name, or a binary frame.
        InvalidFrame = "invalid_frame",
        /// An op came before `identify`, or no `identify` came in time.
        NotIdentified = "not_identified",
        /// The peer was silent for two heartbeat intervals.
        HeartbeatTimeout = "heartbeat_timeout",
        /// A second `identify` came on one connection.
        AlreadyIdentified = "already_identified",
        /// The session to resume is unknown or has ended.
        UnknownSession = "unknown_session",
        /// Too many frames, connections or takeovers.
        RateLimited = "rate_limited",
        /// The time to resume the session has passed.
        SessionExpired = "session_expired",
        /// This version of the protocol is not spoken.
        UnsupportedProtocol = "unsupported_protocol",
        /// The frame is larger than `gateway.max_frame_bytes`.
        FrameTooLarge = "frame_too_large",
        /// The credential is bad, expired or revoked, or the principal is disabled.
        Unauthenticated = "unauthenticated",
        /// The server stops or drains.
        ShuttingDown = "shutting_down",
        /// The outbound queue was not drained in time.
        SlowConsumer = "slow_consumer",
        /// A newer connection or poll has taken the consumer over.
        ConsumerReplaced = "consumer_replaced",
        /// The tenant is disabled.
        TenantSuspended = "tenant_suspended",
        /// The session of a person or app was resumed elsewhere.
        SessionReplaced = "session_replaced",
        /// The permission to consume is missing.
        Forbidden = "forbidden",
    }
}

impl CloseCode {
    /// The WebSocket close code. 4007 is reserved.
    pub const fn number(self) -> u16 {
        match self {
            Self::Internal => 4000,
            Self::UnknownOp => 4001,
            Self::InvalidFrame => 4002,
            Self::NotIdentified => 4003,
            Self::HeartbeatTimeout => 4004,
            Self::AlreadyIdentified => 4005,
            Self::UnknownSession => 4006,
            Self::RateLimited => 4008,
            Self::SessionExpired => 4009,
            Self::UnsupportedProtocol => 4010,
            Self::FrameTooLarge => 4011,
            Self::Unauthenticated => 4012,
            Self::ShuttingDown => 4013,
            Self::SlowConsumer => 4014,
            Self::ConsumerReplaced => 4015,
            Self::TenantSuspended => 4016,
            Self::SessionReplaced => 4017,
            Self::Forbidden => 4018,
        }
    }

    /// The name, which is also the close frame's reason.
    pub const fn name(self) -> &'static str {
        self.as_str()
    }

    /// The code with this number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.number() == number)
    }

    /// What a client may do by itself then. 4015 is terminal, or two holders of one consumer would replace each other for ever.
    pub const fn client_may_reconnect(self) -> Reconnect {
        match self {
            Self::Internal | Self::NotIdentified | Self::HeartbeatTimeout | Self::SlowConsumer => Reconnect::Backoff,
            Self::UnknownSession | Self::SessionExpired => Reconnect::Identify,
            Self::RateLimited => Reconnect::Delay,
            Self::ShuttingDown => Reconnect::Jittered,
            Self::UnknownOp
            | Self::InvalidFrame
            | Self::AlreadyIdentified
            | Self::UnsupportedProtocol
            | Self::FrameTooLarge
            | Self::Unauthenticated
            | Self::ConsumerReplaced
            | Self::TenantSuspended
            | Self::SessionReplaced
            | Self::Forbidden => Reconnect::Never,
        }
    }
}

impl Reconnect {
    /// The verdict on any close: by the table for our codes; codes of the transport, unknown ones and a connection that just broke are
    /// tried again with growing pauses.
    pub fn after_close(number: Option<u16>) -> Self {
        number.and_then(CloseCode::from_number).map_or(Self::Backoff, CloseCode::client_may_reconnect)
    }
}
