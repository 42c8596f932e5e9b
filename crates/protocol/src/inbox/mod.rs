//! Bodies of the inbox operations (seed 000, "API contract"). Names are the seed's, letter for letter; where it writes `null`, the member is
//! absent here, and our own members stand beside its own.

mod claim;
mod finish;
mod item;
mod operate;
mod poll;
mod seconds;
mod session;
mod splice;
mod state;
mod words;

pub use claim::{ClaimBacklog, ClaimNextRequest, ClaimNextResponse, ClaimRequest, ClaimResponse, ItemClaim};
pub use finish::{
    AckDone, AckItem, AcknowledgeRequest, AcknowledgeResponse, HeartbeatItem, HeartbeatRequest, HeartbeatResponse, LeaseExtended,
    ReleaseRequest,
};
pub use item::{InboxItem, ItemAttempt};
pub use operate::{BulkRequest, BulkResponse, InboxItemFilter, ItemTarget, PauseRequest};
pub use poll::{PollRequest, PollResponse};
pub use seconds::Seconds;
pub use session::{SessionSubscribed, SubscribeRequest};
pub use splice::{EnvelopeMembers, envelope_members};
pub use state::{ClaimConcurrency, InboxHead, InboxPolicy, InboxPresence, InboxState, PresenceRequest, RecipientRef};
pub use words::{AckResult, AckState, AttemptOutcome, DeadLetterState, ItemOutcome, PresenceState, Transport};
