//! The closed lists of words of the inbox.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// Where an item stands.
    pub enum AckState: "a state of an item" {
        /// It can be claimed.
        Available = "available",
        /// A worker holds its lease.
        Claimed = "claimed",
        /// It rests until its next attempt.
        RetryScheduled = "retry_scheduled",
        /// A worker completed it.
        Acked = "acked",
        /// Its time ran out before anybody completed it.
        Expired = "expired",
        /// Its attempts are used up; it can be redriven.
        DeadLetter = "dead_letter",
        /// It was put aside; it can be released.
        Quarantined = "quarantined",
        /// A worker or an operator decided that nobody needs to work on it.
        Discarded = "discarded",
    }
}

vocabulary! {
    /// What became of an item's attempts as a whole.
    pub enum DeadLetterState: "a dead-letter state" {
        /// Nothing out of the ordinary.
        None = "none",
        /// Its attempts are used up.
        DeadLettered = "dead_lettered",
        /// It was put aside.
        Quarantined = "quarantined",
        /// It was a dead letter and was given new attempts.
        Redriven = "redriven",
    }
}

vocabulary! {
    /// How an attempt ended.
    pub enum AttemptOutcome: "an outcome of an attempt" {
        /// The worker completed the item.
        Completed = "completed",
        /// The worker discarded the item.
        Discarded = "discarded",
        /// The worker failed.
        Failed = "failed",
        /// The worker gave it back; counted.
        Released = "released",
        /// The worker gave it back for later; not counted.
        Snoozed = "snoozed",
        /// The server took it back for a reason of its own; not counted.
        Interrupted = "interrupted",
        /// The lease or the attempt's deadline passed.
        LeaseExpired = "lease_expired",
        /// An operator took it away.
        Revoked = "revoked",
    }
}

vocabulary! {
    /// The result that a worker acknowledges with.
    pub enum AckResult: "a result: completed, failed or discarded" {
        /// It is done.
        Completed = "completed",
        /// It failed: it is tried again, or becomes a dead letter.
        Failed = "failed",
        /// Nobody needs to work on it.
        Discarded = "discarded",
    }
}

vocabulary! {
    /// What became of one item of a batch.
    pub enum ItemOutcome: "an outcome of an item" {
        /// It was done.
        Ok = "ok",
        /// Another lease holds it.
        AlreadyClaimed = "already_claimed",
        /// It is not claimable: it rests, is paused, put aside, a dead letter or over.
        NotAvailable = "not_available",
        /// It expired.
        Expired = "expired",
        /// The inbox has no such item.
        NotFound = "not_found",
        /// The token is not the one of the item's present lease.
        LeaseLost = "lease_lost",
        /// The agent holds as many items as it may (`max_in_flight`).
        LimitReached = "limit_reached",
    }
}

vocabulary! {
    /// How an agent is told that there is work.
    pub enum Transport: "a transport" {
        /// Server-sent events.
        Sse = "sse",
        /// The gateway.
        Websocket = "websocket",
        /// Polls that wait.
        LongPoll = "long-poll",
        /// Polls that do not wait.
        Poll = "poll",
    }
}

vocabulary! {
    /// Whether an agent wants to be rung.
    pub enum PresenceState: "in or out" {
        /// Bells and hooks ring.
        In = "in",
        /// They stay silent; the inbox fills.
        Out = "out",
    }
}
