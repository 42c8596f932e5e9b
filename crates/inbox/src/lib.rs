//! Claimable work: items, leases, attempts, presence, and the signals around them.
//!
//! Architecture invariant: what becomes of an item is decided here and only here, by a pure state machine; stores move rows. An item has at most one valid lease, every transition of a
//! claimed item matches its generation, and database time decides. Knows no HTTP, no SQL, no socket, and nothing of consumers.

mod acknowledge;
mod announce;
mod audit;
mod bells;
mod bulk;
mod calls;
mod change;
mod claim;
mod claim_next;
mod error;
mod govern;
mod handing;
mod heartbeat;
mod inbox;
mod item;
mod lease;
mod limits;
mod listing;
mod machine;
mod metrics;
mod poll;
mod put_aside;
mod recipient;
mod release;
mod rules;
mod sessions;
mod settings;
mod signals;
mod store;
mod sweeper;
mod tails;
mod terms;
mod wait;

pub use announce::{INBOX_DEAD_LETTERED, INBOX_QUARANTINED, INBOX_REQUEUED, INBOX_RESUMED, ResumeCause};
pub use bells::Bells;
pub use calls::{
    Acknowledge, Bulk, BulkDone, Claim, ClaimKey, ClaimNext, Claimed, ClaimedNext, Extended, GiveBack, Heartbeat, InboxState, ItemOutcome,
    Poll, Polled, PresenceChange, QueueDigest, Signal, Subscribe, Subscribed,
};
pub use error::InboxError;
pub use inbox::{Inbox, InboxParts};
pub use item::{AckState, Attempt, AttemptOutcome, DeadLetterState, Item, ItemFacts, Lease, Recipient, RecipientNumber};
pub use lease::{Generation, LeaseHash, LeaseKey, LeaseToken};
pub use machine::{AckResult, NoArrow, Release, Report, RequeueReason, Step};
pub use metrics::Metrics;
pub use recipient::{Concurrency, Policy, Presence, RecipientRow};
pub use rules::Rules;
pub use settings::Settings;
pub use signals::SignalStream;
pub use store::{
    AgentSession, Backlog, ClaimRecord, InboxPage, InboxStore, InboxSums, InboxTotals, InboxTx, InboxView, InboxWrite, ItemFilter,
    ItemPage, ItemRange, PollRange, QueueFilter,
};
pub use sweeper::Sweeper;
pub use tails::Tails;
