//! Wire types: REST bodies, gateway frames, problem codes. Shared by server and client.
//!
//! Architecture invariant: this crate knows `domain` and nobody else. It says how things look on the wire, never what is allowed.

mod body;
mod close;
mod cloudevents;
mod consumer;
mod encode;
mod event;
mod frames;
mod hooks;
mod inbox;
mod limits;
mod page;
mod parse;
mod payload;
mod problem;
mod publish;
mod reason;
mod strict;
mod text;
mod vocabulary;

/// Bodies of the administration routes.
pub mod admin;
/// Descriptions of wire forms for the schema generators.
pub mod schema;

pub use body::{InvalidBody, parse_body};
pub use close::{CloseCode, Reconnect};
pub use cloudevents::{CloudEventsMode, parse_cloudevents};
pub use consumer::{ConsumerAck, ConsumerHolder, ConsumerItem, ConsumerState, HolderKind};
pub use encode::write_event_page;
pub use event::{EventActor, EventActorKind, EventEnvelope, EventHead, EventPage, EventPayloadRef};
pub use frames::{
    Ack, CatchupComplete, ClientFrame, ClientOp, Cursor, Dispatch, FrameFault, FrameMessage, FrameMessages, GatewayError, Heartbeat,
    HeartbeatAck, Hello, Identify, InboxUpdated, PROTOCOL, QueueDigest, Ready, ReadyPrincipal, Resume, Resumed, ResyncRequired,
    ServerFrame, ServerOp, frame_messages,
};
pub use hooks::{
    AttemptResult, AuthMode, CallbackPublicKey, CallbackRegistered, CallbackRegistration, CallbackRotate, CallbackRotated, CallbackUrl,
    CallbackVerify, DeliveryScope, DisabledCause, HookAttempt, HookHealth, HookKeyId, HookState, NewCallbackRegistration, NewNotifyHook,
    NotifyHook, NotifyHookChange, NotifyHookCreated, NotifyHookRotated, PublicSigningKey, RingReason, SigningKeys,
};
pub use inbox::{
    AckDone, AckItem, AckResult, AckState, AcknowledgeRequest, AcknowledgeResponse, AttemptOutcome, BulkRequest, BulkResponse,
    ClaimBacklog, ClaimConcurrency, ClaimNextRequest, ClaimNextResponse, ClaimRequest, ClaimResponse, DeadLetterState, EnvelopeMembers,
    HeartbeatItem, HeartbeatRequest, HeartbeatResponse, InboxHead, InboxItem, InboxItemFilter, InboxPolicy, InboxPresence, InboxState,
    ItemAttempt, ItemClaim, ItemOutcome, ItemTarget, LeaseExtended, PauseRequest, PollRequest, PollResponse, PresenceRequest,
    PresenceState, RecipientRef, ReleaseRequest, Seconds, SessionSubscribed, SubscribeRequest, Transport, envelope_members,
};
pub use limits::PublishLimits;
pub use page::Page;
pub use parse::parse_publish;
pub use payload::check_kept_json;
pub use problem::{PROBLEM_MEDIA_TYPE, Problem, ProblemCode};
pub use publish::{
    Correlation, EventBatch, EventInput, PayloadRef, Priority, PublishRequest, PublishResponse, PublishedEvent, PublishedItem, Recipient,
    RecipientKind,
};
pub use reason::{Reason, ResyncReason};
pub use text::{DisplayName, Label, QueueName, Secret, Summary};
pub use vocabulary::{Open, Vocabulary};
